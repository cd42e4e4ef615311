//! A served Chorus between a scripted backend and a client, and the words of the tests.

pub(crate) mod client;
pub(crate) mod files;
pub(crate) mod house;

pub(crate) use client::{Answer, Event, Told};
pub(crate) use files::{HOUSE, ask, user};
pub(crate) use house::{House, KEY, Setup};
