//! What may be neither kept nor shown: the patterns of the configuration, and kinds of personal data.

use regex::{RegexSet, RegexSetBuilder};

/// Kinds of personal data that a user may well want to be remembered by: who they are and where, not how they can be
/// reached, paid, identified or impersonated.
const ABOUT_ONESELF: [&str; 9] =
    ["AGE", "DATE_TIME", "DOMAIN_NAME", "GPE", "NRP", "ORGANIZATION", "PERSON", "TITLE", "ZIP_CODE"];

/// Patterns of the configuration, without regard to case.
pub(super) struct Blocked(RegexSet);

impl Blocked {
    /// They were checked when the file was read; a set that cannot be built blocks everything.
    pub(super) fn of(patterns: &[String]) -> Self {
        let set = RegexSetBuilder::new(patterns).case_insensitive(true).build();
        Self(set.or_else(|_| RegexSet::new([""])).unwrap_or_else(|_| RegexSet::empty()))
    }

    pub(super) fn finds(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Whether a datum of that kind keeps a statement from being remembered.
pub(super) fn is_private(kind: &str) -> bool {
    !ABOUT_ONESELF.contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_hold_whatever_the_case() {
        let blocked = Blocked::of(&["acct [0-9]+".to_owned()]);
        assert!(blocked.finds("my ACCT 12") && !blocked.finds("my account"));
        assert!(!Blocked::of(&[]).finds("anything"));
        assert!(Blocked::of(&["(".to_owned()]).finds("anything"), "what cannot be read blocks everything");
    }

    #[test]
    fn secrets_and_numbers_are_private_and_a_name_is_not() {
        for kind in ["CREDIT_CARD", "EMAIL_ADDRESS", "PASSWORD", "API_KEY", "US_SSN"] {
            assert!(is_private(kind), "{kind}");
        }
        assert!(!is_private("PERSON"));
    }
}
