//! Vectors of equal length: how alike two are, the nearest of many, and their form in a file.
//!
//! It knows numbers, not what they stand for: no encoder, no text, no store. Vectors are of unit length where nothing else is
//! said, so that a dot product is a cosine.
//!
//! **Invariant:** the same vectors give the same products; of coded ones on every processor, since their sums are whole numbers.

mod bytes;
mod coded;
mod exact;

pub use bytes::{from_bytes, to_bytes};
pub use coded::Coded;
pub use exact::{Exact, dot};
