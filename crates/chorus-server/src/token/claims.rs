//! What a token says, as text and lists.
//!
//! It checks nothing. **Invariant:** a claim of another shape than asked for is as good as absent.

use jsonwebtoken::dangerous::insecure_decode_claims;
use serde_json::Value;

/// What an unchecked token says of its issuer.
pub(super) fn issuer(token: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Unchecked {
        iss: String,
    }
    insecure_decode_claims::<Unchecked>(token).ok().map(|claims| claims.iss)
}

/// A claim that is a text.
pub(super) fn text(claims: &Value, name: &str) -> Option<String> {
    claim(claims, name)?.as_str().map(str::to_owned)
}

/// A claim that is a list of texts, or a text of words (as `scope` is).
pub(super) fn list(claims: &Value, name: &str) -> Vec<String> {
    match claim(claims, name) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(words)) => words.split_whitespace().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The claim of that name; else, where it has dots, the one inside of others (`realm_access.roles`).
fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| name.split('.').try_fold(claims, |at, key| at.get(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_are_found_by_name_and_by_path() {
        let claims = json!({
            "sub": "ada", "https://x.example/roles": ["a"], "realm_access": {"roles": ["b", 7, "c"]}, "scope": "d e", "n": 1
        });
        assert_eq!(text(&claims, "sub").as_deref(), Some("ada"));
        assert_eq!(text(&claims, "n"), None);
        assert_eq!(list(&claims, "https://x.example/roles"), ["a"]);
        assert_eq!(list(&claims, "realm_access.roles"), ["b", "c"]);
        assert_eq!(list(&claims, "scope"), ["d", "e"]);
        assert!(list(&claims, "groups").is_empty());
    }
}
