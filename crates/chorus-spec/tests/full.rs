//! A file that holds everything this version runs reads without a word, and every field arrives.

#[cfg(test)]
mod tests {
    use chorus_spec::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const TEXT: &str = include_str!("full.yaml");

    fn full() -> Spec {
        let checked = read(TEXT);
        let said: Vec<String> = checked.diagnostics.iter().map(|d| d.render("full.yaml", TEXT)).collect();
        assert!(said.is_empty(), "{}", said.join("\n"));
        checked.spec.expect("a file without errors has a spec")
    }

    fn key(family: Family, name: &str) -> SignalKey {
        SignalKey::new(family, name)
    }

    fn no_variables(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn the_frame() {
        let spec = full();
        assert_eq!(spec.digest, Digest::of(TEXT.as_bytes()));
        let listener = &spec.listeners[0];
        assert_eq!(
            (listener.name.as_str(), listener.address.as_str(), listener.port),
            ("front", "0.0.0.0", 8899)
        );
        assert_eq!(listener.timeout, Some(Duration::from_secs(1200)));
        assert_eq!(spec.default_model, Some(ModelId::new("qwen")));
        assert_eq!(spec.default_reasoning_effort.as_deref(), Some("medium"));
        let family = ReasoningFamily {
            kind: ReasoningKind::ChatTemplateKwargs,
            parameter: "enable_thinking".to_owned(),
        };
        assert_eq!(spec.reasoning_families, BTreeMap::from([("qwen3".to_owned(), family)]));
        assert_eq!(spec.entrypoints[0].model_names, ["acme/law"]);
        assert_eq!(spec.entrypoints[0].recipe, "law");
        let names: Vec<&str> = spec.recipes.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["default", "law"]);
        assert_eq!(spec.recipe("law").expect("law").description, "Only the law.");
        assert_eq!(spec.recipes[0].strategy, Strategy::Confidence);
        assert_eq!(spec.recipes[1].strategy, Strategy::Priority);
    }

    #[test]
    fn the_globals() {
        let it = full().global;
        assert_eq!(it.auto_names, ["MoM", "vllm-sr/auto", "auto", "house/auto"]);
        assert_eq!(it.fusion_names, ["house/fusion"]);
        assert_eq!((&*it.remom_names[0], &*it.flow_names[0]), ("house/remom", "vllm-sr/flow"));
        assert!(it.include_config_models_in_list);
        assert_eq!(it.looper_timeout, Duration::from_secs(300));
        assert_eq!((it.management_address.as_str(), it.management_port), ("::1", 9090));
        assert_eq!((it.embedding_top_k, it.embedding_soft_threshold, it.domain_threshold), (2, None, 0.4));
        let prototypes = it.embedding_prototypes;
        assert_eq!((prototypes.cluster_similarity_threshold, prototypes.max_prototypes), (0.8, 4));
        assert_eq!((prototypes.best_weight, prototypes.top_m), (0.5, 3));
        assert_eq!((it.complexity_prototypes.top_m, it.complexity_prototypes.max_prototypes), (1, 8));
        assert_eq!((it.prompt_guard_threshold, it.pii_threshold), (0.65, 0.8));
        assert_eq!((it.fact_check_threshold, it.feedback_threshold), (0.55, 0.75));
        assert_eq!(it.modality_method, ModalityMethod::Hybrid);
        assert_eq!(it.encoder.as_deref(), Some("multilingual-e5-small"));
        let identity = Identity {
            user_id_header: "x-user".to_owned(),
            user_groups_header: "x-groups".to_owned(),
            trusted: true,
            fail_open: true,
        };
        assert_eq!(it.identity, identity);
        let names: Vec<&str> = it.knowledge_bases.iter().map(|base| base.name.as_str()).collect();
        assert_eq!(names, ["privacy_kb", "mmlu_kb", "cases"]);
        let cases = &it.knowledge_bases[2];
        assert_eq!((cases.path.as_str(), cases.manifest.as_str()), ("kb/cases/", "labels.json"));
        assert_eq!((cases.threshold, cases.label_thresholds[0].1), (0.35, 0.5));
        assert_eq!(cases.groups[0], ("civil".to_owned(), vec!["contracts".to_owned(), "torts".to_owned()]));
        assert_eq!(
            (cases.metrics[0].positive.as_str(), cases.metrics[0].negative.as_str()),
            ("civil", "criminal")
        );
        assert_eq!((cases.prototypes.top_m, cases.prototypes.max_prototypes), (1, 8));
    }

    #[test]
    fn what_stays_unwritten_has_the_contracts_defaults() {
        let spec = read("version: v0.3\n").spec.expect("an empty file is a file");
        let it = spec.global;
        assert_eq!((it.prompt_guard_threshold, it.pii_threshold, it.domain_threshold), (0.7, 0.9, 0.5));
        assert_eq!((it.fact_check_threshold, it.feedback_threshold), (0.6, 0.7));
        assert_eq!((it.modality_method, it.encoder), (ModalityMethod::Classifier, None));
        assert_eq!(it.identity, Identity::default());
        assert!(!it.identity.trusted && !it.identity.fail_open);
        assert_eq!(it.knowledge_bases.len(), built_in_knowledge().len());
    }

    #[test]
    fn h03_the_variables_of_a_file() {
        let found = full().variables();
        let shown: Vec<_> = found.iter().map(|v| (v.name.as_str(), v.is_required, v.is_secret)).collect();
        assert_eq!(shown, [("A", true, false), ("CLOUD_KEY", true, true), ("TENANT", false, false)]);
        let names = |text| Template::new(text).variables().iter().map(|(n, d)| (n.to_string(), *d)).collect();
        let found: Vec<(String, bool)> = names("$${NO} ${A}-${B:-x} $C ${D");
        assert_eq!(found, [("A".to_owned(), false), ("B".to_owned(), true)]);
    }

    #[test]
    fn models_and_backends() {
        let spec = full();
        let qwen = &spec.models[&ModelId::new("qwen")];
        assert_eq!((qwen.upstream_name.as_str(), qwen.api_format), ("Qwen/Qwen3-8B", ApiFormat::OpenAi));
        assert_eq!(qwen.reasoning_family.as_deref(), Some("qwen3"));
        assert_eq!(qwen.pricing.prompt_micro_usd_per_1m, 500_000);
        assert_eq!(qwen.pricing.completion_micro_usd_per_1m, 1_250_000);
        assert_eq!(qwen.pricing.cached_input_micro_usd_per_1m, Some(50_000));
        assert_eq!((qwen.card.context_window_size, qwen.card.quality_score), (Some(32_768), Some(0.8)));
        assert_eq!(
            (qwen.card.param_size.as_deref(), qwen.card.modality.as_deref()),
            (Some("8b"), Some("text"))
        );
        assert_eq!((qwen.card.capabilities.len(), qwen.card.tags.len()), (2, 1));
        let names: Vec<_> = qwen.backends.iter().map(|b| (b.name.as_str(), b.weight)).collect();
        assert_eq!(names, [("near", 3), ("backend-2", 1)]);
        let Endpoint::Http { base_url, chat_path, auth_header, auth_prefix, api_key, .. } =
            &qwen.backends[0].endpoint
        else {
            panic!("an endpoint is HTTP");
        };
        assert_eq!((base_url.as_written(), chat_path.as_str()), ("http://qwen:8000", "/v1/chat/completions"));
        assert_eq!(
            (auth_header.as_str(), auth_prefix.as_str(), api_key.is_none()),
            ("Authorization", "Bearer", true)
        );
        let Endpoint::Http { base_url, .. } = &qwen.backends[1].endpoint else {
            panic!("an endpoint is HTTP")
        };
        assert_eq!(base_url.as_written(), "https://[::1]:8001");

        let cloud = &spec.models[&ModelId::new("cloud")];
        assert_eq!((cloud.upstream_name.as_str(), cloud.backends[0].name.as_str()), ("cloud", "primary"));
        let Endpoint::Http { base_url, chat_path, auth_header, auth_prefix, api_key, extra_headers, .. } =
            &cloud.backends[0].endpoint
        else {
            panic!("a base URL is HTTP");
        };
        assert_eq!(
            (base_url.as_written(), chat_path.as_str()),
            ("https://example.org/api/v1", "/chat/completions")
        );
        assert_eq!((auth_header.as_str(), auth_prefix.as_str()), ("x-api-key", ""));
        assert_eq!(extra_headers["x-tenant"].resolve(&no_variables), Ok("none".to_owned()));
        let missing = api_key.as_ref().expect("a key").reveal(&no_variables);
        assert!(missing.is_err_and(|error| error.to_string().contains("`CLOUD_KEY`")));

        let local = &spec.models[&ModelId::new("1e3")];
        assert!(matches!(&local.backends[0].endpoint, Endpoint::Local { model } if model == "smollm2-135m"));
    }

    #[test]
    fn signals() {
        let spec = full();
        let by_name: BTreeMap<String, &SignalKind> =
            spec.recipes[0].signals.iter().map(|s| (format!("{}:{}", s.family(), s.name), &s.kind)).collect();
        let keyword = |name: &str| match by_name[name] {
            SignalKind::Keyword(it) => (it.operator, it.method, it.case_sensitive, it.keywords[0].as_str()),
            other => panic!("{other:?}"),
        };
        use KeywordOperator::{And, Nor, Or};
        assert_eq!(keyword("keyword:greeting"), (Or, KeywordMethod::Literal, false, "hello"));
        assert_eq!(keyword("keyword:ticket"), (And, KeywordMethod::Regex, true, "TKT-[0-9]{4}"));
        assert_eq!(keyword("keyword:refund"), (Nor, KeywordMethod::Bm25 { threshold: 0.2 }, false, "refund"));
        assert_eq!(keyword("keyword:typo").1, KeywordMethod::Ngram { threshold: 0.4, arity: 3 });
        assert_eq!(keyword("keyword:sloppy").1, KeywordMethod::Fuzzy { max_distance: 1 });
        let SignalKind::Context(long) = by_name["context:long"] else { panic!() };
        assert_eq!((long.min_tokens, long.max_tokens), (16_000, Some(1_000_000)));
        let SignalKind::Context(any) = by_name["context:any"] else { panic!() };
        assert_eq!((any.min_tokens, any.max_tokens), (0, None));
        let threshold = |name: &str| match by_name[name] {
            SignalKind::Language(it) => it.threshold,
            SignalKind::Embedding(it) => it.threshold,
            other => panic!("{other:?}"),
        };
        assert_eq!((threshold("language:no"), threshold("language:en")), (0.3, 0.5));
        let SignalKind::Embedding(planning) = by_name["embedding:planning"] else { panic!() };
        assert_eq!((planning.threshold, planning.aggregation), (0.7, Aggregation::Mean));
        assert_eq!(
            (planning.candidates.as_slice(), planning.query_modality.as_str()),
            (["plan a trip".to_owned()].as_slice(), "text")
        );
        let SignalKind::Domain(research) = by_name["domain:research"] else { panic!() };
        assert_eq!(research.mmlu_categories, ["physics", "biology"]);
        assert_eq!((research.model_scores[0].model.as_str(), research.model_scores[0].score), ("qwen", 0.7));
        assert_eq!(research.model_scores[0].use_reasoning, Some(true));
        let SignalKind::Complexity(it) = by_name["complexity:needs_reasoning"] else { panic!() };
        assert_eq!((it.threshold, it.hard[0].as_str(), it.easy[0].as_str()), (0.12, "prove it", "say hi"));
        assert_eq!(it.composer, Some(Condition::Signal(key(Family::Domain, "research"))));
    }

    #[test]
    fn guards_and_envelopes() {
        let spec = full();
        let kind = |name: &str| {
            let signal = spec.recipes[0].signals.iter().find(|signal| signal.name == name);
            signal.map(|signal| &signal.kind).expect(name)
        };
        let SignalKind::Jailbreak(attack) = kind("attack") else { panic!() };
        assert_eq!((attack.method, attack.threshold), (JailbreakMethod::Hybrid, Some(0.45)));
        assert_eq!(attack.jailbreak_patterns, ["ignore your rules"]);
        assert!(attack.include_history && attack.benign_patterns.len() == 1);
        let SignalKind::Jailbreak(plain) = kind("plain_attack") else { panic!() };
        assert_eq!(
            (plain.method, plain.threshold, plain.include_history),
            (JailbreakMethod::Classifier, None, false)
        );
        let SignalKind::Pii(leak) = kind("leak") else { panic!() };
        assert_eq!(
            (leak.threshold, leak.allowed.as_slice()),
            (Some(0.85), ["EMAIL_ADDRESS".to_owned()].as_slice())
        );
        let SignalKind::Authz(staff) = kind("staff") else { panic!() };
        assert_eq!(staff.role, "admin");
        let subjects = [RoleSubject::User("ada".to_owned()), RoleSubject::Group("ops".to_owned())];
        assert_eq!(staff.subjects, subjects);
        let SignalKind::Event(outage) = kind("outage") else { panic!() };
        assert_eq!(
            (outage.severities.as_slice(), outage.temporal),
            (["critical".to_owned(), "high".to_owned()].as_slice(), true)
        );
        assert_eq!((outage.event_types[0].as_str(), outage.action_codes[0].as_str()), ("alarm", "A7"));
        let SignalKind::Metadata(gold) = kind("gold") else { panic!() };
        let wanted = MetadataPredicate::In(vec!["gold".to_owned(), "1e3".to_owned()]);
        assert_eq!((gold.key.as_str(), &gold.predicate), ("tier", &wanted));
        let SignalKind::Metadata(traced) = kind("traced") else { panic!() };
        assert_eq!(traced.predicate, MetadataPredicate::Exists(false));
    }

    #[test]
    fn learned_families() {
        let spec = full();
        let kind = |name: &str| {
            let signal = spec.recipes[0].signals.iter().find(|signal| signal.name == name);
            signal.map(|signal| &signal.kind).expect(name)
        };
        assert!(matches!(kind("needs_fact_check"), SignalKind::FactCheck(FactCheckSignal::Needed)));
        assert!(matches!(kind("no_fact_check_needed"), SignalKind::FactCheck(FactCheckSignal::NotNeeded)));
        assert!(matches!(
            kind("want_different"),
            SignalKind::UserFeedback(UserFeedbackSignal::WantDifferent)
        ));
        assert!(matches!(kind("BOTH"), SignalKind::Modality(ModalitySignal::Both)));
        let reask = |name| match kind(name) {
            SignalKind::Reask(it) => (it.threshold, it.lookback_turns),
            other => panic!("{other:?}"),
        };
        assert_eq!((reask("again"), reask("once_more")), ((0.9, 3), (0.8, 1)));
        let SignalKind::Preference(terse) = kind("terse") else { panic!() };
        assert_eq!(
            (terse.description.as_str(), terse.examples.len(), terse.threshold),
            ("Few words.", 1, Some(0.4))
        );
        let SignalKind::Kb(secret) = kind("secret") else { panic!() };
        assert_eq!(
            (&secret.target, secret.matching),
            (&KbTarget::Group("private".to_owned()), KbMatch::Best)
        );
        let SignalKind::Kb(law) = kind("contract_law") else { panic!() };
        assert_eq!(
            (&law.target, law.matching),
            (&KbTarget::Label("contracts".to_owned()), KbMatch::Threshold)
        );
        let SignalKind::Classifier(topic) = kind("topic") else { panic!() };
        assert_eq!(topic.kind, ClassifierKind::Local { path: "heads/topic.json".to_owned() });
        assert_eq!(topic.labels, ["spam", "ham"]);
        let SignalKind::Classifier(tone) = kind("tone") else { panic!() };
        let instructions = "Judge the tone.".to_owned();
        assert_eq!(tone.kind, ClassifierKind::Llm { model: ModelId::new("cloud"), instructions });
    }

    #[test]
    fn leaves_with_tests_of_their_own() {
        let spec = full();
        let guarded = spec.recipes[0].decisions.iter().find(|d| d.name == "guarded").expect("guarded");
        let predicate = Some(NumericPredicate { gte: Some(0.8), ..NumericPredicate::default() });
        let spam = key(Family::Classifier, "topic:spam");
        let expected = Condition::And(vec![
            Condition::Tested(Test {
                key: key(Family::Jailbreak, "attack"),
                predicate: None,
                on_absent: OnAbsent::Match,
            }),
            Condition::Tested(Test { key: spam, predicate, on_absent: OnAbsent::NoMatch }),
            Condition::Signal(key(Family::Classifier, "tone:calm")),
            Condition::Signal(key(Family::Authz, "admin")),
        ]);
        assert_eq!(guarded.rules, Some(expected));
    }

    /// The only decision of a file, with further keys.
    fn decision(keys: &str) -> Checked {
        read(&format!(
            "version: v0.3\nproviders: {{ models: [{{ name: m, backend_refs: [{{ endpoint: 'h:1' }}] }}] }}\n\
             routing: {{ decisions: [{{ name: d, modelRefs: [{{ model: m }}], {keys} }}] }}\n"
        ))
    }

    fn read_decision(keys: &str) -> Decision {
        let checked = decision(keys);
        let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        spec.recipes[0].decisions[0].clone()
    }

    #[test]
    fn what_loops_put_out_are_candidates_too_each_once() {
        let it = read_decision(
            "candidateIterations: [\
             { variable: c, source: decision.candidates, outputs: [{ type: model, value: c }] }, \
             { variable: v, source: models, outputs: [{ type: model, value: v }], models: [\
               { model: m }, { model: m, lora_name: law, use_reasoning: true }, { model: m, lora_name: law }] }]",
        );
        let refs: Vec<_> = it.model_refs.iter().map(|r| (r.model.as_str(), r.lora_name.as_deref())).collect();
        assert_eq!(refs, [("m", None), ("m", Some("law"))]);
        assert_eq!(it.model_refs[1].use_reasoning, Some(true));
    }

    #[test]
    fn what_a_decision_carries_beside_its_candidates() {
        let deep = &full().recipes[0].decisions[0];
        let annotations =
            serde_json::json!({"owner": "law team", "budget": 12, "nested": {"on": ["yes", true]}});
        assert_eq!(serde_json::to_value(&deep.annotations).expect("JSON"), annotations);
        let carried = read_decision(
            "output_contract: One word., \
             emits: [{ kind: retention, retention: { drop: false, ttl_turns: 3, keep_current_model: true } }], \
             candidateIterations: [{ variable: c, source: decision.candidates, outputs: [{ type: model, value: c }] }], \
             adaptations: { mode: observe, protection: { mode: bypass, switch_margin: 0.1 } }",
        );
        assert_eq!(carried.output_contract.as_deref(), Some("One word."));
        let hint = Retention {
            drop: Some(false),
            ttl_turns: Some(3),
            keep_current_model: Some(true),
            prefer_prefix_retention: None,
        };
        assert_eq!(carried.emits, [hint]);
        let turn = &carried.candidate_iterations[0];
        assert!(turn.variable == "c" && matches!(turn.source, IterationSource::Candidates));
        assert_eq!(turn.outputs, [("model".to_owned(), Some("c".to_owned()))]);
        let adaptations = carried.adaptations.expect("adaptations");
        assert_eq!((adaptations.mode, adaptations.adaptation), (AdaptationMode::Observe, None));
        assert_eq!(
            (adaptations.protection, adaptations.switch_margin),
            (Some(AdaptationMode::Bypass), Some(0.1))
        );
    }

    #[test]
    fn typed_output_contracts() {
        let contract = |spec: &str| {
            read_decision(&format!("output_contract_spec: {spec}")).output_contract_spec.expect("a contract")
        };
        let choice = contract("{ type: choice, choice_set: { values: [yes, no] } }");
        assert_eq!(choice.kind, OutputKind::Choice(vec!["yes".to_owned(), "no".to_owned()]));
        assert_eq!((choice.extract, choice.render, choice.repair), (OutputExtract::default(), None, false));
        let full = contract(
            "{ type: structured_json, json_schema: { schema_ref: terminal_action_v1 }, \
             render: { mode: template, template: 'do {{choice}}' }, \
             extract: { mode: json_object, sources: [content, candidate_responses] }, \
             normalize: { field_order: [b, a], defaults: { a: '1' } }, on_violation: { repair: true, fallback: stop } }",
        );
        assert_eq!(full.kind, OutputKind::StructuredJson { schema_ref: "terminal_action_v1".to_owned() });
        assert_eq!(full.render, Some(OutputRender::Template("do {{choice}}".to_owned())));
        assert_eq!(full.extract.sources, [OutputSource::Content, OutputSource::CandidateResponses]);
        assert!(full.extract.json_object && full.repair && !full.dereference);
        let defaults = vec![("a".to_owned(), "1".to_owned())];
        assert_eq!(
            (full.field_order.len(), full.defaults, full.fallback.as_deref()),
            (2, defaults, Some("stop"))
        );
        let pick = contract(
            "{ type: reference_selection, reference: { source: candidates, id_format: reference_number }, \
             postprocess: [{ type: dereference_selected_reference }] }",
        );
        let source = "candidates".to_owned();
        let id_format = ReferenceFormat::ReferenceNumber;
        assert_eq!(pick.kind, OutputKind::ReferenceSelection { source, id_format });
        assert!(pick.dereference);
    }

    #[test]
    fn annotations_are_bounded() {
        let many = |count: usize| (0..count).map(|n| format!("k{n}: 1")).collect::<Vec<_>>().join(", ");
        let long = |bytes: usize| format!("k: {}", "x".repeat(bytes));
        let refused = |annotations: &str| {
            let checked = decision(&format!("annotations: {{ {annotations} }}"));
            checked.diagnostics.iter().any(|d| d.code == "bad-range" && d.path.ends_with("annotations"))
        };
        assert!(!refused(&many(32)) && refused(&many(33)));
        // `{"k":"…"}` has eight bytes around the text.
        assert!(!refused(&long(4088)) && refused(&long(4089)));
    }

    #[test]
    fn d19_an_override_leaves_the_rest_at_one_default() {
        let scoring = "prototype_scoring: { top_m: 5 }";
        let text = format!(
            "version: v0.3\nglobal: {{ model_catalog: {{ kbs: [{{ name: a, source: {{ path: p }}, threshold: 0.1, \
             {scoring} }}], modules: {{ complexity: {{ {scoring} }} }} }} }}\n"
        );
        let it = read(&text).spec.expect("a spec").global;
        let numbers =
            |p: PrototypeScoring| (p.cluster_similarity_threshold, p.max_prototypes, p.best_weight, p.top_m);
        let default = PrototypeScoring::default();
        let overridden = PrototypeScoring { top_m: 5, ..default };
        assert_eq!(numbers(it.complexity_prototypes), numbers(overridden));
        let of =
            |name: &str| it.knowledge_bases.iter().find(|base| base.name == name).expect("a base").prototypes;
        assert_eq!(numbers(of("a")), numbers(overridden));
        // Nobody else sees the override.
        assert_eq!(numbers(it.embedding_prototypes), numbers(default));
        assert_eq!(numbers(of("privacy_kb")), numbers(default));
    }

    #[test]
    fn h02_every_example_of_the_papers_has_keys_that_are_read() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages = std::fs::read_dir(root.join("docs"))
            .expect("the papers")
            .map(|page| page.expect("a page").path());
        // The bundle's own format is another one.
        let of_the_contract = |page: &std::path::PathBuf| {
            let of_bundles = ["mom-spec.md", "operating-points.md"].iter().any(|name| page.ends_with(name));
            page.extension().is_some_and(|e| e == "md") && !of_bundles
        };
        let pages = pages.chain([root.join("README.md")]).filter(of_the_contract);
        let mut blocks = 0;
        for page in pages {
            let text = std::fs::read_to_string(&page).expect("text");
            for block in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
                blocks += 1;
                let wrong: Vec<_> = read(block)
                    .diagnostics
                    .into_iter()
                    .filter(|d| ["yaml", "unknown-key"].contains(&d.code))
                    .collect();
                assert!(wrong.is_empty(), "{}: {wrong:?}\n{block}", page.display());
            }
        }
        assert!(blocks > 1, "{blocks} examples");
    }

    #[test]
    fn structure_and_conversation() {
        let spec = full();
        let structure = |name: &str| {
            let signal = spec.recipes[0].signals.iter().find(|s| s.name == name).expect("declared");
            match &signal.kind {
                SignalKind::Structure(it) => it.clone(),
                other => panic!("{other:?}"),
            }
        };
        let questions = structure("questions");
        assert_eq!(questions.feature.kind, FeatureKind::Count);
        assert!(
            matches!(&questions.feature.source, StructureSource::Regex { pattern, case_sensitive: false } if pattern == "[?？]")
        );
        assert_eq!(
            questions.predicate,
            Some(NumericPredicate { gte: Some(2.0), ..NumericPredicate::default() })
        );
        let StructureSource::Sequence { sequences, .. } = structure("steps").feature.source else { panic!() };
        assert_eq!(sequences, [["first", "then"], ["plan", "execute"]]);
        assert!(matches!(structure("big").feature.source, StructureSource::TextBytes));
        assert!(matches!(
            structure("dense").feature.source,
            StructureSource::KeywordSet { case_sensitive: true, .. }
        ));
        assert_eq!(structure("dense").feature.kind, FeatureKind::Density);
        assert_eq!(structure("dense").predicate, None);
        let conversation = |name: &str| {
            let signal = spec.recipes[0].signals.iter().find(|s| s.name == name).expect("declared");
            match &signal.kind {
                SignalKind::Conversation(it) => {
                    (it.feature.kind, it.feature.source.clone(), it.predicate.is_some())
                }
                other => panic!("{other:?}"),
            }
        };
        let users = ConversationSource::Message { role: Some("user".to_owned()) };
        assert_eq!(conversation("turns"), (FeatureKind::Count, users, true));
        assert_eq!(conversation("tools"), (FeatureKind::Exists, ConversationSource::ToolDefinition, false));
    }

    #[test]
    fn projections() {
        let it = full().recipes[0].projections.clone();
        let partition = &it.partitions[0];
        assert_eq!(partition.semantics, PartitionSemantics::SoftmaxExclusive { temperature: 0.1 });
        assert_eq!(
            partition.members,
            [key(Family::Embedding, "planning"), key(Family::Embedding, "chatter")]
        );
        assert_eq!(partition.default, Some(key(Family::Embedding, "chatter")));
        let order: Vec<&str> = it.scores.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(order, ["first", "later"], "a score comes after what it reads");
        let first: Vec<_> =
            it.scores[0].inputs.iter().map(|i| (i.source.clone(), i.weight, i.value)).collect();
        let signal = |family, name: &str| InputSource::Signal(key(family, name));
        let closeness = InputSource::KbMetric { kb: "cases".to_owned(), metric: "closeness".to_owned() };
        assert_eq!(
            first,
            [
                (signal(Family::Keyword, "greeting"), 1.0, ValueSource::Binary { matched: 1.0, miss: 0.0 }),
                (signal(Family::Complexity, "needs_reasoning:hard"), 0.3, ValueSource::Confidence),
                (signal(Family::Embedding, "planning"), 0.2, ValueSource::Raw),
                (signal(Family::Context, "long"), 0.1, ValueSource::Binary { matched: 2.0, miss: -1.0 }),
                (closeness, 0.5, ValueSource::Score),
            ]
        );
        let later: Vec<_> = it.scores[1].inputs.iter().map(|i| (i.source.clone(), i.value)).collect();
        assert_eq!(
            later[0],
            (signal(Family::Projection, "hot"), ValueSource::Binary { matched: 1.0, miss: 0.0 })
        );
        assert_eq!(later[1], (InputSource::Score("first".to_owned()), ValueSource::Score));
        let mapping = &it.mappings[0];
        assert_eq!((mapping.source.as_str(), mapping.method), ("first", MappingMethod::ThresholdBands));
        assert_eq!(mapping.calibration, Some(Calibration { slope: 12.0 }));
        assert_eq!(
            mapping.outputs[1].band,
            NumericPredicate { gte: Some(0.2), ..NumericPredicate::default() }
        );
    }

    #[test]
    fn a_decision_and_its_fusion() {
        let spec = full();
        let deep = &spec.recipes[0].decisions[0];
        assert_eq!((deep.name.as_str(), deep.priority, deep.tier), ("deep", 100, 1));
        let leaf = |family, name: &str| Condition::Signal(key(family, name));
        let expected = Condition::And(vec![
            leaf(Family::Domain, "research"),
            leaf(Family::Domain, "physics"),
            leaf(Family::Complexity, "needs_reasoning:hard"),
            Condition::Not(Box::new(leaf(Family::Projection, "cold"))),
            Condition::Or(vec![leaf(Family::Language, "no"), leaf(Family::Keyword, "ticket")]),
        ]);
        assert_eq!(deep.rules, Some(expected));
        let first = &deep.model_refs[0];
        assert_eq!(
            (first.model.as_str(), first.weight, first.use_reasoning),
            ("qwen", Some(2.0), Some(true))
        );
        assert_eq!(
            (first.reasoning_effort.as_deref(), first.lora_name.as_deref()),
            (Some("high"), Some("law-lora"))
        );
        let Algorithm::Fusion(it) = &deep.algorithm else { panic!("fusion") };
        assert_eq!(it.judge, Some(ModelId::new("1e3")));
        assert_eq!(it.panel, ["qwen", "qwen", "cloud"].map(ModelId::new));
        assert_eq!((it.overrides[0].model.as_str(), it.overrides[0].temperature), ("cloud", Some(0.1)));
        assert_eq!(it.overrides[0].max_completion_tokens, Some(50));
        assert_eq!((it.max_concurrent, it.max_completion_tokens), (Some(3), Some(800)));
        assert_eq!((it.round_timeout, it.min_successful_responses), (Some(Duration::from_secs(90)), Some(2)));
        assert_eq!((it.temperature, it.on_error), (Some(0.7), OnError::Fail));
        assert!(!it.include_analysis && !it.include_intermediate_responses && it.single_answer_passthrough);
        assert_eq!(it.analysis_template.as_deref(), Some("{{original}} {{responses}}"));
        assert_eq!(it.synthesis_template.as_deref(), Some("{{original}} {{responses}} {{analysis}}"));
        assert_eq!(it.judge_prompt_version, "fusion-v7");
        let rest = &spec.recipes[0].decisions[3];
        assert!(rest.rules.is_none() && matches!(rest.algorithm, Algorithm::Static));
    }

    #[test]
    fn plugins() {
        let spec = full();
        let plugins = &spec.recipes[0].decisions[0].plugins;
        let kinds: Vec<&str> = plugins.iter().map(Plugin::kind).collect();
        assert_eq!(
            kinds,
            ["system_prompt", "header_mutation", "request_params", "tools"],
            "a disabled one is dropped"
        );
        let Plugin::SystemPrompt(it) = &plugins[0] else { panic!() };
        assert_eq!((it.text.as_str(), it.mode), ("Be brief.", SystemPromptMode::Insert));
        let Plugin::HeaderMutation(it) = &plugins[1] else { panic!() };
        assert_eq!(it.add, [("x-a".to_owned(), Template::new("${A}"))]);
        assert_eq!(it.update, [("x-b".to_owned(), Template::new("b"))]);
        assert_eq!(it.delete, ["x-c"]);
        let Plugin::RequestParams(it) = &plugins[2] else { panic!() };
        assert_eq!(
            (it.blocked.len(), it.max_tokens_limit, it.max_n, it.strip_unknown),
            (1, Some(900), Some(1), true)
        );
        let Plugin::Tools(it) = &plugins[3] else { panic!() };
        assert_eq!(
            (it.mode, it.allow.len(), it.block.len(), it.strip_tool_history),
            (ToolsMode::Filtered, 1, 1, false)
        );
        let hello = &spec.recipes[0].decisions[1].plugins[0];
        assert!(matches!(hello, Plugin::FastResponse { message } if message == "Hello."));
    }
}
