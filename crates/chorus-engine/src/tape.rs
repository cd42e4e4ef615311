//! A run that can be executed again: what it was asked, and what models answered.
//!
//! It is kept only where the operator asked for content, apart from the run record, and holds no header and no
//! credential: of a caller the name and the groups that somebody vouched for. It knows no file ([`folder`]) and no
//! comparison ([`compare`]). **Invariant:** a tape that is played calls nobody.

pub mod compare;
pub(crate) mod deck;
pub mod folder;
mod kept;

pub use compare::{Difference, differences};
pub use folder::{TapeFault, Tapes};

use crate::run::{Controls, Inbound};
use crate::selection::SessionWords;
use chorus_signals::{Caller, Voucher};
use chorus_spec::{BudgetSettings, WhenSpent};
use chorus_wire::{ChatRequest, RequestFault, RequestLimits};
use deck::Deck;
use kept::Kept;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::time::Duration;

/// The version that is written; a higher one is refused.
pub const VERSION: u32 = 1;

/// What a run was asked, and what models answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tape {
    /// [`VERSION`].
    pub version: u32,
    /// The run's id.
    pub run: String,
    /// When it began, in milliseconds since 1970.
    pub at_ms: u64,
    /// Whether personal data has been replaced by placeholders.
    pub redacted: bool,
    /// The request, in the words of the chat API.
    pub request: Box<RawValue>,
    progress: bool,
    budget: KeptBudget,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    caller: Option<KeptCaller>,
    lost: Vec<String>,
    session: Option<String>,
    conversation: Option<String>,
    controls: Vec<(String, String)>,
    /// Every attempt at a call, in the order in which they began.
    pub(crate) calls: Vec<Kept>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeptCaller {
    user: String,
    groups: Vec<String>,
    by_key: bool,
}

/// A [`BudgetSettings`].
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
#[serde(default)]
struct KeptBudget {
    max_calls: Option<u32>,
    max_tokens: Option<u64>,
    max_micro_usd: Option<u64>,
    max_time_ms: Option<u64>,
    max_joules: Option<f64>,
    when_spent: Option<String>,
}

impl Tape {
    /// A tape of a request that has just come in.
    pub(crate) fn begin(run: &str, since_1970: Duration, inbound: &Inbound) -> Option<Self> {
        let request = String::from_utf8(inbound.request.to_bytes()).ok()?;
        let caller = inbound.caller.as_deref().map(|caller| KeptCaller {
            user: caller.user().to_owned(),
            groups: caller.groups().to_vec(),
            by_key: caller.vouched_by() == Voucher::ApiKey,
        });
        Some(Self {
            version: VERSION,
            run: run.to_owned(),
            at_ms: u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX),
            redacted: false,
            request: RawValue::from_string(request).ok()?,
            progress: inbound.progress,
            budget: KeptBudget::of(&inbound.budget),
            caller,
            lost: inbound.lost.clone(),
            session: inbound.session.session.clone(),
            conversation: inbound.session.conversation.clone(),
            controls: inbound.controls.all().to_vec(),
            calls: Vec::new(),
        })
    }

    /// The tape with every call that was made.
    pub(crate) fn with_calls_of(self, deck: Option<&Deck>) -> Self {
        Self { calls: deck.map(Deck::recorded).unwrap_or_default(), ..self }
    }

    /// What plays its calls.
    pub(crate) fn deck(&self) -> Deck {
        Deck::playing(self.calls.clone())
    }

    /// The request as it came in.
    ///
    /// # Errors
    /// A request that this version does not take any more.
    pub fn inbound(&self) -> Result<Inbound, RequestFault> {
        let request = ChatRequest::parse(self.request.get().as_bytes(), &RequestLimits::default())?;
        let caller = self.caller.as_ref().and_then(|caller| {
            let voucher = if caller.by_key { Voucher::ApiKey } else { Voucher::TrustedProxy };
            Caller::new(&caller.user, caller.groups.clone(), voucher)
        });
        Ok(Inbound {
            progress: self.progress,
            budget: self.budget.settings(),
            caller: caller.map(Arc::new),
            lost: self.lost.clone(),
            session: SessionWords { session: self.session.clone(), conversation: self.conversation.clone() },
            controls: Controls::of(self.controls.clone()),
            ..Inbound::of(request)
        })
    }
}

impl KeptBudget {
    fn of(settings: &BudgetSettings) -> Self {
        let when = |when: WhenSpent| match when {
            WhenSpent::Answer => "answer",
            WhenSpent::Fallback => "fallback",
            WhenSpent::Abstain => "abstain",
        };
        Self {
            max_calls: settings.max_calls,
            max_tokens: settings.max_tokens,
            max_micro_usd: settings.max_micro_usd,
            max_time_ms: settings.max_time.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            max_joules: settings.max_joules,
            when_spent: settings.when_spent.map(|it| when(it).to_owned()),
        }
    }

    fn settings(&self) -> BudgetSettings {
        let when = |word: &str| match word {
            "fallback" => WhenSpent::Fallback,
            "abstain" => WhenSpent::Abstain,
            _ => WhenSpent::Answer,
        };
        BudgetSettings {
            max_calls: self.max_calls,
            max_tokens: self.max_tokens,
            max_micro_usd: self.max_micro_usd,
            max_time: self.max_time_ms.map(Duration::from_millis),
            max_joules: self.max_joules,
            when_spent: self.when_spent.as_deref().map(when),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::{Message, Role};

    #[test]
    fn what_was_asked_comes_back_whole() {
        let request = ChatRequest::new("m", vec![Message::new(Role::User, "hello")]);
        let inbound = Inbound {
            budget: BudgetSettings {
                max_calls: Some(3),
                max_time: Some(Duration::from_millis(1500)),
                when_spent: Some(WhenSpent::Abstain),
                ..BudgetSettings::default()
            },
            caller: Caller::new("ada", vec!["staff".to_owned()], Voucher::ApiKey).map(Arc::new),
            lost: vec!["top_k".to_owned()],
            session: SessionWords { session: Some("s".to_owned()), conversation: None },
            controls: Controls::of([("x-a".to_owned(), "1".to_owned())]),
            progress: true,
            ..Inbound::of(request)
        };
        let tape = Tape::begin("run_1", Duration::from_millis(7), &inbound).unwrap();
        let text = serde_json::to_string(&tape).unwrap();
        let back: Tape = serde_json::from_str(&text).unwrap();
        let again = back.inbound().unwrap();
        assert_eq!(again.request.to_bytes(), inbound.request.to_bytes());
        assert_eq!((again.budget, again.caller), (inbound.budget, inbound.caller));
        assert_eq!(
            (again.lost, again.session, again.controls),
            (inbound.lost, inbound.session, inbound.controls)
        );
        assert_eq!((back.at_ms, again.progress), (7, true));
    }
}
