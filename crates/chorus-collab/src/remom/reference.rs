//! The answers of a round, as the next one sees them: without names, in an order that tells nothing, and compacted.

use super::plan::RemomPlan;
use super::shuffle::{Purpose, Random};
use crate::answers::Survivor;
use chorus_wire::tokens;

/// The texts of the references, for the round with that index.
///
/// Sorted by length before the shuffle, so that the order does not depend on which answer came first.
pub(super) fn texts(plan: &RemomPlan, answers: &[Survivor], round: usize) -> Vec<String> {
    let mut texts: Vec<String> = answers.iter().map(|answer| compacted(plan, answer)).collect();
    texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    Random::new(plan.shuffle_seed, Purpose::References, round).shuffle(&mut texts);
    texts.truncate(plan.max_responses_per_round.unwrap_or(usize::MAX));
    texts
}

/// What is shown of one answer.
pub(super) fn compacted(plan: &RemomPlan, answer: &Survivor) -> String {
    let text = match &answer.reasoning {
        Some(reasoning) if plan.include_reasoning => format!("{reasoning}\n\n{}", answer.text),
        _ => answer.text.clone(),
    };
    match plan.compaction_tokens {
        Some(kept) => last_tokens(&text, kept as u64).to_owned(),
        None => text,
    }
}

/// The longest end of a text that is estimated at no more than that many tokens.
fn last_tokens(text: &str, kept: u64) -> &str {
    if tokens::of_text(text) <= kept {
        return text;
    }
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let first =
        starts.partition_point(|start| tokens::of_text(text.get(*start..).unwrap_or_default()) > kept);
    starts.get(first).and_then(|start| text.get(*start..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_end_is_kept() {
        assert_eq!(last_tokens("short", 10), "short");
        assert_eq!(last_tokens("aaaabbbbcccc", 2), "bbbbcccc");
        assert_eq!(last_tokens("aaaa", 0), "");
    }

    proptest! {
        #[test]
        fn g20_compaction_keeps_within_its_tokens(text in "(?s).{0,80}", kept in 0_u64..30) {
            let end = last_tokens(&text, kept);
            prop_assert!(tokens::of_text(end) <= kept && text.ends_with(end));
        }
    }
}
