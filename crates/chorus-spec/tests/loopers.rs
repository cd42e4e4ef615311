//! Settings of the loopers as a file has them, and what is said of those that cannot be.

#![expect(clippy::expect_used, reason = "a test that cannot go on should say where")]

use chorus_spec::{
    Aggregate, Algorithm, ConfidenceMethod, Distribution, EscalationOrder, GroundingPolicy,
    GroundingReference, LooperKind, ModelId, OnError, Raters, Severity, TokenFilter, WhenSpent, WorkflowMode,
};
use std::time::Duration;

/// A file with three models and one decision of that algorithm over the first two.
fn file(algorithm: &str) -> String {
    format!(
        "version: v0.3
providers:
  models:
    - {{ name: m, backend_refs: [{{ endpoint: 'localhost:8000' }}], energy: {{ joules_per_1k_prompt: 2, joules_per_1k_completion: 40 }} }}
    - {{ name: n, backend_refs: [{{ endpoint: 'localhost:8001' }}] }}
    - {{ name: other, backend_refs: [{{ endpoint: 'localhost:8002' }}] }}
routing:
  decisions:
    - name: d
      modelRefs: [{{ model: m }}, {{ model: n }}]
      algorithm: {algorithm}
"
    )
}

fn algorithm(text: &str) -> Algorithm {
    let checked = chorus_spec::read(&file(text));
    assert!(checked.diagnostics.is_empty(), "{:?}", checked.diagnostics);
    checked.spec.expect("a spec").recipes.remove(0).decisions.remove(0).algorithm
}

/// The diagnostics of that algorithm: severity, code, and message with help.
fn said(text: &str) -> Vec<(Severity, &'static str, String)> {
    let told = |it: &chorus_spec::Diagnostic| {
        (it.severity, it.code, format!("{} | {}", it.message, it.help.clone().unwrap_or_default()))
    };
    chorus_spec::read(&file(text)).diagnostics.iter().map(told).collect()
}

#[test]
fn every_key_of_confidence_is_read() {
    let Algorithm::Confidence(it) = algorithm(
        "{ type: confidence, confidence: { confidence_method: hybrid, threshold: 0.8, hopeless_threshold: 0.1,
           hybrid_weights: { logprob_weight: 0.7, margin_weight: 0.3 }, on_error: fail, escalation_order: automix,
           cost_quality_tradeoff: 0.6, token_filter: tool_call_args, verifier_timeout_seconds: 5,
           budget: { max_calls: 3, max_tokens: 900, max_micro_usd: 50, max_time_seconds: 1.5, max_joules: 7,
                     when_spent: fallback } } }",
    ) else {
        panic!("confidence")
    };
    assert_eq!((it.method, it.threshold, it.hopeless), (ConfidenceMethod::Hybrid, Some(0.8), Some(0.1)));
    assert_eq!((it.hybrid_weights, it.order), ((0.7, 0.3), EscalationOrder::Automix));
    assert_eq!((it.cost_quality_tradeoff, it.token_filter), (0.6, TokenFilter::ToolCallArgs));
    assert_eq!((it.verifier_timeout, it.on_error), (Duration::from_secs(5), OnError::Fail));
    assert_eq!(
        (it.budget.max_calls, it.budget.max_tokens, it.budget.max_micro_usd),
        (Some(3), Some(900), Some(50))
    );
    assert_eq!((it.budget.max_time, it.budget.max_joules), (Some(Duration::from_millis(1500)), Some(7.0)));
    assert_eq!(it.budget.when_spent, Some(WhenSpent::Fallback));
}

#[test]
fn a_threshold_of_zero_can_be_said_and_differs_from_none() {
    let threshold = |text: &str| match algorithm(text) {
        Algorithm::Confidence(it) => it.threshold,
        other => panic!("{other:?}"),
    };
    assert_eq!(threshold("{ type: confidence, confidence: { threshold: 0 } }"), Some(0.0));
    assert_eq!(threshold("{ type: confidence, confidence: {} }"), None);
    assert_eq!(threshold("{ type: confidence }"), None);
}

#[test]
fn every_key_of_ratings_is_read() {
    let Algorithm::Ratings(it) = algorithm(
        "{ type: ratings, on_error: fail, ratings: { max_concurrent: 2, raters: judge, aggregate: vote, judge: other,
           rubric: Be exact., round_timeout_seconds: 9, budget: { max_calls: 5 } } }",
    ) else {
        panic!("ratings")
    };
    assert_eq!((it.max_concurrent, it.raters, it.aggregate), (Some(2), Raters::Judge, Aggregate::Vote));
    assert_eq!((it.judge, it.rubric.as_deref()), (Some(ModelId::new("other")), Some("Be exact.")));
    assert_eq!((it.round_timeout, it.on_error), (Some(Duration::from_secs(9)), OnError::Fail));
    assert_eq!(it.budget.max_calls, Some(5));
}

#[test]
fn every_key_of_remom_is_read() {
    let Algorithm::Remom(it) = algorithm(
        "{ type: remom, remom: { breadth_schedule: [4, 2], model_distribution: round_robin, temperature: 0,
           include_reasoning: true, compaction_strategy: last_n_tokens, compaction_tokens: 300,
           synthesis_template: '{{original}} {{references}}', synthesis_model: n, max_concurrent: 3,
           max_completion_tokens: 700, round_timeout_seconds: 8, min_successful_responses: 2, on_error: fail,
           shuffle_seed: 0, include_intermediate_responses: false, max_responses_per_round: 3,
           stop_when_certain: 0.9, budget: { max_tokens: 9 } } }",
    ) else {
        panic!("remom")
    };
    assert_eq!((&*it.breadth_schedule, it.distribution), (&[4, 2][..], Distribution::RoundRobin));
    assert_eq!((it.temperature, it.include_reasoning, it.compaction_tokens), (0.0, true, Some(300)));
    assert_eq!((it.synthesis_model, it.max_concurrent), (Some(ModelId::new("n")), Some(3)));
    assert_eq!((it.max_completion_tokens, it.round_timeout), (Some(700), Some(Duration::from_secs(8))));
    assert_eq!((it.min_successful_responses, it.max_responses_per_round), (Some(2), Some(3)));
    assert_eq!((it.shuffle_seed, it.include_intermediate_responses), (0, false));
    assert_eq!(
        (it.stop_when_certain, it.on_error, it.budget.max_tokens),
        (Some(0.9), OnError::Fail, Some(9))
    );
}

#[test]
fn remom_without_a_block_has_the_contracts_defaults() {
    let Algorithm::Remom(it) = algorithm("{ type: remom }") else { panic!("remom") };
    assert_eq!((&*it.breadth_schedule, it.temperature, it.shuffle_seed), (&[4][..], 1.0, 42));
    assert_eq!((it.compaction_tokens, it.on_error), (None, OnError::Skip));
    let Algorithm::Remom(it) = algorithm("{ type: remom, remom: { compaction_strategy: last_n_tokens } }")
    else {
        panic!("remom")
    };
    assert_eq!(it.compaction_tokens, Some(1000));
}

#[test]
fn every_key_of_workflows_is_read() {
    let Algorithm::Workflows(it) = algorithm(
        "{ type: workflows, workflows: { mode: static, template: house, max_steps: 4, max_parallel: 3,
           max_completion_tokens: 99, round_timeout_seconds: 7, min_successful_responses: 1, temperature: 0.5,
           include_intermediate_responses: false, on_error: skip, final: { model: other, prompt: Conclude. },
           roles: [{ name: Deep Thinker, models: [m, n], prompt: Think. },
                   { name: Verifier, models: [n], access_list: [deep-thinker] },
                   { name: Critic, access_list: ['deep-thinker:1:n', verifier] },
                   { name: Blind, access_list: [] }],
           budget: { max_calls: 8 } } }",
    ) else {
        panic!("workflows")
    };
    assert_eq!((it.mode, it.template.as_str()), (WorkflowMode::Static, "house"));
    assert_eq!((it.max_steps, it.max_parallel, it.max_completion_tokens), (4, 3, Some(99)));
    assert_eq!(
        (it.final_model, it.final_prompt.as_deref()),
        (Some(ModelId::new("other")), Some("Conclude."))
    );
    assert_eq!((it.temperature, it.on_error, it.budget.max_calls), (Some(0.5), OnError::Skip, Some(8)));
    let seen: Vec<_> = it.roles.iter().map(|role| (role.models.len(), role.access_list.as_deref())).collect();
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let (one, two) = (list(&["deep-thinker"]), list(&["deep-thinker:1:n", "verifier"]));
    assert_eq!(seen, [(2, None), (1, Some(&*one)), (0, Some(&*two)), (0, Some(&[][..]))]);
}

#[test]
fn a_dynamic_workflow_needs_no_roles() {
    let Algorithm::Workflows(it) = algorithm(
        "{ type: workflows, workflows: { mode: dynamic, planner: { model: other, max_completion_tokens: 512 } } }",
    ) else {
        panic!("workflows")
    };
    assert_eq!((it.planner, it.planner_max_completion_tokens), (Some(ModelId::new("other")), 512));
    assert_eq!((it.max_steps, it.max_parallel, it.on_error), (3, 2, OnError::Fail));
}

#[test]
fn grounding_is_on_only_where_it_is_switched_on() {
    let grounding = |text: &str| match algorithm(text) {
        Algorithm::Fusion(it) => it.grounding,
        other => panic!("{other:?}"),
    };
    let it = grounding(
        "{ type: fusion, fusion: { grounding: { enabled: true, reference: context, policy: filter, min_score: 0.4,
           min_keep: 2, nli_contradiction_penalty: 0.5, on_error: fail } } }",
    );
    let it = it.expect("grounding");
    assert_eq!((it.reference, it.policy), (GroundingReference::Context, GroundingPolicy::Filter));
    assert_eq!((it.min_score, it.min_keep, it.contradiction_penalty), (0.4, 2, 0.5));
    assert_eq!(it.on_error, OnError::Fail);
    assert_eq!(grounding("{ type: fusion, fusion: { grounding: { policy: filter } } }"), None);
}

#[test]
fn slugs_lead_to_their_loopers() {
    let spec = chorus_spec::read(&file("{ type: remom }")).spec.expect("a spec");
    for (name, kind) in [
        ("vllm-sr/remom", Some(LooperKind::ReMoM)),
        ("vllm-sr/flow", Some(LooperKind::Workflows)),
        ("openrouter/fusion", Some(LooperKind::Fusion)),
        ("m", None),
    ] {
        assert_eq!(spec.global.looper_of(name), kind, "{name}");
    }
    let m = &spec.models[&ModelId::new("m")];
    assert_eq!(m.energy.joules(1000, 500), 22.0);
}

/// What cannot be: the algorithm, and what is said of it.
const CANNOT_BE: &[(&str, Severity, &str, &str)] = &[
    (
        "{ type: confidence, confidence: { threshold: 1.5 } }",
        Severity::Error,
        "bad-range",
        "`threshold` is 1.5",
    ),
    (
        "{ type: confidence, confidence: { confidence_method: avglogprob } }",
        Severity::Error,
        "bad-value",
        "did you mean `avg_logprob`?",
    ),
    (
        "{ type: confidence, confidence: { treshold: 1 } }",
        Severity::Error,
        "unknown-key",
        "did you mean `threshold`?",
    ),
    (
        "{ type: confidence, confidence: { threshold: 0.3, hopeless_threshold: 0.3 } }",
        Severity::Error,
        "bad-range",
        "must be below `threshold`",
    ),
    (
        "{ type: confidence, confidence: { confidence_method: hybrid, hybrid_weights: { logprob_weight: 0.7, margin_weight: 0.7 } } }",
        Severity::Error,
        "bad-range",
        "must come to 1",
    ),
    (
        "{ type: confidence, confidence: { samples: 5 } }",
        Severity::Warning,
        "unused",
        "`samples` has no effect",
    ),
    (
        "{ type: confidence, confidence: { confidence_method: automix_entailment, verifier_server_url: 'box:1' } }",
        Severity::Error,
        "bad-value",
        "not an HTTP address",
    ),
    (
        "{ type: confidence, confidence: { budget: { max_calls: 0 } } }",
        Severity::Error,
        "bad-range",
        "`max_calls` is 0",
    ),
    (
        "{ type: confidence, confidence: { budget: { when_spent: anser } } }",
        Severity::Error,
        "bad-value",
        "did you mean `answer`?",
    ),
    (
        "{ type: ratings, ratings: { aggregate: best } }",
        Severity::Error,
        "bad-value",
        "needs somebody who rates",
    ),
    ("{ type: ratings, ratings: { rubric: x } }", Severity::Warning, "unused", "`rubric` has no effect"),
    (
        "{ type: ratings, ratings: { raters: judge, judge: vllm-sr/flow } }",
        Severity::Error,
        "recursion",
        "judge of `d`",
    ),
    ("{ type: remom, remom: { breadth_schedule: [] } }", Severity::Error, "bad-range", "is empty"),
    ("{ type: remom, remom: { breadth_schedule: [3, 0] } }", Severity::Error, "bad-range", "at least 1"),
    (
        "{ type: remom, remom: { breadth_schedule: [255, 2] } }",
        Severity::Error,
        "bad-range",
        "256 are the most",
    ),
    (
        "{ type: remom, remom: { breadth_schedule: 4 } }",
        Severity::Error,
        "wrong-type",
        "list of whole numbers",
    ),
    (
        "{ type: remom, remom: { synthesis_model: other } }",
        Severity::Error,
        "bad-value",
        "not one of the decision's candidates",
    ),
    (
        "{ type: remom, remom: { compaction_tokens: 9 } }",
        Severity::Warning,
        "unused",
        "`compaction_tokens` has no effect",
    ),
    ("{ type: workflows, workflows: {} }", Severity::Error, "missing-key", "no `roles`"),
    (
        "{ type: workflows, workflows: { roles: [{ name: a }, { name: A }] } }",
        Severity::Error,
        "duplicate-name",
        "a second role",
    ),
    (
        "{ type: workflows, workflows: { roles: [{ name: a }, { name: b, access_list: [c] }] } }",
        Severity::Error,
        "unknown-reference",
        "no earlier step is called `c`",
    ),
    (
        "{ type: workflows, workflows: { roles: [{ name: a, access_list: [a] }] } }",
        Severity::Error,
        "unknown-reference",
        "no earlier step is called `a`",
    ),
    (
        "{ type: workflows, workflows: { roles: [{ name: a, models: [m] }, { name: b, access_list: ['a:0:n'] }] } }",
        Severity::Error,
        "unknown-reference",
        "`a:0:n`",
    ),
    (
        "{ type: workflows, workflows: { mode: dynamic, roles: [{ name: a }] } }",
        Severity::Warning,
        "unused",
        "`roles` has no effect",
    ),
    ("{ type: confidense }", Severity::Error, "bad-value", "did you mean `confidence`?"),
];

#[test]
fn what_cannot_be_is_told_with_help() {
    for (text, severity, code, message) in CANNOT_BE {
        let said = said(text);
        let found = said.iter().any(|it| it.0 == *severity && it.1 == *code && it.2.contains(message));
        assert!(found, "{text}: {said:?}");
        assert_eq!(said.len(), 1, "{text}: {said:?}");
    }
}

#[test]
fn nobody_is_left_to_be_rated_is_refused() {
    for (ratings, refused) in [
        ("{ raters: peers, aggregate: best }", true),
        ("{ raters: judge, aggregate: best, judge: m }", true),
        ("{ raters: judge, aggregate: best }", true),
        ("{ raters: judge, aggregate: best, judge: other }", false),
        ("{ raters: components, aggregate: vote }", false),
    ] {
        let said = said(&format!("{{ type: ratings, ratings: {ratings} }}"));
        let found = said.iter().any(|it| it.1 == "bad-value" && it.2.contains("modelRefs"));
        assert_eq!(found, refused, "{ratings}: {said:?}");
    }
}

#[test]
fn a_cascade_of_one_is_refused() {
    for kind in ["confidence", "ratings"] {
        let one =
            file(&format!("{{ type: {kind} }}")).replace("[{ model: m }, { model: n }]", "[{ model: m }]");
        let said = chorus_spec::read(&one).diagnostics;
        assert!(said.iter().any(|it| it.message.contains("at least two `modelRefs`")), "{said:?}");
    }
}

#[test]
fn g22_a_threshold_of_another_scale_is_refused() {
    let told = said(
        "{ type: confidence, confidence: { confidence_method: self_verify, threshold: 0.8, threshold_kind: avg_logprob } }",
    );
    let [(severity, code, message)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((*severity, *code), (Severity::Error, "bad-value"));
    assert!(message.contains("`avg_logprob`") && message.contains("`self_verify`"), "{message}");
    let bound = "{ type: confidence, confidence: { confidence_method: margin, threshold_kind: margin } }";
    assert!(matches!(algorithm(bound), Algorithm::Confidence(_)));
}

#[test]
fn every_key_of_poll_is_read() {
    let Algorithm::Poll(it) = algorithm(
        "{ type: poll, poll: { alternatives: 10, step_timeout_seconds: 3, on_error: fail, budget: { max_calls: 2 },
           steps: [{ models: [m], accept: 0.8, hopeless: 0.1 }, { models: [n], weights: { m: 0.5, n: [1, 2, 3] } }] } }",
    ) else {
        panic!("poll")
    };
    assert_eq!(
        (it.alternatives, it.step_timeout, it.on_error),
        (10, Some(Duration::from_secs(3)), OnError::Fail)
    );
    assert_eq!(it.budget.max_calls, Some(2));
    assert_eq!((it.steps[0].accept, it.steps[0].hopeless), (Some(0.8), Some(0.1)));
    assert_eq!(it.steps[1].weights, [(ModelId::new("m"), [0.5; 3]), (ModelId::new("n"), [1.0, 2.0, 3.0])]);
    assert!(matches!(algorithm("{ type: poll }"), Algorithm::Poll(it) if it.steps.is_empty()));
}

#[test]
fn what_is_wrong_in_a_poll_is_said() {
    for (poll, text) in [
        ("steps: [{ models: [other] }]", "`other` is not one of the decision's candidates"),
        ("steps: [{ models: [m] }, { models: [m] }]", "`m` is asked twice"),
        ("steps: [{ models: [] }]", "asks nobody"),
        ("steps: [{ accept: 0.5 }]", "`models` is missing"),
        ("steps: [{ models: [m], accept: 0.5, hopeless: 0.6 }]", "must be below `accept`"),
        ("steps: [{ models: [m], weights: { m: [1, 2] } }]", "one number, or three"),
        ("steps: [{ models: [m], weights: { m: 1000 } }]", "out of range"),
        ("steps: [{ models: [m], weights: { n: 1 } }]", "has not been asked by then"),
        ("alternatives: 1", "`alternatives` is 1"),
    ] {
        let told = said(&format!("{{ type: poll, poll: {{ {poll} }} }}"));
        assert!(told.iter().any(|(_, _, message)| message.contains(text)), "{poll}: {told:?}");
    }
}

#[test]
fn a_trained_rule_must_be_named_where_it_measures() {
    for algorithm in [
        "{ type: confidence, confidence: { confidence_method: learned } }",
        "{ type: ratings, ratings: { raters: scorer, aggregate: best } }",
        "{ type: ratings, ratings: { raters: verifier, aggregate: best } }",
    ] {
        let told = said(algorithm);
        assert!(told.iter().any(|(_, code, _)| *code == "missing-key"), "{algorithm}: {told:?}");
    }
}

/// The diagnostics of a file with that state of waiting workflows, and the state.
fn waiting(state: &str) -> (Option<chorus_spec::FlowState>, Vec<(Severity, &'static str)>) {
    let text = format!(
        "{}global: {{ integrations: {{ looper: {{ flow: {{ state: {state} }} }} }} }}\n",
        file("{ type: static }")
    );
    let checked = chorus_spec::read(&text);
    let told = checked.diagnostics.iter().map(|it| (it.severity, it.code)).collect();
    (checked.spec.map(|spec| spec.global.flow_state), told)
}

#[test]
fn where_workflows_wait_is_read() {
    use chorus_spec::{FlowState, FlowStore, RedisServer, Secret};
    assert_eq!(waiting("{}"), (Some(FlowState::default()), vec![]));
    let (state, told) = waiting("{ store_backend: file, ttl_seconds: 60, file: { directory: ./waiting } }");
    assert!(told.is_empty(), "{told:?}");
    let state = state.expect("a state");
    assert_eq!(state.ttl, Duration::from_secs(60));
    assert_eq!(state.store, FlowStore::File { directory: "./waiting".to_owned() });
    let (state, told) = waiting(
        "{ store_backend: redis, redis: { address: 'cache:7000', db: 2, password: '${SECRET}', use_tls: true,
           tls_skip_verify: true, max_retries: 1, pool_size: 4, key_prefix: 'x:' } }",
    );
    assert!(told.is_empty(), "{told:?}");
    let want = RedisServer {
        address: "cache:7000".to_owned(),
        database: 2,
        password: Some(Secret::new("${SECRET}")),
        tls: true,
        tls_any_certificate: true,
        retries: 1,
        key_prefix: "x:".to_owned(),
    };
    assert_eq!(state.expect("a state").store, FlowStore::Redis(Box::new(want)));
}

#[test]
fn what_is_wrong_in_where_workflows_wait_is_said() {
    for (state, want) in [
        ("{ store_backend: file }", (Severity::Error, "missing-key")),
        ("{ store_backend: redis, redis: { address: 'redis://u:p@host' } }", (Severity::Error, "bad-value")),
        ("{ store_backend: redis, redis: { password: hunter2 } }", (Severity::Warning, "literal-secret")),
        ("{ store_backend: memory, file: { directory: x } }", (Severity::Warning, "unused")),
        ("{ store_backend: disk }", (Severity::Error, "bad-value")),
    ] {
        assert_eq!(waiting(state).1, [want], "{state}");
    }
}
