//! Every kind of problem, each as a small file in `cases.txt` (what the reader says) or `lint.txt` (what is wrong with
//! a policy as a whole): a `#~ code` at the end of a line says what must be reported there, `= text` below a case says
//! what the reports must contain, and nothing else may be reported.

#[cfg(test)]
mod tests {
    use chorus_spec::{DIAGNOSTIC_CODES, Diagnostic, Severity, lint, read};
    use std::collections::BTreeSet;

    const CASES: &str = include_str!("cases.txt");
    const LINT: &str = include_str!("lint.txt");
    /// Two models that every case may use; a case that begins with `version` or `!` is whole by itself.
    const HEAD: &str = "version: v0.3\nproviders:\n  models:\n    - { name: m, backend_refs: [{ endpoint: 'h:1' }] }\n    - { name: n, backend_refs: [{ endpoint: 'h:2' }] }\n";

    struct Case {
        name: &'static str,
        text: String,
        wanted: Vec<&'static str>,
    }

    fn cases(text: &'static str) -> Vec<Case> {
        text.split("\n### ").skip(1).map(case).collect()
    }

    fn case(block: &'static str) -> Case {
        let (name, body) = block.split_once('\n').expect("a case has a body");
        let wanted = body.lines().filter_map(|line| line.strip_prefix("= ")).collect();
        let yaml: Vec<&str> = body.lines().filter(|line| !line.starts_with("= ")).collect();
        let yaml = yaml.join("\n") + "\n";
        let text = match yaml.strip_prefix("!\n") {
            Some(whole) => whole.to_owned(),
            None => whole(&yaml),
        };
        Case { name, text, wanted }
    }

    fn whole(yaml: &str) -> String {
        if yaml.starts_with("version") { yaml.to_owned() } else { format!("{HEAD}{yaml}") }
    }

    /// What is wrong with a file that reads, as a whole.
    fn linted(text: &str) -> Vec<Diagnostic> {
        let checked = read(text);
        let spec = checked.spec.unwrap_or_else(|| panic!("{text}\n{:?}", checked.diagnostics));
        let mut all = checked.diagnostics;
        all.extend(lint(&spec));
        all.sort_by_key(|d| d.place);
        all
    }

    /// What the marks at the ends of lines announce.
    fn announced(text: &str) -> BTreeSet<(usize, &str)> {
        let codes = |(index, line)| {
            let marks: Vec<(usize, &str)> =
                str::split(line, "#~").skip(1).map(|code| (index + 1, code.trim())).collect();
            marks
        };
        text.lines().enumerate().flat_map(codes).collect()
    }

    #[test]
    fn every_case_reports_what_it_announces() {
        let failures: Vec<String> =
            cases(CASES).iter().filter_map(|case| failure(case, &read(&case.text).diagnostics)).collect();
        assert!(failures.is_empty(), "{} cases differ\n\n{}", failures.len(), failures.join("\n\n"));
    }

    #[test]
    fn every_policy_is_warned_of_what_it_announces() {
        let failures: Vec<String> =
            cases(LINT).iter().filter_map(|case| failure(case, &linted(&case.text))).collect();
        assert!(failures.is_empty(), "{} cases differ\n\n{}", failures.len(), failures.join("\n\n"));
    }

    /// How a case differs from what it announces.
    fn failure(Case { name, text, wanted }: &Case, diagnostics: &[Diagnostic]) -> Option<String> {
        let rendered: String = diagnostics.iter().map(|d| d.render("case.yaml", text)).collect();
        let found: BTreeSet<(usize, &str)> = diagnostics.iter().map(|d| (d.place.line, d.code)).collect();
        let announced = announced(text);
        let missing: Vec<_> = announced.difference(&found).collect();
        let surplus: Vec<_> = found.difference(&announced).collect();
        let unsaid: Vec<_> = wanted.iter().filter(|needle| !rendered.contains(**needle)).collect();
        let has_error = diagnostics.iter().any(|d| d.severity == Severity::Error);
        let is_sorted = diagnostics.is_sorted_by_key(|d| d.place);
        let holds = missing.is_empty() && surplus.is_empty() && unsaid.is_empty();
        (!(holds && is_sorted && read(text).spec.is_none() == has_error)).then(|| {
            format!("{name}: missing {missing:?}, surplus {surplus:?}, unsaid {unsaid:?}\n{text}\n{rendered}")
        })
    }

    #[test]
    fn every_code_has_a_case() {
        let read = cases(CASES).into_iter().flat_map(|case| read(&case.text).diagnostics);
        let linted = cases(LINT).into_iter().flat_map(|case| linted(&case.text));
        let shown: BTreeSet<&str> = read.chain(linted).map(|d| d.code).collect();
        let listed: BTreeSet<&str> =
            DIAGNOSTIC_CODES.iter().filter(|code| code.example.is_some()).map(|code| code.code).collect();
        assert_eq!(shown, listed);
    }

    #[test]
    fn the_example_of_every_code_brings_it_about() {
        for code in DIAGNOSTIC_CODES {
            assert!(code.says.ends_with('.') && code.fix.ends_with('.'), "{}", code.code);
            let Some(example) = code.example else { continue };
            let text = whole(example);
            let checked = read(&text);
            let mut all = checked.diagnostics;
            all.extend(checked.spec.iter().flat_map(lint));
            assert!(all.iter().any(|d| d.code == code.code), "{}: {all:?}", code.code);
        }
    }

    #[test]
    fn a_diagnostic_renders_with_its_line_and_a_caret() {
        let text = "version: v0.3\nroutin:\n  decisions: []\n";
        let checked = read(text);
        let expected = "error[unknown-key]: the contract has no key `routin` here\n --> router.yaml:2:1\n  |\n\
                        2 | routin:\n  | ^^^^^^\n  = path: routin\n  = help: did you mean `routing`?\n";
        assert_eq!(checked.diagnostics[0].render("router.yaml", text), expected);
    }

    #[test]
    fn a_diagnostic_is_serialisable() {
        let checked = read("version: v0.3\nroutin: 1\n");
        let json = serde_json::to_value(&checked.diagnostics[0]).expect("plain data");
        assert_eq!(json["severity"], "error");
        assert_eq!(json["code"], "unknown-key");
        assert_eq!(json["place"]["line"], 2);
        assert_eq!(json["path"], "routin");
    }

    #[test]
    fn a_literal_secret_is_never_shown() {
        let backend = "{ base_url: 'https://h/v1', api_key: sk-very-secret, api_kei: 1, weight: x }";
        let text =
            format!("version: v0.3\nproviders:\n  models:\n    - name: m\n      backend_refs: [{backend}]\n");
        let checked = read(&text);
        assert!(checked.diagnostics.iter().any(|d| d.code == "literal-secret"));
        assert!(checked.diagnostics.len() >= 3, "{:?}", checked.diagnostics);
        let json = serde_json::to_string(&checked.diagnostics).expect("plain data");
        let rendered: String = checked.diagnostics.iter().map(|d| d.render("f", &text)).collect();
        assert!(!json.contains("very-secret") && !rendered.contains("very-secret"), "{rendered}");
        let misplaced = text.replace(", api_kei: 1, weight: x", "").replace("api_key: sk", "api_key_env: sk");
        let below = text.replace("api_key: sk", "api_key:\n        sk");
        for text in [misplaced, below] {
            let rendered: String = read(&text).diagnostics.iter().map(|d| d.render("f", &text)).collect();
            assert!(!rendered.is_empty() && !rendered.contains("very-secret"), "{rendered}");
        }
        let spec =
            read(&text.replace(", api_kei: 1, weight: x", "")).spec.expect("a literal key is only a warning");
        assert!(!format!("{spec:?}").contains("very-secret"));
    }

    #[test]
    fn h04_scalars_stay_as_written() {
        let text =
            format!("{HEAD}routing:\n  modelCards: [{{ name: m, tags: [no, 1e3, 08, on, 0x10, ~] }}]\n");
        let checked = read(&text);
        let said = format!("{:?}", checked.diagnostics);
        assert!(checked.spec.is_none() && said.contains("tags[5]"), "null is not text: {said}");
        let spec = read(&text.replace(", ~]", "]")).spec.expect("text is text");
        let card = &spec.models.values().next().expect("a model").card;
        assert_eq!(card.tags, ["no", "1e3", "08", "on", "0x10"]);
    }

    #[test]
    fn aliases_are_expanded_and_bounded() {
        let text = format!(
            "{HEAD}routing:\n  signals:\n    keywords:\n      - &a {{ name: x, keywords: &w [y] }}\n      - {{ name: z, keywords: *w }}\n"
        );
        assert_eq!(read(&text).spec.expect("aliases are fine").recipes[0].signals.len(), 2);
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..12 {
            let last = format!("*a{}", level - 1);
            bomb.push_str(&format!("a{level}: &a{level} [{}]\n", vec![last; 9].join(",")));
        }
        let diagnostics = read(&bomb).diagnostics;
        assert!(
            diagnostics.iter().any(|d| d.code == "yaml" && d.message.contains("aliases expanded")),
            "{diagnostics:?}"
        );
        let deep = "[".repeat(5000);
        assert!(read(&deep).diagnostics.iter().any(|d| d.code == "yaml"));
        let deep = (0..5000).map(|n| format!("{}- \n", " ".repeat(n % 300))).collect::<String>();
        assert!(read(&deep).spec.is_none());
        assert!(read(&format!("version: {}", "x".repeat(17 * 1024 * 1024))).spec.is_none());
    }
}
