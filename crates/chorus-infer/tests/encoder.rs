//! The encoder against a BERT in plain loops: on a tiny random model always, on the real weights when asked.
//!
//! It knows the public encoder only. Invariant: no test reads the network or a file that it did not write, except
//! the ignored ones, which read the folder named by `CHORUS_MODELS`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "fixtures: a panic here is a failed test, and the ignored test prints its figure"
)]

mod bert_reference;

use std::path::PathBuf;

use bert_reference::{Bert, dot};
use chorus_infer::TextEncoder;
use chorus_infer::encoder::{MiniLm, Precision};

const TEXTS: [&str; 6] = [
    "How do plants make food from light?",
    "What is the sum of two odd numbers?",
    "write a letter to the bank.",
    "light",
    "",
    "How do plants make food from light? What is the sum of two odd numbers? Write a letter to the banks.",
];

struct Fixture {
    bert: Bert,
    folder: tempfile::TempDir,
    weights: PathBuf,
    tokenizer: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let bert = Bert::tiny();
        let folder = tempfile::tempdir().unwrap();
        let (weights, tokenizer) = bert.write(folder.path());
        Self { bert, folder, weights, tokenizer }
    }

    fn load(&self, precision: Precision) -> MiniLm {
        let cache = self.folder.path().join("cache");
        MiniLm::load_as(&self.weights, &self.tokenizer, &cache, precision).unwrap()
    }

    /// The reference vector of one window.
    fn reference(&self, text: &str) -> Vec<f32> {
        self.bert.embed(&framed_tokens(&self.tokenizer, text))
    }
}

fn framed_tokens(tokenizer: &std::path::Path, text: &str) -> Vec<u32> {
    let mut tokenizer = tokenizers::Tokenizer::from_file(tokenizer).unwrap();
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).unwrap();
    let special = |token| tokenizer.token_to_id(token).unwrap();
    let text = tokenizer.encode_fast(text, false).unwrap();
    let mut tokens = vec![special("[CLS]")];
    tokens.extend(text.get_ids());
    tokens.push(special("[SEP]"));
    tokens
}

#[test]
fn the_graph_computes_the_reference_forward() {
    let fixture = Fixture::new();
    for (precision, tolerance) in [(Precision::Float, 2e-4), (Precision::Int8, 3e-3)] {
        let encoder = fixture.load(precision);
        for text in TEXTS {
            let vector = &encoder.encode(&[text]).unwrap()[0];
            let distance = 1.0 - dot(vector, &fixture.reference(text));
            assert!(distance < tolerance, "{precision:?} {text:?}: 1 - cosine = {distance}");
        }
    }
}

#[test]
fn a_text_has_the_same_vector_alone_and_in_any_batch() {
    let fixture = Fixture::new();
    let encoder = fixture.load(Precision::Int8);
    let together = encoder.encode(&TEXTS).unwrap();
    let mut reversed = TEXTS;
    reversed.reverse();
    let mut backwards = encoder.encode(&reversed).unwrap();
    backwards.reverse();
    assert_eq!(together, backwards);
    for (text, vector) in TEXTS.iter().zip(&together) {
        assert_eq!(&encoder.encode(&[text]).unwrap()[0], vector, "{text:?}");
        assert!((dot(vector, vector) - 1.0).abs() < 1e-5, "{text:?} is a unit vector");
        assert_eq!(vector.len(), encoder.dimension());
    }
}

#[test]
fn a_long_text_is_encoded_over_all_of_it() {
    let fixture = Fixture::new();
    let encoder = fixture.load(Precision::Int8);
    let head = "how do plants make food from light ? ".repeat(60);
    let long = format!("{head}{}", "write a letter to the bank . ".repeat(20));
    let (head_tokens, long_tokens) = (encoder.count_tokens(&head), encoder.count_tokens(&long));
    assert_eq!((head_tokens, long_tokens), (480, 620), "the file's own truncation to 8 is undone");
    let windows = encoder.encode_windows(&long).unwrap();
    assert_eq!(windows.len(), 3);
    assert_eq!(encoder.encode_windows("").unwrap().len(), 1);

    let whole = &encoder.encode(&[&long]).unwrap()[0];
    let only_head = &encoder.encode(&[&head]).unwrap()[0];
    assert!(dot(whole, only_head) < 0.999, "the end of a long text counts");
    for window in &windows {
        assert!((dot(window, window) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn the_converted_file_is_written_once_and_named_by_what_it_was_made_from() {
    let fixture = Fixture::new();
    let cache = fixture.folder.path().join("cache");
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(&cache).unwrap().map(|file| file.unwrap().path()).collect();
        names.sort();
        names
    };
    let first = fixture.load(Precision::Int8);
    let [converted] = names().try_into().unwrap();
    let bytes = std::fs::read(&converted).unwrap();
    let second = fixture.load(Precision::Int8);
    assert_eq!(first.digest(), second.digest());
    assert_eq!(names(), std::slice::from_ref(&converted));

    std::fs::remove_file(&converted).unwrap();
    fixture.load(Precision::Int8);
    assert_eq!(std::fs::read(&converted).unwrap(), bytes, "conversion is repeatable");
    assert_ne!(fixture.load(Precision::Float).digest(), first.digest());
    assert_eq!(names().len(), 2);
}

#[test]
fn files_that_are_no_encoder_say_which_and_why() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path();
    let cases = [
        ("absent.safetensors", None, "absent.safetensors"),
        ("empty.safetensors", Some(Vec::new()), "empty.safetensors"),
        ("huge.safetensors", Some(vec![0xff; 16]), "not a safetensors file"),
        ("json.safetensors", Some(b"\x02\0\0\0\0\0\0\0{]".to_vec()), "bad header"),
        ("other.safetensors", Some(b"\x02\0\0\0\0\0\0\0{}".to_vec()), "no tensor embeddings.word_embeddings"),
    ];
    for (name, content, expected) in cases {
        let path = folder.join(name);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let fault = MiniLm::load(&path, &fixture.tokenizer, &folder.join("cache")).unwrap_err();
        assert!(fault.0.contains(expected), "{name}: {fault}");
    }
    let fault = MiniLm::load(&fixture.weights, &fixture.weights, &folder.join("cache")).unwrap_err();
    assert!(fault.0.contains("model.safetensors"), "{fault}");
}

/// The files of all-MiniLM-L6-v2 in the folder named by `CHORUS_MODELS`.
fn real_files() -> (PathBuf, PathBuf, PathBuf) {
    let folder = PathBuf::from(std::env::var_os("CHORUS_MODELS").unwrap()).join("all-minilm-l6-v2");
    (folder.join("model.safetensors"), folder.join("tokenizer.json"), folder.join("converted"))
}

#[test]
#[ignore = "needs model files"]
fn real_weights_agree_with_the_reference() {
    let texts = include_str!("../../chorus-lab/data/everyday_eval.tsv");
    let texts = texts.lines().filter_map(|line| line.split_once('\t')).map(|(_, text)| text).step_by(3);
    let (weights, tokenizer, cache) = real_files();
    let bert = Bert::read(&weights);
    let quantised = MiniLm::load(&weights, &tokenizer, &cache).unwrap();
    let float = MiniLm::load_as(&weights, &tokenizer, &cache, Precision::Float).unwrap();
    let (mut count, mut sum, mut least) = (0, 0.0, 1.0_f32);
    for text in texts.take(50) {
        let reference = bert.embed(&framed_tokens(&tokenizer, text));
        let cosine = dot(&quantised.encode(&[text]).unwrap()[0], &reference);
        let exact = dot(&float.encode(&[text]).unwrap()[0], &reference);
        assert!(exact > 0.9999, "float graph, {text:?}: cosine {exact}");
        (count, sum, least) = (count + 1, sum + cosine, least.min(cosine));
    }
    println!("int8 against float over {count} texts: mean cosine {}, least {least}", sum / count as f32);
    assert!(count >= 40 && sum / count as f32 >= 0.99);
}
