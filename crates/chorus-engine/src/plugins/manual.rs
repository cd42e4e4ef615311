//! The manual of plugins: one page a plugin, and the index. `cargo xtask docs` writes them.
//!
//! It knows texts, and the turns that plugins take. **Invariant:** every plugin of the contract has one page; its example
//! is a configuration that loads, and a default that stands in code marks is what leaving the key out means.

mod checked;
mod offered;
mod request;
mod response_cache;
mod shown;

use std::fmt::Write;

/// What a person should know about a plugin.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The contract's type word.
    pub kind: &'static str,
    /// What it does, in a sentence or two.
    pub what: &'static str,
    /// When to use it, and when not.
    pub when: &'static str,
    /// A decision's `plugins` with it.
    pub example: &'static str,
    /// What may stand under `configuration`.
    pub keys: &'static [Key],
    /// What there is to say of parameters beside their table: bounds, keys elsewhere in the file.
    pub beside: &'static str,
    /// How it works; sections with headings of their own.
    pub about: &'static str,
    /// What it costs a request.
    pub cost: &'static str,
    /// When it cannot do its work, and what becomes of the request then.
    pub fails_when: &'static str,
    /// Where it comes from, and what is different here.
    pub source: &'static str,
}

/// One row of a table of parameters.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its path under `configuration`; several in one row stand in code marks.
    pub path: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What leaving it out means: in code marks the very value, else in words.
    pub default: &'static str,
}

const fn key(path: &'static str, meaning: &'static str, default: &'static str) -> Key {
    Key { path, meaning, default }
}

/// Every page, in the order in which plugins look at the request, and then at the answer.
pub const PAGES: &[Page] = &[
    request::FAST_RESPONSE,
    response_cache::RESPONSE_CACHE,
    request::SYSTEM_PROMPT,
    request::REQUEST_PARAMS,
    offered::TOOLS,
    offered::TOOL_SELECTION,
    shown::MEMORY,
    shown::RAG,
    shown::CONTEXT_COMPRESSION,
    request::HEADER_MUTATION,
    offered::IMAGE_GEN,
    checked::RESPONSE_JAILBREAK,
    checked::HALLUCINATION,
    checked::ROUTER_REPLAY,
];

/// What plugins do on the request, first to last.
const ON_REQUESTS: &[(&str, &str)] = &[
    ("fast_response", "answers at once; nothing below happens"),
    ("response_cache", "gives the answer to an earlier request"),
    ("system_prompt", "an operator's system message"),
    ("request_params", "blocks, caps or strips fields"),
    ("tools", "keeps, filters or removes tools"),
    ("tool_selection", "adds or drops tools by what is asked"),
    ("memory", "shows what is remembered of the user"),
    ("rag", "shows what is found in documents"),
    ("context_compression", "shortens all that has been added by now"),
    ("header_mutation", "headers of the calls"),
    ("image_gen", "draws in a model's place"),
];

/// What plugins do on the answer, first to last.
const ON_ANSWERS: &[(&str, &str)] = &[
    ("context_compression", "gives the model originals that it asks for"),
    ("response_jailbreak", "refuses or marks an answer that attacks"),
    ("hallucination", "marks what the material does not support"),
    ("memory", "keeps what the user states"),
    ("response_cache", "keeps the answer"),
    ("router_replay", "keeps bodies in the run's record"),
];

/// The first line below a page's title.
const GENERATED: &str =
    "<!-- written by `cargo xtask docs` from crates/chorus-engine/src/plugins/manual: edit it there -->";

const INTRODUCTION: &str = "\
A plugin is what else happens on a route: `plugins: [{ type: …, configuration: { … } }]` of a decision. One of a type may
stand there; `enabled: false` takes it away. The order in the file does not matter: it is the same on every route.";

const ABOUT: &str = "\
It is the same for one model and for several together: a request half edits what a looper is asked, an answer half sees the
final answer. Where a plugin answers (the cache, an image), no model is called and no plugin after it in turn looks at the
request; answer halves see its answer as they see a model's.

**Edits while the route is planned.** `system_prompt`, `request_params`, `tools` and `header_mutation` change words of the
request and nothing else, so the selector sees what will be sent, and Envoy can forward the request itself. A route with
any other plugin is served here. The cache looks at the client's own words, which those edits do not change.

**Streams** pass as they come unless a plugin needs all of the answer: `hallucination` and `response_jailbreak` hold it.
What is kept of an answer (cache, memory, replay) is kept once all of it has left, and never of one that broke off.

**What is told.** The record's trace `plugins` says what each plugin did and contributed, by its type, in counts, names and
scores and without a word of the conversation. Plugins add headers to the answer; `x-vsr-response-warnings` has their
warnings, which also mark the record as degraded.

**Stores.** Everything is embedded in the process or its files, unless the file names a server that the plugin's page knows.
A store or backend of the contract that this version does not have (`milvus`, …) is an error at its line, unless the file
switches it off.";

/// Every file of the manual, by its path below `docs/`.
#[must_use]
pub fn files() -> Vec<(String, String)> {
    let pages = PAGES.iter().map(|page| (format!("plugins/{}.md", page.kind), page.render()));
    pages.chain([("plugins/README.md".to_owned(), index())]).collect()
}

fn index() -> String {
    let mut out = format!(
        "# Plugins\n\n{GENERATED}\n\n{INTRODUCTION}\n\n| on the request, first to last | what it does | on the answer, \
         first to last | what it does |\n|---|---|---|---|\n"
    );
    let cells = |half: Option<&(&str, &str)>| {
        half.map_or_else(|| "| |".to_owned(), |(kind, does)| format!("| [`{kind}`]({kind}.md) | {does} "))
    };
    for row in 0..ON_REQUESTS.len().max(ON_ANSWERS.len()) {
        let _ = writeln!(out, "{}{}|", cells(ON_REQUESTS.get(row)), cells(ON_ANSWERS.get(row)));
    }
    let _ = writeln!(out, "\n{ABOUT}");
    out
}

impl Page {
    fn render(&self) -> String {
        let (kind, what, when) = (self.kind, self.what, self.when);
        let mut out = format!(
            "# `{kind}`\n\n{GENERATED}\n\n{what}\n\n## When\n\n{when}\n\n```yaml\n{}\n```\n\n## Parameters\n\n\
             | key under `configuration` | meaning | default |\n|---|---|---|\n",
            self.example
        );
        for Key { path, meaning, default } in self.keys {
            let mark = if path.contains('`') { "" } else { "`" };
            let _ = writeln!(out, "| {mark}{path}{mark} | {meaning} | {default} |");
        }
        for text in [self.beside, self.about].into_iter().filter(|text| !text.is_empty()) {
            let _ = write!(out, "\n{text}\n");
        }
        for (heading, text) in
            [("Cost", self.cost), ("When it fails", self.fails_when), ("Source", self.source)]
        {
            let _ = write!(out, "\n## {heading}\n\n{text}\n");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::at_work;
    use crate::turns::{self, AnswerTurn, RequestTurn};
    use chorus_spec::{Plugin, Severity};
    use std::collections::BTreeSet;
    use std::path::Path;

    const CONTRACT: &str = include_str!("../../../chorus-spec/src/read/contract.txt");

    /// The plugin that an example of a page configures.
    fn configured(page: &Page, example: &str) -> Result<Plugin, String> {
        let plugins: String = example.lines().map(|line| format!("      {line}\n")).collect();
        let file = format!(
            "version: v0.3\nproviders:\n  defaults: {{ default_model: m }}\n  models:\n    - name: m\n      \
             backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}]\nrouting:\n  modelCards: [{{ name: m }}]\n  decisions:\n    \
             - name: d\n      modelRefs: [{{ model: m }}]\n{plugins}\
             global:\n  stores:\n    vector_store: {{ enabled: true }}\n    memory: {{ enabled: true }}\n"
        );
        let checked = chorus_spec::read(&file);
        let wrong: Vec<_> = checked.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
        if !wrong.is_empty() {
            return Err(format!("{}: {wrong:#?}\n{file}", page.kind));
        }
        let spec = checked.spec.ok_or("no configuration")?;
        let plugins = &spec.recipes[0].decisions[0].plugins;
        plugins.iter().find(|it| it.kind() == page.kind).cloned().ok_or_else(|| format!("no {}", page.kind))
    }

    #[test]
    fn the_pages_are_up_to_date() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for (path, text) in files() {
            let written = std::fs::read_to_string(docs.join(&path)).unwrap_or_default();
            assert!(written == text, "docs/{path} is not up to date: run `cargo xtask docs`");
        }
        for file in std::fs::read_dir(docs.join("plugins")).unwrap() {
            let path = format!("plugins/{}", file.unwrap().file_name().to_string_lossy());
            assert!(files().iter().any(|(known, _)| *known == path), "docs/{path} is of no plugin");
        }
    }

    #[test]
    fn every_plugin_of_the_contract_has_a_page_with_every_part() {
        let known: BTreeSet<&str> =
            CONTRACT.lines().filter_map(|line| line.strip_prefix("plugin_")?.split(':').next()).collect();
        assert_eq!(PAGES.iter().map(|page| page.kind).collect::<BTreeSet<_>>(), known);
        for page in PAGES {
            for part in [page.what, page.when, page.example, page.cost, page.fails_when, page.source] {
                assert!(!part.trim().is_empty(), "{}", page.kind);
            }
            assert!(!page.keys.is_empty(), "{}", page.kind);
        }
    }

    #[test]
    fn every_example_loads() {
        for page in PAGES {
            if let Err(wrong) = configured(page, page.example) {
                panic!("{wrong}");
            }
        }
    }

    /// The page's example with one more key; nothing where the example has it already.
    fn with_key(page: &Page, path: &str, value: &str) -> Option<String> {
        let first = path.split('.').next()?;
        if page.example.contains(&format!("{first}:")) {
            return None;
        }
        let written = path.rsplit('.').fold(value.to_owned(), |inner, key| {
            if inner == value { format!("{key}: {inner}") } else { format!("{key}: {{ {inner} }}") }
        });
        Some(match page.example.strip_suffix(" }").filter(|it| it.contains("configuration: {")) {
            Some(open) => format!("{open}, {written} }}"),
            None => format!("{}\n      {written}", page.example),
        })
    }

    #[test]
    fn a_default_in_code_marks_is_what_leaving_the_key_out_means() {
        let mut compared = 0;
        for page in PAGES {
            let without = format!("{:?}", configured(page, page.example).unwrap());
            let exact = |key: &&Key| !key.path.contains('`') && key.default.starts_with('`');
            for key in page.keys.iter().filter(exact) {
                let Some(example) = with_key(page, key.path, key.default.trim_matches('`')) else { continue };
                let with = configured(page, &example).unwrap_or_else(|wrong| panic!("{wrong}"));
                assert_eq!(format!("{with:?}"), without, "{}: {}", page.kind, key.path);
                compared += 1;
            }
        }
        assert!(compared >= 20, "only {compared} defaults were compared");
    }

    #[test]
    fn the_tables_stand_in_the_order_of_turns() {
        let of = |kind: &str| {
            let page = PAGES.iter().find(|page| page.kind == kind).unwrap();
            configured(page, page.example).unwrap()
        };
        let plugins: Vec<Plugin> = PAGES.iter().map(|page| of(page.kind)).collect();
        let turns =
            |kind: &&(&str, &str)| turns::of(plugins.iter().find(|it| it.kind() == kind.0).unwrap(), &[]);
        let looks: Vec<_> =
            ON_REQUESTS.iter().map(|it| turns(&it).0).filter(|it| *it != RequestTurn::None).collect();
        assert!(looks.len() == 6 && looks.is_sorted(), "{looks:?}");
        let sees: Vec<_> = ON_ANSWERS.iter().map(|it| turns(&it).1).collect();
        assert!(sees.len() == ON_ANSWERS.len() && sees.is_sorted(), "{sees:?}");
        for plugin in &plugins {
            let has_turn = turns::of(plugin, &[]) != (RequestTurn::None, AnswerTurn::None);
            assert_eq!(at_work(plugin, &[]).is_some(), has_turn, "{}", plugin.kind());
        }
    }
}
