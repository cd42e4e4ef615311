//! Telephone numbers.
//!
//! It knows how numbers are written, not which are in use: a form that other numbers share needs a word beside it. Source:
//! ITU-T E.164 (at most 15 digits after `+`); the North American numbering plan. **Invariant:** a date is no telephone
//! number.

use super::context::{Context, floor};
use super::entity::Entity;
use super::mask::{ends, weigh};
use super::span::Span;
use regex::Regex;
use std::net::Ipv4Addr;
use std::sync::LazyLock;

/// Groups of digits as telephone numbers are written, from the first sign on.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and every test of this file builds it")]
static PHONE: LazyLock<Regex> = LazyLock::new(|| {
    let extension = r"(?: ?(?:x|ext\.?|extension) ?\d{1,5}\b)?";
    let international =
        r"(?:\+|00)\d{1,3}[ .-]?(?:\(0\) ?)?(?:\(\d{1,4}\)[ .-]?)?\d{1,14}(?:[ ./-]{1,2}\d{1,8}){0,6}";
    let national = r"(?:\(\d{1,5}\) ?[.-]?)?\d{2,8}(?:(?:[ .-]| - )\d{2,8}){1,5}";
    Regex::new(&format!(r"^(?:(?:{international}|{national}){extension}|\d{{6,11}}\b)")).unwrap()
});

/// Longest telephone number with its extension, in bytes.
const LONGEST_PHONE: usize = 48;

const PHONE_WORDS: &[&str] = &[
    "phone",
    "phones",
    "telephone",
    "tel",
    "mobile",
    "cell",
    "cellphone",
    "call",
    "calling",
    "called",
    "fax",
    "text",
    "texted",
    "sms",
    "whatsapp",
    "dial",
    "ring",
    "reach",
    "reached",
    "answering",
    "hotline",
    "desk",
    "office",
    "message",
    "messages",
    "contact",
    "telefon",
    "telefonnummer",
    "handy",
    "anrufen",
    "teléfono",
    "telefono",
    "móvil",
    "llamar",
    "llámame",
    "téléphone",
    "portable",
    "appelez",
    "telefone",
    "ligue",
    "cellulare",
    "телефон",
    "手机",
    "电话",
    "手机号",
    "電話",
    "전화",
    "phone number",
    "mobile number",
    "tél",
];

/// A telephone number that begins here with a `+`, a parenthesis or a digit.
pub(super) fn find(text: &str, start: usize) -> Option<Span> {
    let slice = text.get(start..floor(text, (start + LONGEST_PHONE).min(text.len())))?;
    let hit = PHONE.find(slice)?;
    let end = start + hit.end();
    // "-Office" or "-Fax" may follow.
    let rest = text.get(end..)?;
    let named = rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    if !(named || ends(text, end)) {
        return None;
    }
    let (alone, around) = (form(hit.as_str())?, Context::of(text, start, end));
    let score = weigh(&around, PHONE_WORDS, alone, 0.95);
    let bytes = start..end;
    (score > 0.0).then_some(Span { entity: Entity::PhoneNumber, bytes, score, recogniser: "phone" })
}

/// How much a form alone looks like a telephone number, 0..1; nothing when it cannot be one.
fn form(number: &str) -> Option<f64> {
    let main = number.split(['x', 'e']).next().unwrap_or_default().trim();
    let groups: Vec<&str> =
        main.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty()).collect();
    let count = groups.iter().map(|group| group.len()).sum::<usize>();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let area = |group: &&str| group.starts_with(['2', '3', '4', '5', '6', '7', '8', '9']);
    let american = lengths == [3, 3, 4] && groups.iter().take(2).all(area);
    match (main.starts_with('+'), count) {
        (true, 8..=15) if !main.starts_with("+0") => Some(0.92),
        (false, 6..=15) if is_date(&groups) || lengths == [3, 2, 4] || main.parse::<Ipv4Addr>().is_ok() => {
            None
        }
        (false, 10..=15) if main.starts_with("00") => Some(0.7),
        (false, 10) if american && main.starts_with('(') => Some(0.9),
        (false, 10) if american => Some(0.8),
        // Chinese mobile numbers.
        (false, 11) if lengths == [11] && matches!(main.as_bytes(), [b'1', b'3'..=b'9', ..]) => Some(0.6),
        (false, 6..=12) if groups.len() == 1 => Some(0.0),
        (false, 6..=12) if main.starts_with('(') => Some(0.6),
        (false, 8..=12) if main.starts_with('0') && groups.len() > 1 => Some(0.6),
        (false, 7..=12) if groups.len() > 3 && lengths.iter().all(|length| *length == 2) => Some(0.5),
        (false, 6..=13) => Some(0.3),
        _ => None,
    }
}

/// Days, months and years, or two years.
fn is_date(groups: &[&str]) -> bool {
    let year = |group: &&str| group.len() == 4 && (group.starts_with("19") || group.starts_with("20"));
    match groups {
        [first, second] => year(first) && (year(second) || second.len() == 2),
        [first, second, third] => {
            let short = second.len() <= 2;
            short
                && (year(first) && third.len() <= 2 || first.len() <= 2 && (year(third) || third.len() == 2))
        }
        [first, second, third, ..] => year(first) && second.len() == 2 && third.len() == 2,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_telephone_numbers() {
        for (number, score) in [
            ("+1-984-182-0190", Some(0.92)),
            ("(415) 555-0134", Some(0.9)),
            ("415-555-0134", Some(0.8)),
            ("0490 75 40 81", Some(0.6)),
            ("60-56-85-91", Some(0.5)),
            ("4829173650", Some(0.0)),
            ("2014-05-12", None),
            ("12.05.2014", None),
            ("1990-2000", None),
            ("192.168.10.20", None),
        ] {
            assert_eq!(form(number), score, "{number}");
        }
        let text = "call +46 (0)8 928 571 38 or 345-899-3560x4587 or 082 490 1693-Office";
        let texts: Vec<&str> = ["+46", "345", "082"]
            .iter()
            .map(|head| &text[find(text, text.find(head).unwrap()).unwrap().bytes])
            .collect();
        assert_eq!(texts, ["+46 (0)8 928 571 38", "345-899-3560x4587", "082 490 1693"]);
    }
}
