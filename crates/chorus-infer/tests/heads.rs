//! The built-in heads: on golden vectors always, on the real encoder when asked.
//!
//! It knows the public heads and encoder only. Invariant: the ignored test alone reads `CHORUS_MODELS`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "the tests' own steps: a panic here is a failed test"
)]

use std::path::PathBuf;

use chorus_infer::encoder::MiniLm;
use chorus_infer::{Head, TextEncoder, heads, lexical};

/// One `label<tab>question<tab>vector` a line: vectors of the real encoder in units of 1e-5, rounded.
const GOLDEN: &str = include_str!("golden/domain.tsv");
const EVERYDAY: &str = include_str!("../../chorus-lab/data/everyday_eval.tsv");

fn best<'a>(head: &'a Head, embedding: &[f32]) -> &'a str {
    let probabilities = head.probabilities(embedding);
    let best = (0..probabilities.len()).max_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    &head.labels()[best.unwrap()]
}

#[test]
fn the_domain_head_fits_the_default_encoder() {
    let domain = heads::of_default().domain.unwrap();
    assert_eq!((domain.labels().len(), domain.dimension()), (14, 384));
}

#[test]
fn the_heads_that_see_words_fit_the_same_encoder() {
    let encoder = heads::of_default().domain.unwrap().encoder_digest();
    let labels: [(&Head, &[&str]); 4] = [
        (heads::of_default().complexity.unwrap(), &["easy", "hard"]),
        (heads::of_default().fact_check.unwrap(), &["no_fact_check_needed", "needs_fact_check"]),
        (
            heads::of_default().user_feedback.unwrap(),
            &["none", "need_clarification", "satisfied", "want_different", "wrong_answer"],
        ),
        (heads::of_default().modality.unwrap(), &["AR", "DIFFUSION", "BOTH"]),
    ];
    for (head, labels) in labels {
        assert_eq!(head.labels(), labels);
        assert_eq!(head.encoder_digest(), lexical::digest(encoder));
        assert_eq!(head.dimension(), 384 + lexical::DIMENSION);
    }
}

#[test]
fn the_domain_head_knows_golden_vectors() {
    let head = heads::of_default().domain.unwrap();
    for line in GOLDEN.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let vector: Vec<f32> =
            fields[2].split(' ').map(|value| value.parse::<f32>().unwrap() / 1e5).collect();
        assert_eq!(vector.len(), head.dimension());
        assert_eq!(best(head, &vector), fields[0], "{}", fields[1]);
    }
    assert_eq!(GOLDEN.lines().count(), 4);
}

/// Hard prompts without trigger words, of which two are not English, must not land in the lowest tier.
const D13: [&str; 3] = [
    "Show that every group of order 15 is cyclic.",
    "Ein Mieter kündigt seine Wohnung vor Ablauf der Befristung: welche Fristen gelten?",
    "58-jährige Patientin, CK-MB erhöht, EKG mit Senkungen in V4 bis V6: nächster Schritt?",
];

#[test]
#[ignore = "needs model files"]
fn d13_hard_prompts_without_trigger_words_are_not_easy() {
    let head = heads::of_default().complexity.unwrap();
    let vectors = real_encoder().encode(&D13).unwrap();
    for (text, vector) in D13.iter().zip(&vectors) {
        let hard = head.probabilities(&lexical::join(vector, text))[1];
        println!("{hard:.3} hard: {text}");
        assert!(hard > 0.5, "{text}");
    }
}

fn real_encoder() -> MiniLm {
    let folder = PathBuf::from(std::env::var_os("CHORUS_MODELS").unwrap()).join("all-minilm-l6-v2");
    let files = [folder.join("model.safetensors"), folder.join("tokenizer.json")];
    MiniLm::load(&files[0], &files[1], &folder.join("converted")).unwrap()
}

#[test]
#[ignore = "needs model files"]
fn short_everyday_questions_find_their_domain() {
    let encoder = real_encoder();
    let head = heads::of_default().domain.unwrap();
    assert_eq!(encoder.digest(), head.encoder_digest());
    let plants = encoder.encode(&["What process do plants use to turn sunlight into energy?"]).unwrap();
    assert_eq!(best(head, &plants[0]), "biology");
    let rows: Vec<(&str, &str)> = EVERYDAY.lines().filter_map(|line| line.split_once('\t')).collect();
    let vectors = encoder.encode(&rows.iter().map(|row| row.1).collect::<Vec<_>>()).unwrap();
    let right = rows.iter().zip(&vectors).filter(|(row, vector)| best(head, vector) == row.0).count();
    println!("{right} of {} short everyday questions", rows.len());
    assert!(right as f64 >= 0.88 * rows.len() as f64);
}
