//! Responses in a Redis or Valkey server, which replicas share.
//!
//! A response is a hash with its own time to live, by the server's clock; `ids` has the names of all, by age. It knows no
//! configuration: address and password come resolved. **Invariants:** as of the module above, for all replicas: a response is
//! settled in one step; and no fault repeats an address, a password or a word of a response.

use super::{KeptResponse, ResponseFault, ResponseLimits, ResponseStore, now};
use crate::redis_line::{
    CONNECT_TIME, LONGEST, RedisFault, RedisLine, RedisPlace, RedisPlaceFault, STEP_TIME,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::{Cmd, FromRedisValue, ScriptInvocation};

/// The prefix is `KEYS[1]`; the name, the seconds that are left, the time of its making, how many responses at most, and fields
/// with their values. Redis 5 or later, Valkey; one server, for a script names keys that are not among its `KEYS`.
const PUT: &str = r"
local P, ids = KEYS[1], KEYS[1] .. 'ids'
local response = P .. ARGV[1]
redis.call('DEL', response)
redis.call('ZREM', ids, ARGV[1])
if tonumber(ARGV[2]) > 0 then
  redis.call('HSET', response, unpack(ARGV, 5))
  redis.call('EXPIRE', response, ARGV[2])
  redis.call('ZADD', ids, ARGV[3], ARGV[1])
  if redis.call('TTL', ids) < tonumber(ARGV[2]) then redis.call('EXPIRE', ids, ARGV[2]) end
end
for _ = 1, 100 do
  local oldest = redis.call('ZRANGE', ids, 0, 0)[1]
  if not oldest then break end
  if redis.call('ZCARD', ids) <= tonumber(ARGV[4]) and redis.call('EXISTS', P .. oldest) == 1 then break end
  redis.call('DEL', P .. oldest)
  redis.call('ZREM', ids, oldest)
end
return 1
";

/// The object. Gives whether the response was there and unsettled.
const SETTLE: &str = r"
if redis.call('HGET', KEYS[1], 'settled') ~= '0' then return 0 end
redis.call('HSET', KEYS[1], 'settled', '1', 'object', ARGV[1])
return 1
";

/// When it was made, whether it is settled, input, object and owner.
type Fields = (Option<u64>, Option<u8>, Option<String>, Option<String>, Option<String>);

/// The responses of one server. It connects when it is first asked.
pub struct RedisResponses {
    line: RedisLine,
    prefix: String,
    limits: ResponseLimits,
    put: redis::Script,
    settle: redis::Script,
}

impl std::fmt::Debug for RedisResponses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisResponses").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl RedisResponses {
    /// Those at that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace, limits: ResponseLimits) -> Result<Self, RedisPlaceFault> {
        Ok(Self {
            line: RedisLine::new(place, CONNECT_TIME, STEP_TIME)?,
            prefix: place.key_prefix.clone(),
            limits: ResponseLimits { ttl: limits.ttl.min(LONGEST), ..limits },
            put: redis::Script::new(PUT),
            settle: redis::Script::new(SETTLE),
        })
    }

    fn name(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }

    async fn step<T: FromRedisValue>(&self, step: ScriptInvocation<'_>) -> Result<T, RedisFault> {
        self.line.answer(async |line| step.invoke_async(line).await).await
    }

    async fn ask<T: FromRedisValue>(&self, question: Cmd) -> Result<T, RedisFault> {
        self.line.answer(async |line| question.query_async(line).await).await
    }

    async fn put_now(&self, it: KeptResponse) -> Result<(), ResponseFault> {
        it.check(&self.limits)?;
        let left = self.limits.ttl.as_secs().saturating_sub(now().saturating_sub(it.created_at));
        let mut step = self.put.key(self.prefix.as_str());
        step.arg(&it.id).arg(left).arg(it.created_at).arg(self.limits.max_responses);
        step.arg("created_at").arg(it.created_at).arg("settled").arg(u8::from(it.settled));
        step.arg("input").arg(&it.input).arg("object").arg(&it.object);
        if let Some(owner) = &it.owner {
            step.arg("owner").arg(owner);
        }
        Ok(self.step::<u8>(step).await.map(drop)?)
    }

    async fn found(&self, id: &str) -> Result<Option<KeptResponse>, ResponseFault> {
        let mut get = redis::cmd("HMGET");
        get.arg(self.name(id)).arg(&["created_at", "settled", "input", "object", "owner"]);
        let (created_at, settled, input, object, owner): Fields = self.ask(get).await?;
        let (Some(created_at), Some(input), Some(object)) = (created_at, input, object) else {
            return Ok(None);
        };
        let settled = settled == Some(1);
        Ok(Some(KeptResponse { id: id.to_owned(), owner, created_at, settled, input, object }))
    }

    async fn settle_now(&self, id: &str, object: String) -> Result<bool, ResponseFault> {
        let (bytes, limit) = (object.len(), self.limits.max_response_bytes);
        if bytes > limit {
            return Err(ResponseFault::TooLarge { bytes, limit });
        }
        let mut step = self.settle.key(self.name(id));
        step.arg(object);
        Ok(self.step::<u8>(step).await? == 1)
    }

    async fn delete_now(&self, id: &str) -> Result<bool, ResponseFault> {
        let mut gone = redis::cmd("DEL");
        gone.arg(self.name(id));
        let was_there = self.ask::<u8>(gone).await? == 1;
        let mut unlisted = redis::cmd("ZREM");
        unlisted.arg(self.name("ids")).arg(id);
        self.ask::<u8>(unlisted).await?;
        Ok(was_there)
    }
}

impl ResponseStore for RedisResponses {
    fn put(&self, response: KeptResponse) -> BoxFuture<'_, Result<(), ResponseFault>> {
        self.put_now(response).boxed()
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<KeptResponse>, ResponseFault>> {
        self.found(id).boxed()
    }

    fn settle<'a>(&'a self, id: &'a str, object: String) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        self.settle_now(id, object).boxed()
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        self.delete_now(id).boxed()
    }
}

impl From<RedisFault> for ResponseFault {
    fn from(fault: RedisFault) -> Self {
        Self::Io(format!("the Redis server: {fault}"))
    }
}
