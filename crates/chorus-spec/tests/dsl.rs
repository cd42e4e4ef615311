//! The policy language from outside: what it compiles to, how it prints, what it says of mistakes, and the way back.

#[cfg(test)]
mod tests {
    use chorus_spec::{Document, Severity, dsl};
    use proptest::prelude::*;

    const FULL: &str = include_str!("dsl/full.dsl");
    const COMPILED: &str = include_str!("dsl/full.yaml");
    const MISTAKES: &str = include_str!("dsl/mistakes.txt");

    fn compiled(text: &str) -> Document {
        dsl::compile(text).unwrap_or_else(|faults| {
            panic!("{}", faults.iter().map(|it| it.render("policy.dsl", text)).collect::<String>())
        })
    }

    fn printed(text: &str) -> String {
        dsl::format(text).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"))
    }

    fn differences(left: &Document, right: &Document) -> Vec<dsl::Difference> {
        dsl::differences(left, right)
    }

    #[test]
    fn every_construct_compiles_to_the_contract() {
        assert_eq!(compiled(FULL).to_yaml(), COMPILED);
    }

    #[test]
    fn the_whole_policy_is_read_without_an_error_and_its_tests_are_found() {
        let reading = dsl::read(FULL, None);
        let said: String = reading.diagnostics.iter().map(|it| it.render("full.dsl", FULL)).collect();
        let spec = reading.spec.unwrap_or_else(|| panic!("{said}"));
        let names: Vec<&str> = spec.recipes.iter().map(|recipe| recipe.name.as_str()).collect();
        assert_eq!(names, ["default", "triage"]);
        let tests: Vec<(Option<&str>, &str, &str)> = reading
            .tests
            .iter()
            .map(|case| (case.recipe.as_deref(), case.query.as_str(), case.route.as_str()))
            .collect();
        assert_eq!(
            tests,
            [
                (None, "Hello there", "rest"),
                (Some("triage"), "a struct", "code"),
                (Some("triage"), "a poem", "first__branch_02"),
            ]
        );
    }

    #[test]
    fn decompiling_loses_nothing() {
        let document = Document::parse(COMPILED).expect("the golden file is YAML");
        let back = dsl::decompile(&document);
        assert_eq!(back.left_out, Vec::<String>::new());
        assert_eq!(differences(&compiled(&back.text), &document), []);
        assert_eq!(printed(&back.text), back.text, "what is decompiled is printed already");
    }

    #[test]
    fn shapes_that_have_no_clause_come_back_as_fields() {
        let yaml = "routing:\n  decisions:\n    - name: odd\n      priority: 3\n      rules:\n        operator: XOR\n        \
                    conditions: [{ type: keyword, name: a }]\n      algorithm: { type: fusion, on_error: skip }\n      \
                    plugins: [{ type: tools, enabled: true }]\n      adaptations: { mode: bypass }\n      \
                    modelRefs: [{ model: m, future: 1 }]\n      emits: [{ kind: other, a: 1, b: 2 }]\n";
        let document = Document::parse(yaml).expect("yaml");
        let back = dsl::decompile(&document);
        assert_eq!(differences(&compiled(&back.text), &document), [], "{}", back.text);
    }

    #[test]
    fn what_no_block_holds_is_named() {
        let document =
            Document::parse("routing: { skills: [a], signals: { moods: [] }, modelCards: [{ size: 3 }] }")
                .expect("yaml");
        assert_eq!(
            dsl::decompile(&document).left_out,
            ["routing.skills", "routing: an item without a name", "routing.signals.moods"]
        );
    }

    /// Order, a group of one, a default that is written out, and how a number is written say nothing.
    #[test]
    fn the_normal_form_forgets_what_says_nothing_and_nothing_else() {
        let read = |text: &str| Document::parse(text).expect("yaml");
        let left = read(
            "routing:\n  signals:\n    keywords: [{ name: a, keywords: [x, y], case_sensitive: false }, { name: b }]\n  \
             decisions:\n    - { name: d, priority: 1.0, rules: { operator: or, conditions: [{ type: keyword, name: a }] } }\n",
        );
        let right = read(
            "routing:\n  decisions:\n    - { priority: 1, name: d, rules: { type: keyword, name: a }, plugins: [] }\n  \
             signals:\n    keywords: [{ name: b }, { keywords: [x, y], name: a }]\n",
        );
        assert_eq!(differences(&left, &right), []);
        let text = left.to_yaml();
        for (from, to, path) in [
            ("- x", "- z", "routing.signals.keywords.a.keywords[0]"),
            ("type: keyword", "type: domain", "routing.decisions.d.rules.type"),
            ("case_sensitive: false", "case_sensitive: true", "routing.signals.keywords.a.case_sensitive"),
            ("priority: 1.0", "priority: '1.0'", "routing.decisions.d.priority"),
        ] {
            let changed = text.replace(from, to);
            let found = differences(&read(&changed), &right);
            assert_eq!(found.first().map(|it| it.path.as_str()), Some(path), "{changed}");
        }
    }

    #[test]
    fn branches_of_a_tree_exclude_each_other() {
        let yaml = compiled("DECISION_TREE t {\n IF a(\"1\") OR a(\"2\") { MODEL m }\n ELSE IF a(\"3\") { MODEL m }\n ELSE { MODEL m }\n}\n").to_json();
        let decisions = yaml["routing"]["decisions"].as_array().expect("three branches");
        let priorities: Vec<i64> = decisions.iter().filter_map(|it| it["priority"].as_i64()).collect();
        assert_eq!(priorities, [1_000_000, 999_999, 999_998]);
        let not_first = serde_json::json!({"operator": "NOT", "conditions": [decisions[0]["rules"]]});
        let not_second = serde_json::json!({"operator": "NOT", "conditions": [{"type": "a", "name": "3"}]});
        assert_eq!(decisions[1]["rules"]["conditions"][1], not_first);
        assert_eq!(
            decisions[2]["rules"],
            serde_json::json!({"operator": "AND", "conditions": [not_first, not_second]})
        );
    }

    #[test]
    fn a_base_keeps_what_a_policy_has_no_clause_for() {
        let base = "version: v0.3\nproviders:\n  models: [{ name: m, backend_refs: [{ endpoint: 'h:1' }] }]\nrouting:\n  \
                    modelCards: [{ name: m }]\n  decisions:\n    - { name: calm, priority: 9, adaptations: { mode: bypass }, \
                    modelRefs: [{ model: m }] }\n    - { name: gone, modelRefs: [{ model: m }] }\n";
        let policy = "ROUTE calm { PRIORITY 1 MODEL \"m\" }\n";
        let reading = dsl::read(policy, Some(base));
        assert!(!reading.has_errors(), "{:?} {:?}", reading.diagnostics, reading.base_diagnostics);
        let json = reading.document.to_json();
        let decisions = json["routing"]["decisions"].as_array().expect("decisions");
        assert_eq!(decisions.len(), 1, "routes of the base that the policy does not have are gone");
        assert_eq!(
            (&decisions[0]["priority"], &decisions[0]["adaptations"]["mode"]),
            (&1.into(), &"bypass".into())
        );
        assert_eq!(json["routing"]["modelCards"][0]["name"], "m");
        assert_eq!(json["providers"]["models"][0]["name"], "m");
    }

    #[test]
    fn each_finding_stands_in_the_text_that_it_is_of() {
        let base = "version: v0.3\nproviders:\n  models: [{ name: m, backend_refs: [{ endpoint: 'h:1', wait: 3 }] }]\n";
        let policy = "MODEL m {}\n\nROUTE r {\n  WHEN keyword(\"nobody\")\n  MODEL \"m\"\n}\n";
        let reading = dsl::read(policy, Some(base));
        let places = |all: &[chorus_spec::Diagnostic]| {
            all.iter().map(|it| (it.code, it.place.line, it.place.column)).collect::<Vec<_>>()
        };
        assert_eq!(places(&reading.diagnostics), [("unknown-reference", 4, 16)]);
        assert_eq!(places(&reading.base_diagnostics), [("unknown-key", 3, 57)]);
        assert!(reading.spec.is_none());
    }

    /// A policy, `-----`, and what is said of it; `=====` between two of them.
    #[test]
    fn mistakes_are_told_all_at_once_where_they_are() {
        for case in MISTAKES.split("=====\n") {
            let (policy, wanted) = case.split_once("-----\n").expect("a case has two parts");
            let reading = dsl::read(policy, None);
            let said: Vec<String> = reading
                .diagnostics
                .iter()
                .filter(|it| it.severity == Severity::Error)
                .map(|it| it.render("policy.dsl", policy))
                .collect();
            assert_eq!(said.join("\n").trim_end(), wanted.trim_end(), "\n{}", said.join("\n"));
            assert!(reading.spec.is_none());
        }
    }

    #[test]
    fn every_code_of_the_language_has_an_example_that_brings_it_about() {
        for it in dsl::CODES {
            let example = it.example.expect("each code has one");
            let found = dsl::read(example, None).diagnostics;
            assert!(found.iter().any(|found| found.code == it.code), "{}: {found:?}", it.code);
        }
    }

    #[test]
    fn printing_keeps_comments_and_meaning_and_is_stable() {
        let once = printed(FULL);
        assert_eq!(printed(&once), once);
        assert_eq!(compiled(&once).to_yaml(), COMPILED);
        assert_eq!(comments(&once), comments(FULL));
    }

    fn comments(text: &str) -> Vec<String> {
        let of_line = |line: &str| line.split_once('#').map(|(_, comment)| comment.trim().to_owned());
        text.lines().filter_map(of_line).collect()
    }

    /// The policy with a comment put behind some of its lines, and blank lines above some.
    fn commented(marks: &[(bool, bool)]) -> String {
        let line = |(at, line): (usize, &str)| match marks.get(at % marks.len().max(1)) {
            Some((behind, above)) => {
                let above = if *above { "\n  # above\n\n" } else { "" };
                let behind = if *behind && !line.contains('#') { " # behind" } else { "" };
                format!("{above}{line}{behind}\n")
            }
            None => format!("{line}\n"),
        };
        FULL.lines().enumerate().map(line).collect()
    }

    fn holds(text: &str) {
        let reading = dsl::read(text, None);
        assert!(reading.spec.is_none() || !reading.has_errors());
        for it in &reading.diagnostics {
            assert!(
                it.place.line > 0 && it.place.column > 0 && it.place.line <= text.lines().count() + 1,
                "{it:?}"
            );
            assert!(it.render("p", text).contains(it.code));
        }
    }

    #[test]
    fn a_valid_policy_cut_anywhere() {
        for end in (0..FULL.len()).step_by(11).filter(|end| FULL.is_char_boundary(*end)) {
            holds(&FULL[..end]);
        }
    }

    #[test]
    fn a_valid_policy_without_any_one_line() {
        for skipped in 0..FULL.lines().count() {
            let kept: Vec<&str> =
                FULL.lines().enumerate().filter(|(at, _)| *at != skipped).map(|(_, line)| line).collect();
            holds(&kept.join("\n"));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn comments_survive_wherever_they_stand(marks in prop::collection::vec(any::<(bool, bool)>(), 1..40)) {
            let text = commented(&marks);
            let once = printed(&text);
            prop_assert_eq!(printed(&once), once.clone());
            prop_assert_eq!(compiled(&once).to_yaml(), COMPILED);
            let mut sorted = (comments(&once), comments(&text));
            sorted.0.sort();
            sorted.1.sort();
            prop_assert_eq!(sorted.0, sorted.1);
        }

        #[test]
        fn any_text_is_read(text in "(ROUTE|SIGNAL|IF|ELSE|WHEN|MODEL|keyword|AND|NOT|[a-z]{1,3}|[0-9.]{1,3}|[{}()\\[\\]:,=\"\\\\#>\\n -]){0,60}") {
            holds(&text);
        }
    }
}
