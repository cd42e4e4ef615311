//! Counts of what callers did, in a Redis server that replicas share.
//!
//! One script asks all counters of a request and counts it in all of them or in none, so that replicas cannot pass a bound
//! together. A window begins with the first request that is counted in it, on the server's clock, and its key is gone with it.
//! It knows no rule and no caller.
//!
//! **Invariant:** what is admitted never starts from a counter that was at its bound, whichever replicas ask; and no fault
//! repeats an address or a password.

use crate::redis_line::{self, RedisLine, RedisPlace, RedisPlaceFault};
use redis::{RedisError, Script};
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take: a request waits for it.
const CONNECT_TIME: Duration = Duration::from_secs(1);
/// How long one question may take.
const COMMAND_TIME: Duration = Duration::from_millis(500);

/// For each key: its bounds of requests, tokens and money (-1 is none) and its unit in milliseconds; first of all the tokens
/// of the request. Gives 0 and the window of each key, or the number of the key that refuses, which bound, and what is left of
/// its window in milliseconds.
const ADMIT: &str = r"
local tokens = tonumber(ARGV[1])
local function over(limit, used, more)
  return limit >= 0 and (used >= limit or (used > 0 and used + more > limit))
end
for i, key in ipairs(KEYS) do
  local at = 2 + (i - 1) * 4
  local used = redis.call('HMGET', key, 'requests', 'tokens', 'micro_usd')
  local requests, taken, money = tonumber(used[1] or 0), tonumber(used[2] or 0), tonumber(used[3] or 0)
  local which = 0
  if over(tonumber(ARGV[at]), requests, 1) then which = 1
  elseif over(tonumber(ARGV[at + 1]), taken, tokens) then which = 2
  elseif over(tonumber(ARGV[at + 2]), money, 0) then which = 3 end
  if which > 0 then return {i, which, redis.call('PTTL', key)} end
end
local time = redis.call('TIME')
local windows = {0}
for i, key in ipairs(KEYS) do
  if redis.call('HINCRBY', key, 'requests', 1) == 1 then
    redis.call('HSET', key, 'window', time[1] .. time[2])
    redis.call('PEXPIRE', key, ARGV[2 + (i - 1) * 4 + 3])
  end
  redis.call('HINCRBY', key, 'tokens', tokens)
  windows[i + 1] = redis.call('HGET', key, 'window')
end
return windows
";

/// For each key its window; then the change of tokens and of money. A window that has ended has nothing to mend.
const SETTLE: &str = r"
local count = #KEYS
for i, key in ipairs(KEYS) do
  if redis.call('HGET', key, 'window') == ARGV[i] then
    redis.call('HINCRBY', key, 'tokens', ARGV[count + 1])
    redis.call('HINCRBY', key, 'micro_usd', ARGV[count + 2])
  end
end
";

/// One counter, and its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitCounter {
    /// Its name.
    pub key: String,
    /// Most requests, tokens and micro-dollars in one unit.
    pub most: [Option<u64>; 3],
    /// The unit.
    pub unit: Duration,
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Counted, in the window of each counter.
    Admitted(Vec<Window>),
    /// A counter is at its bound.
    Refused {
        /// Which counter, from 0.
        counter: usize,
        /// Which bound, as in [`LimitCounter::most`].
        bound: usize,
        /// What is left of its window.
        wait: Duration,
    },
}

/// One window of one counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    key: String,
    began: String,
}

/// Why it cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the Redis server of the limits failed ({0})")]
pub struct LimitsFault(&'static str);

/// The counters. Cloning shares the connection.
#[derive(Clone)]
pub struct RedisLimits(Arc<Shared>);

struct Shared {
    line: RedisLine,
    prefix: String,
    admit: Script,
    settle: Script,
}

impl std::fmt::Debug for RedisLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisLimits")
    }
}

impl RedisLimits {
    /// The counters at that place; nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace) -> Result<Self, RedisPlaceFault> {
        Ok(Self(Arc::new(Shared {
            line: RedisLine::new(place, CONNECT_TIME, COMMAND_TIME)?,
            prefix: place.key_prefix.clone(),
            admit: Script::new(ADMIT),
            settle: Script::new(SETTLE),
        })))
    }

    /// Counts a request of about so many tokens in all of these, or says which of them refuses it.
    ///
    /// # Errors
    /// [`LimitsFault`].
    pub async fn admit(&self, counters: &[LimitCounter], tokens: u64) -> Result<Admission, LimitsFault> {
        self.asked(counters, tokens).await.map_err(|fault| told(&fault))
    }

    async fn asked(&self, counters: &[LimitCounter], tokens: u64) -> Result<Admission, RedisError> {
        let mut connection = self.0.line.connection().await?;
        let mut ask = self.0.admit.prepare_invoke();
        ask.arg(tokens);
        for counter in counters {
            ask.key(format!("{}{}", self.0.prefix, counter.key));
            for most in counter.most {
                ask.arg(most.and_then(|most| i64::try_from(most).ok()).unwrap_or(-1));
            }
            ask.arg(u64::try_from(counter.unit.as_millis()).unwrap_or(u64::MAX));
        }
        let answer: Vec<redis::Value> = ask.invoke_async(&mut connection).await?;
        let refused: i64 = number(answer.first())?;
        if refused > 0 {
            let wait = number(answer.get(2))?.max(0);
            return Ok(Admission::Refused {
                counter: usize::try_from(refused - 1).unwrap_or(0),
                bound: usize::try_from(number(answer.get(1))? - 1).unwrap_or(0),
                wait: Duration::from_millis(u64::try_from(wait).unwrap_or(0)),
            });
        }
        let began = answer.into_iter().skip(1).map(redis::from_redis_value::<String>);
        let windows = counters.iter().zip(began).map(|(counter, began)| {
            Ok(Window { key: format!("{}{}", self.0.prefix, counter.key), began: began? })
        });
        Ok(Admission::Admitted(windows.collect::<Result<_, RedisError>>()?))
    }

    /// Puts what a request took in the place of what it was admitted with.
    ///
    /// # Errors
    /// [`LimitsFault`].
    pub async fn settle(&self, windows: &[Window], tokens: i64, micro_usd: u64) -> Result<(), LimitsFault> {
        let settled = async {
            let mut connection = self.0.line.connection().await?;
            let mut ask = self.0.settle.prepare_invoke();
            for window in windows {
                ask.key(&window.key).arg(&window.began);
            }
            ask.arg(tokens).arg(micro_usd);
            ask.invoke_async::<()>(&mut connection).await
        };
        settled.await.map_err(|fault: RedisError| told(&fault))
    }
}

fn number(value: Option<&redis::Value>) -> Result<i64, RedisError> {
    redis::from_redis_value(value.cloned().unwrap_or(redis::Value::Nil)).map_err(Into::into)
}

fn told(fault: &RedisError) -> LimitsFault {
    let kind = redis_line::kind(fault);
    tracing::warn!(kind, "the Redis server of the limits failed");
    LimitsFault(kind)
}
