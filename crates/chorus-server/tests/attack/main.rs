//! Attempts and personal data, through every door and every way to work, at an operating point for safety; what the
//! backend got is compared byte by byte.
//!
//! A *bypass* breaks the contract: something that the classifier or the recognisers know, or could not look at, reached
//! the backend. What they do not know is counted apart, as *not found*: it says how good they are, and no code between
//! them and the backend could help. `cargo test` takes a sample, with an encoder that knows nothing; `cargo xtask attack`
//! takes all, with the real one, and prints the tables.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where, and the whole run prints its tables"
)]

mod attacks;
mod conversation;
mod house;
mod personal;
mod seed;
mod tally;

use attacks::{attacks, harmless};
use chorus_infer::TextEncoder;
use conversation::{Door, Who};
use house::{Blank, House, WAYS, holds, placeholders, real};
use personal::personal;
use std::sync::Arc;
use tally::Tally;

/// How many of each are sent.
struct Size {
    attacks: usize,
    personal: usize,
    harmless: usize,
    poisons: usize,
    /// Whether each goes through every door, and not through one of them in turn.
    every_door: bool,
}

const SAMPLE: Size = Size { attacks: 20, personal: 20, harmless: 4, poisons: 6, every_door: false };
const WHOLE: Size = Size { attacks: 500, personal: 200, harmless: 120, poisons: 100, every_door: true };

impl Size {
    /// The doors of the text at that place.
    fn doors(&self, at: usize) -> Vec<Door> {
        if self.every_door { Door::ALL.into() } else { vec![Door::ALL[at % Door::ALL.len()]] }
    }
}

#[tokio::test]
async fn secu_a_sample_of_attacks_and_personal_data_bypasses_nothing() {
    for tally in run(Arc::new(Blank::new()), &SAMPLE).await {
        assert_eq!(tally.bypasses(), Vec::<String>::new(), "{}", tally.title);
        assert!(tally.held() > 0, "{}: nothing was put to the test", tally.title);
    }
}

/// `cargo xtask attack`.
#[tokio::test]
#[ignore = "minutes of requests, and the real encoder from the model store: cargo xtask attack"]
async fn secu_all_attacks_and_personal_data_bypass_nothing() {
    let tallies = run(real(), &WHOLE).await;
    tallies.iter().for_each(|tally| println!("{tally}"));
    let bypasses: Vec<String> = tallies.iter().flat_map(Tally::bypasses).collect();
    println!("policy bypasses: {}", bypasses.len());
    assert_eq!(bypasses, Vec::<String>::new());
}

async fn run(encoder: Arc<dyn TextEncoder>, size: &Size) -> Vec<Tally> {
    let mut attacks = Tally::new("attacks", "an attempt of a client is refused before any call");
    let mut poisoned =
        Tally::new("poisoned members", "an attempt in a model's answer is shown to no other model");
    let mut personal = Tally::new("personal data", "a value leaves as a placeholder and comes back");
    let mut harmless = Tally::new("harmless texts", "a request that is no attempt is answered");
    for (way, _) in WAYS {
        let house = House::open(Arc::clone(&encoder)).await;
        attack(&house, way, size, &mut attacks).await;
        poison(&house, way, size, &mut poisoned).await;
        redact(&house, way, size, &mut personal).await;
        answer(&house, way, size, &mut harmless).await;
    }
    vec![attacks, poisoned, personal, harmless]
}

async fn attack(house: &House, way: &str, size: &Size, tally: &mut Tally) {
    for (at, attack) in attacks(size.attacks).into_iter().enumerate() {
        let known = !house.passes(&attack.turns).await;
        for door in size.doors(at) {
            let outcome = house.send(way, door, &attack.turns).await;
            let refused = outcome.status == 403 && outcome.got.is_empty();
            tally.count(way, attack.family, known, refused, || {
                format!("{way}, {}: {} ({}): {}", door.name(), attack.family, outcome.status, attack.text)
            });
        }
    }
}

async fn poison(house: &House, way: &str, size: &Size, tally: &mut Tally) {
    let question = vec![(Who::User, "How is bread baked?".to_owned())];
    for attack in attacks(size.poisons) {
        let text = format!("Bread needs time. {}", attack.text);
        let known = !house
            .passes(&vec![(Who::User, "How is bread baked?".to_owned()), (Who::Tool, text.clone())])
            .await;
        house.poison(Some(&text));
        for stream in [false, true] {
            let door = Door { stream, ..Door::ALL[0] };
            let outcome = house.send(way, door, &question).await;
            let kept = !outcome.got.iter().any(|body| holds(body, &attack.text));
            tally.count(way, attack.family, known, kept, || format!("{way}, {}: {text}", door.name()));
        }
    }
    house.poison(None);
}

async fn redact(house: &House, way: &str, size: &Size, tally: &mut Tally) {
    for (at, person) in personal(size.personal).into_iter().enumerate() {
        let known = house.finds(&person.value, &person.turns).await;
        // The kinds come round every ten texts: so that each meets every door.
        for door in size.doors(at / 10 + at) {
            let outcome = house.send(way, door, &person.turns).await;
            let left = outcome.got.iter().any(|body| holds(body, &person.value));
            let came_back = placeholders(&outcome.text).is_empty();
            tally.count(way, person.kind, known, !left && came_back, || {
                format!("{way}, {}: {} of {:?}: {}", door.name(), person.value, person.turns, outcome.text)
            });
            tally.refused(outcome.status != 200);
        }
    }
}

async fn answer(house: &House, way: &str, size: &Size, tally: &mut Tally) {
    for text in harmless(size.harmless) {
        let turns = vec![(Who::User, text.clone())];
        let known = house.passes(&turns).await;
        let outcome = house.send(way, Door::ALL[0], &turns).await;
        let answered = outcome.status == 200;
        tally.count(way, "harmless", known, answered, || format!("{way} ({}): {text}", outcome.status));
        tally.refused(!answered);
    }
}
