//! Keys and values of a sequence, and the recent sequences that a new one may share its beginning with.
//!
//! It computes nothing. Invariant: a sequence's tokens and its keys and values are equally long whenever nobody
//! is in the middle of a forward pass.

/// Keys or values of one key-value head, position after position.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadCache {
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
}

/// A sequence whose keys and values are known.
#[derive(Debug, Clone)]
pub(super) struct Sequence {
    tokens: Vec<u32>,
    head_size: usize,
    /// One list of key-value heads a layer.
    pub(super) layers: Vec<Vec<HeadCache>>,
}

impl Sequence {
    pub(super) fn new(layers: usize, heads: usize, head_size: usize) -> Self {
        Self { tokens: Vec::new(), head_size, layers: vec![vec![HeadCache::default(); heads]; layers] }
    }

    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Notes the tokens that a forward pass has just added to every layer.
    pub(super) fn push(&mut self, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Forgets all but the first `length` tokens.
    pub(super) fn truncate(&mut self, length: usize) {
        self.tokens.truncate(length);
        for head in self.layers.iter_mut().flatten() {
            head.keys.truncate(length * self.head_size);
            head.values.truncate(length * self.head_size);
        }
    }

    /// A copy of the first `length` tokens.
    fn prefix(&self, length: usize) -> Self {
        let cut = |numbers: &[f32]| numbers.get(..length * self.head_size).unwrap_or(numbers).to_vec();
        let head = |head: &HeadCache| HeadCache { keys: cut(&head.keys), values: cut(&head.values) };
        Self {
            tokens: self.tokens.get(..length).unwrap_or(&self.tokens).to_vec(),
            head_size: self.head_size,
            layers: self.layers.iter().map(|heads| heads.iter().map(head).collect()).collect(),
        }
    }

    /// Bytes of keys and values.
    pub(super) fn bytes(&self) -> usize {
        let heads = self.layers.iter().flatten();
        heads.map(|head| (head.keys.capacity() + head.values.capacity()) * size_of::<f32>()).sum()
    }
}

/// Recent sequences, the latest last, bounded by bytes.
#[derive(Debug)]
pub(super) struct Recent {
    sequences: Vec<Sequence>,
    bound_bytes: usize,
}

impl Recent {
    pub(super) fn new(bound_bytes: usize) -> Self {
        Self { sequences: Vec::new(), bound_bytes }
    }

    /// The longest known beginning of a prompt, short of its last token, whose logits are wanted.
    ///
    /// A sequence that is mostly shared is taken over; one that goes on elsewhere for longer than it is shared is
    /// copied from, so that its owner finds it again.
    pub(super) fn longest_prefix(&mut self, prompt: &[u32]) -> Option<Sequence> {
        let wanted = prompt.get(..prompt.len().saturating_sub(1)).unwrap_or_default();
        let shared = |sequence: &Sequence| {
            sequence.tokens().iter().zip(wanted).take_while(|(known, wanted)| known == wanted).count()
        };
        let lengths = self.sequences.iter().map(shared).enumerate();
        let (index, length) = lengths.max_by_key(|(_, length)| *length).filter(|(_, length)| *length > 0)?;
        let known = self.sequences.get(index)?;
        if known.tokens().len() - length > length {
            return Some(known.prefix(length));
        }
        let mut sequence = self.sequences.remove(index);
        sequence.truncate(length);
        Some(sequence)
    }

    /// Keeps a sequence; the oldest ones go when the bound is passed.
    pub(super) fn keep(&mut self, sequence: Sequence) {
        self.sequences.push(sequence);
        let mut bytes: usize = self.sequences.iter().map(Sequence::bytes).sum();
        while bytes > self.bound_bytes && !self.sequences.is_empty() {
            bytes -= self.sequences.remove(0).bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(tokens: &[u32]) -> Sequence {
        let mut sequence = Sequence::new(1, 1, 2);
        for token in tokens {
            let head = &mut sequence.layers[0][0];
            head.keys.extend([*token as f32, 0.0]);
            head.values.extend([*token as f32, 1.0]);
        }
        sequence.push(tokens);
        sequence
    }

    #[test]
    fn the_longest_beginning_is_found_and_cut() {
        let mut recent = Recent::new(1 << 20);
        recent.keep(sequence(&[1, 2, 3, 4]));
        recent.keep(sequence(&[1, 2, 9]));
        let found = recent.longest_prefix(&[1, 2, 3, 7, 8]).unwrap();
        assert_eq!(found.tokens(), [1, 2, 3]);
        assert_eq!(found.layers[0][0].keys, [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);
        assert!(recent.longest_prefix(&[5, 6]).is_none());
    }

    #[test]
    fn the_last_token_of_a_prompt_is_always_computed() {
        let mut recent = Recent::new(1 << 20);
        recent.keep(sequence(&[1, 2, 3]));
        assert_eq!(recent.longest_prefix(&[1, 2, 3]).unwrap().tokens(), [1, 2]);
    }

    #[test]
    fn a_long_conversation_survives_a_stranger_with_the_same_beginning() {
        let mut recent = Recent::new(1 << 20);
        recent.keep(sequence(&[1, 2, 3, 4, 5, 6]));
        assert_eq!(recent.longest_prefix(&[1, 2, 9]).unwrap().tokens(), [1, 2]);
        assert_eq!(recent.longest_prefix(&[1, 2, 3, 4, 5, 6, 7]).unwrap().tokens(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn the_oldest_goes_when_the_bound_is_passed() {
        let one = sequence(&[1, 2, 3, 4]).bytes();
        let mut recent = Recent::new(one * 2);
        for first in [10, 20, 30] {
            recent.keep(sequence(&[first, 2, 3, 4]));
        }
        assert!(recent.longest_prefix(&[10, 2, 3]).is_none());
        assert!(recent.longest_prefix(&[30, 2, 3]).is_some());
        let mut none = Recent::new(0);
        none.keep(sequence(&[1, 2]));
        assert!(none.longest_prefix(&[1, 2, 3]).is_none());
    }
}
