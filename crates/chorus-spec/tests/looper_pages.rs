//! The pages of loopers show the parameters that the code has.

#[cfg(test)]
mod tests {
    use chorus_spec::{documented_loopers, looper_page};
    use std::path::Path;

    #[test]
    fn the_tables_are_what_the_code_says() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loopers");
        for looper in documented_loopers() {
            let name = format!("{}.md", looper.as_str());
            let page = std::fs::read_to_string(docs.join(&name)).unwrap_or_default();
            let new = looper_page::with_parameters(&page, looper);
            assert!(new == Some(page), "docs/loopers/{name} is not up to date: run `cargo xtask docs`");
        }
    }
}
