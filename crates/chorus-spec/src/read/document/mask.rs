//! Credentials in a document: hidden when it is shown, and refused when what was shown comes back.

use super::super::yaml::{Kind, Node};
use crate::diagnostic::is_variable;

/// Stands where a literal credential was.
pub const MASK: &str = "***";

/// Last words of keys whose value is a credential.
const SECRET_WORDS: [&str; 8] =
    ["password", "passwd", "secret", "token", "authorization", "credential", "credentials", "cookie"];

/// Words that make a `key` a credential.
const SECRET_KEYS: [&str; 7] = ["api", "access", "private", "secret", "auth", "master", "signing"];

/// What may stand before a variable in a header.
const SCHEMES: [&str; 3] = ["Bearer ", "Basic ", "Token "];

/// Replaces credentials; `key` is the one that the node stands at.
pub(super) fn hide(node: &mut Node, key: &str) {
    match &mut node.kind {
        Kind::Map(entries) => entries.iter_mut().for_each(|e| hide(&mut e.value, &e.key)),
        Kind::Seq(items) => items.iter_mut().for_each(|item| hide(item, key)),
        Kind::Scalar { text, plain } => {
            if is_secret_key(key) && !text.is_empty() && !is_reference(text) {
                (*text, *plain) = (MASK.to_owned(), false);
            } else if let Some(hidden) = without_password(text) {
                *text = hidden;
            }
        }
    }
}

/// Collects where a credential is a mask.
pub(super) fn find(node: &Node, key: &str, path: &str, found: &mut Vec<String>) {
    match &node.kind {
        Kind::Map(entries) => {
            for entry in entries {
                let at = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
                find(&entry.value, &entry.key, &at, found);
            }
        }
        Kind::Seq(items) => {
            for (at, item) in items.iter().enumerate() {
                find(item, key, &format!("{path}[{at}]"), found);
            }
        }
        Kind::Scalar { text, .. } => {
            let masked = is_secret_key(key) && text == MASK;
            if masked || text.contains(&format!("://{MASK}@")) {
                found.push(path.to_owned());
            }
        }
    }
}

/// Whether values of this key are credentials: `api_key`, `X-Api-Key`, `auth_token`; not `max_tokens`, `api_key_env`.
fn is_secret_key(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let mut words = key.rsplit(['_', '-', '.', ' ']);
    let (last, before) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    SECRET_WORDS.contains(&last)
        || (last == "key" && SECRET_KEYS.contains(&before))
        || SECRET_KEYS.iter().any(|word| last.strip_suffix("key") == Some(word))
}

/// One `${NAME}`, with a scheme before it or without.
fn is_reference(text: &str) -> bool {
    let bare = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text);
    is_variable(bare)
}

/// `https://user:password@host` without the part before `@`.
fn without_password(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, host) = authority.rsplit_once('@')?;
    if is_variable(user) {
        return None;
    }
    let path = rest.get(authority.len()..)?;
    Some(format!("{scheme}://{MASK}@{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use serde_json::json;

    #[test]
    fn literal_credentials_are_hidden_and_variables_stay() {
        let text = "
models:
  - { name: a, api_key: sk-1, api_key_env: KEY, max_tokens: 5, min_tokens: 32K }
  - { name: b, api_key: \"${KEY}\", base_url: \"https://u:p@h/v1?x=@\" }
  - { name: c, api_key: \"${KEY:-sk-2}\", auth_prefix: Bearer }
headers:
  Authorization: Bearer ${KEY}
  X-Api-Key: [sk-3, '${KEY}']
  apikey: 12345
  Cookie: a=b
stores: { password: '', auth_token: |
    sk-4
  }
";
        let shown = Document::parse(text).unwrap().masked();
        let json = shown.to_json();
        assert!(!shown.to_yaml().contains("sk-"), "{}", shown.to_yaml());
        assert_eq!(
            json["models"][0],
            json!({"name": "a", "api_key": "***", "api_key_env": "KEY", "max_tokens": 5, "min_tokens": "32K"})
        );
        assert_eq!(json["models"][1]["api_key"], "${KEY}");
        assert_eq!(json["models"][1]["base_url"], "https://***@h/v1?x=@");
        assert_eq!(
            json["headers"],
            json!({"Authorization": "Bearer ${KEY}", "X-Api-Key": ["***", "${KEY}"], "apikey": "***", "Cookie": "***"})
        );
        assert_eq!(
            shown.masks(),
            [
                "models[0].api_key",
                "models[1].base_url",
                "models[2].api_key",
                "headers.X-Api-Key[0]",
                "headers.apikey",
                "headers.Cookie",
                "stores.auth_token"
            ]
        );
        assert!(Document::parse(text).unwrap().masks().is_empty());
    }
}
