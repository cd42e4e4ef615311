//! What models are shown besides the conversation, over real sockets: memories, documents, tools, and shortened parts.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]
#![expect(dead_code, reason = "the house serves more tests than these")]

mod apart;
mod compression;
mod documents;
mod house;
mod lookups;
mod memory;
mod support;
mod tools;
