//! Whatever the text is, reading it ends in a value: no panic, and no `Spec` beside an error.

#[cfg(test)]
mod tests {
    use chorus_spec::{Severity, read};
    use proptest::prelude::*;

    const FULL: &str = include_str!("full.yaml");

    fn holds(text: &str) {
        let checked = read(text);
        let has_error = checked.diagnostics.iter().any(|d| d.severity == Severity::Error);
        assert_eq!(checked.spec.is_none(), has_error, "{text}");
        for diagnostic in &checked.diagnostics {
            assert!(diagnostic.render("f", text).contains(diagnostic.code));
            assert!(diagnostic.place.line > 0 && diagnostic.place.column > 0, "{diagnostic:?}");
        }
    }

    #[test]
    fn a_valid_file_cut_at_every_seventh_byte() {
        for end in (0..FULL.len()).step_by(7).filter(|end| FULL.is_char_boundary(*end)) {
            holds(&FULL[..end]);
        }
    }

    #[test]
    fn a_valid_file_without_any_one_line() {
        let lines: Vec<&str> = FULL.lines().collect();
        for skipped in 0..lines.len() {
            let kept: Vec<&str> =
                lines.iter().enumerate().filter(|(n, _)| *n != skipped).map(|(_, l)| *l).collect();
            holds(&kept.join("\n"));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn arbitrary_text(text in any::<String>()) {
            holds(&text);
        }

        #[test]
        fn yaml_like_text(text in "[a-z:\\-\\[\\]{}&*!|>'\"%@` \\n\\t#,?0-9~]{0,120}") {
            holds(&text);
        }

        #[test]
        fn a_valid_file_with_a_splice(at in 0..FULL.len(), length in 0usize..40, splice in "[a-z:\\-\\[\\]{}&* \\n#,]{0,12}") {
            let end = (at + length).min(FULL.len());
            if FULL.is_char_boundary(at) && FULL.is_char_boundary(end) {
                holds(&format!("{}{splice}{}", &FULL[..at], &FULL[end..]));
            }
        }
    }
}
