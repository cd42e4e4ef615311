//! What a user says of themselves that is worth remembering, told by rule.
//!
//! A statement is a sentence in the first person that declares something lasting: who somebody is, what they have, like,
//! use or avoid, or what they ask to be remembered. Questions, tasks, quotations and code are none. It knows a few
//! languages by their openings, and no meaning. **Invariant:** what is returned stands in the text word by word.

use crate::chunk::sentences;

/// Longest and shortest statement, in characters.
const CHARACTERS: std::ops::RangeInclusive<usize> = 8..=400;
/// Most statements of one message.
const MOST: usize = 8;

/// How lasting statements begin, in lower case.
const OPENINGS: [&str; 6] = [
    "i am |i'm |i live |i work |i prefer |i like |i love |i hate |i dislike |i don't like |i do not like |i don't eat |\
     i do not eat |i don't drink |i don't use |i do not use |i can't eat |i cannot eat |i use |i speak |i study |\
     i teach |i own |i play |i drive |i have a |i have an |i have two |i have three |i have no |i was born |\
     i grew up |i never |i always |i usually |we use |we have |our |my |note that i ",
    "call me |remember |please remember |from now on |always |never |for the record, |keep in mind ",
    "ich bin |ich heiße |ich wohne |ich lebe |ich arbeite |ich mag |ich liebe |ich hasse |ich bevorzuge |\
     ich benutze |ich nutze |ich spreche |ich studiere |ich habe ein|ich esse |ich trinke |mein |meine |nenn mich |\
     merk dir |merke dir |bitte merk|ab jetzt ",
    "je suis |je m'appelle |j'habite |je vis |je travaille |je préfère |j'aime |je déteste |j'utilise |je parle |\
     j'ai un|je ne mange |mon |ma |mes |appelle-moi |retiens |souviens-toi |désormais ",
    "soy |me llamo |vivo |trabajo |prefiero |me gusta |no me gusta |odio |uso |hablo |tengo un|no como |mi |mis |\
     llámame |recuerda |a partir de ahora ",
    "我是|我叫|我住|我在|我喜欢|我不喜欢|我讨厌|我用|我有|我的|请记住|记住|以后|私は|私の|僕は|覚えて",
];

/// What turns an opening into a task, a question or a passing state, in lower case.
const PASSING: &str = " a question|trying to|looking for|wondering|not sure|going to ask|getting an error|i'm getting|\
    i am getting|stuck |here to ask|asking |about to |my question|my code|my error|my problem is|my task|my prompt|\
    can you|could you|would you|please write|please explain|below|following|as follows|\
    ich bin mir nicht sicher|meine frage|ma question|mi pregunta|我的问题";

/// The lasting statements of a user's message, in order.
#[must_use]
pub fn statements(message: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in message.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        // Quotations and indented blocks are others' words.
        if fenced || line.starts_with("    ") || line.starts_with('\t') || line.starts_with('>') {
            continue;
        }
        found.extend(sentences(line).into_iter().map(str::trim).filter(|it| is_statement(it)));
    }
    found.truncate(MOST);
    found
}

fn is_statement(sentence: &str) -> bool {
    let folded = sentence.to_lowercase().replace('’', "'");
    CHARACTERS.contains(&sentence.chars().count())
        && !folded.ends_with(['?', '？', ':'])
        && OPENINGS.iter().flat_map(|all| all.split('|')).any(|opening| folded.starts_with(opening))
        && !PASSING.split('|').any(|passing| folded.contains(passing))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lasting_statements_are_found_and_the_rest_is_not() {
        for (message, want) in [
            ("I am a vegetarian. What can I cook tonight?", &["I am a vegetarian."][..]),
            (
                "Hi! My daughter is called Mia. I live in Kiel, near the port.",
                &["My daughter is called Mia.", "I live in Kiel, near the port."],
            ),
            ("Is my dog allowed?", &[]),
            ("I'm trying to sort a list in Rust.", &[]),
            ("I have a question about taxes.", &[]),
            ("my code:\n```\nI am code.\n```\n> I am a quotation.", &[]),
            ("From now on answer in metric units.", &["From now on answer in metric units."]),
            ("Ich wohne in Bern. Wie ist das Wetter?", &["Ich wohne in Bern."]),
            ("Je préfère le thé.", &["Je préfère le thé."]),
            ("我喜欢喝茶。今天天气怎么样？", &[]),
            ("我喜欢每天早上喝绿茶。今天天气怎么样？", &["我喜欢每天早上喝绿茶。"]),
            ("Translate: I love you", &[]),
        ] {
            assert_eq!(statements(message), want, "{message}");
        }
    }

    #[test]
    fn one_message_gives_a_bounded_number() {
        let message = "I like tea number one. ".repeat(40);
        assert_eq!(statements(&message).len(), MOST);
    }
}
