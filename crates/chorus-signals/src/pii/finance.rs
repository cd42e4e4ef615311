//! Cards, accounts and wallets.
//!
//! It knows forms, check digits, issuers and the words beside them. **Invariant:** a card, an IBAN or a Bitcoin address
//! with a wrong check digit is never found.

use super::checksum;
use super::context::Context;
use super::entity::Entity;
use super::mask::{Rule, compact, ends, weigh};
use super::span::Span;

const CARD_WORDS: &[&str] = &[
    "card",
    "cards",
    "credit",
    "debit",
    "visa",
    "mastercard",
    "maestro",
    "amex",
    "american express",
    "discover",
    "cc",
    "ccn",
    "payment",
    "karte",
    "kreditkarte",
    "kartennummer",
    "tarjeta",
    "carte",
    "carta",
    "cartão",
    "卡号",
    "信用卡",
    "银行卡",
    "カード",
];

/// The rules of fixed form.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "credit_card",
        entity: Entity::CreditCard,
        masks: &[
            "9999 9999 9999 9999",
            "9999999999999999",
            "9999 999999 99999",
            "999999999999999",
            "9999 999999 9999",
        ],
        valid: card,
        alone: 0.95,
        context: CARD_WORDS,
        named: 1.0,
    },
    // Lengths that other numbers have as well: one in ten of those passes the check.
    Rule {
        name: "credit_card_rare",
        entity: Entity::CreditCard,
        masks: &[
            "9999 9999 9999 9999 999",
            "9999999999999999999",
            "999999999999999999",
            "99999999999999999",
            "99999999999999",
            "9999999999999",
        ],
        valid: card,
        alone: 0.5,
        context: CARD_WORDS,
        named: 0.98,
    },
    // Called a card: any issuer, also one that this list does not know.
    Rule {
        name: "credit_card_named",
        entity: Entity::CreditCard,
        masks: &[
            "9999 9999 9999 9999",
            "9999999999999999",
            "9999 999999 99999",
            "999999999999999",
            "99999999999999",
            "9999999999999",
            "9999999999999999999",
        ],
        valid: |number| checksum::luhn(number) && !checksum::same(number),
        alone: 0.0,
        context: CARD_WORDS,
        named: 0.92,
    },
    Rule {
        name: "credit_card_short",
        entity: Entity::CreditCard,
        masks: &["999999999999"],
        valid: card,
        alone: 0.0,
        context: CARD_WORDS,
        named: 0.95,
    },
    Rule {
        name: "aba_routing",
        entity: Entity::AbaRoutingNumber,
        masks: &["999999999"],
        valid: |number| checksum::aba(number) && number.starts_with(['0', '1', '2', '3']),
        alone: 0.0,
        context: &["routing", "aba", "rtn", "transit", "bankrouting"],
        named: 0.93,
    },
    Rule {
        name: "us_bank_account",
        entity: Entity::UsBankNumber,
        masks: &[
            "99999999999999999",
            "9999999999999999",
            "999999999999999",
            "99999999999999",
            "9999999999999",
            "999999999999",
            "99999999999",
            "9999999999",
            "999999999",
            "99999999",
        ],
        valid: |number| !checksum::same(number),
        alone: 0.0,
        context: &[
            "bank account",
            "account number",
            "account no",
            "acct",
            "acct number",
            "checking account",
            "savings account",
            "direct deposit",
            "kontonummer",
            "bank acct",
        ],
        named: 0.9,
    },
    Rule {
        name: "ethereum",
        entity: Entity::Crypto,
        masks: &["0xHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH"],
        valid: |_| true,
        alone: 0.6,
        context: &["eth", "ethereum", "wallet", "erc20", "erc-20", "usdt", "metamask", "crypto"],
        named: 0.95,
    },
];

/// Issuer ranges and lengths of the large schemes. Source: ISO/IEC 7812-1 and the schemes' published ranges.
fn card(number: &str) -> bool {
    let prefix = |length: usize| number.get(..length).and_then(|p| p.parse::<u32>().ok()).unwrap_or_default();
    let (two, three, four) = (prefix(2), prefix(3), prefix(4));
    let issued = match number.len() {
        12 => matches!(two, 50 | 56..=58 | 60..=69),
        13 => number.starts_with('4') || matches!(two, 50 | 56..=58 | 60..=69),
        14 => matches!(three, 300..=305 | 309) || matches!(two, 36 | 38 | 39 | 50 | 56..=58 | 60..=69),
        15 => matches!(two, 34 | 37 | 50 | 56..=58 | 60..=69) || matches!(four, 1800 | 2131),
        16 => {
            matches!(two, 40..=49 | 50..=58 | 60..=69 | 81)
                || matches!(four, 2200..=2204 | 2221..=2720 | 3528..=3589)
                || matches!(three, 300..=305 | 309)
                || matches!(two, 36 | 38 | 39)
        }
        17 | 18 => matches!(two, 50 | 56..=58 | 60..=69),
        19 => matches!(two, 40..=49 | 50 | 56..=58 | 60..=69),
        _ => false,
    };
    issued && checksum::luhn(number) && !checksum::same(number)
}

/// Lengths of the countries' account numbers. Source: SWIFT, IBAN registry.
const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NL", 18),
    ("NO", 15),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("SA", 24),
    ("SC", 31),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
];

/// An IBAN that begins here, in one piece or in groups.
pub(super) fn iban(text: &str, start: usize) -> Option<Span> {
    let country = text.get(start..start + 2)?.to_ascii_uppercase();
    let (_, length) = IBAN_LENGTHS.iter().find(|(code, _)| *code == country)?;
    if !text.as_bytes().get(start + 2..start + 4)?.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (mut end, mut taken) = (start, 0);
    let mut chars = text.get(start..)?.char_indices().peekable();
    while taken < *length {
        let (at, c) = chars.next()?;
        let joins =
            matches!(c, ' ' | '-') && chars.peek().is_some_and(|(_, next)| next.is_ascii_alphanumeric());
        if c.is_ascii_alphanumeric() {
            taken += 1;
            end = start + at + 1;
        } else if !joins || taken < 4 {
            return None;
        }
    }
    let number = compact(text.get(start..end)?);
    (ends(text, end) && checksum::iban(&number)).then_some(Span {
        entity: Entity::IbanCode,
        bytes: start..end,
        score: 1.0,
        recogniser: "iban",
    })
}

/// Fewest and most characters of a Bitcoin address.
const WALLET: std::ops::RangeInclusive<usize> = 26..=62;

/// A Bitcoin address that begins here.
pub(super) fn wallet(text: &str, start: usize) -> Option<Span> {
    let rest = text.get(start..)?;
    if !rest.starts_with(['1', '3', 'b']) {
        return None;
    }
    let length = rest.bytes().take(WALLET.end() + 1).take_while(u8::is_ascii_alphanumeric).count();
    let address = rest.get(..length).filter(|_| WALLET.contains(&length))?;
    let valid =
        if address.starts_with("bc1") { checksum::bech32(address) } else { checksum::base58check(address) };
    let around = Context::of(text, start, start + length);
    let score = weigh(&around, &["wallet", "bitcoin", "btc", "crypto", "address"], 0.95, 1.0);
    (valid && ends(text, start + length)).then_some(Span {
        entity: Entity::Crypto,
        bytes: start..start + length,
        score,
        recogniser: "bitcoin",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_have_an_issuer_and_a_check_digit() {
        for valid in
            ["4111111111111111", "5500005555555559", "340000000000009", "30000000000004", "6011000000000004"]
        {
            assert!(card(valid), "{valid}");
        }
        for wrong in
            ["4111111111111112", "0000000000000000", "1234567812345670", "9111111111111111", "411111"]
        {
            assert!(!card(wrong), "{wrong}");
        }
    }

    #[test]
    fn ibans_in_one_piece_and_in_groups() {
        for (text, end) in [
            ("DE02120300000000202051", Some(22)),
            ("DE02 1203 0000 0000 2020 51", Some(27)),
            ("gb82west12345698765432.", Some(22)),
            ("DE03120300000000202051", None),
            ("DE02120300000000202", None),
            ("ZZ02120300000000202051", None),
            ("DE021203000000002020517", None),
            // Letters that happen to pass the check.
            ("grows 2 acres of corn and 12 acres", None),
        ] {
            assert_eq!(iban(text, 0).map(|span| span.bytes.end), end, "{text}");
        }
    }
}
