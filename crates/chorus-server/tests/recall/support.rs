//! The house of the doors' tests.

#[path = "../doors/support/client.rs"]
pub(crate) mod client;
#[path = "../doors/support/files.rs"]
pub(crate) mod files;
#[path = "../doors/support/house.rs"]
pub(crate) mod house;

pub(crate) use client::Answer;
pub(crate) use house::{House, Setup};
