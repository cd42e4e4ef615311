//! The tagger: hashed features of a token, one row of weights a feature, and the best sequence of labels.
//!
//! It knows tokens and numbers. Source: Collins 2002, "Discriminative training methods for hidden Markov models" (features
//! and the averaged perceptron that trains them); Viterbi 1967. **Invariant:** all arithmetic is on whole numbers, so that
//! every machine tags alike.

use super::super::entity::Entity;
use super::token::Token;

/// Labels a token can have.
pub const LABELS: usize = 7;
/// Rows of weights.
pub const BUCKETS: usize = 1 << 16;
/// Features of a token.
pub const FEATURES: usize = 22;

/// Score of no name where nothing speaks for one; more than transitions can move.
const SURE: i32 = 100_000;

const MAGIC: &[u8] = b"chorus-names-1\n";

/// What a token is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// No name.
    Other,
    /// A person.
    Person,
    /// A country, region or city.
    Gpe,
    /// A company, institution or other body.
    Organization,
    /// A street address.
    StreetAddress,
    /// A nationality, religion or political group.
    Nrp,
    /// A form of address or a job title.
    Title,
}

impl Label {
    /// Every label, in the order of weights.
    pub const ALL: [Self; LABELS] = [
        Self::Other,
        Self::Person,
        Self::Gpe,
        Self::Organization,
        Self::StreetAddress,
        Self::Nrp,
        Self::Title,
    ];

    /// The kind of finding; none for no name.
    #[must_use]
    pub fn entity(self) -> Option<Entity> {
        match self {
            Self::Other => None,
            Self::Person => Some(Entity::Person),
            Self::Gpe => Some(Entity::Gpe),
            Self::Organization => Some(Entity::Organization),
            Self::StreetAddress => Some(Entity::StreetAddress),
            Self::Nrp => Some(Entity::Nrp),
            Self::Title => Some(Entity::Title),
        }
    }
}

/// Why weights cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the weights of a tagger of names: {0}")]
pub struct ModelFault(&'static str);

/// Weights of the tagger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    transitions: [[i16; LABELS]; LABELS],
    rows: Vec<[i8; LABELS]>,
}

impl Model {
    /// A model of trained numbers: `transitions[from][to]`, and one row a bucket.
    ///
    /// # Errors
    /// [`ModelFault`] when there are not [`BUCKETS`] rows.
    pub fn new(transitions: [[i16; LABELS]; LABELS], rows: Vec<[i8; LABELS]>) -> Result<Self, ModelFault> {
        if rows.len() == BUCKETS {
            Ok(Self { transitions, rows })
        } else {
            Err(ModelFault("wrong number of rows"))
        }
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// [`ModelFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelFault> {
        let body = bytes.strip_prefix(MAGIC).ok_or(ModelFault("wrong beginning"))?;
        let (head, rows) = body.split_at_checked(LABELS * LABELS * 2).ok_or(ModelFault("too short"))?;
        let mut transitions = [[0; LABELS]; LABELS];
        let cells = transitions.iter_mut().flatten();
        cells.zip(head.as_chunks().0).for_each(|(cell, bytes)| *cell = i16::from_le_bytes(*bytes));
        let (rows, rest) = rows.as_chunks::<LABELS>();
        if !rest.is_empty() {
            return Err(ModelFault("a row is cut"));
        }
        Self::new(transitions, rows.iter().map(|row| row.map(|byte| i8::from_le_bytes([byte]))).collect())
    }

    /// The model as a file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let transitions = self.transitions.iter().flatten().flat_map(|cell| cell.to_le_bytes());
        let rows = self.rows.iter().flatten().flat_map(|cell| cell.to_le_bytes());
        MAGIC.iter().copied().chain(transitions).chain(rows).collect()
    }

    /// The best label of every token, with its margin over no name.
    #[must_use]
    pub fn tag(&self, tokens: &[Token]) -> Vec<(Label, i32)> {
        let scores: Vec<[i32; LABELS]> = (0..tokens.len()).map(|at| self.score(tokens, at)).collect();
        let path = best_path(&scores, |from, to| {
            i32::from(self.transitions.get(from).and_then(|row| row.get(to)).copied().unwrap_or_default())
        });
        let pick = |(scores, label): (&[i32; LABELS], usize)| {
            let margin = scores.get(label).copied().unwrap_or_default() - scores[0];
            (Label::ALL.get(label).copied().unwrap_or(Label::Other), margin)
        };
        scores.iter().zip(path).map(pick).collect()
    }

    fn score(&self, tokens: &[Token], at: usize) -> [i32; LABELS] {
        let mut sum = [0; LABELS];
        // Most of a prose is ordinary words among ordinary words: no name, and not worth a look at the weights.
        let near = tokens.get(at.saturating_sub(1)..tokens.len().min(at + 2)).unwrap_or_default();
        if near.iter().all(Token::is_plain) {
            sum[0] = SURE;
            return sum;
        }
        for bucket in features(tokens, at) {
            if let Some(row) = self.rows.get(bucket) {
                sum.iter_mut().zip(row).for_each(|(sum, weight)| *sum += i32::from(*weight));
            }
        }
        sum
    }
}

/// The sequence of labels with the highest sum of scores and transitions; the first of equals.
pub(super) fn best_path(scores: &[[i32; LABELS]], transition: impl Fn(usize, usize) -> i32) -> Vec<usize> {
    let table: [[i32; LABELS]; LABELS] =
        std::array::from_fn(|from| std::array::from_fn(|to| transition(from, to)));
    let mut total = [0_i32; LABELS];
    let mut back: Vec<[u8; LABELS]> = Vec::with_capacity(scores.len());
    for (at, score) in scores.iter().enumerate() {
        let mut next = [0; LABELS];
        let mut came = [0_u8; LABELS];
        for (to, (slot, from_slot)) in next.iter_mut().zip(came.iter_mut()).enumerate() {
            let mut best = (i32::MIN, 0);
            for (from, (before, row)) in total.iter().zip(&table).enumerate() {
                let value = before + if at == 0 { 0 } else { row.get(to).copied().unwrap_or_default() };
                if value > best.0 {
                    best = (value, from);
                }
            }
            *slot = best.0.saturating_add(score.get(to).copied().unwrap_or_default());
            *from_slot = best.1 as u8;
        }
        total = next;
        back.push(came);
    }
    let last = total.iter().enumerate().rev().max_by_key(|(_, value)| **value).map_or(0, |(label, _)| label);
    let mut path = vec![last; scores.len()];
    for at in (1..scores.len()).rev() {
        let label = path.get(at).copied().unwrap_or_default();
        let from = back.get(at).and_then(|came| came.get(label)).copied().unwrap_or_default();
        if let Some(slot) = path.get_mut(at - 1) {
            *slot = usize::from(from);
        }
    }
    path
}

/// What stands where there is no token.
const NOWHERE: Token = Token {
    bytes: 0..0,
    kind: super::token::Kind::Line,
    is_stop: false,
    lower: 7,
    prefix: 7,
    suffix: 7,
    shape: 15,
    lists: 0,
    begins: false,
};

/// The rows of weights that say something of a token.
#[must_use]
pub fn features(tokens: &[Token], at: usize) -> [usize; FEATURES] {
    let token =
        |offset: isize| at.checked_add_signed(offset).and_then(|at| tokens.get(at)).unwrap_or(&NOWHERE);
    let (two_before, before, here, after, two_after) = (token(-2), token(-1), token(0), token(1), token(2));
    let form = |token: &Token| u64::from(token.shape) << 16 | u64::from(token.lists);
    let shapes =
        [two_before, before, here, after, two_after].iter().fold(0, |all, t| all << 4 | u64::from(t.shape));
    let (own, own_before, own_after) = (form(here), form(before), form(after));
    let begins = u64::from(here.begins);
    let pairs = [
        (0, 0),
        (here.lower, 0),
        (before.lower, 0),
        (after.lower, 0),
        (two_before.lower, 0),
        (two_after.lower, 0),
        (here.prefix, u64::from(here.shape)),
        (here.suffix, u64::from(here.shape)),
        (own, begins),
        (own_before, own),
        (own_after, own),
        (before.lower, own),
        (after.lower, own),
        (before.lower, two_before.lower),
        (after.lower, two_after.lower),
        (before.lower, after.lower),
        (own_before << 20 ^ own, own_after),
        (shapes, 0),
        (shapes, u64::from(here.lists)),
        (form(two_before) << 20 ^ own_before, own),
        (before.lower ^ two_before.lower.rotate_left(9), own),
        (after.lower ^ before.lower.rotate_left(9), own),
    ];
    let mut buckets = [0; FEATURES];
    for (number, (slot, (left, right))) in buckets.iter_mut().zip(pairs).enumerate() {
        *slot = bucket(number as u64, left, right);
    }
    buckets
}

/// A hash of a feature. Source: the finaliser of MurmurHash3 (Appleby).
fn bucket(number: u64, left: u64, right: u64) -> usize {
    let mut hash = left
        ^ right.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
        ^ (number + 1).wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash >> 48) as usize & (BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::super::token::tokens;
    use super::*;

    #[test]
    fn a_model_reads_back() {
        let mut rows = vec![[0; LABELS]; BUCKETS];
        rows[3] = [1, -2, 3, -4, 5, -6, 127];
        let model = Model::new([[-300; LABELS]; LABELS], rows).unwrap();
        assert_eq!(Model::parse(&model.to_bytes()), Ok(model.clone()));
        assert!(Model::parse(b"x").is_err());
        assert!(Model::parse(&model.to_bytes()[..999]).is_err());
        assert!(Model::new([[0; LABELS]; LABELS], Vec::new()).is_err());
    }

    #[test]
    fn the_best_path_weighs_transitions() {
        let mut first = [0; LABELS];
        first[1] = 5;
        let mut second = [0; LABELS];
        second[2] = 4;
        let free = best_path(&[first, second], |_, _| 0);
        assert_eq!(free, [1, 2]);
        let bound = best_path(&[first, second], |from, to| if (from, to) == (1, 2) { -9 } else { 0 });
        assert_eq!(bound, [1, 0]);
        assert!(best_path(&[], |_, _| 0).is_empty());
    }

    #[test]
    fn one_weight_tags_one_word() {
        let cut = tokens("hello Ada");
        let mut rows = vec![[0; LABELS]; BUCKETS];
        rows[features(&cut, 1)[1]][1] = 9;
        let model = Model::new([[0; LABELS]; LABELS], rows).unwrap();
        assert_eq!(model.tag(&cut), [(Label::Other, 0), (Label::Person, 9)]);
    }
}
