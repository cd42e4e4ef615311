//! Who asks, as somebody vouched for it.
//!
//! It knows no header and no key: the door and the engine establish who the caller is, from a trusted proxy's headers or
//! from an API key, and say how. A header that the client wrote itself is never identity (E07).
//!
//! **Invariant:** a caller has a user id that is not empty.

/// A caller whose identity has been established.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    user: String,
    groups: Vec<String>,
    vouched_by: Voucher,
}

/// Who vouches for a caller's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voucher {
    /// A proxy that the configuration trusts, by the headers that it sets.
    TrustedProxy,
    /// An API key that this process checked.
    ApiKey,
    /// A token of an issuer that the configuration names, which this process checked.
    Token,
}

impl Caller {
    /// A caller of that user id and those groups; `None` when the id is empty, because nobody has been named then.
    #[must_use]
    pub fn new(user: &str, groups: Vec<String>, vouched_by: Voucher) -> Option<Self> {
        let user = user.trim();
        (!user.is_empty()).then(|| Self { user: user.to_owned(), groups, vouched_by })
    }

    /// The user's id.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The names of the user's groups.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Who vouches for it.
    #[must_use]
    pub fn vouched_by(&self) -> Voucher {
        self.vouched_by
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_not_a_caller() {
        for nobody in ["", "  "] {
            assert_eq!(Caller::new(nobody, vec!["staff".to_owned()], Voucher::TrustedProxy), None);
        }
        let caller = Caller::new(" ada ", Vec::new(), Voucher::ApiKey).unwrap();
        assert_eq!((caller.user(), caller.vouched_by()), ("ada", Voucher::ApiKey));
    }
}
