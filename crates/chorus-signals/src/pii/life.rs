//! When somebody was born, how old they are, where they live.
//!
//! It knows forms and the words beside them. A date or a year alone says nothing of a person and scores low; as a date of
//! birth it scores high. **Invariant:** every pattern is bounded, so that a text costs linear time.

use super::context::{self, Context};
use super::entity::Entity;
use super::mask::{begins, ends};
use super::span::Span;
use aho_corasick::AhoCorasick;
use regex::Regex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

const MONTH: &str = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?";

const BIRTH_WORDS: &[&str] = &[
    "born",
    "birth",
    "dob",
    "d.o.b",
    "birthday",
    "birthdate",
    "date of birth",
    "geboren",
    "geburtsdatum",
    "nacimiento",
    "nacido",
    "nacida",
    "naissance",
    "né",
    "née",
    "nascita",
    "nato",
    "nata",
    "nascimento",
    "urodzenia",
    "出生",
    "生日",
    "生年月日",
    "생년월일",
    "doğum",
];

const POSTAL_WORDS: &[&str] = &[
    "zip",
    "zip code",
    "zipcode",
    "postal code",
    "postcode",
    "post code",
    "plz",
    "postleitzahl",
    "código postal",
    "code postal",
    "cap",
    "邮编",
];

/// States, districts and territories of the USA. Source: USPS Publication 28, appendix B.
const STATES: &str = "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC|PR|GU|VI|AA|AE|AP";

/// Longest text of a pattern in bytes.
const LONGEST: usize = 112;

/// A pattern with what it finds.
struct Pattern {
    name: &'static str,
    entity: Entity,
    regex: Regex,
    alone: f64,
    context: &'static [&'static str],
    named: f64,
}

/// Name, kind, first bytes (lower-case; digits are `0`), expression, score alone, words, score with one of them.
type Row = (&'static str, Entity, &'static str, String, f64, &'static [&'static str], f64);

/// What is asked for where a word begins, by the word's first byte.
#[expect(clippy::unwrap_used, reason = "the patterns are constants, and every test of this file builds them")]
static BY_FIRST: LazyLock<BTreeMap<u8, Vec<Pattern>>> = LazyLock::new(|| {
    let mut by_first = BTreeMap::<u8, Vec<Pattern>>::new();
    for (name, entity, firsts, regex, alone, context, named) in dates().into_iter().chain(homes()) {
        for first in firsts.bytes() {
            let regex = Regex::new(&format!("^(?:{regex})")).unwrap();
            by_first.entry(first).or_default().push(Pattern { name, entity, regex, alone, context, named });
        }
    }
    by_first
});

fn dates() -> Vec<Row> {
    let year = r"(?:19|20)\d\d";
    let (month, day) = (r"(?:0?[1-9]|1[0-2])", r"(?:3[01]|[12]\d|0?[1-9])");
    let named_day = format!("{day}(?:st|nd|rd|th)?");
    let numeric = format!(
        r"(?:{year}[-./]{month}[-./]{day}(?:[T ]\d\d:\d\d(?::\d\d)?)?|{day}[-./]{day}[-./]{year})\b|(?i:{named_day}\.? (?:of )?{MONTH},? {year}\b)"
    );
    vec![
        ("date", Entity::DateTime, "0", numeric, 0.6, BIRTH_WORDS, 0.95),
        ("month", Entity::DateTime, "jfmasond", format!(r"(?i:{MONTH} {named_day},? {year}\b)"), 0.6, BIRTH_WORDS, 0.95),
        ("year", Entity::DateTime, "0", format!(r"{year}s?\b"), 0.5, BIRTH_WORDS, 0.8),
        ("age", Entity::Age, "0", r"(?i)\d{1,3}(?:[ -]?years?[ -]old|[ -]?years? of age| ?y[./]?o)\b".to_owned(), 0.8, &[], 0.8),
        ("named_age", Entity::Age, "aite", r"(?i)(?:aged|age:?|age of|age is|turn(?:ed|ing)?|i am|i'm|edad:?|alter:?) \d{1,3}\b(?: ?(?:today|now|years?|this|next|and|,|\.|$))".to_owned(), 0.8, &[], 0.8),
        ("east_asian_date", Entity::DateTime, "0", r"(?:19|20)\d\d ?年 ?\d{1,2} ?月 ?\d{1,2} ?日".to_owned(), 0.6, BIRTH_WORDS, 0.95),
        ("chinese_age", Entity::Age, "0", r"\d{1,3} ?岁".to_owned(), 0.8, &[], 0.8),
    ]
}

fn homes() -> Vec<Row> {
    let word = r"[A-ZÀ-Ž][\w'’.-]{0,20}";
    let street = "(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Circle|Cir|Terrace|Place|Pl|\
                  Square|Sq|Parkway|Pkwy|Highway|Hwy|Way|Crescent|Close|Alley|Trail|Row|Mews|Gardens)";
    let unit = r"(?:(?:,| |\n){1,3}(?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor|Fl)\.? ?#?\d{1,5}[A-Za-z]?)?";
    let american = format!(
        r"\d{{1,6}}(?:-\d{{1,4}})? (?:[NSEW]\.? )?(?:{word} |\d{{1,3}}(?:st|nd|rd|th) ){{1,4}}{street}\b\.?{unit}"
    );
    let german = r"[A-ZÄÖÜ][a-zäöüß]{2,20}(?:straße|strasse|str\.|weg|gasse|platz|allee|straat|laan|gatan|vägen|gata|vej|gade|katu|tie|utca) \d{1,4} ?[a-z]?\b";
    let latin = r"(?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Vv]ia|[Vv]iale|[Pp]iazza|[Cc]alle|C/|[Aa]vda\.?|[Aa]venida|[Pp]laza|[Rr]ua|[Tt]ravessa|[Uu]l\.|[Uu]lica) (?:d[aeiou]s? |de la |de l'|della |del )?[A-ZÀ-Ž][\w'’-]{1,20}(?: [A-ZÀ-Ž][\w'’-]{1,20}){0,2},? \d{1,4}\b";
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let box_ = r"(?i:(?:P\.? ?O\.? ?Box|Postfach|PSC) \d{1,6}\b(?:, Box \d{1,5}\n? ?APO [A-Z]{2} \d{5})?)";
    vec![
        ("us_address", Entity::StreetAddress, "0", american, 0.92, &[], 0.92),
        ("german_address", Entity::StreetAddress, letters, german.to_owned(), 0.92, &[], 0.92),
        ("latin_address", Entity::StreetAddress, "rabvpctu", latin.to_owned(), 0.92, &[], 0.92),
        ("post_box", Entity::StreetAddress, "p", box_.to_owned(), 0.9, &[], 0.9),
        (
            "unit",
            Entity::StreetAddress,
            "as",
            r"(?:Apt\.|Apartment|Suite) ?#?\d{1,5}[A-Za-z]?\b".to_owned(),
            0.7,
            &[],
            0.7,
        ),
        (
            "us_zip",
            Entity::ZipCode,
            "acdfghiklmnoprstuvw",
            format!(r"(?:{STATES}),? \d{{5}}(?:-\d{{4}})?\b"),
            0.7,
            POSTAL_WORDS,
            0.85,
        ),
        (
            "british_postcode",
            Entity::ZipCode,
            letters,
            r"(?:GIR 0AA|[A-PR-UWYZ][A-HK-Y]?\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2})\b".to_owned(),
            0.7,
            POSTAL_WORDS,
            0.85,
        ),
        (
            "canadian_postcode",
            Entity::ZipCode,
            "abceghjklmnprstvxy",
            r"[ABCEGHJ-NPRSTVXY]\d[A-Z] \d[A-Z]\d\b".to_owned(),
            0.7,
            POSTAL_WORDS,
            0.85,
        ),
        (
            "named_zip",
            Entity::ZipCode,
            "0",
            r"(?:\d{4,6}(?:-\d{3,4})?|\d{3} \d{2})\b".to_owned(),
            0.0,
            POSTAL_WORDS,
            0.85,
        ),
    ]
}

/// Chinese addresses begin with no word.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and every test of this file builds it")]
static CHINESE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{Han}{1,8}[路街道巷弄]\d{1,5}号").unwrap());

/// Names of days, which are dates of a kind.
const DAYS: &[&str] = &["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

#[expect(
    clippy::unwrap_used,
    reason = "the patterns are a constant, and every test of this file builds them"
)]
static WEEKDAYS: LazyLock<AhoCorasick> = LazyLock::new(|| AhoCorasick::new(DAYS).unwrap());

/// What the patterns find where a word begins.
pub(super) fn at(text: &str, start: usize, found: &mut Vec<Span>) {
    let Some(first) = text.as_bytes().get(start) else { return };
    let key = if first.is_ascii_digit() { b'0' } else { first.to_ascii_lowercase() };
    // A letter begins a home or a date only where a digit follows soon.
    let slice = text.get(start..context::floor(text, (start + LONGEST).min(text.len()))).unwrap_or_default();
    if key != b'0' && !slice.bytes().take(LONGEST / 2).any(|b| b.is_ascii_digit()) {
        return;
    }
    for pattern in BY_FIRST.get(&key).into_iter().flatten() {
        let Some(hit) = pattern.regex.find(slice) else { continue };
        let end = start + hit.end();
        let around = Context::of(text, start, end);
        let score = if around.has(pattern.context) { pattern.named } else { pattern.alone };
        if score > 0.0 && ends(text, end) {
            let bytes = trimmed(pattern, hit.as_str(), start);
            found.push(Span { entity: pattern.entity, bytes, score, recogniser: pattern.name });
        }
    }
}

/// Addresses in Chinese, where there is any.
pub(super) fn chinese(text: &str, found: &mut Vec<Span>) {
    if text.contains('号') {
        found.extend(CHINESE.find_iter(text).map(|hit| Span {
            entity: Entity::StreetAddress,
            bytes: hit.range(),
            score: 0.92,
            recogniser: "chinese_address",
        }));
    }
}

/// An age is its number; a postal code has no state.
fn trimmed(pattern: &Pattern, hit: &str, start: usize) -> Range<usize> {
    let first = match pattern.name {
        "named_age" | "us_zip" => hit.find(|c: char| c.is_ascii_digit()).unwrap_or_default(),
        _ => 0,
    };
    let rest = hit.get(first..).unwrap_or_default();
    let length = match pattern.name {
        "age" | "named_age" | "chinese_age" => rest.bytes().take_while(u8::is_ascii_digit).count(),
        _ => rest.len(),
    };
    start + first..start + first + length
}

/// Names of days anywhere.
pub(super) fn weekdays(text: &str, found: &mut Vec<Span>) {
    for hit in WEEKDAYS.find_iter(text) {
        if begins(text, hit.start()) && ends(text, hit.end()) {
            let bytes = hit.start()..hit.end();
            found.push(Span { entity: Entity::DateTime, bytes, score: 0.5, recogniser: "weekday" });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, &str, f64)> {
        let mut spans = Vec::new();
        for start in (0..text.len()).filter(|at| text.is_char_boundary(*at) && begins(text, *at)) {
            at(text, start, &mut spans);
        }
        chinese(text, &mut spans);
        spans.sort_by(|a, b| b.score.total_cmp(&a.score));
        spans.into_iter().map(|s| (s.recogniser, &text[s.bytes], s.score)).collect()
    }

    #[test]
    fn dates_of_birth_score_higher_than_dates() {
        assert_eq!(found("released on 2014-05-12")[0], ("date", "2014-05-12", 0.6));
        assert_eq!(found("DOB: 03/14/1985")[0], ("date", "03/14/1985", 0.95));
        assert_eq!(found("She was born on 3 March 1985")[0], ("date", "3 March 1985", 0.95));
        assert_eq!(found("出生日期：1985年3月14日")[0], ("east_asian_date", "1985年3月14日", 0.95));
    }

    #[test]
    fn ages_and_homes() {
        assert_eq!(found("a 65-year-old man")[0], ("age", "65", 0.8));
        assert_eq!(found("I'm 34 today")[0], ("named_age", "34", 0.8));
        assert_eq!(found("at 1600 Pennsylvania Avenue now")[0].1, "1600 Pennsylvania Avenue");
        assert_eq!(found("at 12 North Main St., Apt 4B")[0].1, "12 North Main St., Apt 4B");
        assert_eq!(found("wohnt Lindenstraße 12")[0].1, "Lindenstraße 12");
        assert_eq!(found("habite 5 rue de Rivoli 12")[0].1, "rue de Rivoli 12");
        assert_eq!(found("我住在中山路12号")[0].1, "我住在中山路12号");
        assert_eq!(found("Springfield, IL 62704")[0], ("us_zip", "62704", 0.7));
        assert_eq!(found("postcode SW1A 1AA")[0], ("british_postcode", "SW1A 1AA", 0.85));
    }

    #[test]
    fn days() {
        let mut spans = Vec::new();
        weekdays("See you Monday or Sundayish", &mut spans);
        assert_eq!(spans.len(), 1);
    }
}
