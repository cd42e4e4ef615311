//! `chorus policy verify DIR`: whether recipes that others wrote in both forms say the same here.
//!
//! Each folder below `DIR` that holds `config.yaml` and `recipe.dsl` is one recipe. It knows these two names alone.

use crate::policy_file::{Text, tell};
use crate::terminal::{say, table};
use anyhow::bail;
use chorus_spec::{Document, dsl};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// What came of one recipe.
struct Outcome {
    name: String,
    /// One line for each thing that is not as it should be.
    faults: Vec<String>,
    /// Keys that the policy leaves to its base.
    kept: Vec<String>,
    lines: usize,
    compile_ms: f64,
    read_ms: f64,
}

/// Prints a table; status 1 when any recipe falls short.
pub(super) fn run(folder: &Path) -> anyhow::Result<ExitCode> {
    let recipes = recipes(folder);
    if recipes.is_empty() {
        bail!(
            "no recipes: {} holds no folder with a config.yaml and a recipe.dsl (the data is not part of this repository)",
            folder.display()
        );
    }
    let outcomes: Vec<Outcome> = recipes.iter().map(|path| verify(path)).collect::<Result<_, _>>()?;
    let head =
        ["recipe", "lines", "compiles to config.yaml", "decompile, fmt", "compile", "compile and check"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(outcomes.iter().map(|it| {
        let of =
            |word: &str| if it.faults.iter().any(|fault| fault.starts_with(word)) { "no" } else { "yes" };
        let round = if of("decompile") == "yes" && of("fmt") == "yes" { "yes" } else { "no" };
        let (compile, read) = (format!("{:.1} ms", it.compile_ms), format!("{:.1} ms", it.read_ms));
        [it.name.clone(), it.lines.to_string(), of("compile").to_owned(), round.to_owned(), compile, read]
    }));
    say(&table(&rows));
    for it in &outcomes {
        it.faults.iter().for_each(|fault| say(&format!("{}: {fault}", it.name)));
        if !it.kept.is_empty() {
            say(&format!("{}: left to the base by recipe.dsl: {}", it.name, it.kept.join(", ")));
        }
    }
    let good = outcomes.iter().all(|it| it.faults.is_empty());
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn recipes(folder: &Path) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| path.join("config.yaml").exists() && path.join("recipe.dsl").exists();
    let below = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = below.filter(holds).collect();
    all.sort();
    all
}

fn verify(path: &Path) -> anyhow::Result<Outcome> {
    let policy = Text::read(&path.join("recipe.dsl"))?;
    let config = Text::read(&path.join("config.yaml"))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Ok(base) = Document::parse(&config.text) else {
        bail!("{} is not YAML", config.name);
    };
    let started = Instant::now();
    let compiled = dsl::compile(&policy.text);
    let compile_ms = started.elapsed().as_secs_f64() * 1e3;
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(faults) => {
            tell(&policy, &faults);
            bail!("{} does not compile: see above", policy.name);
        }
    };
    let started = Instant::now();
    let reading = dsl::read(&policy.text, Some(&config.text));
    let read_ms = started.elapsed().as_secs_f64() * 1e3;

    let differences = |what: &str, left: &Document| {
        let found = dsl::differences(left, &base).into_iter();
        let shown = |side: Option<String>| side.unwrap_or_else(|| "nothing".to_owned());
        found
            .map(|it| format!("{what}: {} is {}, not {}", it.path, shown(it.left), shown(it.right)))
            .collect()
    };
    let mut faults: Vec<String> = differences("compile", &dsl::lay_over(&compiled, &base));
    if reading.has_errors() {
        faults.push("compile: the reader finds errors; see `chorus policy check`".to_owned());
    }
    let back = dsl::decompile(&base);
    faults.extend(back.left_out.iter().map(|key| format!("decompile: {key} is left out")));
    match dsl::compile(&back.text) {
        Ok(again) => faults.extend::<Vec<String>>(differences("decompile", &again)),
        Err(_) => faults.push("decompile: the policy does not compile".to_owned()),
    }
    faults.extend([&policy.text, &back.text].into_iter().filter_map(|text| fmt_fault(text)));
    let kept = dsl::differences(&compiled, &base).into_iter().map(|it| it.path).collect();
    Ok(Outcome { name, faults, kept, lines: policy.text.lines().count(), compile_ms, read_ms })
}

/// What is wrong with the print of a policy: printed again it changes, or it means something else.
fn fmt_fault(text: &str) -> Option<String> {
    let once = dsl::format(text).ok()?;
    let is_stable = dsl::format(&once).is_ok_and(|twice| twice == once);
    let meaning = |text: &str| dsl::compile(text).map(|document| document.to_yaml()).ok();
    let is_same = meaning(&once) == meaning(text);
    (!(is_stable && is_same))
        .then(|| "fmt: the print changes when it is printed again, or what it means".to_owned())
}
