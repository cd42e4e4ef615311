//! The known word that a misspelt one most likely meant.

/// Fewest edits that are forgiven in any word.
const FORGIVEN_EDITS: usize = 2;
/// How many names a list in a message shows.
const SHOWN_NAMES: usize = 8;

/// The nearest of `known`, if it is near enough to be a slip; case, `_`, `-` and spaces do not count.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &fold(candidate)), candidate))
        .min()
        .filter(|(distance, candidate)| {
            *distance <= FORGIVEN_EDITS.max(candidate.len() / 3) && *distance < folded.len()
        })
        .map(|(_, candidate)| candidate)
}

fn fold(word: &str) -> String {
    word.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// "did you mean …" when one is near, else the list of what there is.
pub(crate) fn suggest(word: &str, known: &[&str], none: &str) -> Option<String> {
    if let Some(near) = nearest(word, known.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    if known.is_empty() {
        return Some(none.to_owned());
    }
    let shown: Vec<String> = known.iter().take(SHOWN_NAMES).map(|name| format!("`{name}`")).collect();
    let more = if known.len() > SHOWN_NAMES { ", …" } else { "" };
    Some(format!("there is {}{more}", shown.join(", ")))
}
