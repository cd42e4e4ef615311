//! Personal data in prose, in prose with personal data, and in numbers. Target: 150 µs for 1 KiB of prose, median, and
//! 200 times that for 200 KiB.
//!
//! It knows the public functions only. Run: `cargo bench -p chorus-signals --bench pii`.

use chorus_signals::pii::find;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

const PROSE: &str = "The committee met again in the spring to review how the river had changed since the old bridge was \
    closed. Most of the people who live along the bank remember the flood, and they would rather pay for a new wall than \
    wait for another report. Engineers from the university measured the flow at four places and found that it had risen by \
    12 percent over the last decade. Nobody was surprised: the town has grown, and the fields that used to take up the \
    water are gone. ";
const PERSONAL: &str = "Please update the record of Maria Johnson (maria.johnson@example.com, +1-415-555-0134), who paid \
    with card 4111 1111 1111 1111 on 3 March 2024 and lives at 12 Oak Street, Springfield. ";
const NUMBERS: &str = "4829173650 1764412800 12-34-56 9.8.7.6 2024-01-02 3,141,592 0x7ffe 17:45 ";

fn text(part: &str, bytes: usize) -> String {
    part.chars().cycle().take(bytes).collect()
}

fn pii(c: &mut Criterion) {
    for (name, part) in [("prose", PROSE), ("personal data", PERSONAL), ("numbers", NUMBERS)] {
        for (size, bytes) in [("1 KiB", 1024), ("200 KiB", 200 * 1024)] {
            let text = text(part, bytes);
            c.bench_function(&format!("pii, {name}, {size}"), |b| b.iter(|| find(black_box(&text))));
        }
    }
}

criterion_group!(benches, pii);
criterion_main!(benches);
