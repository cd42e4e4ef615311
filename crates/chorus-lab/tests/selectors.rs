//! Selectors from graded answers to a served configuration: trained on a small set, loaded by the engine, and refused where
//! they do not fit.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use chorus_engine::{Artifact, Engine, Env, Folders, Options};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_lab::{SelectorKind, TrainSelector};
use chorus_wire::{ChatRequest, Message, Role};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const KINDS: [SelectorKind; 4] =
    [SelectorKind::Knn, SelectorKind::Kmeans, SelectorKind::Svm, SelectorKind::Mlp];

/// Sums lie in one direction, rhymes in another, paintings in a third; each text a little to a side of its own.
struct Directions {
    digest: &'static str,
    dimension: usize,
}

const LEARNT: Directions = Directions { digest: "sha256:directions", dimension: 4 };

impl TextEncoder for Directions {
    fn digest(&self) -> &str {
        self.digest
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let of = |text: &&str| {
            let side = (text.bytes().map(f32::from).sum::<f32>() * 0.7).sin() * 0.1;
            let length = (1.0 + side * side).sqrt();
            let mut vector = vec![0.0; self.dimension];
            let at = ["add", "rhyme", "paint"].iter().position(|it| text.starts_with(it)).unwrap_or(2);
            vector[at] = 1.0 / length;
            vector[self.dimension - 1] = side / length;
            vector
        };
        Ok(texts.iter().map(of).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

fn question(at: usize) -> String {
    if at.is_multiple_of(2) {
        format!("add {at} and {}", at * 7)
    } else {
        format!("rhyme a line on {at} winters")
    }
}

fn write(path: &Path, text: &str) {
    let mut file = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

/// Graded answers of two models: `counter` adds, `poet` rhymes.
fn data(folder: &Path) {
    let outcomes = folder.join("outcomes");
    std::fs::create_dir_all(&outcomes).unwrap();
    let graded = |range: std::ops::Range<usize>| -> Value {
        let row = |at: usize| {
            let adds = u8::from(at.is_multiple_of(2));
            json!({"question": question(at), "scores": {"counter": adds, "poet": 1 - adds}})
        };
        range.map(row).collect()
    };
    write(&outcomes.join("llmrouter_train.json.gz"), &graded(0..120).to_string());
    write(&outcomes.join("llmrouter_test.json.gz"), &graded(120..160).to_string());
    let task = |at: usize| {
        let name = if at.is_multiple_of(2) { "sums" } else { "rhymes" };
        json!({"task_name": name, "query": question(at)}).to_string()
    };
    let tasks: Vec<String> = (0..120).map(task).collect();
    write(&outcomes.join("llmrouter_queries.jsonl.gz"), &tasks.join("\n"));
}

/// An engine whose one decision is chosen by the artifact of that kind.
fn engine(folder: &Path, kind: SelectorKind, encoder: Directions, models: &[&str]) -> Result<Engine, String> {
    let kind = kind.as_str();
    let provider =
        |it: &&str| format!("    - {{ name: {it}, backend_refs: [{{ endpoint: \"127.0.0.1:1\" }}] }}\n");
    let named =
        |key: &str| models.iter().map(|it| format!("{{ {key}: {it} }}")).collect::<Vec<_>>().join(", ");
    let file = format!(
        "version: v0.3\nproviders:\n  models:\n{}routing:\n  modelCards: [{}]\n  decisions:\n    - name: all\n      \
         modelRefs: [{}]\n      algorithm: {{ type: {kind}, {kind}: {{ pretrained_path: {kind}.safetensors }} }}\n",
        models.iter().map(provider).collect::<String>(),
        named("name"),
        named("model"),
    );
    let spec = chorus_spec::read(&file).spec.unwrap_or_else(|| panic!("{file}"));
    let options = Options {
        encoder: Some(Arc::new(encoder)),
        folders: Folders { config: Some(folder.to_owned()), knowledge: None },
        ..Options::bare(Env::having(&[]))
    };
    Engine::of(spec, options, Artifact::default()).map_err(|why| why.to_string())
}

async fn chosen(engine: &Engine, text: &str) -> (String, String) {
    let request = ChatRequest::new("vllm-sr/auto", vec![Message::new(Role::User, text)]);
    let told = engine.evaluate(request).await.unwrap();
    let why = told.selection.map(|it| it.reason.clone()).unwrap_or_default();
    (told.selected.unwrap_or_default(), why)
}

#[tokio::test]
async fn d20_what_was_trained_is_served_and_refused_where_it_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    data(folder.path());
    let work = TrainSelector {
        kinds: KINDS.to_vec(),
        data_dir: folder.path().to_owned(),
        out_dir: folder.path().to_owned(),
    };
    let reports = work.run(&LEARNT, &mut |_| {}).unwrap();
    for (kind, report) in KINDS.into_iter().zip(&reports) {
        assert!(report.unguarded.is_some_and(|it| it > 0.95), "{report}");
        assert!(report.reached > report.best_fixed, "{report}");
        assert_eq!(report.left_out.len(), 2, "each task is left out once");
        let (name, pool) = (kind.as_str(), ["counter", "poet"]);
        let served = engine(folder.path(), kind, LEARNT, &pool).unwrap();
        let mut poet = [0, 0];
        for at in 0..40 {
            poet[at % 2] += usize::from(chosen(&served, &question(at)).await.0 == "poet");
        }
        // A tenth of what was learnt counts as strange by the guard's own measure.
        assert!(poet[0] == 0 && poet[1] >= 14, "{name}: of 20 sums and 20 rhymes the poet got {poet:?}");
        let (stranger, why) = chosen(&served, "paint a house").await;
        assert!(stranger == "counter" && why.contains("the best fixed model"), "{name}: {stranger}, {why}");
        let other = Directions { digest: "sha256:another", dimension: 4 };
        let longer = Directions { digest: LEARNT.digest, dimension: 5 };
        for (encoder, models, said) in [
            (other, &pool[..], "sha256:another"),
            (longer, &pool[..], "the encoder's 5"),
            (LEARNT, &["counter", "stranger"][..], "`stranger`"),
        ] {
            let refused = engine(folder.path(), kind, encoder, models).err().unwrap_or_default();
            assert!(refused.contains("decision `all`") && refused.contains(said), "{name}: {refused}");
        }
    }
}
