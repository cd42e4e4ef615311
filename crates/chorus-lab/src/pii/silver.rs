//! Labels that lists alone can give, where every capital word leaves no doubt.
//!
//! It knows the lists. Source: Mintz et al. 2009, "Distant supervision for relation extraction without labeled data", for
//! the idea. **Invariant:** a text with one doubtful word gets no labels at all.

use std::ops::Range;

use chorus_signals::pii::names::{Label, ListHint, Token, tokens};

use super::templates::Made;

/// The text with its names; none when a word is in doubt.
pub(super) fn label(text: String) -> Option<Made> {
    let cut = tokens(&text);
    let mut names: Vec<(Label, Range<usize>)> = Vec::new();
    for token in &cut {
        let follows_name = names.last().is_some_and(|(label, place)| {
            *label == Label::Person && text.get(place.end..token.bytes.start) == Some(" ")
        });
        match said(token, follows_name) {
            Said::Name(label) => names.push((label, token.bytes.clone())),
            Said::Nothing => {}
            Said::Doubt => return None,
        }
    }
    (!names.is_empty()).then_some(Made { text, names })
}

enum Said {
    Name(Label),
    Nothing,
    Doubt,
}

fn said(token: &Token, follows_name: bool) -> Said {
    if !token.is_capital() {
        return Said::Nothing;
    }
    match token.hint() {
        ListHint::Given => Said::Name(Label::Person),
        ListHint::Surname if follows_name => Said::Name(Label::Person),
        ListHint::Place => Said::Name(Label::Gpe),
        ListHint::Nationality => Said::Name(Label::Nrp),
        ListHint::Common => Said::Nothing,
        ListHint::Surname | ListHint::Several | ListHint::None => Said::Doubt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubt_drops_the_text() {
        let labels = |text: &str| {
            let made = label(text.to_owned())?;
            Some(
                made.names
                    .into_iter()
                    .map(|(label, place)| (label, text[place].to_owned()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            labels("Natalia sold the clips to a German friend."),
            Some(vec![(Label::Person, "Natalia".to_owned()), (Label::Nrp, "German".to_owned())])
        );
        assert_eq!(labels("The Qwxyz sold the clips to Natalia."), None);
        assert_eq!(labels("The clips were sold."), None);
    }
}
