//! What a looper can be told: its keys with defaults, accepted words and a sentence each, for the pages of loopers.
//!
//! Keys are those of the contract's table, words those that the readers accept, defaults those of the settings; only the
//! sentences stand here. **Invariant:** a key that is read has a row, and a row is of a key that is read.

use super::loopers::{AGGREGATES, DISTRIBUTIONS, FILTERS, METHODS, ORDERS, RATERS};
use super::measures::ON_ERROR;
use super::{algorithms, contract, workflows};
use crate::{
    ConfidenceSettings, FusionPreset, FusionSettings, LooperKind, OnError, PollSettings, RatingsSettings,
    RemomSettings, WorkflowSettings,
};
use std::fmt::{Display, Write as _};

/// A key's default, and what it says.
type Row = (String, String);

/// What a looper's reader says of a key.
type Says = fn(&str) -> Option<Row>;

/// The loopers that have a page, in the order of their pages, with the contract's name of their settings.
const LOOPERS: [(LooperKind, &str, Says); 6] = [
    (LooperKind::Confidence, "Confidence", confidence),
    (LooperKind::Fusion, "Fusion", fusion),
    (LooperKind::Poll, "Poll", poll),
    (LooperKind::Ratings, "Ratings", ratings),
    (LooperKind::ReMoM, "Remom", remom),
    (LooperKind::Workflows, "Workflows", workflow),
];

/// The loopers that have a page.
#[must_use]
pub fn documented_loopers() -> Vec<LooperKind> {
    LOOPERS.iter().map(|(kind, ..)| *kind).collect()
}

/// A looper's parameters as a table in Markdown; empty for one without a page.
#[must_use]
pub fn looper_parameters(looper: LooperKind) -> String {
    let Some((_, shape, row)) = LOOPERS.iter().find(|(kind, ..)| *kind == looper) else {
        return String::new();
    };
    let mut table = "| key | default | says |\n|---|---|---|\n".to_owned();
    for key in contract::read_keys(shape) {
        let (default, says) = row(key).or_else(|| shared(key)).unwrap_or_default();
        let _ = writeln!(table, "| `{key}` | {default} | {says} |");
    }
    table
}

/// Keys that mean the same in every looper that has them.
fn shared(key: &str) -> Option<Row> {
    let none = |says: &str| said("none", says);
    Some(match key {
        "max_concurrent" => said("all", "most calls at once; 0 is all"),
        "max_completion_tokens" => {
            none("cap of each inner call, in tokens; the client's own cap holds for the answer")
        }
        "round_timeout_seconds" => none("how long a round may take; what is there when it ends counts"),
        "min_successful_responses" => none(
            "usable answers that end a round and without which it fails; absent: all are waited for, and one suffices",
        ),
        "include_intermediate_responses" => said("`true`", "whether the client sees the members' answers"),
        "budget" => none("what the request may spend, see [budgets](../budgets.md)"),
        _ => return None,
    })
}

fn confidence(key: &str) -> Option<Row> {
    let it = ConfidenceSettings::default();
    Some(match key {
        "confidence_method" => chosen(&METHODS, &it.method, "how answers are measured"),
        "threshold" => {
            said("the method's", "an answer is accepted from here on, 0 to 1; 0 accepts every measured one")
        }
        "threshold_kind" => said(
            "none",
            "the method that the threshold was found for; another `confidence_method` is then refused",
        ),
        "hopeless_threshold" => said("none", "below it nobody else is asked; below `threshold`"),
        "hybrid_weights" => {
            let (logprob, margin) = it.hybrid_weights;
            said(
                &format!("{logprob} and {margin}"),
                "`logprob_weight` and `margin_weight` of `hybrid`, 1 together",
            )
        }
        "escalation_order" => chosen(
            &ORDERS,
            &it.order,
            "who is asked first; what is unknown of a candidate counts as the largest",
        ),
        "cost_quality_tradeoff" => {
            value(it.cost_quality_tradeoff, "weight of cost against quality in the `automix` order, 0 to 1")
        }
        "token_filter" => {
            chosen(&FILTERS, &it.token_filter, "which tokens count; all where there is no tool call")
        }
        "samples" => {
            value(it.samples, "answers under `agreement`, verdicts under `automix_entailment`, 2 to 32")
        }
        "quantile" => value(it.quantile, "which one, under `quantile_logprob`, 0 to 1"),
        "verifier_server_url" => said(
            "none",
            "an AutoMix server for `automix_entailment`, asked at `/verify`; absent: the model itself checks",
        ),
        "verifier_timeout_seconds" => value(it.verifier_timeout.as_secs(), "how long one check may take"),
        "scorer" => said("none", "the file of the trained rule of `learned`, which must name it, see below"),
        "on_error" => on_error(it.on_error, "tries the next candidate"),
        _ => return None,
    })
}

fn ratings(key: &str) -> Option<Row> {
    let it = RatingsSettings::default();
    Some(match key {
        "raters" => chosen(&RATERS, &it.raters, "who rates the answers"),
        "aggregate" => chosen(
            &AGGREGATES,
            &it.aggregate,
            "how ratings become an answer; `best` needs somebody who rates",
        ),
        "judge" => {
            said("the first candidate", "who judges under `raters: judge`; best one that is no candidate")
        }
        "rubric" => said("built in", "what the judge looks at"),
        "verifier_server_url" => {
            said("none", "an AutoMix server for `raters: verifier`, asked at `/verify` for each answer")
        }
        "verifier_timeout_seconds" => value(it.verifier_timeout.as_secs(), "how long one check may take"),
        "scorer" => said("none", "the file of the trained rule of `raters: scorer`, as of confidence"),
        "round_timeout_seconds" => said("none", "how long the answers may take, and then their review"),
        "on_error" => on_error(it.on_error, "goes on with the usable answers"),
        _ => return None,
    })
}

fn remom(key: &str) -> Option<Row> {
    let it = RemomSettings::default();
    Some(match key {
        "breadth_schedule" => {
            let rounds = format!("`{:?}`", it.breadth_schedule);
            said(&rounds, "seats of each round, before the last round of one; at most 256 calls in all")
        }
        "model_distribution" => {
            chosen(&DISTRIBUTIONS, &it.distribution, "who sits on how many seats of a round")
        }
        "temperature" => value(it.temperature, "of the rounds, 0 to 2; the last call keeps the client's"),
        "include_reasoning" => {
            value(it.include_reasoning, "whether references show the reasoning before the answer")
        }
        "compaction_strategy" => {
            said("`full`", "`full` or `last_n_tokens`: whether references are shown whole or from their end")
        }
        "compaction_tokens" => {
            said("1000", "tokens kept of each reference under `last_n_tokens`, by estimate")
        }
        "synthesis_template" => said(
            "built in",
            "own prompt of rounds with references: `{{references}}`, `{{original}}`, `{{key}}`",
        ),
        "synthesis_model" => said("the first candidate", "who writes the last answer; one of the candidates"),
        "max_completion_tokens" => {
            said("none", "cap of each call of a round, in tokens; the last one keeps the client's own cap")
        }
        "round_timeout_seconds" => said(
            "none",
            "how long a round may take; what is there when it ends counts, and a stream that has begun is not cut",
        ),
        "shuffle_seed" => {
            value(it.shuffle_seed, "equal seeds give equal seats and equal orders, on every machine")
        }
        "max_responses_per_round" => {
            said("all", "references that the next round is shown, after the shuffle")
        }
        "stop_when_certain" => {
            said("none", "ends a round once its leading answer stays ahead with this probability, 0.5 to 1")
        }
        "include_intermediate_responses" => {
            value(it.include_intermediate_responses, "whether the body has `reasoning_mom_responses`")
        }
        "on_error" => on_error(it.on_error, "goes on with the usable answers"),
        _ => return None,
    })
}

fn fusion(key: &str) -> Option<Row> {
    let it = FusionSettings::default();
    Some(match key {
        "model" => said("the first member with a usable answer", "who judges and writes"),
        "analysis_models" => {
            said("the candidates", "the panel, 1 to 26 seats; a name may stand several times")
        }
        "analysis_overrides" => said(
            "none",
            "`model`, `temperature`, `max_completion_tokens` of a seat; several of one model in the order of its seats",
        ),
        "round_timeout_seconds" => said("none", "how long the panel may take, and then the judge"),
        "temperature" => said("the client's", "of the panel, 0 to 2"),
        "include_analysis" => value(it.include_analysis, "whether the client sees the judge's analysis"),
        "on_error" => on_error(it.on_error, "goes on with what there is"),
        "analysis_template" => said("built in", "own prompt of the judge: `{{original}}`, `{{responses}}`"),
        "synthesis_template" => {
            said("built in", "own prompt of the writer: `{{original}}`, `{{responses}}`, `{{analysis}}`")
        }
        "judge_prompt_version" => {
            said(&format!("`{}`", it.judge_prompt_version), "version of the built-in prompts")
        }
        "single_answer_passthrough" => value(
            it.single_answer_passthrough,
            "whether one usable answer is given as it is, without judge and writer",
        ),
        "grounding" => said(
            "off",
            "whether answers are held against the context or each other before they count, see below",
        ),
        "preset" => {
            let words: Vec<String> =
                FusionPreset::WORDS.iter().map(|(word, _)| format!("`{word}`")).collect();
            let says = "seats a panel and a judge from the candidates' cards where no panel is named";
            said("none", &format!("{says}: {}", words.join(", ")))
        }
        "panel_cadence" => chosen(
            &algorithms::CADENCES,
            &it.cadence,
            "how often the panel is asked where tools make several turns of one question",
        ),
        _ => return None,
    })
}

fn workflow(key: &str) -> Option<Row> {
    let it = WorkflowSettings::default();
    Some(match key {
        "mode" => {
            chosen(&workflows::MODES, &it.mode, "whether the steps stand in the file or a model plans them")
        }
        "template" => said(&format!("`{}`", it.template), "a name for the trace"),
        "roles" => said(
            "none",
            "steps of a static plan: `name`, `models` (all candidates when empty), `prompt`, `access_list`",
        ),
        "final" => said(
            "the planner, else the first candidate",
            "`model` and `prompt`: who writes, and what to mind; a planner's plan may say otherwise",
        ),
        "planner" => {
            let default = format!("the first candidate, {}", it.planner_max_completion_tokens);
            said(&default, "`model` and `max_completion_tokens`: who plans, and the cap of a plan")
        }
        "max_steps" => value(it.max_steps, "most steps of a planner's plan, 1 to 32"),
        "max_parallel" => value(
            it.max_parallel,
            "most workers of a planner's step, and most calls at once in any step, 1 to 32",
        ),
        "max_completion_tokens" => {
            said("none", "cap of each worker's answer, in tokens; the writer keeps the client's")
        }
        "round_timeout_seconds" => {
            said("none", "of a step; of each call where workers go one after the other")
        }
        "min_successful_responses" => said(
            "none",
            "usable answers that end a step and without which it fails; absent: all are waited for, and one suffices",
        ),
        "temperature" => said("the client's", "of the workers, 0 to 2"),
        "include_intermediate_responses" => {
            value(it.include_intermediate_responses, "whether `flow` has the workers' answers")
        }
        "on_error" => on_error(it.on_error, "goes on without, see below"),
        _ => return None,
    })
}

fn poll(key: &str) -> Option<Row> {
    let it = PollSettings::default();
    Some(match key {
        "alternatives" => value(it.alternatives, "possible answers of a question, about; at least 2"),
        "steps" => said(
            "all candidates at once",
            "who is asked when: `models`, `weights`, `accept`, `hopeless`, see below",
        ),
        "step_timeout_seconds" => said("none", "how long each call may take"),
        "on_error" => on_error(it.on_error, "counts the usable answers"),
        _ => return None,
    })
}

fn said(default: &str, says: &str) -> Row {
    (default.to_owned(), says.to_owned())
}

fn value(default: impl Display, says: &str) -> Row {
    (format!("`{default}`"), says.to_owned())
}

/// A key with a closed set of words; of two words for one thing the first is the default's.
fn chosen<T: PartialEq>(words: &[(&str, T)], default: &T, says: &str) -> Row {
    let word = words.iter().find(|(_, it)| it == default).map_or("", |(word, _)| *word);
    let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
    (format!("`{word}`"), format!("{says}: {}", all.join(", ")))
}

fn on_error(default: OnError, skip: &str) -> Row {
    let (word, says) = chosen(&ON_ERROR, &default, "what a failure does");
    (word, format!("{says}; `skip` {skip}, `fail` ends the request"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_is_read_has_its_row() {
        for (_, shape, row) in LOOPERS {
            for key in contract::read_keys(shape) {
                let says = row(key).or_else(|| shared(key)).unwrap_or_default().1;
                assert!(!says.is_empty(), "{shape}: nothing is said of `{key}`");
                assert!(!says.contains(['|', '\n']), "{shape}.{key} breaks its table");
            }
        }
    }

    #[test]
    fn words_and_defaults_are_the_readers() {
        let table = looper_parameters(LooperKind::Confidence);
        assert!(table.contains("| `confidence_method` | `avg_logprob` |"), "{table}");
        assert!(METHODS.iter().all(|(word, _)| table.contains(&format!("`{word}`"))));
        assert!(looper_parameters(LooperKind::ReMoM).contains("| `breadth_schedule` | `[4]` |"));
    }
}
