//! Ratings that no rater's words give: a verifier's, and a trained rule's.

use crate::stage::settings;
use crate::support::{Script, ask, body, message_with, says};
use chorus_collab::confidence::{Check, Features, Scorer, Verifier};
use chorus_collab::{Answer, CallFault, CallRole, Candidate, FaultKind, RatingsPlan, RatingsTrace, ratings};
use chorus_spec::{Aggregate, Raters};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn plan(raters: Raters) -> RatingsPlan {
    let candidate = |model: &str| Candidate { model: model.to_owned(), ..Candidate::default() };
    RatingsPlan::from_settings(&settings(raters, Aggregate::Best), &["a", "b", "c"].map(candidate)).unwrap()
}

/// Supports what names Paris; breaks on what is blank of facts.
#[derive(Debug)]
struct Atlas;

impl Verifier for Atlas {
    fn verify<'a>(&'a self, check: Check<'a>, _timeout: Duration) -> BoxFuture<'a, Result<f64, CallFault>> {
        let word = match check.answer {
            "Paris" => Ok(0.9),
            "Rome" => Ok(0.1),
            _ => Err(CallFault { kind: FaultKind::Timeout, public: "too late".to_owned(), status: None }),
        };
        async move { word }.boxed()
    }
}

/// The mean log-probability as a share.
#[derive(Debug)]
struct Mean;

impl Scorer for Mean {
    fn score(&self, _model: &str, features: &Features) -> Option<f64> {
        features.get("mean").map(f64::exp)
    }
}

#[tokio::test(start_paused = true)]
async fn a_verifier_rates_and_what_it_cannot_tell_is_unrated() {
    let script =
        Script::new([("a", vec![says("Rome")]), ("b", vec![says("Paris")]), ("c", vec![says("Hm")])]);
    let plan = RatingsPlan { verifier: Some(Arc::new(Atlas)), ..plan(Raters::Verifier) };
    let mut trace = RatingsTrace::default();
    let question = ask(r#"{"role":"user","content":"q"}"#, "");
    let answer = ratings(&plan, &question, &script, &mut trace, &()).await.unwrap();
    let Answer::Finished(reply) = answer else { panic!("a stream") };
    assert_eq!(reply.reply.content, "Paris");
    let rated: Vec<Option<f64>> = trace.responses.iter().map(|response| response.rating).collect();
    assert_eq!(rated, [Some(0.1), Some(0.9), None]);
    assert_eq!(trace.ballots[2].error.as_deref(), Some("the check failed: too late"));
    assert_eq!(script.all().len(), 3, "no model is asked to rate");
}

#[tokio::test(start_paused = true)]
async fn a_trained_rule_rates_by_log_probabilities_that_the_client_does_not_see() {
    let sure = |text: &str, logprob: f64| {
        let logprobs = json!({"content": [{"token": text, "logprob": logprob, "top_logprobs": []}]});
        message_with(&json!({"role": "assistant", "content": text}), &logprobs, "stop")
    };
    let script = Script::new([
        ("a", vec![sure("Rome", -2.0)]),
        ("b", vec![sure("Paris", -0.1)]),
        ("c", vec![says("silent")]),
    ]);
    let plan = RatingsPlan { scorer: Some(Arc::new(Mean)), ..plan(Raters::Scorer) };
    let mut trace = RatingsTrace::default();
    let question = ask(r#"{"role":"user","content":"q"}"#, "");
    let answer = ratings(&plan, &question, &script, &mut trace, &()).await.unwrap();
    let Answer::Finished(reply) = answer else { panic!("a stream") };
    assert_eq!(reply.reply.content, "Paris");
    assert!(trace.responses[2].rating.is_none(), "no evidence is no low rating");
    assert!(script.asked(CallRole::Panel).iter().all(|call| body(call)["logprobs"] == true));
    let seen = String::from_utf8(reply.reply.to_bytes()).unwrap();
    assert!(!seen.contains("-0.1"), "{seen}");
}
