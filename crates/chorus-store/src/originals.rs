//! Originals of texts that were shortened, for as long as somebody may ask for them: in this process, within bounds.
//!
//! It knows scopes (one a run) and texts; time is an argument. **Invariant:** a text is found under the scope that it was
//! put under, and under no other.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bounds, each with a name of the contract.
#[derive(Debug, Clone, Copy)]
pub struct OriginalsRule {
    /// How long a text waits (`ttl_seconds`).
    pub ttl: Duration,
    /// Most bytes of one scope (`max_bytes_per_request`).
    pub max_bytes_per_scope: usize,
    /// Most bytes of all (`max_total_bytes`).
    pub max_total_bytes: usize,
}

/// Originals of this process.
#[derive(Debug, Default)]
pub struct Originals(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    texts: BTreeMap<(String, String), (String, Instant)>,
    bytes: usize,
}

impl Originals {
    /// Keeps a text; whether it fits. What is too old makes room, what is not stays.
    pub fn put(&self, scope: &str, key: &str, text: String, rule: &OriginalsRule, now: Instant) -> bool {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.forget_old(now);
        let of_scope = |((owner, _), (text, _)): (&(String, String), &(String, Instant))| {
            if owner == scope { text.len() } else { 0 }
        };
        let own: usize = shelf.texts.iter().map(of_scope).sum();
        let more = text.len();
        if own + more > rule.max_bytes_per_scope || shelf.bytes + more > rule.max_total_bytes {
            return false;
        }
        let name = (scope.to_owned(), key.to_owned());
        shelf.forget(&name);
        shelf.bytes += more;
        shelf.texts.insert(name, (text, now + rule.ttl));
        true
    }

    /// The text of that key.
    #[must_use]
    pub fn get(&self, scope: &str, key: &str, now: Instant) -> Option<String> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (text, until) = shelf.texts.get(&(scope.to_owned(), key.to_owned()))?;
        (*until > now).then(|| text.clone())
    }

    /// Forgets all texts of a scope, and returns how many there were.
    pub fn end(&self, scope: &str) -> usize {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<_> = shelf.texts.keys().filter(|(owner, _)| owner == scope).cloned().collect();
        names.iter().for_each(|name| shelf.forget(name));
        names.len()
    }

    /// Forgets every text, and returns how many there were.
    pub fn clear(&self) -> usize {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = std::mem::take(&mut *shelf);
        gone.texts.len()
    }

    /// How many texts there are, and their bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (shelf.texts.len(), shelf.bytes)
    }
}

impl Shelf {
    fn forget_old(&mut self, now: Instant) {
        let is_old = |(_, (_, until)): &(&(String, String), &(String, Instant))| *until <= now;
        let old: Vec<_> = self.texts.iter().filter(is_old).map(|(name, _)| name.clone()).collect();
        old.iter().for_each(|name| self.forget(name));
    }

    fn forget(&mut self, name: &(String, String)) {
        if let Some((text, _)) = self.texts.remove(name) {
            self.bytes = self.bytes.saturating_sub(text.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: OriginalsRule =
        OriginalsRule { ttl: Duration::from_secs(900), max_bytes_per_scope: 10, max_total_bytes: 15 };

    #[test]
    fn i02_every_bound_is_held() {
        let (it, now) = (Originals::default(), Instant::now());
        assert!(it.put("a", "k1", "12345".into(), &RULE, now));
        assert!(it.put("a", "k2", "12345".into(), &RULE, now));
        assert!(!it.put("a", "k3", "1".into(), &RULE, now), "the scope is full");
        assert!(it.put("b", "k1", "12345".into(), &RULE, now));
        assert!(!it.put("c", "k1", "1".into(), &RULE, now), "all is full");
        let later = now + RULE.ttl;
        assert_eq!(it.get("a", "k1", later), None, "too old");
        assert!(it.put("c", "k1", "1".into(), &RULE, later), "what is too old makes room");
        assert_eq!(it.size(), (1, 1));
        assert_eq!((it.end("c"), it.size()), (1, (0, 0)));
        assert!(it.put("a", "k1", "12345".into(), &RULE, later));
        assert_eq!((it.clear(), it.size()), (1, (0, 0)));
    }

    #[test]
    fn f01_a_key_is_found_in_its_own_scope_only() {
        let (it, now) = (Originals::default(), Instant::now());
        it.put("a", "k1", "of a".into(), &RULE, now);
        it.put("b", "k1", "of b".into(), &RULE, now);
        assert_eq!(it.get("a", "k1", now).as_deref(), Some("of a"));
        assert_eq!(it.get("b", "k1", now).as_deref(), Some("of b"));
        assert_eq!(it.get("c", "k1", now), None);
    }
}
