//! What makes the chunks of one stream one stream. It knows no choices.

use crate::body::RawObject;
use crate::chunk::{Chunk, OBJECT};
use crate::raw::{Raw, raw_or_null};

/// What every chunk of one stream shares.
#[derive(Debug, Clone)]
pub struct StreamIdentity {
    /// Completion id.
    pub id: String,
    /// The name that the client asked for.
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
}

impl StreamIdentity {
    /// Writes the identity on a chunk. `StreamRepair::push` does so itself; this is for a chunk that does not pass
    /// through it, such as [`Chunk::usage`].
    pub fn stamp(&self, chunk: &mut Chunk) {
        Stamp::new(self).put(&mut chunk.body);
    }
}

/// The identity as JSON text, made once a stream.
#[derive(Debug)]
pub(crate) struct Stamp {
    id: Raw,
    object: Raw,
    created: Raw,
    model: Raw,
}

impl Stamp {
    pub(crate) fn new(identity: &StreamIdentity) -> Self {
        Self {
            id: raw_or_null(&identity.id),
            object: raw_or_null(OBJECT),
            created: raw_or_null(&identity.created),
            model: raw_or_null(&identity.model),
        }
    }

    pub(crate) fn put(&self, body: &mut RawObject) {
        body.set_all([
            ("id", &self.id),
            ("object", &self.object),
            ("created", &self.created),
            ("model", &self.model),
        ]);
    }
}
