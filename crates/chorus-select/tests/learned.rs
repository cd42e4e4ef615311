//! Learned selectors through their artifacts: ours, and the contract's.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use chorus_select::learned::{Card, GuardCard, Kind, Learned, Tensor, write};
use chorus_select::{ArtifactFault, Candidate, Choice, EncoderIdentity, SelectionAsk, Selector};
use chorus_spec::LearnedSettings;
use std::collections::BTreeMap;

const ENCODER: EncoderIdentity<'_> = EncoderIdentity { digest: "sha256:e", dimension: 4 };

fn choose(selector: &dyn Selector, query: Option<&[f32]>, category: Option<&str>) -> Choice {
    let candidates = ["a", "b"].map(|model| Candidate {
        model,
        usd_per_1m: if model == "a" { 9.0 } else { 1.0 },
        ..Candidate::default()
    });
    selector.choose(&SelectionAsk { candidates: &candidates, query, category, seed: 0 })
}

/// `a` is right near the first axis, `b` near the second, `a` on the whole.
fn knn(caution: f64) -> Vec<u8> {
    let (mut vectors, mut scores) = (Vec::new(), Vec::new());
    for at in 0..40 {
        let slant = 0.05 + at as f32 * 0.002;
        let (row, grades) = if at % 4 == 0 {
            ([slant, 1.0, 0.0, 0.0], [0.0, 1.0])
        } else {
            ([1.0, slant, 0.0, 0.0], [1.0, 0.0])
        };
        let length = row.iter().map(|it| it * it).sum::<f32>().sqrt();
        vectors.extend(row.map(|it| it / length));
        scores.extend(grades);
    }
    let card = Card {
        means: vec![0.75, 0.25],
        k: 5,
        caution,
        guard: Some(GuardCard { quantile: 0.9, distance: 3.0, neighbours: 3 }),
        ..Card::of(Kind::Knn, ENCODER.digest, 4, vec!["a".to_owned(), "b".to_owned()])
    };
    let tensors = BTreeMap::from([
        ("vectors".to_owned(), Tensor::new(4, vectors)),
        ("scores".to_owned(), Tensor::new(2, scores)),
        ("spread".to_owned(), Tensor::new(1, vec![0.01; 40])),
    ]);
    write(&card, &tensors).unwrap()
}

#[test]
fn neighbours_vote_and_a_stranger_goes_to_the_best_fixed_model() {
    let knn = Learned::parse(Kind::Knn, &knn(1.645)).unwrap();
    assert_eq!(choose(&knn, Some(&[0.1, 0.995, 0.0, 0.0]), None).model(), Some("b"));
    assert_eq!(choose(&knn, Some(&[0.995, 0.1, 0.0, 0.0]), None).model(), Some("a"));
    let stranger = choose(&knn, Some(&[0.0, 0.3, 0.95, 0.0]), None);
    assert_eq!(stranger.model(), Some("a"), "{}", stranger.reason);
    assert!(stranger.reason.contains("times as far"), "{}", stranger.reason);
    let open = knn.with(&LearnedSettings { guard: Some(false), ..LearnedSettings::default() });
    assert_eq!(choose(&open, Some(&[0.0, 0.3, 0.95, 0.0]), None).model(), Some("b"), "without its guard");
    assert_eq!(choose(&open, None, None).pick, None, "no vector, no choice");
    assert_eq!(choose(&open, Some(&[1.0, 0.0]), None).pick, None, "a vector of another length");
}

#[test]
fn d20_an_artifact_of_another_encoder_or_other_models_is_refused_when_it_is_loaded() {
    let knn = Learned::parse(Kind::Knn, &knn(0.0)).unwrap();
    assert_eq!(knn.fit(Some(ENCODER), &["a", "b"]), Ok(()));
    assert_eq!(knn.fit(None, &["b"]), Ok(()), "without an encoder it is never asked");
    let other = EncoderIdentity { digest: "sha256:f", dimension: 4 };
    assert!(matches!(knn.fit(Some(other), &["a"]), Err(ArtifactFault::Encoder { .. })));
    let fault = knn.fit(Some(ENCODER), &["a", "c"]).unwrap_err().to_string();
    assert!(fault.contains("`c`") && fault.contains("train it for this decision's models"), "{fault}");
    let bytes = self::knn(0.0);
    assert!(matches!(Learned::parse(Kind::Svm, &bytes), Err(ArtifactFault::Format(_))), "another kind");
    for end in (0..bytes.len()).step_by(97) {
        assert!(Learned::parse(Kind::Knn, &bytes[..end]).is_err(), "cut at {end}");
    }
}

/// A vector of two numbers and a category of the contract's fourteen behind it.
fn features(vector: [f32; 2], category: usize) -> String {
    let hot: Vec<String> = (0..14).map(|at| if at == category { "1.0" } else { "0.0" }.to_owned()).collect();
    format!("[{}, {}, {}]", vector[0], vector[1], hot.join(", "))
}

#[test]
fn the_contracts_artifacts_are_read_and_their_category_counts() {
    let (math, law) = (features([0.6, 0.8], 0), features([0.6, 0.8], 8));
    let knn = format!(
        r#"{{"version": "1.0", "algorithm": "knn", "trained": true, "k": 1, "embeddings": [{math}, {law}],
            "labels": ["a", "b"], "qualities": [1, 1], "latencies": [1, 1]}}"#
    );
    let plain = format!(
        r#"{{"algorithm": "kmeans", "trained": true, "num_clusters": 2, "centroids": [{math}, {law}],
            "cluster_models": ["a", "b"]}}"#
    );
    let scored = format!(
        r#"{{"algorithm": "kmeans", "format_version": 2, "num_clusters": 2, "centroids": [{math}, {law}],
            "cluster_models": ["a", "b"], "candidate_set": {{"id": "x", "models": ["a", "b"]}},
            "scores": [[0.9, 0.1], [0.2, 0.8]]}}"#
    );
    let weights = |first: bool| {
        let row: Vec<&str> =
            (0..16).map(|at| if at == 2 { if first { "1.0" } else { "-1.0" } } else { "0.0" }).collect();
        format!("[{}]", row.join(", "))
    };
    let mlp = format!(
        r#"{{"algorithm": "mlp", "trained": true, "model_names": ["a", "b"], "feature_dim": 16, "n_classes": 2,
            "hidden_sizes": [], "dropout": 0.1, "layers": [
            {{"type": "linear", "in_features": 16, "out_features": 2, "weight": [{}, {}], "bias": [0.0, 0.5]}},
            {{"type": "batch_norm", "num_features": 2, "weight": [2.0, 2.0], "running_var": [1.0, 1.0]}},
            {{"type": "dropout", "p": 0.1}}]}}"#,
        weights(true),
        weights(false)
    );
    let svm = format!(
        r#"{{"algorithm": "svm", "format_version": 2, "trained": true, "model_names": ["a", "b"], "kernel_type": "Rbf",
            "gamma": 0.7, "feature_dim": 16, "svc": {{"support_vectors": [{math}, {law}],
            "dual_coef": [[1.0, -1.0]], "intercept": [0.0], "n_support": [1, 1]}}}}"#
    );
    let all =
        [(Kind::Knn, knn), (Kind::Kmeans, plain), (Kind::Kmeans, scored), (Kind::Mlp, mlp), (Kind::Svm, svm)];
    for (kind, text) in all {
        let it = Learned::parse(kind, text.as_bytes()).unwrap_or_else(|fault| panic!("{kind:?}: {fault}"));
        let two = EncoderIdentity { digest: "sha256:any", dimension: 2 };
        assert_eq!(it.fit(Some(two), &["a", "b"]), Ok(()), "it names no encoder");
        assert!(matches!(
            it.fit(Some(ENCODER), &["a"]),
            Err(ArtifactFault::Dimension { wanted: 2, found: 4 })
        ));
        let pick = |category| choose(&it, Some(&[0.6, 0.8]), Some(category)).model().map(str::to_owned);
        assert_eq!((pick("math").as_deref(), pick("law").as_deref()), (Some("a"), Some("b")), "{kind:?}");
    }
    let untrained = br#"{"algorithm": "knn", "trained": false, "k": 1, "embeddings": [], "labels": []}"#;
    assert!(matches!(Learned::parse(Kind::Knn, untrained), Err(ArtifactFault::Format(_))));
}

#[test]
fn price_counts_as_much_as_it_is_told_to() {
    let card = Card {
        means: vec![0.6, 0.5],
        ..Card::of(Kind::Kmeans, ENCODER.digest, 4, vec!["a".to_owned(), "b".to_owned()])
    };
    let tensors = BTreeMap::from([
        ("centroids".to_owned(), Tensor::new(4, vec![1.0, 0.0, 0.0, 0.0])),
        ("scores".to_owned(), Tensor::new(2, vec![0.9, 0.6])),
    ]);
    let bytes = write(&card, &tensors).unwrap();
    let with = |efficiency_weight| {
        let settings = LearnedSettings { efficiency_weight, ..LearnedSettings::default() };
        let it = Learned::parse(Kind::Kmeans, &bytes).unwrap().with(&settings);
        choose(&it, Some(&[1.0, 0.0, 0.0, 0.0]), None).model().map(str::to_owned)
    };
    assert_eq!(with(None).as_deref(), Some("a"));
    assert_eq!(with(Some(0.5)).as_deref(), Some("b"));
}
