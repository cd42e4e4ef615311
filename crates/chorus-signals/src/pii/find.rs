//! One pass over a text: every recogniser where it may have something to say.
//!
//! It knows which recogniser needs what (a digit, an `@`, a `://`), none of their rules. **Invariant:** the whole text is
//! read, whatever its length, in time that grows with it linearly; findings never overlap.

use super::entity::Entity;
use super::mask::{Rule, begins};
use super::names;
use super::span::{Finding, Span, findings, settle};
use super::{contact, finance, identity, life, phone, secret};
use std::ops::Range;

/// Least score of a finding: below, it says nothing.
const LEAST: f64 = 0.3;
/// Bytes between a name and an identifier that make the name one of a person who can be reached.
const BESIDE: usize = 160;
/// Score at which a finding identifies somebody.
const IDENTIFIES: f64 = 0.85;
/// Score of a name beside an identifier, or where a person is introduced.
const NAMED_PERSON: f64 = 0.93;

/// Finds personal data and secrets in a text, in its order.
///
/// Scores say how sure and how personal a finding is: what has a check digit, or a form that nothing else has, scores at
/// least 0.9; a bare name, place or date stays below 0.85, because naming one is no leak; the same name scores 0.93 where a
/// person is introduced, or beside an identifier.
#[must_use]
pub fn find(text: &str) -> Vec<Finding> {
    findings(text, &spans(text))
}

/// [`find`], in bytes.
pub(super) fn spans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    walk(text, &mut found);
    life::weekdays(text, &mut found);
    life::chinese(text, &mut found);
    secret::formed(text, &mut found);
    secret::named(text, &mut found);
    names::find(text, &mut found);
    found.retain(|span| span.score >= LEAST);
    let mut found = settle(found);
    introduce(text, &mut found);
    found
}

/// Looks at every word once, and at the signs that addresses have.
fn walk(text: &str, found: &mut Vec<Span>) {
    let bytes = text.as_bytes();
    let mut inside = false;
    let mut after_phone = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let word = byte.is_ascii_alphanumeric();
        if word && !inside && begins(text, at) {
            start_of_word(text, at, found);
        }
        let digit_follows = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let call = match byte {
            b'+' | b'(' => digit_follows && !inside,
            b'0'..=b'9' => !inside && begins(text, at),
            _ => false,
        };
        if call
            && at >= after_phone
            && let Some(number) = phone::find(text, at)
        {
            after_phone = number.bytes.end;
            found.push(number);
        }
        match byte {
            b'@' => found.extend(contact::email(text, at)),
            b':' if bytes.get(at + 1..at + 3) == Some(b"//") => found.extend(contact::url(text, at)),
            _ => {}
        }
        inside = word;
    }
}

/// Everything that is recognised from its first character on.
fn start_of_word(text: &str, at: usize, found: &mut Vec<Span>) {
    let head = text.as_bytes().get(at..text.len().min(at + 7)).unwrap_or_default();
    let numbered = head.iter().any(u8::is_ascii_digit);
    if numbered {
        let rules = finance::RULES.iter().chain(identity::RULES);
        found.extend(rules.filter_map(|rule: &Rule| rule.at(text, at)));
        found.extend(finance::iban(text, at));
        found.extend(finance::wallet(text, at));
    }
    if numbered || head.contains(&b':') {
        found.extend(contact::ip(text, at));
        found.extend(contact::mac(text, at));
    }
    if head.starts_with(b"www.") || head.starts_with(b"WWW.") {
        found.extend(contact::host(text, at));
    }
    life::at(text, at, found);
}

/// Names beside an identifier, and of people who are introduced, are those of people who can be reached.
fn introduce(text: &str, found: &mut [Span]) {
    let identifier = |span: &&Span| {
        let hint =
            matches!(span.entity, Entity::Person | Entity::DomainName | Entity::Gpe | Entity::Organization);
        !hint && span.score >= IDENTIFIES
    };
    let places: Vec<Range<usize>> = found.iter().filter(identifier).map(|span| span.bytes.clone()).collect();
    for span in found.iter_mut().filter(|span| span.entity == Entity::Person) {
        let next = places.partition_point(|place| place.start < span.bytes.end);
        let after = places.get(next).is_some_and(|place| place.start - span.bytes.end <= BESIDE);
        let before = next.checked_sub(1).and_then(|at| places.get(at));
        let before = before.is_some_and(|place| span.bytes.start.saturating_sub(place.end) <= BESIDE);
        if after || before || names::is_introduced(text, span.bytes.clone()) {
            span.score = span.score.max(NAMED_PERSON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kinds and texts of what scores at least `least`.
    fn found(text: &str, least: f64) -> Vec<(Entity, String)> {
        let chars: Vec<char> = text.chars().collect();
        let findings = find(text).into_iter().filter(|f| f.score >= least);
        findings.map(|f| (f.entity, chars[f.start..f.end].iter().collect())).collect()
    }

    /// One example a kind of what a form or a check digit proves; texts are ours, numbers are from the issuers' examples.
    const EXAMPLES: &[(Entity, &str, &str)] = &[
        (Entity::CreditCard, "card 4111 1111 1111 1111", "4111 1111 1111 1111"),
        (Entity::CreditCard, "charge 378282246310005 now", "378282246310005"),
        (Entity::IbanCode, "Meine IBAN: DE02 1203 0000 0000 2020 51.", "DE02 1203 0000 0000 2020 51"),
        (Entity::UsSsn, "it is 536-22-1234", "536-22-1234"),
        (Entity::UsSsn, "my ssn is 123-45-6789", "123-45-6789"),
        (Entity::PhoneNumber, "call me at (415) 555-0134", "(415) 555-0134"),
        (Entity::PhoneNumber, "我的手机号是13812345678，谢谢", "13812345678"),
        (Entity::EmailAddress, "Schreib an jörg@müller.de!", "jörg@müller.de"),
        (Entity::IpAddress, "requests from 86.121.97.248 failed", "86.121.97.248"),
        (Entity::MacAddress, "device 3c:22:fb:9a:10:4e is offline", "3c:22:fb:9a:10:4e"),
        (Entity::Password, "postgres://app:s3cr7t@db.corp/x", "postgres://app:s3cr7t"),
        (Entity::UsDriverLicense, "driver's license D1234567", "D1234567"),
        (Entity::UsPassport, "passport number 483920175", "483920175"),
        (Entity::UsBankNumber, "bank account 000123456789", "000123456789"),
        (Entity::AbaRoutingNumber, "routing 021000021", "021000021"),
        (Entity::UsItin, "ITIN 912-70-1234", "912-70-1234"),
        (Entity::UsNpi, "NPI 1234567893", "1234567893"),
        (Entity::MedicalLicense, "DEA AB1234563", "AB1234563"),
        (Entity::UkNhs, "NHS number 943 476 5919", "943 476 5919"),
        (Entity::UkNino, "NI number AB 12 34 56 C", "AB 12 34 56 C"),
        (Entity::DeTaxId, "Steuer-ID 86 095 742 719", "86 095 742 719"),
        (Entity::FrNir, "NIR 2 55 08 14 168 025 38", "2 55 08 14 168 025 38"),
        (Entity::EsNif, "DNI 12345678Z", "12345678Z"),
        (Entity::EsNie, "NIE X1234567L", "X1234567L"),
        (Entity::ItFiscalCode, "RSSMRA85T10A562S", "RSSMRA85T10A562S"),
        (Entity::PlPesel, "PESEL 44051401359", "44051401359"),
        (Entity::InAadhaar, "Aadhaar 2341 2341 2346", "2341 2341 2346"),
        (Entity::InPan, "PAN ABCPE1234F", "ABCPE1234F"),
        (Entity::CaSin, "SIN 130 692 544", "130 692 544"),
        (Entity::AuTfn, "TFN 876 543 210", "876 543 210"),
        (Entity::BrCpf, "CPF 529.982.247-25", "529.982.247-25"),
        (Entity::CnId, "身份证号11010519491231002X。", "11010519491231002X"),
        (Entity::SePersonnummer, "personnummer 811218-9876", "811218-9876"),
        (Entity::Crypto, "send to 1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"),
        (Entity::DateTime, "date of birth: 3 March 1985", "3 March 1985"),
        (Entity::StreetAddress, "I live at 12 Oak Street", "12 Oak Street"),
        (Entity::Password, "the password is Tr0ub4dor&3", "Tr0ub4dor&3"),
    ];

    #[test]
    fn e05_every_kind_is_found_at_the_default_threshold() {
        for (entity, text, want) in EXAMPLES {
            let found = found(text, 0.9);
            assert!(found.contains(&(*entity, (*want).to_owned())), "{text}: {found:?}");
        }
    }

    #[test]
    fn e01_the_whole_text_is_read() {
        let filler = "Nothing to see in this harmless sentence. ".repeat(300);
        let secret = "My IBAN is DE02 1203 0000 0000 2020 51. ";
        for text in [
            format!("{secret}{filler}{filler}"),
            format!("{filler}{secret}{filler}"),
            format!("{filler}{filler}{secret}"),
        ] {
            assert_eq!(found(&text, 0.9).len(), 1);
        }
        assert!(found(&filler, 0.9).is_empty());
    }

    #[test]
    fn e04_ordinary_code_numbers_and_prose_have_no_finding() {
        for line in include_str!("../../tests/data/impersonal.txt").lines() {
            assert_eq!(found(line, 0.85), [], "{line}");
        }
    }

    #[test]
    fn places_are_characters_of_the_text() {
        let found = find("é😀 ada@example.com");
        assert_eq!(found.iter().map(|f| (f.start, f.end)).collect::<Vec<_>>(), [(3, 18)]);
    }

    #[test]
    fn a_name_beside_an_identifier_is_personal() {
        let is_sure = |text: &str| {
            let person = find(text).into_iter().find(|finding| finding.entity == Entity::Person);
            person.map(|finding| finding.score >= 0.9)
        };
        assert_eq!(is_sure("The record of Maria Johnson, maria@example.com"), Some(true));
        assert_eq!(is_sure("My name is Maria Johnson"), Some(true));
        assert_eq!(is_sure("Have you ever heard Maria Johnson sing?"), Some(false));
    }

    #[test]
    fn hostile_texts_neither_panic_nor_overlap() {
        for text in [
            "",
            "@",
            "://",
            "+",
            "é@é",
            "1.",
            "a@b.c@d.ef",
            "::::",
            "4111 1111 1111 1111 ".repeat(50).as_str(),
        ] {
            let found = find(text);
            assert!(found.windows(2).all(|pair| pair[0].end <= pair[1].start), "{text}");
        }
    }
}
