//! The manual of diagnostics is what the code says, and every code has its page.

#[cfg(test)]
mod tests {
    use chorus_spec::manual::files;
    use chorus_spec::{DIAGNOSTIC_CODES, dsl};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_pages_are_what_the_code_says() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let files = files();
        for (path, text) in &files {
            let written = std::fs::read_to_string(docs.join(path)).unwrap_or_default();
            assert!(written == *text, "docs/{path} is not up to date: run `cargo xtask docs`");
        }
        for page in std::fs::read_dir(docs.join("diagnostics")).expect("the folder of the manual") {
            let name = page.expect("a page").file_name().into_string().expect("a name");
            let path = format!("diagnostics/{name}");
            assert!(files.iter().any(|(known, _)| *known == path), "docs/{path} is of no code");
        }
    }

    #[test]
    fn a_code_stands_for_one_thing() {
        let all: Vec<&str> = DIAGNOSTIC_CODES.iter().chain(dsl::CODES).map(|code| code.code).collect();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn a_page_shows_what_is_said_of_its_example() {
        let files = files();
        let page = |code: &str| {
            let path = format!("diagnostics/{code}.md");
            files.iter().find(|(known, _)| *known == path).map(|(_, text)| text.as_str()).expect(code)
        };
        for code in DIAGNOSTIC_CODES.iter().chain(dsl::CODES) {
            let page = page(code.code);
            assert!(page.contains(code.says) && page.contains(code.fix), "{}", code.code);
            let shown = format!("[{}]: ", code.code);
            assert_eq!(page.contains(&shown), code.example.is_some(), "{}", code.code);
        }
    }
}
