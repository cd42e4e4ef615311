//! Which conversation a request belongs to, and what is remembered of it.
//!
//! Source: contract §4.1 (session identity). A caller that somebody vouches for is part of the key, so that nobody
//! reaches another's conversation by its name. **Invariant:** the memory is bounded, and holds no text of a client: keys
//! are digests.

use chorus_select::session::SessionState;
use chorus_signals::Caller;
use chorus_spec::{Digest, SessionSettings};
use chorus_wire::{ChatRequest, Role};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most conversations that are remembered (`sessions_most`).
pub(crate) const SESSIONS_MOST: usize = 20_000;

/// What a client says about which conversation its request belongs to.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SessionWords {
    /// The session's name.
    pub session: Option<String>,
    /// The conversation's name.
    pub conversation: Option<String>,
}

impl SessionWords {
    /// The name that counts, as its kind and itself.
    fn named(&self, settings: &SessionSettings) -> Option<(&'static str, &str)> {
        let session = self.session.as_deref().map(|it| ("session", it));
        let conversation = self.conversation.as_deref().map(|it| ("conversation", it));
        let name = if settings.by_conversation { conversation.or(session) } else { session.or(conversation) };
        name.filter(|(_, name)| !name.trim().is_empty())
    }
}

/// The key of a request's conversation. Without a name of the client's own it is told by how it began, and only where
/// conversations are protected: the same beginning may be another's.
pub(crate) fn key(
    words: &SessionWords,
    caller: Option<&Caller>,
    request: &ChatRequest,
    settings: &SessionSettings,
) -> Option<String> {
    let user = caller.map(Caller::user).unwrap_or_default();
    if let Some((kind, name)) = words.named(settings) {
        return Some(digest(&[kind, user, name]));
    }
    if !settings.enabled {
        return None;
    }
    let first = request.messages().iter().find(|it| it.role == Role::User)?;
    let said = request.body().get("user").map(chorus_wire::Raw::get).unwrap_or_default();
    Some(digest(&["beginning", user, said, &first.text]))
}

fn digest(parts: &[&str]) -> String {
    let sized: Vec<String> = parts.iter().map(|it| format!("{}:{it}", it.len())).collect();
    Digest::of(sized.concat().as_bytes()).to_string()
}

/// Whether the request answers a tool call of its last turn.
pub(crate) fn in_tool_loop(request: &ChatRequest) -> bool {
    let since = request.messages().iter().rev().take_while(|it| it.role != Role::Assistant);
    let mut roles = since.map(|it| &it.role);
    roles.any(|role| *role == Role::Tool)
}

/// Whether something was answered before.
pub(crate) fn goes_on(request: &ChatRequest) -> bool {
    request.messages().iter().any(|it| it.role == Role::Assistant)
}

/// The conversations of a process.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Debug)]
struct Entry {
    state: SessionState,
    last: Instant,
}

impl Sessions {
    /// What is remembered of a conversation, and how long it was silent.
    pub(crate) fn get(&self, key: &str, now: Instant) -> Option<(SessionState, Duration)> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = all.get(key)?;
        Some((entry.state.clone(), now.saturating_duration_since(entry.last)))
    }

    /// Remembers it. Where the memory is full, conversations that were silent for `longest` go first, and then the
    /// tenth that was silent longest.
    pub(crate) fn put(&self, key: String, state: SessionState, now: Instant, longest: Duration) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SESSIONS_MOST && !all.contains_key(&key) {
            all.retain(|_, entry| now.saturating_duration_since(entry.last) < longest);
            if all.len() >= SESSIONS_MOST {
                let mut times: Vec<Instant> = all.values().map(|entry| entry.last).collect();
                times.sort_unstable();
                let bound = times.get(SESSIONS_MOST / 10).copied().unwrap_or(now);
                all.retain(|_, entry| entry.last > bound);
            }
        }
        all.insert(key, Entry { state, last: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_signals::Voucher;
    use chorus_wire::Message;

    fn request(turns: &[(Role, &str)]) -> ChatRequest {
        ChatRequest::new("m", turns.iter().map(|(role, text)| Message::new(role.clone(), text)).collect())
    }

    fn caller(user: &str) -> Caller {
        Caller::new(user, Vec::new(), Voucher::ApiKey).unwrap()
    }

    #[test]
    fn a_name_is_the_callers_own_and_a_beginning_counts_only_where_conversations_are_protected() {
        let off = SessionSettings::default();
        let on = SessionSettings { enabled: true, ..SessionSettings::default() };
        let named = SessionWords { session: Some("s".to_owned()), conversation: None };
        let hello = request(&[(Role::User, "hello")]);
        let of =
            |words: &SessionWords, user: &str, settings| key(words, Some(&caller(user)), &hello, settings);
        assert_eq!(of(&named, "ada", &off), of(&named, "ada", &off));
        assert_ne!(of(&named, "ada", &off), of(&named, "bob", &off));
        let none = SessionWords::default();
        assert_eq!(of(&none, "ada", &off), None);
        assert!(of(&none, "ada", &on).is_some() && of(&none, "ada", &on) != of(&none, "bob", &on));
        assert!(!of(&named, "ada", &on).unwrap().contains("ada"), "no text of a client");
    }

    #[test]
    fn a_tool_loop_ends_with_the_next_answer() {
        let call = [(Role::User, "weather?"), (Role::Assistant, ""), (Role::Tool, "rain")];
        assert!(in_tool_loop(&request(&call)) && goes_on(&request(&call)));
        let told = [&call[..], &[(Role::Assistant, "It rains."), (Role::User, "and tomorrow?")]].concat();
        assert!(!in_tool_loop(&request(&told)));
        assert!(!goes_on(&request(&call[..1])));
    }

    #[test]
    fn the_memory_is_bounded_and_the_longest_silent_go() {
        let sessions = Sessions::default();
        let start = Instant::now();
        let state = chorus_select::session::after(None, "a", "d");
        for at in 0..SESSIONS_MOST + 10 {
            let now = start + Duration::from_millis(at as u64);
            sessions.put(format!("{at}"), state.clone(), now, Duration::from_secs(3_600));
        }
        assert!(sessions.all.lock().unwrap().len() <= SESSIONS_MOST);
        assert!(sessions.get("0", start).is_none());
        assert!(sessions.get(&format!("{}", SESSIONS_MOST + 9), start).is_some());
    }
}
