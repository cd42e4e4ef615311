//! Sentences with made-up people in them.
//!
//! It knows slots and what fills them; the sentences are our own (`data/names_templates.txt`), the names are those of the
//! lists. **Invariant:** the same seed gives the same sentences.

use chorus_signals::pii::names::{Label, List};

use super::corpus::Labelled;
use chorus_signals::pii::Entity;

const TEMPLATES: &str = include_str!("../../data/names_templates.txt");
/// Texts made from one template of ours.
const FROM_OWN: usize = 60;
/// Texts made from one text of the public set by filling it anew.
const FROM_PUBLIC: usize = 2;

/// A text whose parts are names or not.
pub(super) struct Made {
    pub(super) text: String,
    /// Labels of byte places, in order; what lies between is no name.
    pub(super) names: Vec<(Label, std::ops::Range<usize>)>,
}

/// SplitMix64. Source: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.roll(from.len());
        from.get(at).copied().unwrap_or_default()
    }

    fn percent(&mut self, share: usize) -> bool {
        self.roll(100) < share
    }
}

/// Fills slots.
pub(super) struct Maker {
    dice: Dice,
    given: Vec<&'static str>,
    surnames: Vec<&'static str>,
    countries: Vec<&'static str>,
    places: Vec<&'static str>,
    occupations: Vec<&'static str>,
    nationalities: Vec<&'static str>,
}

const FIRMS: &[&str] =
    &["Inc", "Inc.", "LLC", "Ltd", "Ltd.", "Group", "GmbH", "Corporation", "and Sons", "PLC", "Holdings"];
const TRADES: &[&str] = &[
    "Bank",
    "Systems",
    "Labs",
    "Media",
    "Insurance",
    "Health",
    "Networks",
    "Software",
    "Foundation",
    "University",
    "Institute",
    "Energy",
    "Analytics",
    "Capital",
    "Solutions",
    "Hospital",
    "Airlines",
    "Foods",
    "Motors",
    "Press",
];
const COINED: &[&str] = &[
    "Vex", "Lumi", "Tran", "Zen", "Cor", "Nova", "Hal", "Pix", "Quan", "Opti", "Syn", "Ver", "Bio", "Data",
    "Cloud", "Fact", "Open", "Social", "Web", "Net", "Robo", "Info", "Agri", "Solar",
];
const ENDINGS: &[&str] = &[
    "ly", "ify", "ora", "tech", "io", "base", "wise", "ium", "ent", "soft", "era", "lytics", "hub", "set",
    "works", "point",
];
const STREETS: &[&str] = &[
    "Street",
    "St",
    "Avenue",
    "Road",
    "Lane",
    "Drive",
    "Court",
    "Way",
    "Boulevard",
    "Place",
    "Square",
    "Close",
];
const FOREIGN: &[&str] =
    &["Rue de", "Via", "Calle", "Avda.", "Rua", "ul.", "Rue du", "Plaza", "Chemin de", "Avenida", "Travessa"];
const JOINED: &[&str] = &[
    "straße", "weg", "gasse", "straat", "laan", "gatan", "vej", "katu", "tie", "gate", "utca", "platz",
    "allee", "vägen",
];
const HONORIFICS: &[&str] = &["Mr.", "Mrs.", "Ms.", "Dr.", "Mr", "Mrs", "Ms", "Dr", "Prof.", "Miss"];

impl Maker {
    pub(super) fn new(seed: u64) -> Self {
        let words = |list: List| list.entries().collect();
        Self {
            dice: Dice(seed),
            given: words(List::Given),
            surnames: words(List::Surname),
            countries: words(List::Country),
            places: words(List::Place),
            occupations: words(List::Occupation),
            nationalities: words(List::Nationality),
        }
    }

    /// All texts: every template of ours many times, and every public text filled anew.
    pub(super) fn make(&mut self, public: &[&Labelled]) -> Vec<Made> {
        let mut made = Vec::new();
        for _ in 0..FROM_OWN {
            for line in TEMPLATES.lines() {
                let text = self.fill(&line.replace("\\n", "\n"));
                made.push(text);
            }
        }
        for labelled in public {
            for _ in 0..FROM_PUBLIC {
                made.push(self.refill(labelled));
            }
        }
        made
    }

    fn fill(&mut self, template: &str) -> Made {
        let mut made = Made { text: String::new(), names: Vec::new() };
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('{') {
            made.text.push_str(before);
            match after.split_once('}').filter(|(slot, _)| slot.chars().all(|c| c.is_ascii_uppercase())) {
                Some((slot, tail)) => {
                    let (label, value) = self.slot(slot);
                    made.add(label, &value);
                    rest = tail;
                }
                None => {
                    made.text.push('{');
                    rest = after;
                }
            }
        }
        made.text.push_str(rest);
        self.vary(made)
    }

    /// The same sentence about somebody else.
    fn refill(&mut self, labelled: &Labelled) -> Made {
        let mut made = Made { text: String::new(), names: Vec::new() };
        let mut chars = labelled.text.chars();
        let mut at = 0;
        for (entity, place) in &labelled.spans {
            made.text.extend(chars.by_ref().take(place.start.saturating_sub(at)));
            let value: String = chars.by_ref().take(place.len()).collect();
            at = place.end;
            let slot = match entity {
                Entity::Person => Some("PERSON"),
                Entity::Gpe => Some("GPE"),
                Entity::Organization => Some("ORG"),
                Entity::Nrp => Some("NRP"),
                Entity::Title if value.ends_with('.') => Some("TITLE"),
                Entity::Title => Some("JOB"),
                Entity::StreetAddress if value.chars().any(char::is_alphabetic) && value.len() > 9 => {
                    Some("STREET")
                }
                _ => None,
            };
            match slot {
                Some(slot) => {
                    let (label, value) = self.slot(slot);
                    made.add(label, &value);
                }
                None => made.add(label_of(*entity), &value),
            }
        }
        made.text.extend(chars);
        self.vary(made)
    }

    /// Some people write without capitals.
    fn vary(&mut self, made: Made) -> Made {
        if !self.dice.percent(12) {
            return made;
        }
        let mut lower = Made { text: String::new(), names: Vec::new() };
        let mut at = 0;
        for (label, place) in &made.names {
            lower.text.push_str(&made.text.get(at..place.start).unwrap_or_default().to_lowercase());
            lower.add(*label, &made.text.get(place.clone()).unwrap_or_default().to_lowercase());
            at = place.end;
        }
        lower.text.push_str(&made.text.get(at..).unwrap_or_default().to_lowercase());
        lower
    }

    fn slot(&mut self, slot: &str) -> (Label, String) {
        match slot {
            "PERSON" => (Label::Person, self.person()),
            "GPE" => (Label::Gpe, self.place()),
            "ORG" => (Label::Organization, self.body()),
            "STREET" => (Label::StreetAddress, self.street()),
            "STREETNAME" => (Label::StreetAddress, self.street_name()),
            "NRP" => (Label::Nrp, capital(self.dice.pick(&self.nationalities))),
            "TITLE" => (Label::Title, self.dice.pick(HONORIFICS).to_owned()),
            "JOB" => (Label::Title, self.job()),
            _ => (Label::Other, self.number(slot)),
        }
    }

    fn person(&mut self) -> String {
        let (given, surname) = (self.dice.pick(&self.given), self.dice.pick(&self.surnames));
        let initial = char::from(b'A' + self.dice.roll(26) as u8);
        match self.dice.roll(20) {
            0..7 => format!("{given} {surname}"),
            7..11 => given.to_owned(),
            11..15 => surname.to_owned(),
            15 => format!("{given} {initial}. {surname}"),
            16 => format!("{given} {initial} {surname}"),
            17 => format!("{given} {surname}-{}", self.dice.pick(&self.surnames)),
            18 => format!("{given} {} {surname}", self.dice.pick(&self.given)),
            _ => format!("{given} {surname} {}", self.dice.pick(&self.surnames)),
        }
    }

    fn place(&mut self) -> String {
        let from = if self.dice.percent(35) { &self.countries } else { &self.places };
        let place = self.dice.pick(from);
        if self.dice.percent(15) { place.to_uppercase() } else { place.to_owned() }
    }

    fn body(&mut self) -> String {
        let (one, two) = (self.dice.pick(&self.surnames), self.dice.pick(&self.surnames));
        let coined = format!("{}{}", self.dice.pick(COINED), self.dice.pick(ENDINGS));
        match self.dice.roll(12) {
            0 => format!("{one}-{two}"),
            1 => format!("{one}, {two} and {}", self.dice.pick(&self.surnames)),
            2 | 3 => format!("{one} {}", self.dice.pick(FIRMS)),
            4 => format!("{coined} {}", self.dice.pick(FIRMS)),
            5 => format!("{coined} {}", self.dice.pick(TRADES)),
            6 => format!("{} {}", self.dice.pick(&self.places), self.dice.pick(TRADES)),
            7 => format!("{one} {}", self.dice.pick(TRADES)),
            8 => format!("{} {}", self.dice.pick(COINED), self.dice.pick(TRADES)),
            _ => coined,
        }
    }

    fn street(&mut self) -> String {
        let name = self.street_name();
        let number = 1 + self.dice.roll(9_900);
        match self.dice.roll(10) {
            0..3 => format!("{number} {name}"),
            3..5 => format!("{name} {}", 1 + self.dice.roll(400)),
            5 => format!("{number} {name} Apt. {}", 1 + self.dice.roll(900)),
            6 => format!(
                "{number} {name}\n Suite {}\n {}\n {} {number}",
                1 + self.dice.roll(900),
                self.place(),
                self.place()
            ),
            7 => format!("{number} {name}, {} {number}", self.place()),
            8 => format!("P.O. Box {number}"),
            _ => format!("{name} {}.", 1 + self.dice.roll(90)),
        }
    }

    fn street_name(&mut self) -> String {
        let (name, place) = (self.dice.pick(&self.surnames), self.dice.pick(&self.places));
        match self.dice.roll(8) {
            0..4 => format!("{name} {}", self.dice.pick(STREETS)),
            4 => format!("{} {name}", self.dice.pick(FOREIGN)),
            5 => format!("{} {place}", self.dice.pick(FOREIGN)),
            6 => format!("{name}{}", self.dice.pick(JOINED)),
            _ => format!("{place}{}", self.dice.pick(JOINED)),
        }
    }

    fn job(&mut self) -> String {
        let job = self.dice.pick(&self.occupations);
        if self.dice.percent(50) { capital(job) } else { job.to_owned() }
    }

    fn number(&mut self, slot: &str) -> String {
        let digits = |dice: &mut Dice, count: usize| -> String {
            (0..count).map(|_| char::from(b'0' + dice.roll(10) as u8)).collect()
        };
        match slot {
            "PHONE" => format!(
                "+{} {} {}",
                1 + self.dice.roll(90),
                digits(&mut self.dice, 3),
                digits(&mut self.dice, 6)
            ),
            "EMAIL" => {
                format!("{}{}@example.com", self.dice.pick(&self.given), self.dice.pick(&self.surnames))
            }
            "CARD" => digits(&mut self.dice, 16),
            "ZIP" => digits(&mut self.dice, 5),
            "AGE" => (18 + self.dice.roll(70)).to_string(),
            _ if self.dice.percent(50) => (1950 + self.dice.roll(75)).to_string(),
            _ => {
                format!("{}/{}/{}", 1 + self.dice.roll(12), 1 + self.dice.roll(28), 1950 + self.dice.roll(75))
            }
        }
    }
}

impl Made {
    fn add(&mut self, label: Label, value: &str) {
        let start = self.text.len();
        self.text.push_str(value);
        self.names.push((label, start..self.text.len()));
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The tagger's label of a kind; other kinds have patterns.
pub(super) fn label_of(entity: Entity) -> Label {
    Label::ALL.into_iter().find(|label| label.entity() == Some(entity)).unwrap_or(Label::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_and_labelled() {
        let made = Maker::new(1).fill("Hi {PERSON}, {\"a\": {AGE}}");
        assert!(!made.text.contains("{P") && made.text.to_lowercase().starts_with("hi "));
        let kinds: Vec<Label> = made.names.iter().map(|(label, _)| *label).collect();
        assert_eq!(kinds, [Label::Person, Label::Other]);
    }

    #[test]
    fn the_same_seed_gives_the_same_sentences() {
        let texts = |seed| Maker::new(seed).make(&[]).into_iter().map(|made| made.text).collect::<Vec<_>>();
        assert_eq!(texts(3), texts(3));
        assert_ne!(texts(3), texts(4));
    }
}
