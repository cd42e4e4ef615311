//! Lists of names and words, as bits of a word.
//!
//! It knows which lists a word is on, not what that means: weights decide. Sources and licences: `data/pii/README.md`.
//! **Invariant:** the same lists always give the same bits.

use super::hash::hash;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// Given names.
const GIVEN: u16 = 1;
/// Family names.
const SURNAME: u16 = 1 << 1;
/// Places of one word.
const PLACE: u16 = 1 << 2;
/// Words of places of several words.
const PLACE_PART: u16 = 1 << 3;
/// Ordinary words.
const COMMON: u16 = 1 << 4;
/// Words of occupations.
const OCCUPATION: u16 = 1 << 5;
/// Words that companies' names end in.
const COMPANY: u16 = 1 << 6;
/// Words of streets.
const STREET: u16 = 1 << 7;
/// Forms of address.
const HONORIFIC: u16 = 1 << 8;
/// Nationalities, religions, political groups.
const NATIONALITY: u16 = 1 << 9;
/// Countries of one word.
const COUNTRY: u16 = 1 << 10;

const COMPANY_WORDS: &str = "inc llc ltd limited corp corporation company co gmbh ag plc group holdings partners \
    associates bank university institute foundation trust agency ministry department hospital college school church \
    labs systems technologies solutions services industries ventures capital media networks software consulting";
const STREET_WORDS: &str = "street st avenue ave road rd boulevard blvd lane ln drive dr court ct square sq way place pl \
    terrace parkway highway crescent close apt apartment suite unit floor box po rue via calle avda avenida rua ul \
    ulica straße strasse weg platz gasse allee piazza viale plaza psc apo utca köz tér út";
const HONORIFIC_WORDS: &str =
    "mr mrs ms miss dr prof professor sir madam herr frau señor señora monsieur madame mx rev";

/// A list of names or words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Given names.
    Given,
    /// Family names.
    Surname,
    /// Countries.
    Country,
    /// Regions and cities.
    Place,
    /// Ordinary words.
    Common,
    /// Occupations.
    Occupation,
    /// Nationalities, religions, political groups.
    Nationality,
}

impl List {
    const ALL: [Self; 7] = [
        Self::Given,
        Self::Surname,
        Self::Country,
        Self::Place,
        Self::Common,
        Self::Occupation,
        Self::Nationality,
    ];

    /// What is on it, sorted.
    pub fn entries(self) -> impl Iterator<Item = &'static str> {
        let file = match self {
            Self::Given => include_str!("../../../data/pii/given.txt"),
            Self::Surname => include_str!("../../../data/pii/surnames.txt"),
            Self::Country => include_str!("../../../data/pii/countries.txt"),
            Self::Place => include_str!("../../../data/pii/places.txt"),
            Self::Common => include_str!("../../../data/pii/common.txt"),
            Self::Occupation => include_str!("../../../data/pii/occupations.txt"),
            Self::Nationality => include_str!("../../../data/pii/nationalities.txt"),
        };
        file.lines()
    }

    /// The bit of an entry of one word, and that of a word of a longer one.
    fn bits(self) -> (u16, u16) {
        match self {
            Self::Given => (GIVEN, GIVEN),
            Self::Surname => (SURNAME, SURNAME),
            Self::Country => (PLACE | COUNTRY, PLACE_PART),
            Self::Place => (PLACE, PLACE_PART),
            Self::Common => (COMMON, COMMON),
            Self::Occupation => (OCCUPATION, OCCUPATION),
            Self::Nationality => (NATIONALITY, NATIONALITY),
        }
    }
}

/// Keys are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

static LISTS: LazyLock<HashMap<u64, u16, BuildHasherDefault<Hashed>>> = LazyLock::new(|| {
    let mut lists = HashMap::with_capacity_and_hasher(48_000, BuildHasherDefault::default());
    let mut add = |word: &str, bit: u16| *lists.entry(hash(word)).or_insert(0) |= bit;
    for list in List::ALL {
        let (alone, part) = list.bits();
        for entry in list.entries() {
            let bit = if entry.contains(' ') { part } else { alone };
            entry.split(' ').for_each(|word| add(word, bit));
        }
    }
    for (words, bit) in [(COMPANY_WORDS, COMPANY), (STREET_WORDS, STREET), (HONORIFIC_WORDS, HONORIFIC)] {
        words.split_whitespace().for_each(|word| add(word, bit));
    }
    lists
});

/// The lists of a word, by the hash of its lower-case form.
pub(super) fn lists(lower: u64) -> u16 {
    LISTS.get(&lower).copied().unwrap_or_default()
}

/// Whether it is an ordinary word and nothing else.
pub(super) fn is_common(lists: u16) -> bool {
    lists == COMMON
}

/// Whether lists have it as a name and not as an ordinary word.
pub(super) fn is_name(lists: u16) -> bool {
    lists & (GIVEN | SURNAME | PLACE | PLACE_PART | NATIONALITY) != 0 && lists & COMMON == 0
}

/// What the lists say of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListHint {
    /// A given name and nothing else, but perhaps a family name.
    Given,
    /// A family name and nothing else.
    Surname,
    /// A place and nothing else, or a country.
    Place,
    /// A nationality.
    Nationality,
    /// An ordinary word and no name.
    Common,
    /// A name and something else.
    Several,
    /// It is on no list.
    None,
}

pub(super) fn hint(lists: u16) -> ListHint {
    let names = lists & (GIVEN | SURNAME | PLACE | PLACE_PART);
    match (names, lists & COMMON != 0, lists & NATIONALITY != 0) {
        (_, false, true) => ListHint::Nationality,
        _ if lists & (COUNTRY | COMMON) == COUNTRY => ListHint::Place,
        (GIVEN, false, _) => ListHint::Given,
        (both, false, _) if both == GIVEN | SURNAME => ListHint::Given,
        (SURNAME, false, _) => ListHint::Surname,
        (PLACE, false, _) => ListHint::Place,
        (0, true, _) => ListHint::Common,
        (0, false, _) => ListHint::None,
        _ => ListHint::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_on_their_lists() {
        assert_eq!(lists(hash("the")) & (GIVEN | COMMON), COMMON);
        assert_ne!(lists(hash("maria")) & GIVEN, 0);
        assert_ne!(lists(hash("berlin")) & PLACE, 0);
        assert_ne!(lists(hash("zealand")) & PLACE_PART, 0);
        assert_eq!(lists(hash("qwxyz")), 0);
    }
}
