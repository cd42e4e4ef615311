//! How much callers may do: requests, tokens and money in a window, by user, group and model.
//!
//! A request is admitted with an estimate of its prompt, which stays counted while it runs; then what it really took
//! counts (the same numbers as in its record). Requests, tokens and money have counters of their own (case C13).
//!
//! It knows no HTTP; the time is an argument. **Invariant:** what is admitted together never starts from a counter that
//! was at its bound, however requests interleave, and a refused request counts nowhere.

use crate::env::Env;
use crate::fault::{Code, Fault};
use crate::identity::identify;
use crate::states::{self, StatesFault};
use chorus_signals::Caller;
use chorus_spec::{Global, LimitStore, RateMatch, RateRule, Spec};
use chorus_store::{Admission, LimitCounter, RedisLimits, Window};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The bounds of a rule, in the words of the configuration.
const BOUNDS: [&str; 3] = ["requests_per_unit", "tokens_per_unit", "micro_usd_per_unit"];

/// Why shared counters cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[error("the limits on callers: {0}")]
pub struct LimitsPlaceFault(#[from] StatesFault);

impl From<chorus_store::RedisPlaceFault> for LimitsPlaceFault {
    fn from(fault: chorus_store::RedisPlaceFault) -> Self {
        Self(fault.into())
    }
}

/// Most counters that are kept; those whose window is over go first.
const MOST_COUNTERS: usize = 20_000;

/// The rules of one configuration over the counters of the process, or over those that replicas share.
#[derive(Debug, Clone)]
pub struct Quotas {
    rules: Arc<[RateRule]>,
    counting: Counting,
}

/// Where it is counted.
#[derive(Debug, Clone)]
enum Counting {
    Here(Counters),
    Shared { limits: RedisLimits, fail_open: bool },
}

/// Counters by rule and by whom they are for. Cloning shares them: they outlive a change of configuration.
#[derive(Debug, Default, Clone)]
pub(crate) struct Counters(Arc<Mutex<BTreeMap<String, Count>>>);

#[derive(Debug, Clone, Copy)]
struct Count {
    since: Instant,
    unit: Duration,
    requests: u64,
    tokens: u64,
    micro_usd: u64,
}

/// What was counted for one request while it runs. Dropped without a word, its estimate stays.
#[derive(Debug)]
pub struct Held {
    tokens: u64,
    counted: Counted,
}

#[derive(Debug)]
enum Counted {
    Here {
        counters: Counters,
        keys: Vec<(String, Instant)>,
    },
    Shared {
        limits: RedisLimits,
        windows: Vec<Window>,
    },
    /// The shared counters could not be asked, and the configuration lets requests pass then.
    Nowhere,
}

/// Who asks for what.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    /// Who, where somebody vouches for it.
    pub caller: Option<&'a Caller>,
    /// The name that was asked for; `other` where nothing is called so.
    pub model: &'a str,
}

impl<'a> Asker<'a> {
    /// That caller, asking that configuration for a model of that name.
    #[must_use]
    pub fn of(spec: &Spec, caller: Option<&'a Caller>, model: &'a str) -> Self {
        Self { caller, model: if identify(spec, model).is_ok() { model } else { "other" } }
    }
}

impl Quotas {
    /// The rules of that configuration; `counters` are those of the process.
    ///
    /// # Errors
    /// [`LimitsPlaceFault`].
    pub(crate) fn of(global: &Global, counters: Counters, env: &Env) -> Result<Self, LimitsPlaceFault> {
        let counting = match &global.limit_store {
            LimitStore::Process => Counting::Here(counters),
            LimitStore::Redis { server, fail_open } => {
                let place = states::place(server, env)?;
                Counting::Shared { limits: RedisLimits::new(&place)?, fail_open: *fail_open }
            }
        };
        Ok(Self { rules: global.rate_limits.as_slice().into(), counting })
    }

    /// Whether anything is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Admits a request of about so many tokens at `now`; shared counters have their own clock.
    ///
    /// # Errors
    /// [`Code::RateLimited`] with the rule's name, the unit of what is used up, and how long to wait;
    /// [`Code::LimitsUnavailable`] where shared counters cannot be asked.
    pub async fn admit(&self, asker: Asker<'_>, tokens: u64, now: Instant) -> Result<Held, Fault> {
        match &self.counting {
            Counting::Here(counters) => self.admit_here(counters, asker, tokens, now),
            Counting::Shared { limits, fail_open } => {
                self.admit_shared(limits, *fail_open, asker, tokens).await
            }
        }
    }

    fn admit_here(
        &self,
        counters: &Counters,
        asker: Asker<'_>,
        tokens: u64,
        now: Instant,
    ) -> Result<Held, Fault> {
        let mut counts = counters.lock();
        let mut keys = Vec::new();
        for rule in self.rules.iter() {
            let Some(key) = key(rule, asker) else { continue };
            let count = counts.get(&key).filter(|count| !count.is_over(now)).copied();
            let count = count.unwrap_or_else(|| Count::begin(rule.unit, now));
            if let Some(limit) = count.reached(rule, tokens) {
                return Err(refusal(rule, limit, count.left(now)));
            }
            keys.push((key, count));
        }
        make_room(&mut counts, now);
        let held = keys.into_iter().map(|(key, mut count)| {
            count.requests += 1;
            count.tokens = count.tokens.saturating_add(tokens);
            counts.insert(key.clone(), count);
            (key, count.since)
        });
        let keys = held.collect();
        Ok(Held { tokens, counted: Counted::Here { counters: counters.clone(), keys } })
    }

    async fn admit_shared(
        &self,
        limits: &RedisLimits,
        fail_open: bool,
        asker: Asker<'_>,
        tokens: u64,
    ) -> Result<Held, Fault> {
        let concerned = self.rules.iter().filter_map(|rule| Some((rule, key(rule, asker)?)));
        let (rules, counters): (Vec<&RateRule>, Vec<LimitCounter>) = concerned
            .map(|(rule, key)| {
                let most = [rule.requests, rule.tokens, rule.micro_usd];
                (rule, LimitCounter { key, most, unit: rule.unit })
            })
            .unzip();
        if counters.is_empty() {
            return Ok(Held { tokens, counted: Counted::Nowhere });
        }
        match limits.admit(&counters, tokens).await {
            Ok(Admission::Admitted(windows)) => {
                Ok(Held { tokens, counted: Counted::Shared { limits: limits.clone(), windows } })
            }
            Ok(Admission::Refused { counter, bound, wait }) => {
                let (Some(rule), Some(limit)) = (rules.get(counter), BOUNDS.get(bound)) else {
                    return Err(unavailable());
                };
                Err(refusal(rule, limit, wait))
            }
            Err(_) if fail_open => Ok(Held { tokens, counted: Counted::Nowhere }),
            Err(_) => Err(unavailable()),
        }
    }
}

impl Held {
    /// The request has ended, and took this. Shared counters are told in a task of their own: nobody waits for that.
    pub fn settle(&self, tokens: u64, micro_usd: u64) {
        match &self.counted {
            Counted::Here { counters, keys } => {
                let mut counts = counters.lock();
                for (key, since) in keys {
                    // A window that has ended meanwhile has nothing to mend.
                    let count = counts.get_mut(key).filter(|count| count.since == *since);
                    let Some(count) = count else { continue };
                    count.tokens = count.tokens.saturating_sub(self.tokens).saturating_add(tokens);
                    count.micro_usd = count.micro_usd.saturating_add(micro_usd);
                }
            }
            Counted::Shared { limits, windows } => {
                let (limits, windows) = (limits.clone(), windows.clone());
                let more = i64::try_from(tokens).unwrap_or(i64::MAX);
                let more = more.saturating_sub(i64::try_from(self.tokens).unwrap_or(i64::MAX));
                // A failure is in the log already; the estimate stays counted.
                tokio::spawn(async move { limits.settle(&windows, more, micro_usd).await.ok() });
            }
            Counted::Nowhere => {}
        }
    }
}

impl Counters {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Count {
    fn begin(unit: Duration, now: Instant) -> Self {
        Self { since: now, unit, requests: 0, tokens: 0, micro_usd: 0 }
    }

    fn is_over(&self, now: Instant) -> bool {
        self.left(now).is_zero()
    }

    fn left(&self, now: Instant) -> Duration {
        self.unit.saturating_sub(now.saturating_duration_since(self.since))
    }

    /// The limit that another request of so many tokens would pass. One whose prompt alone is beyond the limit is admitted
    /// to an empty window, because no waiting would help it.
    fn reached(&self, rule: &RateRule, tokens: u64) -> Option<&'static str> {
        let over = |limit: Option<u64>, used: u64, next: u64| {
            limit.is_some_and(|limit| used >= limit || (used > 0 && used.saturating_add(next) > limit))
        };
        let reached = [
            over(rule.requests, self.requests, 1),
            over(rule.tokens, self.tokens, tokens),
            over(rule.micro_usd, self.micro_usd, 0),
        ];
        BOUNDS.iter().zip(reached).find_map(|(bound, reached)| reached.then_some(*bound))
    }
}

/// The counter that a rule keeps for somebody; `None` where it is not about them.
fn key(rule: &RateRule, asker: Asker<'_>) -> Option<String> {
    let mut key = rule.name.clone();
    let mut add = |kind: &str, name: &str| {
        key.push('\n');
        key.push_str(kind);
        key.push_str(name);
    };
    match &rule.user {
        None => {}
        Some(RateMatch::Name(name)) => drop(asker.caller.filter(|caller| caller.user() == name)?),
        Some(RateMatch::Each) => add("user ", asker.caller?.user()),
    }
    match &rule.group {
        None => {}
        Some(RateMatch::Name(name)) => drop(asker.caller?.groups().iter().find(|group| *group == name)?),
        Some(RateMatch::Each) => add("group ", asker.caller?.groups().first()?),
    }
    match &rule.model {
        None => {}
        Some(RateMatch::Name(name)) => drop((asker.model == name).then_some(())?),
        Some(RateMatch::Each) => add("model ", asker.model),
    }
    Some(key)
}

fn refusal(rule: &RateRule, limit: &'static str, wait: Duration) -> Fault {
    let text = format!(
        "the limit `{}` is reached ({limit}); try again in {} s",
        rule.name,
        wait.as_secs_f64().ceil().max(1.0)
    );
    Fault { retry_after: Some(wait), ..Fault::new(Code::RateLimited, text) }
}

fn unavailable() -> Fault {
    Fault::new(Code::LimitsUnavailable, "the limits on callers cannot be asked at the moment")
}

fn make_room(counts: &mut BTreeMap<String, Count>, now: Instant) {
    if counts.len() < MOST_COUNTERS {
        return;
    }
    counts.retain(|_, count| !count.is_over(now));
    while counts.len() >= MOST_COUNTERS {
        let oldest = counts.iter().min_by_key(|(_, count)| count.since).map(|(key, _)| key.clone());
        let Some(oldest) = oldest else { return };
        counts.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_signals::Voucher;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rule(name: &str) -> RateRule {
        RateRule {
            name: name.to_owned(),
            user: None,
            group: None,
            model: None,
            requests: None,
            tokens: None,
            micro_usd: None,
            unit: MINUTE,
        }
    }

    /// Rules over counters of their own.
    struct Here(Quotas, Counters);

    impl Here {
        fn admit(&self, asker: Asker<'_>, tokens: u64, now: Instant) -> Result<Held, Fault> {
            self.0.admit_here(&self.1, asker, tokens, now)
        }
    }

    fn quotas(rules: &[RateRule]) -> Here {
        let counters = Counters::default();
        let global = Global { rate_limits: rules.to_vec(), ..Global::default() };
        Here(Quotas::of(&global, counters.clone(), &Env::having(&[])).unwrap(), counters)
    }

    fn caller(user: &str, groups: &[&str]) -> Caller {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        Caller::new(user, groups, Voucher::ApiKey).unwrap()
    }

    const NOBODY: Asker<'static> = Asker { caller: None, model: "auto" };

    #[test]
    fn c12_tokens_are_counted_as_the_ledger_counts_them() {
        let quotas = quotas(&[RateRule { tokens: Some(100), ..rule("tpm") }]);
        let now = Instant::now();
        for _ in 0..2 {
            quotas.admit(NOBODY, 20, now).unwrap().settle(60, 0);
        }
        let fault = quotas.admit(NOBODY, 20, now + Duration::from_secs(20)).unwrap_err();
        assert_eq!((fault.code, fault.retry_after), (Code::RateLimited, Some(Duration::from_secs(40))));
        assert!(fault.public.contains("`tpm`") && fault.public.contains("tokens_per_unit"), "{fault}");
        quotas.admit(NOBODY, 20, now + MINUTE).unwrap();
    }

    #[test]
    fn c13_tokens_are_not_requests() {
        let quotas = quotas(&[RateRule { tokens: Some(1000), requests: Some(100), ..rule("both") }]);
        let now = Instant::now();
        for _ in 0..6 {
            quotas.admit(NOBODY, 120, now).unwrap().settle(150, 0);
        }
        let fault = quotas.admit(NOBODY, 120, now).unwrap_err();
        assert!(fault.public.contains("tokens_per_unit"), "{fault}");
    }

    #[test]
    fn requests_and_money_have_bounds_too() {
        let now = Instant::now();
        let requests = quotas(&[RateRule { requests: Some(2), ..rule("rpm") }]);
        requests.admit(NOBODY, 1, now).unwrap();
        requests.admit(NOBODY, 1, now).unwrap();
        assert!(requests.admit(NOBODY, 1, now).is_err());
        let money = quotas(&[RateRule { micro_usd: Some(10), ..rule("money") }]);
        money.admit(NOBODY, 1, now).unwrap().settle(1, 12);
        assert!(money.admit(NOBODY, 1, now).unwrap_err().public.contains("micro_usd_per_unit"));
    }

    #[test]
    fn each_user_has_a_count_and_a_group_shares_one() {
        let each = RateRule { user: Some(RateMatch::Each), requests: Some(1), ..rule("each") };
        let staff =
            RateRule { group: Some(RateMatch::Name("staff".to_owned())), requests: Some(2), ..rule("staff") };
        let quotas = quotas(&[each, staff]);
        let (now, people) = (Instant::now(), ["ada", "bob", "cy"].map(|user| caller(user, &["staff"])));
        let ask = |who: &Caller| {
            let asker = Asker { caller: Some(who), model: "auto" };
            quotas.admit(asker, 1, now).map(drop).map_err(|fault| fault.public)
        };
        ask(&people[0]).unwrap();
        assert!(ask(&people[0]).unwrap_err().contains("`each`"));
        ask(&people[1]).unwrap();
        assert!(ask(&people[2]).unwrap_err().contains("`staff`"));
        quotas.admit(NOBODY, 1, now).unwrap();
    }

    #[test]
    fn a_request_beyond_the_limit_alone_is_admitted_to_an_empty_window() {
        let quotas = quotas(&[RateRule { tokens: Some(100), ..rule("tpm") }]);
        let now = Instant::now();
        quotas.admit(NOBODY, 5000, now).unwrap().settle(5000, 0);
        assert!(quotas.admit(NOBODY, 1, now).is_err());
    }

    #[test]
    fn what_runs_is_counted_before_it_ends() {
        let quotas = quotas(&[RateRule { tokens: Some(100), ..rule("tpm") }]);
        let now = Instant::now();
        let held = quotas.admit(NOBODY, 90, now).unwrap();
        assert!(quotas.admit(NOBODY, 20, now).is_err());
        held.settle(50, 0);
        quotas.admit(NOBODY, 20, now).unwrap();
    }
}
