//! Keys, tokens and passwords.
//!
//! It knows the forms that services give their keys, and the words that stand before a secret. Source: the services' own
//! descriptions of their key formats. **Invariant:** a place to write a secret (`YOUR_KEY`, `${TOKEN}`) is no secret.

use super::entity::Entity;
use super::mask::compact;
use super::span::Span;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;
use std::sync::LazyLock;

/// Longest secret that is followed to its end, in bytes.
const LONGEST: usize = 4096;
/// Bits a character of a random token: English words have less. Source: Shannon 1951; secret scanners use 3 to 4.5.
const RANDOM_BITS: f64 = 3.0;

/// Beginnings of keys, the fewest characters that follow, and their service.
const PREFIXES: &[(&str, usize, &str)] = &[
    ("sk-ant-", 20, "anthropic_key"),
    ("sk-proj-", 20, "openai_key"),
    ("sk-or-v1-", 20, "openrouter_key"),
    ("sk-", 20, "openai_key"),
    ("AKIA", 16, "aws_access_key"),
    ("ASIA", 16, "aws_access_key"),
    ("ghp_", 30, "github_token"),
    ("gho_", 30, "github_token"),
    ("ghu_", 30, "github_token"),
    ("ghs_", 30, "github_token"),
    ("ghr_", 30, "github_token"),
    ("github_pat_", 30, "github_token"),
    ("glpat-", 20, "gitlab_token"),
    ("xoxb-", 20, "slack_token"),
    ("xoxp-", 20, "slack_token"),
    ("xoxa-", 20, "slack_token"),
    ("xapp-", 20, "slack_token"),
    ("AIza", 30, "google_key"),
    ("ya29.", 30, "google_token"),
    ("GOCSPX-", 20, "google_secret"),
    ("sk_live_", 16, "stripe_key"),
    ("rk_live_", 16, "stripe_key"),
    ("sk_test_", 16, "stripe_key"),
    ("whsec_", 20, "stripe_secret"),
    ("SG.", 40, "sendgrid_key"),
    ("npm_", 30, "npm_token"),
    ("pypi-", 40, "pypi_token"),
    ("hf_", 30, "huggingface_token"),
    ("gsk_", 30, "groq_key"),
    ("xai-", 30, "xai_key"),
    ("dop_v1_", 40, "digitalocean_token"),
    ("shpat_", 30, "shopify_token"),
    ("eyJ", 20, "jwt"),
    ("-----BEGIN ", 10, "private_key"),
];

#[expect(
    clippy::unwrap_used,
    reason = "the patterns are a constant, and every test of this file builds them"
)]
static BEGINNINGS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = PREFIXES.iter().map(|(prefix, ..)| prefix);
    AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(words).unwrap()
});

/// A word for a secret, a sign, and what follows.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and every test of this file builds it")]
static NAMED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)(?:(passwords?|\bpass\b|passwd|pwd|passphrase|passcode|passwort|contraseña|mot de passe|密码)|(secret|token|api[_ -]?key|access[_ -]?key|secret[_ -]?key|client[_ -]?secret|auth[_ -]?key|private[_ -]?key|authorization|bearer|credential))["']?(?:\s{0,2}(?:[:=：]{1,2}>?|\bis\b|\blautet\b|\bes\b|是)\s{0,2}|\s)(?:bearer |basic |is )?["'`]?([^\s"'`,;)}\]]{6,256})"#,
    )
    .unwrap()
});

/// Whether a text may name a secret: what [`named`] needs to be asked for at all.
#[expect(
    clippy::unwrap_used,
    reason = "the patterns are a constant, and every test of this file builds them"
)]
static WORDS: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let words = [
        "pass",
        "pwd",
        "secret",
        "token",
        "key",
        "bearer",
        "authorization",
        "credential",
        "contrase",
        "密码",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).unwrap()
});

/// Secrets by their form.
pub(super) fn formed(text: &str, found: &mut Vec<Span>) {
    let mut after = 0;
    for hit in BEGINNINGS.find_iter(text) {
        let Some((prefix, least, name)) = PREFIXES.get(hit.pattern().as_usize()) else { continue };
        let start = hit.start();
        if start < after || joined(text, start) {
            continue;
        }
        let (entity, end) = match *name {
            "private_key" => (Entity::PrivateKey, pem(text, start)),
            "jwt" => (Entity::Jwt, jwt(text, start)),
            _ => (Entity::ApiKey, token(text, start, prefix.len(), *least)),
        };
        if let Some(end) = end {
            after = end;
            found.push(Span { entity, bytes: start..end, score: 0.98, recogniser: name });
        }
    }
}

/// Whether the beginning is the middle of a longer word.
fn joined(text: &str, start: usize) -> bool {
    text.as_bytes()
        .get(..start)
        .and_then(|before| before.last())
        .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// Letters, digits and the signs of tokens from here.
fn run(text: &str, start: usize) -> &str {
    let rest = text.get(start..).unwrap_or_default();
    let token = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let length = rest.bytes().take(LONGEST).take_while(token).count();
    rest.get(..length).unwrap_or_default().trim_end_matches(['.', '-'])
}

/// The end of a key that is long enough and random.
fn token(text: &str, start: usize, prefix: usize, least: usize) -> Option<usize> {
    let whole = run(text, start);
    let secret = whole.get(prefix..)?;
    let disordered = secret.bytes().any(|b| b.is_ascii_digit()) && bits(secret) >= RANDOM_BITS;
    (secret.len() >= least && disordered && !is_code(secret)).then_some(start + whole.len())
}

/// The end of a signed token: three parts, the first two of them JSON in base64. Source: RFC 7519, §3.
fn jwt(text: &str, start: usize) -> Option<usize> {
    let whole = run(text, start);
    let parts: Vec<&str> = whole.split('.').collect();
    let json = matches!(parts.as_slice(), [_, payload, signature] if payload.starts_with("eyJ") && signature.len() >= 16);
    json.then_some(start + whole.len())
}

/// The end of a private key: its closing line, or as much of it as is there.
fn pem(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let line = rest.lines().next()?;
    if !line.contains("PRIVATE KEY") {
        return None;
    }
    let bound = rest.get(..rest.floor_char_boundary(LONGEST)).unwrap_or(rest);
    let closing = bound.find("-----END ").map(|at| {
        let tail = bound.get(at + 9..).unwrap_or_default();
        at + 9 + tail.find("-----").map_or(0, |end| end + 5)
    });
    let body = line.trim_end().len();
    Some(start + closing.unwrap_or(body))
}

/// Secrets by the word before them.
pub(super) fn named(text: &str, found: &mut Vec<Span>) {
    if !WORDS.is_match(text) {
        return;
    }
    for hit in NAMED.captures_iter(text) {
        let Some(value) = hit.get(3) else { continue };
        let password = hit.get(1).is_some();
        let secret = value.as_str().trim_end_matches(['.', '?', ':']);
        let signed = hit.get(0).is_some_and(|all| has_sign(all.as_str(), value.as_str()));
        let (entity, name) =
            if password { (Entity::Password, "named_password") } else { (Entity::Secret, "named_secret") };
        let score = match (password, is_random(secret), is_chosen(secret)) {
            (_, true, _) if secret.len() >= 16 => 0.95,
            (true, _, true) if signed => 0.93,
            _ => continue,
        };
        let bytes = value.start()..value.start() + secret.len();
        found.push(Span { entity, bytes, score, recogniser: name });
    }
}

/// Whether more than a space stands between the word and the value.
fn has_sign(all: &str, value: &str) -> bool {
    let before = all.strip_suffix(value).unwrap_or_default().to_lowercase();
    before.contains([':', '=', '：', '是']) || before.contains(" is ") || before.contains(" es ")
}

/// A password as people choose them: letters with digits or signs, and no code.
fn is_chosen(text: &str) -> bool {
    let letters = text.chars().any(char::is_alphabetic);
    let digits = text.chars().any(|c| c.is_ascii_digit());
    let marks = text.contains(['!', '@', '#', '%', '^', '&', '*', '?']);
    letters && (digits || marks) && !is_code(text)
}

/// Calls, variables, paths and places to write something.
fn is_code(text: &str) -> bool {
    text.contains(['(', '[', '{', '<', '>', '$', '\\'])
        || text.contains("://")
        || text.contains("...")
        || text.contains("::")
        || text.contains("->")
        || text.starts_with(['/', '*', '%', '&'])
        || text.to_lowercase().contains("your")
        || text.chars().filter(|c| matches!(c, '*' | 'x' | 'X' | '•')).count() * 2 > text.chars().count()
}

/// Random enough for a token: letters and digits in disorder, not words.
fn is_random(text: &str) -> bool {
    let plain = compact(text);
    let digits = plain.chars().filter(char::is_ascii_digit).count();
    digits >= 2 && digits < plain.len() && bits(text) >= RANDOM_BITS && !is_code(text)
}

/// Entropy of the characters in bits. Source: Shannon 1948, §6.
fn bits(text: &str) -> f64 {
    let mut counts = [0_u32; 128];
    let mut total = 0.0_f64;
    for byte in text.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
            total += 1.0;
        }
    }
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total);
    shares.map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key's text is put together here, so that no scanner takes this file for a leak.
    fn kinds(text: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        formed(text, &mut found);
        named(text, &mut found);
        found.iter().map(|span| span.recogniser).collect()
    }

    const TAIL: &str = "a8Fk29dLq0Zx73Bv51Nm64Tr82Wy9Qs";

    #[test]
    fn keys_of_services() {
        for (prefix, least, name) in PREFIXES.iter().filter(|row| !matches!(row.2, "jwt" | "private_key")) {
            let secret: String = TAIL.chars().cycle().take(least + 4).collect();
            let text = format!("use {prefix}{secret} please");
            assert_eq!(kinds(&text), [*name], "{prefix}");
            assert!(kinds(&format!("use {prefix}your-key-goes-in-here-now please")).is_empty(), "{prefix}");
        }
    }

    #[test]
    fn private_keys_and_signed_tokens() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- rest";
        let mut found = Vec::new();
        formed(key, &mut found);
        assert_eq!(&key[found[0].bytes.clone()], key.strip_suffix(" rest").unwrap());
        assert!(kinds("-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----").is_empty());
        let signed = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{TAIL}");
        assert_eq!(kinds(&signed), ["jwt"]);
        assert!(kinds("eyJhbGciOiJIUzI1NiJ9").is_empty());
    }

    #[test]
    fn what_is_called_a_secret() {
        for (text, want) in [
            ("password: hunter2!x", vec!["named_password"]),
            ("user: alice pass: Secret123!", vec!["named_password"]),
            ("all tests pass in 12.5 seconds", vec![]),
            ("My password is Tr0ub4dor&3", vec!["named_password"]),
            ("Authorization: Bearer a8Fk29dLq0Zx73Bv51Nm", vec!["named_secret"]),
            ("API_KEY=\"a8Fk29dLq0Zx73Bv51Nm\"", vec!["named_secret"]),
            ("password = input(\"Your password: \")", vec![]),
            ("token = os.environ[\"TOKEN_1\"]", vec![]),
            ("api_key: ${API_KEY_1}", vec![]),
            ("password: ********", vec![]),
            ("The secret is patience and 10 minutes", vec![]),
            ("How do I reset the password of my account?", vec![]),
            ("the key lookup is O(log n)", vec![]),
        ] {
            assert_eq!(kinds(text), want, "{text}");
        }
    }
}
