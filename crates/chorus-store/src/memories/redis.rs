//! Found memories in a Redis or Valkey server that replicas share.
//!
//! One key a user, a hash of what was found for each question, gone with its time to live. It knows no configuration: address
//! and password come resolved. **Invariants:** a name holds digests of users and questions, never their words; a user has
//! no more than so many questions there, and none of more than so many bytes; while the server is away it is asked once a
//! second, but for changes, which are always told; and no fault repeats an address, a password or a word of a memory.

use super::cached::{CachedMemories, FoundLook, FoundMemories};
use super::{Memory, MemoryStore};
use crate::redis_line::{RedisFault, RedisLine, RedisPlace, RedisPlaceFault, ttl_ms};
use crate::rest::Rest;
use chorus_vectors::{from_bytes, to_bytes};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::{FromRedisValue, ScriptInvocation};
use std::sync::Arc;
use std::time::Duration;

/// How long one step may take, its connection included: a request waits for it.
const STEP_TIME: Duration = Duration::from_secs(1);
/// Most questions of one user; when there are more, all others go (`max_found_questions`).
const QUESTIONS: usize = 16;
/// Most bytes of what was found for one question; more is not kept (`max_found_memory_bytes`).
const FOUND_BYTES: usize = 256 << 10;
/// Longest time to live: a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// The name of a user's hash is `KEYS[1]`; a question. Gives the turn, and what was found and its vectors, or nothing.
const LOOK: &str = r"
local it = redis.call('HMGET', KEYS[1], 'turn', ARGV[1], ARGV[1] .. ':vectors')
return {it[1] or '', it[2] or '', it[3] or ''}
";

/// A question, the turn at which it was asked, what was found, its vectors, the time to live in milliseconds, and how many
/// questions at most. The time runs from the first of them on, so that nothing is older.
const PUT: &str = r"
local turn = redis.call('HGET', KEYS[1], 'turn') or ''
if turn ~= ARGV[2] then return 0 end
if redis.call('HLEN', KEYS[1]) > 2 * tonumber(ARGV[6]) then
  redis.call('DEL', KEYS[1])
  if turn ~= '' then redis.call('HSET', KEYS[1], 'turn', turn) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3], ARGV[1] .. ':vectors', ARGV[4])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[5]) end
return 1
";

/// The time to live in milliseconds. What is asked at an earlier turn is not kept as long as anybody could still be asking.
const CHANGE: &str = r"
local t = redis.call('TIME')
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'turn', t[1] .. '.' .. t[2])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
";

/// Found memories in one server. It connects when it is first asked.
pub(super) struct RedisFound {
    line: RedisLine,
    prefix: String,
    ttl_ms: u64,
    rest: Rest,
    look: redis::Script,
    put: redis::Script,
    change: redis::Script,
}

impl std::fmt::Debug for RedisFound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisFound").field("ttl_ms", &self.ttl_ms).finish_non_exhaustive()
    }
}

impl CachedMemories {
    /// The memories of that store, what was found of them lately in that server for `ttl`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn in_redis(
        store: Arc<dyn MemoryStore>,
        place: &RedisPlace,
        ttl: Duration,
    ) -> Result<Self, RedisPlaceFault> {
        let found = RedisFound {
            line: RedisLine::new(place, STEP_TIME, STEP_TIME)?,
            prefix: place.key_prefix.clone(),
            ttl_ms: ttl_ms(ttl.min(LONGEST)),
            rest: Rest::default(),
            look: redis::Script::new(LOOK),
            put: redis::Script::new(PUT),
            change: redis::Script::new(CHANGE),
        };
        Ok(Self::over(store, Arc::new(found)))
    }
}

impl RedisFound {
    async fn step<T: FromRedisValue>(&self, step: ScriptInvocation<'_>) -> Result<T, RedisFault> {
        let answer = self.line.answer(async |line| step.invoke_async(line).await).await;
        let failure = answer.as_ref().err().map(|fault| fault.0);
        if self.rest.saw(failure) {
            tracing::warn!(
                kind = failure,
                "the Redis server of found memories failed; their store is asked instead"
            );
        }
        answer
    }

    /// A server that failed a moment ago is not asked again.
    fn unless_away(&self) -> Result<(), RedisFault> {
        self.rest.now().map_or(Ok(()), |kind| Err(RedisFault(kind)))
    }

    fn name(&self, user: &str) -> String {
        format!("{}{user}", self.prefix)
    }

    async fn looked(&self, user: &str, question: &str) -> Result<FoundLook, RedisFault> {
        self.unless_away()?;
        let mut step = self.look.key(self.name(user));
        step.arg(question);
        let (turn, rows, vectors): (String, Vec<u8>, Vec<u8>) = self.step(step).await?;
        Ok(FoundLook { turn, found: read(&rows, &vectors) })
    }

    async fn kept(&self, user: &str, question: &str, turn: &str, found: &[Memory]) -> Result<(), RedisFault> {
        self.unless_away()?;
        let rows = serde_json::to_vec(found).map_err(|_| RedisFault("memories cannot be written as JSON"))?;
        let vectors: Vec<u8> = found.iter().flat_map(|it| to_bytes(&it.vector)).collect();
        if rows.len() + vectors.len() > FOUND_BYTES {
            return Ok(());
        }
        let mut step = self.put.key(self.name(user));
        step.arg(question).arg(turn).arg(rows).arg(vectors).arg(self.ttl_ms).arg(QUESTIONS);
        self.step::<u8>(step).await.map(drop)
    }

    async fn changed(&self, user: &str) -> Result<(), RedisFault> {
        let mut step = self.change.key(self.name(user));
        step.arg(self.ttl_ms);
        self.step::<u8>(step).await.map(drop)
    }
}

impl FoundMemories for RedisFound {
    fn look<'a>(&'a self, user: &'a str, question: &'a str) -> BoxFuture<'a, Result<FoundLook, RedisFault>> {
        self.looked(user, question).boxed()
    }

    fn put<'a>(
        &'a self,
        user: &'a str,
        question: &'a str,
        turn: &'a str,
        found: &'a [Memory],
    ) -> BoxFuture<'a, Result<(), RedisFault>> {
        self.kept(user, question, turn, found).boxed()
    }

    fn change<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<(), RedisFault>> {
        self.changed(user).boxed()
    }
}

/// Memories with their vectors, which are of one length; `None` where there are none or they cannot be read.
fn read(rows: &[u8], vectors: &[u8]) -> Option<Vec<Memory>> {
    let mut found: Vec<Memory> = serde_json::from_slice(rows).ok()?;
    let numbers = from_bytes(vectors);
    let width = numbers.len() / found.len().max(1);
    if width * found.len() != numbers.len() {
        return None;
    }
    for (memory, vector) in found.iter_mut().zip(numbers.chunks(width.max(1))) {
        memory.vector = vector.to_vec();
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_reads_with_its_vectors() {
        let memory = |n: u8| Memory {
            id: format!("mem_{n}"),
            user: "ada".to_owned(),
            text: "é".to_owned(),
            stated_at: 1,
            read_at: 2,
            reads: 3,
            run: None,
            vector: vec![f32::from(n), -0.5],
        };
        let all = [memory(1), memory(2)];
        let rows = serde_json::to_vec(&all).unwrap();
        let vectors: Vec<u8> = all.iter().flat_map(|it| to_bytes(&it.vector)).collect();
        assert_eq!(read(&rows, &vectors).as_deref(), Some(&all[..]));
        assert_eq!(read(b"[]", b""), Some(Vec::new()));
        assert_eq!(read(b"", b""), None);
        assert_eq!(read(&rows, &vectors[..12]), None);
    }
}
