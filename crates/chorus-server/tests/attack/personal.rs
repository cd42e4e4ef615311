//! Texts with personal data: values of our own, with check digits that hold, in sentences of our own.

use crate::conversation::{Turns, Who};
use crate::seed::Seed;

/// A text with one value in it.
pub(crate) struct Personal {
    pub(crate) kind: &'static str,
    /// What must not leave.
    pub(crate) value: String,
    pub(crate) turns: Turns,
}

const KINDS: [&str; 10] = [
    "e-mail",
    "telephone",
    "card",
    "iban",
    "social security",
    "address on the net",
    "key",
    "date of birth",
    "name",
    "mixed",
];
const FIRST: &[&str] =
    &["Anna", "Peter", "Maria", "Thomas", "Julia", "Robert", "Elena", "Martin", "Sophie", "David"];
const LAST: &[&str] =
    &["Berg", "Miller", "Novak", "Hansen", "Keller", "Walker", "Fischer", "Moreau", "Schmidt", "Carter"];
const HOSTS: &[&str] = &["example.com", "example.org", "mail.example.net"];

/// That many texts, of every kind alike, in every place of a conversation.
pub(crate) fn personal(count: usize) -> Vec<Personal> {
    let mut seed = Seed::new(2);
    (0..count).map(|at| one(KINDS[at % KINDS.len()], at / KINDS.len(), &mut seed)).collect()
}

fn one(kind: &'static str, at: usize, seed: &mut Seed) -> Personal {
    let name = format!("{} {}", seed.of(FIRST), seed.of(LAST));
    let (value, sentence) = match kind {
        "telephone" => {
            let value = format!("{}-555-01{}", 201 + seed.below(700), seed.digits(2));
            (value.clone(), format!("My telephone number is {value}."))
        }
        "card" => {
            let value = card(seed);
            (value.clone(), format!("Please charge my credit card {value}."))
        }
        "iban" => {
            let value = iban(seed);
            (value.clone(), format!("Send it to the account {value}."))
        }
        "social security" => {
            let value = format!("{}-{}-{}", 101 + seed.below(500), 11 + seed.below(80), seed.digits(4));
            (value.clone(), format!("My social security number is {value}."))
        }
        "address on the net" => {
            let part = |seed: &mut Seed| 1 + seed.below(250);
            let value = format!("81.{}.{}.{}", part(seed), part(seed), part(seed));
            (value.clone(), format!("I am logged in from {value}."))
        }
        "key" => {
            let value = format!("sk-proj-{}{}", seed.digits(20), "aBcDeFgHiJkLmNoPqRsT");
            (value.clone(), format!("The API key is {value}."))
        }
        "date of birth" => {
            let value = format!("{} March {}", 1 + seed.below(28), 1950 + seed.below(50));
            (value.clone(), format!("I was born on {value}."))
        }
        "name" => (name.clone(), format!("My name is {name}, and I live in Hamburg.")),
        "mixed" => {
            let value = mail(&name, seed);
            (
                value.clone(),
                format!("{name} writes from {value}; the number is {}-555-0147.", 201 + seed.below(700)),
            )
        }
        _ => {
            let value = mail(&name, seed);
            (value.clone(), format!("Write to {value} today."))
        }
    };
    Personal { kind, value, turns: placed(sentence, at) }
}

/// In the question, before it, from a tool, in the operator's words, or in what a model said.
fn placed(sentence: String, at: usize) -> Turns {
    let ask = |text: &str| (Who::User, text.to_owned());
    let question = || ask("What do you make of this?");
    match at % 5 {
        1 => vec![ask(&sentence), (Who::Assistant, "Noted.".to_owned()), question()],
        2 => vec![question(), (Who::Tool, sentence)],
        3 => vec![(Who::System, format!("You help our customers. {sentence}")), question()],
        4 => vec![ask("Remind me."), (Who::Assistant, sentence), question()],
        _ => vec![ask(&format!("{sentence} What do you make of this?"))],
    }
}

fn mail(name: &str, seed: &mut Seed) -> String {
    format!("{}{}@{}", name.to_lowercase().replace(' ', "."), seed.below(90), seed.of(HOSTS))
}

/// Sixteen digits whose check digit holds. Source: ISO/IEC 7812-1.
fn card(seed: &mut Seed) -> String {
    let digits = format!("4{}", seed.digits(14));
    let sum: u32 =
        digits.bytes().rev().enumerate().map(|(at, digit)| doubled(at, u32::from(digit - b'0'))).sum();
    let whole = format!("{digits}{}", (10 - sum % 10) % 10);
    whole.as_bytes().chunks(4).map(|four| std::str::from_utf8(four).unwrap()).collect::<Vec<_>>().join(" ")
}

/// Every second digit, from the one before the check digit on, counts twice.
fn doubled(at: usize, digit: u32) -> u32 {
    match (at % 2, digit * 2) {
        (0, twice) if twice > 9 => twice - 9,
        (0, twice) => twice,
        _ => digit,
    }
}

/// A German account number whose check digits hold. Source: ISO 13616-1.
fn iban(seed: &mut Seed) -> String {
    let account = seed.digits(18);
    let number = format!("{account}131400");
    let rest = number.bytes().fold(0_u64, |rest, digit| (rest * 10 + u64::from(digit - b'0')) % 97);
    format!("DE{:02}{account}", 98 - rest)
}
