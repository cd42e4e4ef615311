//! A simulated team: members that answer late, wrongly, emptily or never, and a book of every attempt.
//!
//! Each attempt's answer carries a mark of its own, so that it shows in a prompt who has seen whose answer.

use crate::dice::Dice;
use chorus_collab::calls::{
    Call, CallFault, CallRole, Chunks, Enough, FaultKind, GatherRule, Gathered, Live, Member, ModelCalls,
    Reply,
};
use chorus_wire::{ChatReply, Chunk, Usage};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a mark begins with.
const MARK: &str = "mark-";

/// What happened to all attempts.
#[derive(Debug, Default)]
pub(crate) struct Book {
    /// Attempts that began.
    pub(crate) started: usize,
    /// Attempts that ended, one way or the other.
    pub(crate) ended: usize,
    /// Usable texts of panel members and workers.
    pub(crate) usable: usize,
    /// Who made which attempt, in their order.
    pub(crate) authors: Vec<String>,
    /// Who was shown whose answer: model and model.
    pub(crate) sights: Vec<(String, String)>,
    /// Most attempts of one gathering at once, over the cap that it asked for.
    pub(crate) over_cap: usize,
    /// Most attempts at once.
    pub(crate) peak: usize,
    /// Roles whose prompt spoke of tools, and roles whose prompt held an answer.
    pub(crate) saw_tools: Vec<CallRole>,
    pub(crate) saw_answers: Vec<CallRole>,
    /// Calls that the budget refused.
    pub(crate) refused: usize,
}

/// A team.
pub(crate) struct Team {
    dice: Mutex<Dice>,
    book: Arc<Mutex<Book>>,
    /// Calls that may be made.
    budget: Option<usize>,
    /// How often in a hundred an attempt fails.
    failing: u64,
}

/// An attempt that runs; dropped, it has ended.
struct Running(Arc<Mutex<Book>>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().unwrap().ended += 1;
    }
}

impl Team {
    pub(crate) fn new(dice: &mut Dice) -> Self {
        let budget = dice.percent(30).then(|| dice.below(8) as usize);
        let failing = [0, 15, 50, 100][dice.below(4) as usize];
        Self { dice: Mutex::new(Dice::new(dice.next())), book: Arc::default(), budget, failing }
    }

    pub(crate) fn budget(&self) -> Option<usize> {
        self.budget
    }

    pub(crate) fn book(&self) -> Arc<Mutex<Book>> {
        Arc::clone(&self.book)
    }

    /// Asks the budget, and writes the attempt down.
    fn begin(&self, call: &Call) -> Result<(Running, usize), CallFault> {
        let mut book = self.book.lock().unwrap();
        if self.budget.is_some_and(|budget| book.started >= budget) {
            book.refused += 1;
            return Err(fault(FaultKind::Budget));
        }
        let number = book.started;
        book.started += 1;
        book.peak = book.peak.max(book.started - book.ended);
        let body: Value = serde_json::from_slice(&call.ask.to_bytes()).unwrap();
        if body.get("tools").is_some() || body.get("tool_choice").is_some() {
            book.saw_tools.push(call.role);
        }
        let shown = marks(&body["messages"].to_string());
        if !shown.is_empty() {
            book.saw_answers.push(call.role);
        }
        for mark in shown {
            let author = book.authors[mark].clone();
            book.sights.push((call.model.clone(), author));
        }
        book.authors.push(call.model.clone());
        Ok((Running(self.book()), number))
    }

    /// How an attempt goes: its delay, and what it says.
    fn fate(&self, call: &Call, number: usize) -> (Duration, Result<ChatReply, FaultKind>) {
        let mut dice = self.dice.lock().unwrap();
        let hangs = dice.percent(3);
        let delay = Duration::from_millis(if hangs { 3_600_000 } else { dice.latency_ms() });
        if dice.percent(self.failing) {
            let kinds = [FaultKind::Timeout, FaultKind::Transport, FaultKind::Status, FaultKind::Empty];
            return (delay, Err(kinds[dice.below(4) as usize]));
        }
        (delay, Ok(reply(&mut dice, call.role, number)))
    }

    async fn attempt(&self, call: Call) -> Result<(Running, Reply), CallFault> {
        let (running, number) = self.begin(&call)?;
        let (delay, outcome) = self.fate(&call, number);
        let in_time = tokio::time::sleep(delay);
        match call.timeout {
            Some(limit) => {
                tokio::time::timeout(limit, in_time).await.map_err(|_| fault(FaultKind::Timeout))?;
            }
            None => in_time.await,
        }
        let reply = outcome.map_err(fault)?;
        let usage = Usage { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12, estimated: false };
        let mut book = self.book.lock().unwrap();
        let member = matches!(call.role, CallRole::Panel | CallRole::Worker);
        book.usable += usize::from(member && !reply.content.trim().is_empty());
        Ok((running, Reply { model: call.model, reply, usage }))
    }

    async fn panel(&self, calls: Vec<Call>, rule: GatherRule, enough: &Enough) -> Gathered {
        let models: Vec<String> = calls.iter().map(|call| call.model.clone()).collect();
        let mut members: Vec<Member> = Vec::new();
        let before = self.running();
        let mut all = stream::iter(calls.into_iter().enumerate())
            .map(|(seat, call)| {
                let model = call.model.clone();
                self.complete(call).map(move |outcome| Member { seat, model, outcome })
            })
            .buffer_unordered(rule.max_concurrent);
        let collect = async {
            while let Some(member) = all.next().await {
                members.push(member);
                let over = (self.running() - before).saturating_sub(rule.max_concurrent);
                let mut book = self.book.lock().unwrap();
                book.over_cap = book.over_cap.max(over);
                if members.iter().filter(|m| m.outcome.is_ok()).count() == rule.quorum || enough(&members) {
                    break;
                }
            }
        };
        let limit = rule.timeout.unwrap_or(Duration::from_secs(36_000));
        let late = match tokio::time::timeout(limit, collect).await {
            Ok(()) => FaultKind::Cancelled,
            Err(_) => FaultKind::Timeout,
        };
        drop(all);
        for (seat, model) in models.into_iter().enumerate() {
            if !members.iter().any(|m| m.seat == seat) {
                members.push(Member { seat, model, outcome: Err(fault(late)) });
            }
        }
        members.sort_by_key(|m| m.seat);
        Gathered { members }
    }

    fn running(&self) -> usize {
        let book = self.book.lock().unwrap();
        book.started - book.ended
    }
}

impl ModelCalls for Team {
    fn complete(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallFault>> {
        async move { self.attempt(call).await.map(|(_running, reply)| reply) }.boxed()
    }

    fn stream(&self, call: Call) -> BoxFuture<'_, Result<Live, CallFault>> {
        async move {
            let (running, reply) = self.attempt(call).await?;
            let words: Vec<_> =
                reply.reply.content.split_inclusive(' ').map(|word| Ok(Chunk::content(word))).collect();
            let chunks: Chunks = stream::iter(words)
                .chain(stream::once(async { Ok(Chunk::finish("stop")) }))
                .map(move |chunk| {
                    let _still = &running;
                    chunk
                })
                .boxed();
            Ok(Live { model: reply.model, chunks })
        }
        .boxed()
    }

    fn gather_until<'a>(
        &'a self,
        calls: Vec<Call>,
        rule: GatherRule,
        enough: &'a Enough,
    ) -> BoxFuture<'a, Gathered> {
        self.panel(calls, rule, enough).boxed()
    }

    fn context_window(&self, _model: &str) -> Option<u64> {
        None
    }
}

/// The attempts whose marks a text holds.
fn marks(text: &str) -> Vec<usize> {
    let number =
        |after: &str| after.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok();
    text.split(MARK).skip(1).filter_map(number).collect()
}

/// A sound plan, whose third step sees nothing.
const PLAN: &str = r#"{"steps": [
    {"id": "one", "role": "solver", "models": ["a", "b"]},
    {"id": "two", "role": "verifier", "models": ["c"], "access_list": ["one"]},
    {"id": "three", "role": "solver", "models": ["d"], "access_list": []}]}"#;

/// What a model of that role may say: what it should, half of it, or something else.
fn reply(dice: &mut Dice, role: CallRole, number: usize) -> ChatReply {
    let letter = ["A", "B", "C"][dice.below(3) as usize];
    let text = match role {
        CallRole::Judge if dice.percent(70) => format!(
            r#"{{"consensus":["{letter}"],"contradictions":[],"partial_coverage":[],"unique_insights":[],"blind_spots":[]}}"#
        ),
        CallRole::Rater if dice.percent(70) => r#"{"ranking":["A","B"],"scores":{"A":3,"B":7}}"#.to_owned(),
        CallRole::Planner if dice.percent(70) => PLAN.to_owned(),
        // A planner is shown its own unsound plan again, which is nobody else's answer: it carries no mark.
        CallRole::Planner => "I would rather not.".to_owned(),
        CallRole::Verifier if dice.percent(70) => format!("{{\"score\": 0.{}}}", dice.below(10)),
        _ if dice.percent(10) => "{\"half\": [".to_owned(),
        _ => format!("I looked at it as {MARK}{number}.\nANSWER: {letter}"),
    };
    let token = json!({ "token": "t", "logprob": -0.1 * dice.below(20) as f64, "top_logprobs": [] });
    let logprobs = if dice.percent(80) { json!({ "content": [token] }) } else { Value::Null };
    let message = json!({ "role": "assistant", "content": text });
    let choice = json!({ "index": 0, "message": message, "logprobs": logprobs, "finish_reason": "stop" });
    ChatReply::parse(json!({ "choices": [choice] }).to_string().as_bytes()).unwrap()
}

fn fault(kind: FaultKind) -> CallFault {
    CallFault { kind, public: format!("it failed ({kind:?})"), status: None }
}
