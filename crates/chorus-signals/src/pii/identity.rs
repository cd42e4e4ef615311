//! Numbers that states give to people.
//!
//! It knows forms, check digits and the words beside them. What has no check digit, or a form that other numbers share,
//! needs such a word. **Invariant:** no number of a reserved or impossible range is found.

use super::checksum::{self, digits, same};
use super::entity::Entity;
use super::mask::Rule;

const SSN_WORDS: &[&str] = &["ssn", "social security", "soc sec", "socials", "ssns"];
const TAX_WORDS: &[&str] = &[
    "tax",
    "tin",
    "idnr",
    "steuer",
    "steuer-id",
    "steuerid",
    "steueridentifikationsnummer",
    "steuernummer",
    "identifikationsnummer",
];
const LICENCE_WORDS: &[&str] = &[
    "driver license",
    "driver licence",
    "driver's license",
    "driver's licence",
    "drivers license",
    "drivers licence",
    "driving licence",
    "driving license",
    "license number",
    "licence number",
    "driver id",
    "dl",
    "dl#",
    "permit number",
];

/// The rules, one for each form that has a meaning of its own.
pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "us_ssn",
        entity: Entity::UsSsn,
        masks: &["999-99-9999"],
        valid: issued_ssn,
        alone: 0.9,
        context: SSN_WORDS,
        named: 0.98,
    },
    Rule {
        name: "us_ssn_spaced",
        entity: Entity::UsSsn,
        masks: &["999 99 9999"],
        valid: issued_ssn,
        alone: 0.5,
        context: SSN_WORDS,
        named: 0.98,
    },
    // Numbers from advertisements and the like are still treated as one where they are called one.
    Rule {
        name: "us_ssn_named",
        entity: Entity::UsSsn,
        masks: &["999 99 9999", "999999999"],
        valid: possible_ssn,
        alone: 0.0,
        context: SSN_WORDS,
        named: 0.95,
    },
    Rule {
        name: "us_itin",
        entity: Entity::UsItin,
        masks: &["999-99-9999", "999 99 9999", "999999999"],
        valid: itin,
        alone: 0.5,
        context: &["itin", "taxpayer", "individual taxpayer"],
        named: 0.95,
    },
    Rule {
        name: "us_passport",
        entity: Entity::UsPassport,
        masks: &["999999999", "A99999999"],
        valid: varied,
        alone: 0.0,
        context: &["passport", "passport#", "passports", "travel document"],
        named: 0.9,
    },
    Rule {
        name: "us_driver_license",
        entity: Entity::UsDriverLicense,
        masks: &[
            "A9999999",
            "A99999999",
            "A999999999",
            "A999999999999",
            "A99999999999999",
            "AA999999",
            "9999999",
            "99999999",
            "999999999",
            "9999 99 9999",
            "A999 9999 9999",
            "A999 999 99 999 9",
        ],
        valid: varied,
        alone: 0.0,
        context: LICENCE_WORDS,
        named: 0.9,
    },
    Rule {
        name: "us_npi",
        entity: Entity::UsNpi,
        masks: &["9999999999"],
        valid: |number| checksum::luhn(&format!("80840{number}")) && number.starts_with(['1', '2']),
        alone: 0.0,
        context: &["npi", "national provider"],
        named: 0.95,
    },
    Rule {
        name: "us_dea",
        entity: Entity::MedicalLicense,
        masks: &["AA9999999"],
        valid: checksum::dea,
        alone: 0.5,
        context: &["dea", "prescriber", "medical license", "medical licence"],
        named: 0.95,
    },
    Rule {
        name: "uk_nhs",
        entity: Entity::UkNhs,
        masks: &["999 999 9999", "9999999999"],
        valid: |number| checksum::nhs(number) && !same(number),
        alone: 0.3,
        context: &["nhs", "national health", "patient number", "health number"],
        named: 0.98,
    },
    Rule {
        name: "uk_nino",
        entity: Entity::UkNino,
        masks: &["AA999999A", "AA 99 99 99 A", "AA 999999 A"],
        valid: nino,
        alone: 0.9,
        context: &["national insurance", "nino", "ni number", "insurance number"],
        named: 0.98,
    },
    Rule {
        name: "de_tax_id",
        entity: Entity::DeTaxId,
        masks: &["99999999999", "99 999 999 999"],
        valid: german_tax,
        alone: 0.4,
        context: TAX_WORDS,
        named: 0.98,
    },
    Rule {
        name: "fr_nir",
        entity: Entity::FrNir,
        masks: &["999999X99999999", "9 99 99 9X 999 999 99"],
        valid: |number| checksum::nir(number) && number.starts_with(['1', '2']),
        alone: 0.9,
        context: &["nir", "sécurité sociale", "securite sociale", "insee", "social security"],
        named: 0.99,
    },
    Rule {
        name: "es_nif",
        entity: Entity::EsNif,
        masks: &["99999999A", "99999999-A", "99999999 A"],
        valid: checksum::spanish,
        alone: 0.8,
        context: &["dni", "nif", "documento nacional", "identidad", "documento"],
        named: 0.98,
    },
    Rule {
        name: "es_nie",
        entity: Entity::EsNie,
        masks: &["A9999999A", "A-9999999-A"],
        valid: |number| number.starts_with(['X', 'Y', 'Z']) && checksum::spanish(number),
        alone: 0.9,
        context: &["nie", "extranjero", "identidad", "foreigner"],
        named: 0.98,
    },
    Rule {
        name: "it_fiscal_code",
        entity: Entity::ItFiscalCode,
        masks: &["AAAAAA99A99A999A"],
        valid: checksum::codice_fiscale,
        alone: 0.97,
        context: &["codice fiscale", "fiscal code", "cf"],
        named: 1.0,
    },
    Rule {
        name: "pl_pesel",
        entity: Entity::PlPesel,
        masks: &["99999999999"],
        valid: |number| checksum::pesel(number) && !same(number),
        alone: 0.4,
        context: &["pesel"],
        named: 0.99,
    },
    Rule {
        name: "in_aadhaar",
        entity: Entity::InAadhaar,
        masks: &["9999 9999 9999"],
        valid: aadhaar,
        alone: 0.7,
        context: AADHAAR_WORDS,
        named: 0.98,
    },
    Rule {
        name: "in_aadhaar_plain",
        entity: Entity::InAadhaar,
        masks: &["999999999999"],
        valid: aadhaar,
        alone: 0.4,
        context: AADHAAR_WORDS,
        named: 0.98,
    },
    Rule {
        name: "in_pan",
        entity: Entity::InPan,
        masks: &["AAAAA9999A"],
        valid: |number| number.as_bytes().get(3).is_some_and(|kind| b"ABCFGHJLPT".contains(kind)),
        alone: 0.6,
        context: &["pan", "permanent account", "income tax", "pan card"],
        named: 0.95,
    },
    Rule {
        name: "ca_sin",
        entity: Entity::CaSin,
        masks: &["999 999 999", "999999999"],
        valid: |number| checksum::luhn(number) && !number.starts_with(['0', '8']) && !same(number),
        alone: 0.0,
        context: &["sin", "social insurance", "assurance sociale", "nas"],
        named: 0.95,
    },
    Rule {
        name: "au_tfn",
        entity: Entity::AuTfn,
        masks: &["999 999 999", "999999999"],
        valid: |number| checksum::tfn(number) && !same(number),
        alone: 0.0,
        context: &["tfn", "tax file"],
        named: 0.95,
    },
    Rule {
        name: "br_cpf",
        entity: Entity::BrCpf,
        masks: &["999.999.999-99"],
        valid: checksum::cpf,
        alone: 0.95,
        context: &["cpf"],
        named: 0.99,
    },
    Rule {
        name: "br_cpf_plain",
        entity: Entity::BrCpf,
        masks: &["99999999999"],
        valid: checksum::cpf,
        alone: 0.4,
        context: &["cpf"],
        named: 0.98,
    },
    Rule {
        name: "cn_id",
        entity: Entity::CnId,
        masks: &["99999999999999999X"],
        valid: |number| checksum::chinese(number) && number.get(6..8).is_some_and(|c| c == "19" || c == "20"),
        alone: 0.95,
        context: &["身份证", "公民身份", "resident identity", "id card", "identity card"],
        named: 0.99,
    },
    Rule {
        name: "se_personnummer",
        entity: Entity::SePersonnummer,
        masks: &["999999-9999"],
        valid: swedish,
        alone: 0.5,
        context: &["personnummer", "personal identity number", "swedish id"],
        named: 0.98,
    },
];

const AADHAAR_WORDS: &[&str] = &["aadhaar", "aadhar", "uidai", "uid", "आधार"];

fn part(number: &str, range: std::ops::Range<usize>) -> u32 {
    number.get(range).and_then(|part| part.parse().ok()).unwrap_or_default()
}

/// Source: Social Security Administration, "SSN randomization": areas and groups that are never issued.
fn possible_ssn(number: &str) -> bool {
    let area = part(number, 0..3);
    area != 0 && area != 666 && area < 900 && part(number, 3..5) != 0 && part(number, 5..9) != 0
}

/// Without those that were printed in advertisements or are counted up.
fn issued_ssn(number: &str) -> bool {
    let printed = ["078051120", "219099999", "123456789", "987654321", "111223333"];
    possible_ssn(number) && !same(number) && !printed.contains(&number)
}

/// Source: Internal Revenue Manual 3.21.263, ranges of the fourth and fifth digit.
fn itin(number: &str) -> bool {
    number.starts_with('9') && matches!(part(number, 3..5), 50..=65 | 70..=88 | 90..=92 | 94..=99)
}

fn varied(number: &str) -> bool {
    !same(number.trim_start_matches(|c: char| c.is_ascii_alphabetic()))
}

/// Source: HM Revenue and Customs, NIM39110.
fn nino(number: &str) -> bool {
    let prefix = number.get(..2).unwrap_or_default();
    let letters = |c: char| !"DFIQUV".contains(c);
    prefix.chars().all(letters)
        && !prefix.ends_with('O')
        && !["BG", "GB", "NK", "KN", "TN", "NT", "ZZ"].contains(&prefix)
        && number.ends_with(['A', 'B', 'C', 'D'])
}

/// One digit of the first ten stands two or three times. Source: Bundeszentralamt für Steuern, form of the IdNr.
fn german_tax(number: &str) -> bool {
    let body = number.get(..10).and_then(digits).unwrap_or_default();
    let count = |digit: u32| body.iter().filter(|d| **d == digit).count();
    let repeated: Vec<usize> = (0..10).map(count).filter(|count| *count > 1).collect();
    !number.starts_with('0') && matches!(repeated.as_slice(), [2 | 3]) && checksum::mod11_10(number)
}

fn aadhaar(number: &str) -> bool {
    !number.starts_with(['0', '1']) && !same(number) && checksum::verhoeff(number)
}

/// Source: Skatteverket, SKV 704; a day above 60 is a coordination number.
fn swedish(number: &str) -> bool {
    let day = part(number, 4..6);
    (1..=12).contains(&part(number, 2..4))
        && ((1..=31).contains(&day) || (61..=91).contains(&day))
        && checksum::luhn(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_are_never_issued() {
        assert!(possible_ssn("536221234") && issued_ssn("536221234"));
        for never in ["000121234", "666121234", "900121234", "536001234", "536220000"] {
            assert!(!possible_ssn(never), "{never}");
        }
        assert!(possible_ssn("078051120") && !issued_ssn("078051120"));
        assert!(itin("912701234") && !itin("912671234") && !itin("812701234"));
        assert!(nino("AB123456C") && !nino("GB123456A") && !nino("AB123456E") && !nino("DA123456A"));
    }

    #[test]
    fn german_tax_identities_repeat_one_digit() {
        assert!(german_tax("86095742719") && !german_tax("86095742718") && !german_tax("12345678901"));
    }
}
