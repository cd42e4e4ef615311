//! Decisions over evidence, case by case: what is asked, who wins, what blocks.

use crate::recipes::*;
use chorus_policy::{Evidence, Observation, Scope, Truth};
use chorus_spec::{Family, OnAbsent, Strategy};

#[test]
fn asks_the_cheapest_tier_first_and_the_encoder_only_when_it_matters() {
    let rules = any_of([leaf("keyword:k"), leaf("embedding:e")]);
    let recipe = recipe("embedding:e keyword:k keyword:unused", [decision("route", 1, rules)]);
    let policy = compile(&recipe);
    assert_eq!(asked(&policy.decide(&Evidence::default(), &Scope::All)), ["keyword:k"]);
    let hit = done(policy.decide(&evidence([("keyword:k", yes(0.5))]), &Scope::All));
    assert_eq!(winner(&hit), Some("route"));
    let miss = policy.decide(&evidence([("keyword:k", no())]), &Scope::All);
    assert_eq!(asked(&miss), ["embedding:e"]);
}

#[test]
fn a_lower_priority_is_not_asked_once_a_higher_one_holds() {
    let decisions = [decision("top", 9, leaf("keyword:k")), decision("low", 1, leaf("embedding:e"))];
    let policy = compile(&recipe("embedding:e keyword:k", decisions));
    let verdict = done(policy.decide(&evidence([("keyword:k", yes(0.1))]), &Scope::All));
    assert_eq!(winner(&verdict), Some("top"));
    let truths: Vec<_> = verdict.proofs.iter().map(|p| p.truth).collect();
    assert_eq!(truths, [Truth::True, Truth::Unknown]);
    assert_eq!(verdict.proofs[1].tree.absent.as_deref(), Some("not asked"));
}

#[test]
fn d10_more_support_never_lowers_the_score() {
    let decisions = || {
        [
            decision("p", 1, any_of([leaf("keyword:k"), leaf("embedding:e")])),
            decision("q", 1, leaf("embedding:f")),
        ]
    };
    let policy = compile(&recipe("keyword:k embedding:e embedding:f", decisions()));
    let world = |k| evidence([("keyword:k", k), ("embedding:e", yes(0.9)), ("embedding:f", yes(0.6))]);
    for keyword in [no(), yes(0.5)] {
        let verdict = done(policy.decide(&world(keyword), &Scope::All));
        let won = verdict.winner.unwrap();
        assert_eq!((&*won.name, won.confidence, won.confidence_complete), ("p", 0.9, true));
    }
    // With the keyword alone the encoder still ranks: it is asked, the score is not taken for 0.5.
    let open = policy.decide(&evidence([("keyword:k", yes(0.5))]), &Scope::All);
    assert_eq!(asked(&open), ["embedding:e", "embedding:f"]);
}

#[test]
fn a_full_confidence_needs_no_more_support() {
    let decisions = [
        decision("p", 1, any_of([leaf("keyword:k"), leaf("embedding:e")])),
        decision("q", 1, leaf("embedding:f")),
    ];
    let policy = compile(&recipe("keyword:k embedding:e embedding:f", decisions));
    let verdict = done(policy.decide(&evidence([("keyword:k", yes(1.0))]), &Scope::All));
    let won = verdict.winner.unwrap();
    assert_eq!((&*won.name, won.confidence, won.confidence_complete), ("p", 1.0, true));
}

#[test]
fn the_confidence_of_a_winner_without_rivals_is_marked_as_a_lower_bound() {
    let rules = any_of([leaf("keyword:k"), leaf("embedding:e")]);
    let policy = compile(&recipe("keyword:k embedding:e", [decision("route", 1, rules)]));
    let lazy = done(policy.decide(&evidence([("keyword:k", yes(0.5))]), &Scope::All)).winner.unwrap();
    assert_eq!((lazy.confidence, lazy.confidence_complete), (0.5, false));
    let all = evidence([("keyword:k", yes(0.5)), ("embedding:e", yes(0.8))]);
    let full = done(policy.explain(&all, &Scope::All)).winner.unwrap();
    assert_eq!((full.confidence, full.confidence_complete), (0.8, true));
}

#[test]
fn ranking() {
    let (a, b, c) = (leaf("keyword:a"), leaf("keyword:b"), leaf("keyword:c"));
    let plain = [decision("x", 5, a.clone()), decision("y", 9, b.clone()), decision("z", 9, c.clone())];
    let by_tier = [tiered("x", 2, 1, a.clone()), tiered("y", 1, 1, b.clone()), decision("z", 99, c.clone())];
    let one_tier = [tiered("x", 1, 1, a.clone()), tiered("y", 1, 9, b.clone()), tiered("z", 1, 9, c.clone())];
    let (priority, confidence) = (Strategy::Priority, Strategy::Confidence);
    let cases = [
        ("priority first", priority, &plain, [0.9, 0.5, 0.5], "y"),
        ("then confidence", priority, &plain, [0.9, 0.5, 0.6], "z"),
        ("confidence first", confidence, &plain, [0.9, 0.5, 0.6], "x"),
        ("then priority, then name", confidence, &plain, [0.5, 0.5, 0.5], "y"),
        ("smallest tier over any priority", priority, &by_tier, [0.9, 0.1, 1.0], "y"),
        ("any tier before none", priority, &by_tier, [0.1, 0.0, 1.0], "x"),
        ("no tier holds", priority, &by_tier, [0.0, 0.0, 0.2], "z"),
        ("within a tier confidence first", priority, &one_tier, [0.9, 0.5, 0.6], "x"),
        ("then priority", priority, &one_tier, [0.6, 0.6, 0.5], "y"),
    ];
    for (case, strategy, decisions, [a, b, c], want) in cases {
        let mut recipe = recipe("keyword:a keyword:b keyword:c", []);
        (recipe.strategy, recipe.decisions) = (strategy, decisions.to_vec());
        let seen = |confidence| if confidence > 0.0 { yes(confidence) } else { no() };
        let evidence = evidence([("keyword:a", seen(a)), ("keyword:b", seen(b)), ("keyword:c", seen(c))]);
        let verdict = done(compile(&recipe).decide(&evidence, &Scope::All));
        assert_eq!(winner(&verdict), Some(want), "{case}");
    }
}

#[test]
fn a_decision_without_rules_holds_with_confidence_zero() {
    let policy =
        compile(&recipe("keyword:k", [decision("any", 1, None), decision("k", 2, leaf("keyword:k"))]));
    let verdict = done(policy.decide(&evidence([("keyword:k", no())]), &Scope::All));
    let won = verdict.winner.unwrap();
    assert_eq!((&*won.name, won.confidence, won.confidence_complete), ("any", 0.0, true));
}

#[test]
fn d18_nothing_holds_is_a_verdict_without_winner() {
    let policy = compile(&recipe("keyword:k", [decision("k", 2, leaf("keyword:k"))]));
    let verdict = done(policy.decide(&evidence([("keyword:k", no())]), &Scope::All));
    assert_eq!((verdict.winner, verdict.blocked), (None, None));
}

#[test]
fn d11_the_winner_is_named_never_inferred() {
    let decisions = [decision("rule", 1, leaf("keyword:k")), decision("default", 0, None)];
    let policy = compile(&recipe("keyword:k", decisions));
    let verdict = done(policy.decide(&evidence([("keyword:k", yes(1.0))]), &Scope::All));
    assert_eq!(verdict.winner.map(|w| (w.decision, w.name)), Some((0, "rule".into())));
}

#[test]
fn scope_limits_who_may_win_and_what_is_asked() {
    let decisions = [decision("a", 9, leaf("keyword:k")), decision("b", 1, leaf("context:c"))];
    let policy = compile(&recipe("keyword:k context:c", decisions));
    let only_b = Scope::Only(vec![1, 77]);
    assert_eq!(asked(&policy.decide(&Evidence::default(), &only_b)), ["context:c"]);
    let all = evidence([("keyword:k", yes(1.0)), ("context:c", yes(1.0))]);
    let lazy = done(policy.decide(&all, &only_b));
    assert_eq!((winner(&lazy), lazy.proofs.len()), (Some("b"), 1));
    let full = done(policy.explain(&all, &only_b));
    assert_eq!((winner(&full), full.proofs.len()), (Some("b"), 2));
}

#[test]
fn absent_is_never_no() {
    let policy = compile(&recipe(
        "embedding:guard keyword:k",
        [decision("open", 9, not(leaf("embedding:guard"))), decision("k", 1, leaf("keyword:k"))],
    ));
    let verdict =
        done(policy.decide(&evidence([("embedding:guard", failed()), ("keyword:k", yes(1.0))]), &Scope::All));
    assert_eq!((winner(&verdict), &verdict.blocked), (Some("k"), &None));
    assert_eq!(verdict.proofs[0].truth, Truth::Unknown);
    assert_eq!(verdict.proofs[0].tree.children[0].absent.as_deref(), Some("encoder is out"));
}

#[test]
fn on_error_says_what_an_absent_guard_counts_as() {
    let guarded = |on_absent| {
        let guard = tested("jailbreak:j", None, on_absent);
        let rules = [decision("contain", 9, guard.clone()), decision("open", 5, not(guard))];
        recipe("jailbreak:j", [rules[0].clone(), rules[1].clone(), decision("rest", 1, None)])
    };
    use OnAbsent::{Match, NoMatch, Unknown};
    let cases = [
        (Unknown, failed(), "rest", false),
        (NoMatch, failed(), "open", false),
        (Match, failed(), "contain", false),
        (Unknown, unsupported(), "rest", true),
        (NoMatch, unsupported(), "open", false),
        (Match, unsupported(), "contain", false),
        (Match, no(), "open", false),
        (NoMatch, yes(0.6), "contain", false),
    ];
    for (on_absent, said, want, blocks) in cases {
        let policy = compile(&guarded(on_absent));
        let verdict = done(policy.decide(&evidence([("jailbreak:j", said.clone())]), &Scope::All));
        assert_eq!(winner(&verdict), Some(want), "{on_absent:?} {said:?}");
        assert_eq!(verdict.blocked.is_some(), blocks, "{on_absent:?} {said:?}");
    }
    // It is asked all the same: the rule says what counts when there is no answer, not that none is wanted.
    assert_eq!(asked(&compile(&guarded(Match)).decide(&Evidence::default(), &Scope::All)), ["jailbreak:j"]);
}

#[test]
fn d12_a_label_is_judged_by_its_own_probability() {
    let rule = tested("classifier:mail:spam", Some(0.6), OnAbsent::Unknown);
    let policy = compile(&recipe("classifier:mail", [decision("spam", 1, rule)]));
    assert_eq!(asked(&policy.decide(&Evidence::default(), &Scope::All)), ["classifier:mail"]);
    let hit = |p| Observation::Matched { confidence: p, raw: Some(p) };
    let cases = [
        (hit(0.8), Truth::True, 0.8),
        (hit(0.4), Truth::False, 0.0),
        // The best label is another one; this one's probability is what it is, never 1 less the other's.
        (raw(0.35), Truth::False, 0.0),
        (raw(0.7), Truth::True, 0.7),
        (no(), Truth::Unknown, 0.0),
        (failed(), Truth::Unknown, 0.0),
    ];
    for (said, truth, confidence) in cases {
        let all = evidence([("classifier:mail:spam", said.clone()), ("classifier:mail:ham", no())]);
        let proof = &done(policy.decide(&all, &Scope::All)).proofs[0];
        assert_eq!((proof.truth, proof.confidence), (truth, confidence), "{said:?}");
    }
}

#[test]
fn unsupported_blocks_only_where_it_could_change_the_winner() {
    let guarded = || all_of([leaf("jailbreak:j"), leaf("keyword:k")]);
    let blocked = Some(("guarded".into(), vec![key("jailbreak:j")]));
    let cases = [
        ("could win", 9, yes(1.0), blocked.clone()),
        ("false whatever the signal says", 9, no(), None),
        ("would lose anyway", 0, yes(1.0), None),
        ("cannot hold, because another signal failed", 9, failed(), None),
    ];
    for (case, priority, keyword, want) in cases {
        let decisions = [decision("guarded", priority, guarded()), decision("plain", 1, None)];
        let policy = compile(&recipe("jailbreak:j keyword:k", decisions));
        let verdict = done(
            policy.decide(&evidence([("jailbreak:j", unsupported()), ("keyword:k", keyword)]), &Scope::All),
        );
        assert_eq!(verdict.blocked.map(|b| (b.decision, b.missing)), want, "{case}");
        assert_eq!(verdict.winner.map(|w| w.name).as_deref(), Some("plain"), "{case}");
    }
}

#[test]
fn a_key_that_nobody_emits_blocks_instead_of_asking_for_ever() {
    let policy = compile(&recipe("", [decision("role", 1, leaf("authz:admin"))]));
    let verdict = done(policy.decide(&Evidence::default(), &Scope::All));
    assert_eq!(verdict.blocked.map(|b| b.missing), Some(vec![key("authz:admin")]));
}

#[test]
fn a_domain_leaf_may_name_a_category() {
    let mut recipe = recipe("domain:law domain:science", [decision("physics", 1, leaf("domain:physics"))]);
    recipe.signals[1].kind = domain(&["physics", "law"]);
    let policy = compile(&recipe);
    assert_eq!(asked(&policy.decide(&Evidence::default(), &Scope::All)), ["domain:science"]);
    let said = evidence([("domain:science", yes(0.8)), ("domain:physics", yes(0.8))]);
    assert_eq!(winner(&done(policy.decide(&said, &Scope::All))), Some("physics"));
    // A rule that ran without a word on the category leaves it unknown, and is not asked again.
    let silent = done(policy.decide(&evidence([("domain:science", no())]), &Scope::All));
    assert_eq!((silent.proofs[0].truth, silent.blocked), (Truth::Unknown, None));
    // A rule's own name goes before a category of another.
    recipe.decisions = vec![decision("law", 1, leaf("domain:law"))];
    assert_eq!(asked(&compile(&recipe).decide(&Evidence::default(), &Scope::All)), ["domain:law"]);
}

#[test]
fn a_complexity_label_holds_only_under_its_composer() {
    let mut recipe = recipe("complexity:c keyword:k", [decision("hard", 1, leaf("complexity:c:hard"))]);
    recipe.signals[0].kind = complexity(Some(leaf("keyword:k")));
    let policy = compile(&recipe);
    let labels =
        [("complexity:c:hard", yes(0.7)), ("complexity:c:medium", no()), ("complexity:c:easy", no())];
    // The composer is cheaper, and decides without the encoder when it fails.
    assert_eq!(asked(&policy.decide(&Evidence::default(), &Scope::All)), ["keyword:k"]);
    assert_eq!(winner(&done(policy.decide(&evidence([("keyword:k", no())]), &Scope::All))), None);
    let held = evidence([("keyword:k", yes(1.0))]);
    assert_eq!(asked(&policy.decide(&held, &Scope::All)), ["complexity:c"]);
    for (composer, want) in [(yes(1.0), Some("hard")), (no(), None), (failed(), None)] {
        let mut all = evidence(labels.clone());
        all.insert(key("keyword:k"), composer);
        let verdict = done(policy.explain(&all, &Scope::All));
        assert_eq!(winner(&verdict), want);
        let listed = verdict.matched.iter().any(|(k, _)| k.family == Family::Complexity);
        assert_eq!(listed, want.is_some(), "what the composer gates is not listed as matched");
    }
}

#[test]
fn explain_asks_for_all_signals_tier_by_tier() {
    let recipe = recipe("embedding:e keyword:b keyword:a context:c kb:x", [decision("any", 1, None)]);
    let policy = compile(&recipe);
    let mut known = Evidence::default();
    let mut rounds = Vec::new();
    loop {
        let asks = asked(&policy.explain(&known, &Scope::All));
        if asks.is_empty() {
            break;
        }
        asks.iter().for_each(|ask| known.insert(key(ask), no()));
        rounds.push(asks.join(" "));
    }
    assert_eq!(rounds, ["context:c", "keyword:a keyword:b", "embedding:e", "kb:x"]);
}

#[test]
fn a_proof_has_the_shape_of_the_contract() {
    let rules = all_of([leaf("keyword:k"), not(leaf("embedding:e"))]);
    let policy = compile(&recipe("keyword:k embedding:e", [decision("d", 1, rules)]));
    let verdict =
        done(policy.decide(&evidence([("keyword:k", yes(0.5)), ("embedding:e", no())]), &Scope::All));
    let want = serde_json::json!({
        "winner": {"decision": 0, "name": "d", "confidence": 0.75, "confidence_complete": true,
                   "tier": 0, "priority": 1},
        "proofs": [{
            "decision_name": "d", "truth": "true", "matched": true, "confidence": 0.75,
            "root_trace": {"node_type": "AND", "truth": "true", "matched": true, "confidence": 0.75, "children": [
                {"node_type": "leaf", "signal_type": "keyword", "signal_name": "k",
                 "truth": "true", "matched": true, "confidence": 0.5},
                {"node_type": "NOT", "truth": "true", "matched": true, "confidence": 1.0, "children": [
                    {"node_type": "leaf", "signal_type": "embedding", "signal_name": "e",
                     "truth": "false", "matched": false, "confidence": 0.0}]}]}}],
        "projections": {"schema_version": "1"},
        "matched": {"keyword:k": 0.5}
    });
    assert_eq!(serde_json::to_value(&verdict).unwrap(), want);
}

#[test]
fn evidence_that_no_rule_reads_is_listed_and_odd_numbers_are_tamed() {
    let policy = compile(&recipe("keyword:k", [decision("d", 1, leaf("keyword:k"))]));
    let odd = evidence([("domain:math", yes(0.3)), ("keyword:k", yes(f64::NAN)), ("language:en", yes(7.0))]);
    let verdict = done(policy.decide(&odd, &Scope::All));
    let want = [(key("keyword:k"), 0.0), (key("domain:math"), 0.3), (key("language:en"), 1.0)];
    assert_eq!(verdict.matched, want);
}
