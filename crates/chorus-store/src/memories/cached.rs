//! What was found of a user's memories lately, in front of the store that keeps them.
//!
//! Questions are answered from there for as long as nothing of the user's memories has changed and no longer than it keeps
//! them; everything else goes to the store. It does not know which store, nor where found memories are.
//!
//! **Invariants:** as of the module above, and it does not rest on where they are: what comes back is looked at again, and
//! dropped where it is another user's. A memory that was forgotten is not found again: where that cannot be promised, it is not
//! forgotten, and the fault says so. How often a memory was shown may be told as of when it was found.

use super::{KeepRule, Kept, Memory, MemoryStore, Statement};
use crate::recall_fault::RecallFault;
use crate::redis_line::RedisFault;
use chorus_vectors::to_bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use std::sync::Arc;

/// What a question led to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FoundLook {
    /// Which change of the user's memories was the last; empty where none is known.
    pub(crate) turn: String,
    /// What was found for that question since.
    pub(crate) found: Option<Vec<Memory>>,
}

/// Where found memories are. Users and questions are given as digests.
pub(crate) trait FoundMemories: std::fmt::Debug + Send + Sync {
    /// What was found lately.
    fn look<'a>(&'a self, user: &'a str, question: &'a str) -> BoxFuture<'a, Result<FoundLook, RedisFault>>;

    /// Keeps what was found, unless the user's memories have changed since that turn.
    fn put<'a>(
        &'a self,
        user: &'a str,
        question: &'a str,
        turn: &'a str,
        found: &'a [Memory],
    ) -> BoxFuture<'a, Result<(), RedisFault>>;

    /// The user's memories have changed: nothing that was found before is found again.
    fn change<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<(), RedisFault>>;
}

/// Memories whose store is asked again only when they have changed, or after a while.
#[derive(Debug)]
pub struct CachedMemories {
    store: Arc<dyn MemoryStore>,
    found: Arc<dyn FoundMemories>,
}

impl CachedMemories {
    /// Those of that store.
    pub(crate) fn over(store: Arc<dyn MemoryStore>, found: Arc<dyn FoundMemories>) -> Self {
        Self { store, found }
    }

    /// What was found for a question, or what the store finds now.
    async fn asked(
        &self,
        user: &str,
        question: &[&[u8]],
        store: BoxFuture<'_, Result<Vec<Memory>, RecallFault>>,
    ) -> Result<Vec<Memory>, RecallFault> {
        let (whose, what) = (hashed(&[user.as_bytes()]), hashed(question));
        let look = match self.found.look(&whose, &what).await {
            Ok(FoundLook { found: Some(found), .. }) if found.iter().all(|it| it.user == user) => {
                return Ok(found);
            }
            Ok(look) => Some(look),
            Err(_) => None,
        };
        let found = store.await?;
        if let Some(look) = look
            && let Err(fault) = self.found.put(&whose, &what, &look.turn, &found).await
        {
            tracing::warn!(%fault, "found memories are not kept");
        }
        Ok(found)
    }

    async fn kept(&self, it: Statement, rule: KeepRule) -> Result<Kept, RecallFault> {
        let whose = hashed(&[it.user.as_bytes()]);
        let kept = self.store.keep(it, rule).await;
        // Also where it failed: it may have been kept all the same.
        if let Err(fault) = self.found.change(&whose).await {
            tracing::warn!(%fault, "a new memory is found when what was found before is over");
        }
        kept
    }

    /// Before and after: what another replica finds in between would else be found again.
    async fn forgotten<T>(
        &self,
        user: &str,
        forget: BoxFuture<'_, Result<T, RecallFault>>,
    ) -> Result<T, RecallFault> {
        let whose = hashed(&[user.as_bytes()]);
        let changed =
            |fault: RedisFault| RecallFault::Io(format!("the Redis server of found memories: {fault}"));
        self.found.change(&whose).await.map_err(changed)?;
        let forgotten = forget.await;
        self.found.change(&whose).await.map_err(changed)?;
        forgotten
    }

    async fn one_forgotten(&self, user: Option<&str>, id: &str) -> Result<bool, RecallFault> {
        let Some(memory) = self.store.get(user, id).await? else { return Ok(false) };
        self.forgotten(&memory.user, self.store.forget(user, id)).await
    }
}

impl MemoryStore for CachedMemories {
    fn keep(&self, it: Statement, rule: KeepRule) -> BoxFuture<'_, Result<Kept, RecallFault>> {
        self.kept(it, rule).boxed()
    }

    fn of<'a>(&'a self, user: &'a str, encoder: &'a str) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        async move {
            let question: [&[u8]; 2] = [b"of", encoder.as_bytes()];
            self.asked(user, &question, self.store.of(user, encoder)).await
        }
        .boxed()
    }

    fn finds_by_vector(&self) -> bool {
        self.store.finds_by_vector()
    }

    fn near<'a>(
        &'a self,
        user: &'a str,
        encoder: &'a str,
        vector: &'a [f32],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        async move {
            let (vector_bytes, most_bytes) = (to_bytes(vector), most.to_le_bytes());
            let question: [&[u8]; 4] = [b"near", encoder.as_bytes(), &vector_bytes, &most_bytes];
            self.asked(user, &question, self.store.near(user, encoder, vector, most)).await
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        user: &'a str,
        ids: Vec<String>,
        at: u64,
    ) -> BoxFuture<'a, Result<(), RecallFault>> {
        self.store.read(user, ids, at)
    }

    fn list<'a>(
        &'a self,
        user: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        self.store.list(user, limit)
    }

    fn get<'a>(
        &'a self,
        user: Option<&'a str>,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Memory>, RecallFault>> {
        self.store.get(user, id)
    }

    fn forget<'a>(&'a self, user: Option<&'a str>, id: &'a str) -> BoxFuture<'a, Result<bool, RecallFault>> {
        self.one_forgotten(user, id).boxed()
    }

    fn forget_all<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<usize, RecallFault>> {
        self.forgotten(user, self.store.forget_all(user)).boxed()
    }
}

/// The SHA-256 of parts, none of which can run into the next.
fn hashed(parts: &[&[u8]]) -> String {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&(part.len() as u64).to_le_bytes());
        all.extend_from_slice(part);
    }
    digest(&SHA256, &all).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recall;
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// The turn of a user, and what was found for each question.
    type OfUser = (usize, BTreeMap<String, Vec<Memory>>);

    /// One that is as the server is, in this process.
    #[derive(Debug, Default)]
    struct Here {
        users: Mutex<BTreeMap<String, OfUser>>,
        is_away: AtomicBool,
        hits: AtomicUsize,
    }

    impl Here {
        fn answer<T: Send + 'static>(&self, answer: T) -> BoxFuture<'_, Result<T, RedisFault>> {
            let is_away = self.is_away.load(Ordering::Relaxed);
            std::future::ready(if is_away { Err(RedisFault("away")) } else { Ok(answer) }).boxed()
        }
    }

    impl FoundMemories for Here {
        fn look<'a>(
            &'a self,
            user: &'a str,
            question: &'a str,
        ) -> BoxFuture<'a, Result<FoundLook, RedisFault>> {
            let users = self.users.lock().unwrap();
            let (turn, all) = users.get(user).cloned().unwrap_or_default();
            let found = all.get(question).cloned();
            self.hits.fetch_add(usize::from(found.is_some()), Ordering::Relaxed);
            self.answer(FoundLook { turn: turn.to_string(), found })
        }

        fn put<'a>(
            &'a self,
            user: &'a str,
            question: &'a str,
            turn: &'a str,
            found: &'a [Memory],
        ) -> BoxFuture<'a, Result<(), RedisFault>> {
            let mut users = self.users.lock().unwrap();
            let (now, all) = users.entry(user.to_owned()).or_default();
            if now.to_string() == turn {
                all.insert(question.to_owned(), found.to_vec());
            }
            self.answer(())
        }

        fn change<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<(), RedisFault>> {
            if !self.is_away.load(Ordering::Relaxed) {
                let mut users = self.users.lock().unwrap();
                let (turn, all) = users.entry(user.to_owned()).or_default();
                *turn += 1;
                all.clear();
            }
            self.answer(())
        }
    }

    const RULE: KeepRule = KeepRule { same_cosine: 0.99, most: 10, initial_days: 30.0, least_strength: 0.0 };

    fn statement(user: &str, text: &str, vector: [f32; 2]) -> Statement {
        Statement {
            user: user.to_owned(),
            text: text.to_owned(),
            encoder: "e".to_owned(),
            vector: vector.to_vec(),
            at: 1,
            run: None,
        }
    }

    fn cached() -> (CachedMemories, Arc<Here>, Arc<dyn MemoryStore>) {
        let (store, here) = (Recall::in_memory().unwrap().memories, Arc::new(Here::default()));
        let found: Arc<dyn FoundMemories> = Arc::clone(&here) as Arc<dyn FoundMemories>;
        (CachedMemories::over(Arc::clone(&store), found), here, store)
    }

    async fn near(it: &CachedMemories, user: &str) -> Vec<String> {
        let near = it.near(user, "e", &[1.0, 0.0], 5).await.unwrap();
        let mut texts: Vec<String> = near.into_iter().map(|it| it.text).collect();
        texts.sort();
        texts
    }

    #[tokio::test]
    async fn the_store_is_asked_again_when_the_users_memories_have_changed() {
        let (cached, here, _) = cached();
        cached.keep(statement("ada", "one", [1.0, 0.0]), RULE).await.unwrap();
        assert_eq!(near(&cached, "ada").await, ["one"]);
        assert_eq!(near(&cached, "ada").await, ["one"]);
        assert_eq!(here.hits.load(Ordering::Relaxed), 1);
        cached.keep(statement("bob", "other", [1.0, 0.0]), RULE).await.unwrap();
        assert_eq!(near(&cached, "ada").await, ["one"], "another user's memories are another's");
        assert_eq!(here.hits.load(Ordering::Relaxed), 2);
        cached.keep(statement("ada", "two", [0.0, 1.0]), RULE).await.unwrap();
        assert_eq!(near(&cached, "ada").await, ["one", "two"]);
        assert_eq!(near(&cached, "bob").await, ["other"]);
        assert_eq!(here.hits.load(Ordering::Relaxed), 2);
        let found = cached.near("ada", "e", &[1.0, 0.0], 5).await.unwrap();
        assert!(found.iter().all(|it| it.vector.len() == 2), "with their vectors");
    }

    #[tokio::test]
    async fn what_was_found_before_a_change_is_not_kept_after_it() {
        let (cached, here, store) = cached();
        let look = here.look(&hashed(&[b"ada"]), "q").await.unwrap();
        cached.keep(statement("ada", "one", [1.0, 0.0]), RULE).await.unwrap();
        here.put(&hashed(&[b"ada"]), "q", &look.turn, &store.of("ada", "e").await.unwrap()).await.unwrap();
        assert_eq!(here.look(&hashed(&[b"ada"]), "q").await.unwrap().found, None);
    }

    #[tokio::test]
    async fn a_memory_is_forgotten_here_and_there_or_not_at_all() {
        let (cached, here, store) = cached();
        cached.keep(statement("ada", "one", [1.0, 0.0]), RULE).await.unwrap();
        assert_eq!(near(&cached, "ada").await, ["one"]);
        let id = store.list(None, 1).await.unwrap()[0].id.clone();
        here.is_away.store(true, Ordering::Relaxed);
        assert_eq!(near(&cached, "ada").await, ["one"], "the store answers in its place");
        assert!(cached.forget(Some("ada"), &id).await.is_err());
        assert!(cached.forget_all("ada").await.is_err());
        assert_eq!(store.of("ada", "e").await.unwrap().len(), 1);
        here.is_away.store(false, Ordering::Relaxed);
        assert_eq!(cached.forget(Some("bob"), &id).await, Ok(false));
        assert_eq!(cached.forget(None, &id).await, Ok(true), "whoever's it is");
        assert_eq!(near(&cached, "ada").await, [""; 0]);
    }

    #[tokio::test]
    async fn what_is_another_users_is_not_given() {
        let (cached, here, _) = cached();
        cached.keep(statement("bob", "secret", [1.0, 0.0]), RULE).await.unwrap();
        near(&cached, "bob").await;
        let theirs = here.users.lock().unwrap()[&hashed(&[b"bob"])].clone();
        here.users.lock().unwrap().insert(hashed(&[b"ada"]), theirs);
        assert_eq!(near(&cached, "ada").await, [""; 0]);
    }
}
