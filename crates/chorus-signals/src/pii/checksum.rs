//! Check digits: what tells a number that was issued from one that merely looks so.
//!
//! It knows digits and letters, no text and no score. Functions take the compact form, without separators, upper-case.
//! **Invariant:** any input gives an answer; what is not of the number's form is wrong, never a panic.

use sha2::{Digest, Sha256};

/// The digits of a text that has nothing else; `None` otherwise.
pub(super) fn digits(compact: &str) -> Option<Vec<u32>> {
    compact.chars().map(|c| c.to_digit(10)).collect()
}

fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(digit, weight)| digit * weight).sum()
}

/// Source: ISO/IEC 7812-1, annex B.
pub(super) fn luhn(compact: &str) -> bool {
    let Some(digits) = digits(compact) else { return false };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, &digit)| {
            let doubled = digit * 2;
            if at % 2 == 0 { digit } else { doubled / 10 + doubled % 10 }
        })
        .sum();
    digits.len() > 1 && sum.is_multiple_of(10)
}

/// Remainder by 97 of a text whose letters count as 10 to 35. Source: ISO 7064, mod 97-10.
pub(super) fn mod97(compact: impl Iterator<Item = char>) -> Option<u32> {
    let mut rest = 0;
    for c in compact {
        let value = c.to_digit(36)?;
        rest = (rest * if value < 10 { 10 } else { 100 } + value) % 97;
    }
    Some(rest)
}

/// Source: ISO 13616-1, §5.
pub(super) fn iban(compact: &str) -> bool {
    compact.is_ascii()
        && compact.len() > 4
        && mod97(compact.chars().skip(4).chain(compact.chars().take(4))) == Some(1)
}

/// Source: Verhoeff 1969, "Error detecting decimal codes": the dihedral group of order ten.
pub(super) fn verhoeff(compact: &str) -> bool {
    const PERMUTATION: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let Some(digits) = digits(compact) else { return false };
    let permuted = |digit: u32, times: usize| {
        (0..times % 8).fold(digit, |d, _| PERMUTATION.get(d as usize).copied().unwrap_or_default())
    };
    let product = |left: u32, right: u32| match (left < 5, right < 5) {
        (true, true) => (left + right) % 5,
        (true, false) => 5 + (left + right - 5) % 5,
        (false, true) => 5 + (left - 5 + 5 - right) % 5,
        (false, false) => (left + 5 - right) % 5,
    };
    let check =
        digits.iter().rev().enumerate().fold(0, |sum, (at, &digit)| product(sum, permuted(digit, at)));
    !digits.is_empty() && check == 0
}

/// Source: ISO 7064, mod 11,10, as German tax identities use it.
pub(super) fn mod11_10(compact: &str) -> bool {
    let Some(digits) = digits(compact) else { return false };
    let Some((check, body)) = digits.split_last() else { return false };
    let product = body.iter().fold(10, |product, digit| match (digit + product) % 10 {
        0 => 20 % 11,
        sum => sum * 2 % 11,
    });
    (11 - product) % 10 == *check
}

/// Ten digits, weights 10 to 2. Source: NHS data dictionary, "NHS NUMBER".
pub(super) fn nhs(compact: &str) -> bool {
    let Some(digits) = digits(compact).filter(|d| d.len() == 10) else { return false };
    let check = (11 - weighted(&digits, &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11) % 11;
    check < 10 && digits.last() == Some(&check)
}

/// Nine digits, weights 3, 7, 1. Source: American Bankers Association, routing number policy.
pub(super) fn aba(compact: &str) -> bool {
    digits(compact)
        .is_some_and(|d| d.len() == 9 && weighted(&d, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10))
}

/// Two letters and seven digits. Source: DEA, 21 CFR 1301.13 practice manual.
pub(super) fn dea(compact: &str) -> bool {
    let Some(digits) = compact.get(2..).and_then(digits).filter(|d| d.len() == 7) else { return false };
    let sum = weighted(&digits, &[1, 2, 1, 2, 1, 2]);
    digits.last() == Some(&(sum % 10))
}

/// Eleven digits. Source: Polish act on population registration, PESEL.
pub(super) fn pesel(compact: &str) -> bool {
    let Some(digits) = digits(compact).filter(|d| d.len() == 11) else { return false };
    let sum = weighted(&digits, &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]);
    let month = digits.get(2).zip(digits.get(3)).map_or(0, |(tens, ones)| (tens * 10 + ones) % 20);
    (1..=12).contains(&month) && digits.last() == Some(&((10 - sum % 10) % 10))
}

/// Eight digits (the first may stand for X, Y or Z) and a letter. Source: Spanish royal decree 1553/2005, article 11.
pub(super) fn spanish(compact: &str) -> bool {
    const LETTERS: &[u8] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let number: String = compact
        .chars()
        .enumerate()
        .map(|(at, c)| match (at, c) {
            (0, 'X') => '0',
            (0, 'Y') => '1',
            (0, 'Z') => '2',
            _ => c,
        })
        .collect();
    let Some((number, letter)) = number.get(..8).zip(compact.as_bytes().get(8)) else { return false };
    number.parse::<usize>().is_ok_and(|number| LETTERS.get(number % 23) == Some(letter))
}

/// Sixteen letters and digits. Source: Italian ministerial decree 345/1976.
pub(super) fn codice_fiscale(compact: &str) -> bool {
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let value = |c: char| c.to_digit(10).or_else(|| c.to_digit(36).map(|v| v - 10));
    let sum: Option<u32> = compact
        .chars()
        .take(15)
        .enumerate()
        .map(|(at, c)| {
            let value = value(c)?;
            if at % 2 == 0 { ODD.get(value as usize).copied() } else { Some(value) }
        })
        .sum();
    let check = compact.chars().nth(15).and_then(value);
    compact.len() == 16 && sum.is_some() && sum.map(|sum| sum % 26) == check
}

/// Thirteen digits and a key of two; Corsica's 2A and 2B count as 19 and 18. Source: INSEE, NIR.
pub(super) fn nir(compact: &str) -> bool {
    let plain = compact.replacen("2A", "19", 1).replacen("2B", "18", 1);
    let body = plain.get(..13).and_then(|body| body.parse::<u64>().ok());
    let key = plain.get(13..15).and_then(|key| key.parse::<u64>().ok());
    let month = compact.get(3..5).and_then(|month| month.parse::<u8>().ok()).unwrap_or_default();
    compact.len() == 15
        && ((1..=12).contains(&month) || (20..=42).contains(&month))
        && body.zip(key).is_some_and(|(body, key)| 97 - body % 97 == key)
}

/// Nine digits. Source: Australian Taxation Office, TFN.
pub(super) fn tfn(compact: &str) -> bool {
    digits(compact)
        .is_some_and(|d| d.len() == 9 && weighted(&d, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11))
}

/// Eleven digits, two of them checks. Source: Receita Federal, CPF.
pub(super) fn cpf(compact: &str) -> bool {
    let Some(digits) = digits(compact).filter(|d| d.len() == 11) else { return false };
    let check = |length: u32| {
        let weights: Vec<u32> = (2..=length + 1).rev().collect();
        weighted(&digits, &weights) * 10 % 11 % 10
    };
    !same(compact) && digits.get(9) == Some(&check(9)) && digits.get(10) == Some(&check(10))
}

/// Seventeen digits and a check digit or X. Source: GB 11643-1999.
pub(super) fn chinese(compact: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let Some(digits) = compact.get(..17).and_then(digits) else { return false };
    let check = b"10X98765432".get((weighted(&digits, &WEIGHTS) % 11) as usize);
    let month = compact.get(10..12).and_then(|month| month.parse::<u8>().ok()).unwrap_or_default();
    (1..=12).contains(&month) && compact.len() == 18 && compact.as_bytes().get(17) == check
}

/// Whether all characters are the same one.
pub(super) fn same(compact: &str) -> bool {
    let mut chars = compact.chars();
    chars.next().is_none_or(|first| chars.all(|c| c == first))
}

/// A Bitcoin address of the older form: 25 bytes, four of them a checksum. Source: Bitcoin, "Base58Check encoding".
pub(super) fn base58check(text: &str) -> bool {
    const ALPHABET: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let mut bytes = [0_u8; 25];
    for c in text.chars() {
        let Some(mut carry) = ALPHABET.find(c) else { return false };
        for byte in bytes.iter_mut().rev() {
            carry += usize::from(*byte) * 58;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry > 0 {
            return false;
        }
    }
    let (body, check) = bytes.split_at(21);
    Sha256::digest(Sha256::digest(body)).starts_with(check)
}

/// A Bitcoin address of the newer form, lower-case, with its `bc1`. Source: BIP 173 and BIP 350.
pub(super) fn bech32(text: &str) -> bool {
    const ALPHABET: &str = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let Some(data) = text.strip_prefix("bc1") else { return false };
    let expanded = [3, 3, 0, 2, 3].into_iter().map(Some);
    let values = data.chars().map(|c| ALPHABET.find(c).map(|value| value as u32));
    let sum = expanded.chain(values).try_fold(1_u32, |sum, value| {
        let top = sum >> 25;
        let shifted = ((sum & 0x01ff_ffff) << 5) ^ value?;
        let chosen = GENERATOR.iter().enumerate().filter(|(bit, _)| top >> bit & 1 == 1);
        Some(chosen.fold(shifted, |sum, (_, generator)| sum ^ generator))
    });
    matches!(sum, Some(1 | 0x2bc8_30a3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check digit catches every single wrong digit, so each neighbour of a valid number is wrong.
    fn holds(check: fn(&str) -> bool, valid: &str) {
        assert!(check(valid), "{valid}");
        for (at, c) in valid.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
            let other = char::from_digit((c.to_digit(10).unwrap() + 1) % 10, 10).unwrap();
            let mut wrong = valid.to_owned();
            wrong.replace_range(at..=at, &other.to_string());
            assert!(!check(&wrong), "{wrong}");
        }
        assert!(!check("") && !check("é") && !check("12"));
    }

    #[test]
    fn check_digits() {
        holds(luhn, "4111111111111111");
        holds(iban, "DE02120300000000202051");
        holds(verhoeff, "234123412346");
        holds(mod11_10, "86095742719");
        holds(nhs, "9434765919");
        holds(aba, "021000021");
        holds(dea, "AB1234563");
        holds(pesel, "44051401359");
        holds(spanish, "12345678Z");
        holds(spanish, "X1234567L");
        holds(codice_fiscale, "RSSMRA85T10A562S");
        holds(nir, "255081416802538");
        holds(tfn, "876543210");
        holds(cpf, "52998224725");
        holds(chinese, "11010519491231002X");
    }

    #[test]
    fn wallets() {
        for valid in ["1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"] {
            assert!(base58check(valid));
            assert!(!base58check(&valid.replace('W', "X").replace("DM", "DN")));
        }
        for valid in [
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        ] {
            assert!(bech32(valid));
            assert!(!bech32(&valid.replacen("x", "z", 1)));
        }
        assert!(!base58check(&"z".repeat(80)) && !bech32("bc1"));
    }
}
