//! Outcomes in a Redis or Valkey server that replicas share.
//!
//! It knows no configuration: address and password come resolved. **Invariant:** as of the module above, for all replicas: the
//! server looks at both in one step. An outcome goes with the time to live that runs have.
//!
//! | name | what |
//! |---|---|
//! | `outcomes` | a stream of all, in the order in which they were told: each id begins with the server's clock in microseconds |
//! | `outcomes:of:<run>` | those of one run, in that order |
//! | `outcomes:judged:<run>` | what was judged of it |
//! | `outcomes:told:<SHA-1 of a sender's key>` | what was told under that key |

use super::{Outcome, OutcomeFault, OutcomeMark, OutcomeStore, Told};
use crate::RunId;
use crate::redis_line::{
    CONNECT_TIME, RedisFault, RedisLine, RedisPlace, RedisPlaceFault, STEP_TIME, ttl_ms,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::time::Duration;

/// The prefix is `KEYS[1]`; the sender's key, the run, what is judged of it, the outcome, the time to live in milliseconds, and
/// how many outcomes at most. Gives `new`, or what was told under that key before, or nothing. Redis 6.2 or later, Valkey.
const TELL: &str = r"
local P, run, ttl = KEYS[1] .. 'outcomes', ARGV[2], ARGV[5]
local told = P .. ':told:' .. redis.sha1hex(ARGV[1])
local before = redis.call('GET', told)
if before then return before end
if redis.call('HSETNX', P .. ':judged:' .. run, ARGV[3], '') == 0 then return '' end
redis.call('PEXPIRE', P .. ':judged:' .. run, ttl)
redis.call('SET', told, ARGV[4], 'PX', ttl)
redis.call('RPUSH', P .. ':of:' .. run, ARGV[4])
redis.call('PEXPIRE', P .. ':of:' .. run, ttl)
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local last = redis.call('XREVRANGE', P, '+', '-', 'COUNT', 1)[1]
local place = last and math.max(now, string.match(last[1], '^%d+') + 1) or now
redis.call('XADD', P, 'MAXLEN', '~', ARGV[6], string.format('%.0f-0', place), 'outcome', ARGV[4])
redis.call('XTRIM', P, 'MINID', '~', string.format('%.0f-0', math.max(0, now - ttl * 1000)))
redis.call('PEXPIRE', P, ttl)
return 'new'
";

/// The outcomes of one server. It connects when it is first asked.
pub struct RedisOutcomes {
    line: RedisLine,
    prefix: String,
    ttl_ms: u64,
    most: usize,
    tell: redis::Script,
}

impl std::fmt::Debug for RedisOutcomes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOutcomes").field("ttl_ms", &self.ttl_ms).finish_non_exhaustive()
    }
}

impl RedisOutcomes {
    /// Those at that place, each kept for `keep_for`, and not many more than `most` of them. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace, keep_for: Duration, most: usize) -> Result<Self, RedisPlaceFault> {
        Ok(Self {
            line: RedisLine::new(place, CONNECT_TIME, STEP_TIME)?,
            prefix: place.key_prefix.clone(),
            ttl_ms: ttl_ms(keep_for),
            most,
            tell: redis::Script::new(TELL),
        })
    }

    async fn told(&self, key: &str, outcome: &Outcome) -> Result<Told, OutcomeFault> {
        let text = json(outcome)?;
        let mut step = self.tell.prepare_invoke();
        step.key(self.prefix.as_str()).arg(key).arg(outcome.run.as_str());
        step.arg(json(&(outcome.target, &outcome.target_ref))?).arg(text).arg(self.ttl_ms).arg(self.most);
        let before: String = self.line.answer(async |line| step.invoke_async(line).await).await?;
        if before == "new" {
            return Ok(Told::New);
        }
        let same = serde_json::from_str(&before).is_ok_and(|before| outcome.says(&before));
        Ok(if same { Told::Again } else { Told::Other })
    }

    async fn of_run(&self, run: &RunId) -> Result<Vec<Outcome>, OutcomeFault> {
        let mut ask = redis::cmd("LRANGE");
        ask.arg(format!("{}outcomes:of:{run}", self.prefix)).arg(0).arg(-1);
        let texts: Vec<String> = self.line.answer(async |line| ask.query_async(line).await).await?;
        Ok(texts.iter().filter_map(|text| serde_json::from_str(text).ok()).collect())
    }

    /// Rows of the stream, by a question that names its two ends in the server's own order.
    async fn rows(
        &self,
        ask: &str,
        ends: [&str; 2],
        most: usize,
    ) -> Result<Vec<(Outcome, i64)>, OutcomeFault> {
        let mut range = redis::cmd(ask);
        range.arg(format!("{}outcomes", self.prefix)).arg(&ends).arg("COUNT").arg(most.max(1));
        let rows: Vec<(String, BTreeMap<String, String>)> =
            self.line.answer(async |line| range.query_async(line).await).await?;
        Ok(rows.iter().filter_map(row).take(most).collect())
    }
}

impl OutcomeStore for RedisOutcomes {
    fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>> {
        async move { self.told(&key, &outcome).await }.boxed()
    }

    fn of(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
        let run = run.clone();
        async move { self.of_run(&run).await }.boxed()
    }

    fn latest(&self, most: usize) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
        async move { Ok(OutcomeMark::default().on(self.rows("XREVRANGE", ["+", "-"], most).await?)) }.boxed()
    }

    fn after(
        &self,
        mark: OutcomeMark,
        most: usize,
    ) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
        async move {
            let from = format!("{}-0", mark.0.saturating_add(1));
            Ok(mark.on(self.rows("XRANGE", [&from, "+"], most).await?))
        }
        .boxed()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// `None` where it cannot be read, as something that another program wrote there.
fn row((id, fields): &(String, BTreeMap<String, String>)) -> Option<(Outcome, i64)> {
    let (place, _) = id.split_once('-')?;
    Some((serde_json::from_str(fields.get("outcome")?).ok()?, place.parse().ok()?))
}

/// What cannot be written never can be sent.
fn json(value: &impl serde::Serialize) -> Result<String, RedisFault> {
    serde_json::to_string(value).map_err(|_| RedisFault("an outcome cannot be written as JSON"))
}
