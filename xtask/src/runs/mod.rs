//! `cargo xtask looper-runs`: puts ten questions with known answers to each looper of
//! `examples/local-team.yaml` and to its strongest member alone, and writes what came back as `docs/loopers/runs`.
//!
//! Replies and records are kept below `target/looper-runs`, so that a page can be written again without asking again;
//! delete them to ask anew. **Invariant:** no figure and no verdict on a page is written by hand.

mod asking;
mod members;
mod page;
mod question;

use crate::say;
use anyhow::Context;
use std::path::Path;

/// A looper of the example, and what its page says about it.
struct Team {
    name: &'static str,
    /// Its strongest member, which is asked alone beside it.
    strongest: &'static str,
    /// Who works and how, in one sentence.
    setting: &'static str,
}

const MIDDLE: &str = "qwen2.5-coder-0.5b";
const LARGE: &str = "qwen2.5-coder-1.5b";

const TEAMS: [Team; 6] = [
    Team {
        name: "confidence",
        strongest: LARGE,
        setting: "SmolLM2 135M answers first, then Qwen2.5-Coder 0.5B, then 1.5B; an answer counts from tokens of 74% on \
                  average.",
    },
    Team {
        name: "ratings",
        strongest: LARGE,
        setting: "Qwen2.5-Coder 0.5B and 1.5B answer, SmolLM2 135M judges, and the better-rated answer is given.",
    },
    Team {
        name: "remom",
        strongest: MIDDLE,
        setting: "Three seats of SmolLM2 135M and Qwen2.5-Coder 0.5B answer; 0.5B writes with their answers at hand.",
    },
    Team {
        name: "fusion",
        strongest: MIDDLE,
        setting: "SmolLM2 135M and Qwen2.5-Coder 0.5B answer; 0.5B judges, then writes.",
    },
    Team {
        name: "workflows",
        strongest: MIDDLE,
        setting: "SmolLM2 135M solves, Qwen2.5-Coder 0.5B checks the solution, and writes.",
    },
    Team {
        name: "poll",
        strongest: LARGE,
        setting: "SmolLM2 135M and Qwen2.5-Coder 0.5B vote; where they disagree, 1.5B is asked.",
    },
];

/// Asks what was not asked yet, and writes the pages of those loopers, or of all. With `--kept` nothing is asked: a page
/// has the questions that were.
pub(crate) fn run(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    let folder = root.join("docs/loopers/runs");
    let questions = question::read(&folder.join("questions.json"))?;
    let only_kept = words.contains(&"--kept");
    let asked = |name: &str, model: &str| match only_kept {
        true => asking::kept(root, name, &questions),
        false => asking::all(root, name, model, &questions),
    };
    let named = |team: &&Team| words.iter().all(|word| *word == "--kept") || words.contains(&team.name);
    for team in TEAMS.iter().filter(named) {
        let alone = asked(team.strongest, team.strongest)?;
        let together = asked(team.name, &format!("team/{}", team.name))?;
        if together.is_empty() {
            say(&format!("{}: nothing is kept", team.name));
            continue;
        }
        let path = folder.join(format!("{}.md", team.name));
        let text = page::written(team, &questions, &alone, &together)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        say(&format!("docs/loopers/runs/{}.md is written", team.name));
    }
    Ok(())
}
