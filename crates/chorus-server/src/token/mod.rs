//! Who a token (JWT) says that a caller is.
//!
//! A token is checked by the keys of its issuer, one of those that the configuration names; its claims name the user and
//! the groups. It knows no request and no route.
//!
//! **Invariant:** nothing of a token is believed before its signature is. A token that cannot be checked opens nothing,
//! whatever the reason: an issuer that cannot be reached is a refusal too.

mod claims;
mod keyring;
mod ring_keys;

use chorus_engine::{Caller, Voucher};
use chorus_spec::TokenIssuer;
use chorus_upstream::{ClientOptions, TlsFault, Upstream};
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use keyring::{Keyring, KeyringFault};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Longest token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// Why a token opens nothing. Texts repeat no part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenFault {
    /// Not a token of three parts, or one that is too long.
    #[error("the token cannot be read")]
    Unreadable,
    /// No issuer of the configuration, or an algorithm that the issuer may not use.
    #[error("the token is not of an issuer and an algorithm that this server accepts")]
    Foreign,
    /// No key of the issuer has its name.
    #[error("the token is signed with a key that its issuer does not have")]
    UnknownKey,
    /// The signature, a time, the issuer or the audience is wrong.
    #[error("the token is not valid: {0}")]
    Invalid(&'static str),
    /// It names no user.
    #[error("the token names no user (claim `{0}`)")]
    Nobody(String),
    /// The issuer's keys cannot be had.
    #[error("the keys of the token's issuer cannot be had at the moment")]
    Unavailable,
}

/// Checks tokens. Cloning shares the keys that were fetched; they outlive a change of configuration.
#[derive(Clone)]
pub(crate) struct Tokens {
    client: Upstream,
    rings: Arc<Mutex<BTreeMap<TokenIssuer, Arc<Keyring>>>>,
}

impl Tokens {
    /// # Errors
    /// [`TlsFault`].
    pub(crate) fn new() -> Result<Self, TlsFault> {
        ring_keys::install();
        Ok(Self { client: Upstream::new(&ClientOptions::default())?, rings: Arc::default() })
    }

    /// The caller whom a token names.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub(crate) async fn caller(&self, issuers: &[TokenIssuer], token: &str) -> Result<Caller, TokenFault> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenFault::Unreadable);
        }
        let header = decode_header(token).map_err(|_| TokenFault::Unreadable)?;
        // What it says of its issuer only chooses whose keys are tried.
        let named = claims::issuer(token).ok_or(TokenFault::Unreadable)?;
        let issuer = issuers.iter().find(|it| it.issuer == named).ok_or(TokenFault::Foreign)?;
        let algorithm = ring_keys::algorithm(issuer, &header).ok_or(TokenFault::Foreign)?;
        let key = self.ring(issuer).key(&self.client, header.kid.as_deref(), algorithm).await?;
        let claims = checked(token, &key, issuer, &header)?;
        let user = claims::text(&claims, &issuer.user_claim);
        let user = user.ok_or_else(|| TokenFault::Nobody(issuer.user_claim.clone()))?;
        let groups = claims::list(&claims, &issuer.groups_claim);
        Caller::new(&user, groups, Voucher::Token)
            .ok_or_else(|| TokenFault::Nobody(issuer.user_claim.clone()))
    }

    fn ring(&self, issuer: &TokenIssuer) -> Arc<Keyring> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(rings.entry(issuer.clone()).or_insert_with(|| Arc::new(Keyring::of(issuer))))
    }
}

impl From<KeyringFault> for TokenFault {
    fn from(fault: KeyringFault) -> Self {
        match fault {
            KeyringFault::Unknown => Self::UnknownKey,
            KeyringFault::Unavailable => Self::Unavailable,
        }
    }
}

/// Whether a text has the shape of a token; an API key has not.
pub(crate) fn is_token(text: &str) -> bool {
    text.split('.').count() == 3 && text.starts_with("ey")
}

/// The claims, once signature, times, issuer and audience are right.
fn checked(
    token: &str,
    key: &DecodingKey,
    issuer: &TokenIssuer,
    header: &Header,
) -> Result<Value, TokenFault> {
    let mut validation = Validation::new(header.alg);
    validation.leeway = issuer.leeway.as_secs();
    validation.validate_nbf = true;
    validation.set_issuer(&[&issuer.issuer]);
    validation.set_audience(&issuer.audiences);
    validation.set_required_spec_claims(&["exp", "iss", "aud"]);
    let decoded = decode::<Value>(token, key, &validation);
    decoded.map(|it| it.claims).map_err(|fault| TokenFault::Invalid(word(&fault)))
}

fn word(fault: &jsonwebtoken::errors::Error) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match fault.kind() {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it does not hold yet",
        ErrorKind::InvalidAudience => "it is for somebody else",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::MissingRequiredClaim(_) => "it lacks `exp`, `iss` or `aud`",
        _ => "its signature or form is wrong",
    }
}
