//! What a client wishes of the cache: the route's own header, and HTTP's `Cache-Control`.
//!
//! A client can always keep away from the cache (case F09); to have an answer stored, or for how long, is the operator's
//! to allow. **Invariant:** a word that cannot be read has no effect.

use crate::run::Controls;
use chorus_spec::{CacheControls, CacheDirective};
use std::time::Duration;

/// What a client wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wishes {
    /// Whether answers may be looked up.
    pub(super) lookup: bool,
    /// Whether the answer may be stored.
    pub(super) store: bool,
    /// The oldest answer that will do.
    pub(super) max_age: Option<Duration>,
    /// How long the answer is to be good.
    pub(super) ttl: Option<Duration>,
    /// Whether it asks for the cache in so many words.
    pub(super) asked: bool,
}

impl Wishes {
    pub(super) fn of(controls: &Controls, settings: &CacheControls) -> Self {
        let mut wishes = Self { lookup: true, store: true, max_age: None, ttl: None, asked: false };
        for (directive, seconds) in directives(controls.get(&settings.header)) {
            if settings.allowed.contains(&directive) {
                wishes.follow(directive, seconds, settings);
            }
        }
        if settings.header != HTTP {
            for (directive, seconds) in directives(controls.get(HTTP)) {
                // What HTTP asks for can keep away from the cache and no more.
                if matches!(
                    directive,
                    CacheDirective::NoCache | CacheDirective::NoStore | CacheDirective::MaxAge
                ) {
                    let asked = wishes.asked;
                    wishes.follow(directive, seconds, settings);
                    wishes.asked = asked;
                }
            }
        }
        wishes
    }

    fn follow(&mut self, directive: CacheDirective, seconds: Option<u64>, settings: &CacheControls) {
        match directive {
            CacheDirective::NoCache => self.lookup = false,
            CacheDirective::NoStore => self.store = false,
            CacheDirective::Bypass => (self.lookup, self.store) = (false, false),
            CacheDirective::MaxAge => {
                if let Some(seconds) = seconds {
                    let wished = Duration::from_secs(seconds);
                    self.max_age = Some(self.max_age.map_or(wished, |have| have.min(wished)));
                    self.lookup &= seconds > 0;
                    self.asked |= settings.enabled;
                }
            }
            CacheDirective::Ttl => {
                if let Some(seconds) = seconds.filter(|seconds| settings.enabled && *seconds > 0) {
                    let wished = Duration::from_secs(seconds);
                    self.ttl = Some(settings.max_ttl.map_or(wished, |most| most.min(wished)));
                    self.asked = true;
                }
            }
        }
    }
}

/// The header of HTTP.
const HTTP: &str = "cache-control";

/// The directives of a header, each with its seconds.
fn directives(value: Option<&str>) -> Vec<(CacheDirective, Option<u64>)> {
    let words = value.unwrap_or_default().split(',');
    words
        .filter_map(|word| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let directive =
                CacheDirective::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name.trim()))?;
            Some((directive.1, value.trim().trim_matches('"').parse().ok()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&str, &str)], settings: &CacheControls) -> Wishes {
        let own = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Wishes::of(&Controls::of(own), settings)
    }

    #[test]
    fn f09_a_client_can_always_keep_away() {
        let settings = CacheControls::default();
        for (headers, lookup, store) in [
            (&[][..], true, true),
            (&[("cache-control", "no-cache")], false, true),
            (&[("cache-control", "No-Store, max-age=0")], false, false),
            (&[("x-vsr-cache-control", "no-store")], true, false),
            (&[("x-vsr-cache-control", "bypass")], false, false),
            (&[("x-vsr-cache-control", "max-age=soon")], true, true),
        ] {
            let wishes = of(headers, &settings);
            assert_eq!((wishes.lookup, wishes.store, wishes.asked), (lookup, store, false), "{headers:?}");
        }
    }

    #[test]
    fn what_is_stored_for_how_long_is_the_operators_to_allow() {
        let headers = [("x-vsr-cache-control", "ttl=600, max-age=60")];
        let closed = of(&headers, &CacheControls::default());
        assert_eq!((closed.ttl, closed.asked), (None, false));
        assert_eq!(closed.max_age, Some(Duration::from_secs(60)));
        let max_ttl = Some(Duration::from_secs(100));
        let open = CacheControls { enabled: true, max_ttl, ..CacheControls::default() };
        let open = of(&headers, &open);
        assert_eq!((open.ttl, open.asked), (max_ttl, true));
        let only = CacheControls { allowed: vec![CacheDirective::Ttl], ..CacheControls::default() };
        assert!(of(&[("x-vsr-cache-control", "no-cache")], &only).lookup);
        assert!(!of(&[("cache-control", "no-cache")], &only).lookup);
    }
}
