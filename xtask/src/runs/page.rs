//! One page: what ten questions came to, alone and together, and every run with its members' answers.

use super::asking::Run;
use super::question::Question;
use super::{Team, members};
use crate::markdown::{items, number, quote, text};
use anyhow::Context;
use serde_json::Value;
use std::fmt::Write;

/// Longest answer that is quoted, in characters.
const LONGEST: usize = 700;

/// A question with both its runs.
struct Pair<'a> {
    number: usize,
    question: &'a Question,
    alone: &'a Run,
    together: &'a Run,
}

impl Pair<'_> {
    fn is_right(&self, run: &Run) -> bool {
        self.question.chosen(run.answer()) == Some(self.question.right)
    }

    fn chosen(&self, run: &Run) -> String {
        let letter = self.question.chosen(run.answer());
        let mark = if self.is_right(run) { "✓" } else { "✗" };
        format!("{} {mark}", letter.map_or_else(|| "none".to_owned(), |letter| letter.to_string()))
    }
}

/// The page.
pub(super) fn written(
    team: &Team,
    questions: &[Question],
    alone: &[Run],
    together: &[Run],
) -> anyhow::Result<String> {
    let pairs: Vec<Pair<'_>> = (1..)
        .zip(questions)
        .zip(alone.iter().zip(together))
        .map(|((number, question), (alone, together))| Pair { number, question, alone, together })
        .collect();
    let mut page = String::new();
    writeln!(page, "# {} questions to {}\n", pairs.len(), team.name)?;
    writeln!(
        page,
        "Written by `cargo xtask looper-runs {}` from replies that were kept of real runs of\n[examples/local-team.yaml](../../../examples/local-team.yaml) \
         with small models in this process. So few questions show\nhow a run goes; they measure nothing: for figures see \
         [replay](../../replay.md).\n\n{}\nBeside it, `{}` alone.\n",
        team.name, team.setting, team.strongest
    )?;
    table(&pairs, &mut page)?;
    verdict(&pairs, &mut page)?;
    for pair in &pairs {
        one(pair, &mut page)?;
    }
    Ok(page)
}

fn table(pairs: &[Pair<'_>], page: &mut String) -> anyhow::Result<()> {
    writeln!(page, "| | question | right | alone | together | calls | tokens, alone | tokens, together |")?;
    writeln!(page, "|---:|---|---|---|---|---:|---:|---:|")?;
    for pair in pairs {
        let (number_of, question) = (pair.number, pair.question);
        writeln!(
            page,
            "| {number_of} | {} | {} | {} | {} | {} | {} | {} |",
            question.ask,
            question.right,
            pair.chosen(pair.alone),
            pair.chosen(pair.together),
            items(&pair.together.record, "calls").count(),
            number(&pair.alone.record, "/usage/total_tokens"),
            number(&pair.together.record, "/usage/total_tokens"),
        )?;
    }
    writeln!(page)?;
    Ok(())
}

/// What the table comes to, and where working together was no help.
fn verdict(pairs: &[Pair<'_>], page: &mut String) -> anyhow::Result<()> {
    let right = |of: &dyn Fn(&Pair<'_>) -> bool| pairs.iter().filter(|pair| of(pair)).count();
    let list = |of: &dyn Fn(&Pair<'_>) -> bool| {
        let numbers = pairs.iter().filter(|pair| of(pair)).map(|pair| pair.number.to_string());
        let numbers: Vec<String> = numbers.collect();
        if numbers.is_empty() { "none".to_owned() } else { numbers.join(", ") }
    };
    let total = |pointer: &str, of: &dyn for<'p> Fn(&'p Pair<'_>) -> &'p Run| {
        pairs.iter().map(|pair| number(&of(pair).record, pointer)).sum::<u64>()
    };
    let times = |pointer: &str| {
        total(pointer, &|pair| pair.together) as f64 / total(pointer, &|pair| pair.alone).max(1) as f64
    };
    let (alone, together) =
        (|pair: &Pair<'_>| pair.is_right(pair.alone), |pair: &Pair<'_>| pair.is_right(pair.together));
    let count = pairs.len();
    writeln!(
        page,
        "- Right alone: {} of {count}; right together: {} of {count}.",
        right(&alone),
        right(&together)
    )?;
    writeln!(page, "- Working together helped on: {}.", list(&|pair| together(pair) && !alone(pair)))?;
    writeln!(
        page,
        "- **It did harm** (alone right, together wrong) on: {}.",
        list(&|pair| alone(pair) && !together(pair))
    )?;
    writeln!(
        page,
        "- It did not help (wrong both ways) on: {}.",
        list(&|pair| !alone(pair) && !together(pair))
    )?;
    writeln!(
        page,
        "- It took {:.1} times the tokens and {:.1} times the time of the model alone, on a machine with other work.\n",
        times("/usage/total_tokens"),
        times("/duration_ms")
    )?;
    Ok(())
}

fn one(pair: &Pair<'_>, page: &mut String) -> anyhow::Result<()> {
    writeln!(page, "## {}. {}\n", pair.number, pair.question.ask)?;
    let options: Vec<String> =
        pair.question.choices().map(|(letter, option)| format!("{letter}) {option}")).collect();
    writeln!(page, "{}. Right: {}.\n", options.join(", "), pair.question.right)?;
    for said in members::said(pair.together) {
        let remark = if said.remark.is_empty() { String::new() } else { format!(" ({})", said.remark) };
        match said.text {
            "" => writeln!(page, "- {}{remark}\n", said.who)?,
            text => writeln!(page, "{}{remark}:\n\n{}\n", said.who, quote(&short(text)))?,
        }
    }
    if let Some(analysis) = pair.together.reply.pointer("/fusion/analysis") {
        let told = serde_json::to_string(analysis).context("an analysis that cannot be written")?;
        writeln!(page, "The judge: `{}`\n", short(&told).replace('`', "'"))?;
    }
    writeln!(
        page,
        "**Together** ({}):\n\n{}\n",
        pair.chosen(pair.together),
        quote(&short(pair.together.answer()))
    )?;
    writeln!(page, "**Alone** ({}):\n\n{}\n", pair.chosen(pair.alone), quote(&short(pair.alone.answer())))?;
    let calls = items(&pair.together.record, "calls").map(call);
    writeln!(page, "Calls: {}.\n", calls.collect::<Vec<_>>().join("; "))?;
    Ok(())
}

fn call(call: &Value) -> String {
    let (prompt, completion) =
        (number(call, "/usage/prompt_tokens"), number(call, "/usage/completion_tokens"));
    let status = Some(text(call, "status")).filter(|status| *status != "ok");
    let status = status.map(|status| format!(", {status}")).unwrap_or_default();
    format!("{} `{}` {prompt} + {completion} tokens{status}", text(call, "role"), text(call, "model"))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{} […]", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(answer: &str, tokens: u64) -> Run {
        let call = json!({"role": "panel", "model": "m", "status": "ok", "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
        Run {
            reply: json!({
                "choices": [{"message": {"content": answer}}],
                "fusion": {"responses": [{"model": "m", "content": "ANSWER: B"}]},
            }),
            record: json!({"calls": [call], "usage": {"total_tokens": tokens}, "duration_ms": 10}),
        }
    }

    #[test]
    fn a_page_says_where_working_together_did_harm() {
        let question = |ask: &str| Question {
            ask: ask.to_owned(),
            options: vec!["one".to_owned(), "two".to_owned()],
            right: 'A',
        };
        let team = Team { name: "fusion", strongest: "m", setting: "Two answer." };
        let questions = [question("First?"), question("Second?")];
        let alone = [run("ANSWER: A", 10), run("ANSWER: B", 10)];
        let together = [run("ANSWER: B", 40), run("ANSWER: A", 40)];
        let page = written(&team, &questions, &alone, &together).unwrap();
        for line in [
            "- Right alone: 1 of 2; right together: 1 of 2.",
            "- Working together helped on: 2.",
            "- **It did harm** (alone right, together wrong) on: 1.",
            "- It did not help (wrong both ways) on: none.",
            "- It took 4.0 times the tokens and 1.0 times the time of the model alone",
            "| 1 | First? | A | A ✓ | B ✗ | 1 | 10 | 40 |",
            "Calls: panel `m` 1 + 2 tokens.",
        ] {
            assert!(page.contains(line), "{line}\n{page}");
        }
    }
}
