//! Who may come in: API keys and tokens at the data plane, roles at the management plane.
//!
//! It knows keys and permissions, not what is asked. **Invariant:** with keys required nothing but `/health` and `/ready`
//! (which stand outside) is answered without a key or a token; a key or a token that cannot be checked is refused, required or not; with roles, no endpoint of the management plane is answered without a token whose role has
//! its permission. Refusals say neither whether a key exists nor what it might open.

use crate::door::Door;
use crate::manage;
use crate::reply;
use crate::token::{self, TokenFault};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use chorus_engine::{Caller, Env, Voucher};
use chorus_spec::ManagementAuth;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::pin::{Pin, pin};
use std::sync::Arc;

/// Headers that clients put a key in: OpenAI's, Anthropic's and Azure's.
static KEY_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("x-api-key"), HeaderName::from_static("api-key")];

tokio::task_local! {
    /// Whom this request's key or token names. It goes with the request's task, because every handler of every door would
    /// have to hand it on otherwise, and none could be trusted not to forget.
    static NAMED: Option<Arc<Caller>>;
}

/// Lets in whoever has a key or a token, where one is required; a token that is wrong never passes.
pub(crate) async fn data(State(door): State<Door>, request: Request, next: Next) -> Response {
    match admitted(&door, request.headers()).await {
        Ok(named) => naming(named, pin!(next.run(request))).await,
        Err(refusal) => refusal,
    }
}

/// Whom a request's key or token names, if anybody.
///
/// # Errors
/// The response that refuses it.
pub(crate) async fn admitted(door: &Door, headers: &HeaderMap) -> Result<Option<Arc<Caller>>, Response> {
    let named = named(door, headers).await?;
    if door.requires_keys() && named.is_none() {
        return Err(refused("the request has no API key that this server knows"));
    }
    Ok(named)
}

/// Answers in the name of that caller. The answer is borrowed, because one that is handed over by value has its room twice.
pub(crate) async fn naming(
    named: Option<Arc<Caller>>,
    answer: Pin<&mut impl Future<Output = Response>>,
) -> Response {
    match named {
        Some(_) => NAMED.scope(named, answer).await,
        None => answer.await,
    }
}

/// The caller whom the guard has named for the request that is being answered.
pub(crate) fn caller() -> Option<Arc<Caller>> {
    NAMED.try_with(Clone::clone).ok().flatten()
}

async fn named(door: &Door, headers: &HeaderMap) -> Result<Option<Arc<Caller>>, Response> {
    if let Some(caller) = of_key(door, headers).await? {
        return Ok(Some(Arc::new(caller)));
    }
    let serving = door.engine.serving();
    let issuers = &serving.spec.global.token_issuers;
    let Some(token) = bearer(headers).filter(|text| !issuers.is_empty() && token::is_token(text)) else {
        return Ok(None);
    };
    let checked = match door.tokens() {
        Some(tokens) => tokens.caller(issuers, token).await,
        None => Err(TokenFault::Unavailable),
    };
    checked.map(|caller| Some(Arc::new(caller))).map_err(|fault| match fault {
        TokenFault::Unavailable => unavailable(&fault.to_string()),
        _ => challenged("invalid_token", &fault.to_string()),
    })
}

/// The caller whose key is in the headers. A key that cannot be looked up opens nothing, and is not called wrong.
async fn of_key(door: &Door, headers: &HeaderMap) -> Result<Option<Caller>, Response> {
    let (Some(keys), Some(presented)) = (door.keys.as_ref(), presented(headers)) else { return Ok(None) };
    match keys.find(presented).await {
        Ok(found) => Ok(found.and_then(|key| Caller::new(&key.user, key.groups, Voucher::ApiKey))),
        Err(fault) => {
            tracing::error!(%fault, "API keys cannot be looked up");
            Err(unavailable("API keys cannot be looked up at the moment"))
        }
    }
}

fn presented(headers: &HeaderMap) -> Option<&str> {
    let named = KEY_HEADERS.iter().find_map(|name| headers.get(name)?.to_str().ok());
    bearer(headers).or(named)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Nobody can be told from anybody at present.
fn unavailable(why: &str) -> Response {
    let mut response = reply::refusal(StatusCode::SERVICE_UNAVAILABLE, "identity_unavailable", why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

fn refused(why: &str) -> Response {
    challenged("invalid_api_key", why)
}

fn challenged(code: &str, why: &str) -> Response {
    let mut response = reply::refusal(StatusCode::UNAUTHORIZED, code, why);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Lets in whoever has a token whose role may do this, where the configuration has roles.
pub(crate) async fn management(State(door): State<Door>, request: Request, next: Next) -> Response {
    let serving = door.engine.serving();
    let Some(auth) = &serving.spec.global.management_auth else {
        return next.run(request).await;
    };
    let role = bearer(request.headers()).and_then(|token| role(auth, &serving.env, token));
    let Some(role) = role else {
        return refused("the request has no token that this server knows");
    };
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let needed = route.and_then(|path| manage::permission(request.method().as_str(), path));
    let has = auth.roles.get(role).map(Vec::as_slice).unwrap_or_default();
    let may = |permission: &str| has.iter().any(|it| it == "*" || it == permission);
    // What has no permission of its own (a path that is not there) tells nothing to whoever got this far.
    if needed.is_none_or(may) {
        return next.run(request).await;
    }
    let text = format!("the role `{role}` may not do this; it needs `{}`", needed.unwrap_or_default());
    reply::refusal(StatusCode::FORBIDDEN, "permission_denied", &text)
}

/// The role of a token. All are compared, by their hashes, so that time tells nothing of them.
fn role<'a>(auth: &'a ManagementAuth, env: &Env, token: &str) -> Option<&'a str> {
    let given = Sha256::digest(token.as_bytes());
    let mut found = None;
    for (secret, role) in &auth.tokens {
        let known = env.reveal(secret).ok().filter(|known| !known.is_empty());
        if known.is_some_and(|known| Sha256::digest(known.as_bytes()) == given) {
            found = Some(role.as_str());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_clients_put_them() {
        let rows = [
            (&[("authorization", "Bearer ck_1")][..], Some("ck_1")),
            (&[("authorization", "bearer  ck_1 ")], Some("ck_1")),
            (&[("authorization", "Basic ck_1")], None),
            (&[("x-api-key", "ck_2")], Some("ck_2")),
            (&[("api-key", "ck_3")], Some("ck_3")),
            (&[("x-other", "ck_4")], None),
        ];
        for (pairs, want) in rows {
            let headers: HeaderMap =
                pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            assert_eq!(presented(&headers), want, "{pairs:?}");
        }
    }

    #[test]
    fn a_token_has_the_role_of_its_variable_and_an_unset_one_has_none() {
        let secret = |name: &str| chorus_spec::Secret::new(format!("${{{name}}}"));
        let tokens = vec![(secret("ADMIN"), "admin".to_owned()), (secret("UNSET"), "admin".to_owned())];
        let auth = ManagementAuth { tokens, roles: Default::default() };
        let env = Env::having(&[("ADMIN", "t-1")]);
        assert_eq!(role(&auth, &env, "t-1"), Some("admin"));
        assert_eq!(role(&auth, &env, ""), None);
        assert_eq!(role(&auth, &env, "t-2"), None);
    }
}
