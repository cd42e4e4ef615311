//! The contract's artifacts: JSON that its trainers write.
//!
//! They name no encoder, so that only the length of their vectors can be checked. Source: contract §1.7; shapes from
//! vllm-project/semantic-router, `ml-binding/src/{knn,kmeans,svm,mlp}.rs` and its fixtures.
//! **Invariant:** what is read has passed every check of shape and number.

use super::examples::Examples;
use super::features::Features;
use super::mlp::{Layer, Mlp};
use super::svm::{Kernel, Pairwise};
use super::{ArtifactFault, CATEGORIES, Card, Kind, Learned, Predictor, kmeans, knn};
use serde::Deserialize;
use serde_json::Value;

/// What every artifact says first.
#[derive(Deserialize)]
struct HeadWire {
    algorithm: Kind,
    #[serde(default = "yes")]
    trained: bool,
}

#[derive(Deserialize)]
struct KnnWire {
    k: usize,
    embeddings: Vec<Vec<f32>>,
    labels: Vec<String>,
    #[serde(default)]
    qualities: Vec<f32>,
}

#[derive(Deserialize)]
struct KmeansWire {
    centroids: Vec<Vec<f32>>,
    cluster_models: Vec<String>,
    #[serde(default)]
    scores: Vec<Vec<f32>>,
    candidate_set: Option<CandidateSetWire>,
}

#[derive(Deserialize)]
struct CandidateSetWire {
    models: Vec<String>,
}

#[derive(Deserialize)]
struct SvmWire {
    model_names: Vec<String>,
    kernel_type: String,
    #[serde(default)]
    gamma: f64,
    feature_dim: usize,
    svc: SvcWire,
}

#[derive(Deserialize)]
struct SvcWire {
    support_vectors: Vec<Vec<f64>>,
    dual_coef: Vec<Vec<f64>>,
    intercept: Vec<f64>,
    n_support: Vec<usize>,
}

#[derive(Deserialize)]
struct MlpWire {
    model_names: Vec<String>,
    feature_dim: usize,
    layers: Vec<LayerWire>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum LayerWire {
    Linear {
        weight: Vec<Vec<f32>>,
        bias: Option<Vec<f32>>,
    },
    Relu,
    BatchNorm {
        num_features: usize,
        weight: Option<Vec<f32>>,
        bias: Option<Vec<f32>>,
        running_mean: Option<Vec<f32>>,
        running_var: Option<Vec<f32>>,
        eps: Option<f32>,
    },
    Dropout {},
}

fn yes() -> bool {
    true
}

/// A predictor, its models, how many numbers it reads, and what each model reaches on the whole.
struct Read {
    predictor: Box<dyn Predictor>,
    card: Card,
    features: usize,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Learned, ArtifactFault> {
    let unreadable = |it: serde_json::Error| ArtifactFault::Unreadable(it.to_string());
    let value: Value = serde_json::from_slice(bytes).map_err(unreadable)?;
    let head = HeadWire::deserialize(&value).map_err(unreadable)?;
    if !head.trained {
        return Err(ArtifactFault::Format("it says that it was never trained".to_owned()));
    }
    let read = match head.algorithm {
        Kind::Knn => knn(&KnnWire::deserialize(value).map_err(unreadable)?)?,
        Kind::Kmeans => kmeans(KmeansWire::deserialize(value).map_err(unreadable)?)?,
        Kind::Svm => svm(SvmWire::deserialize(value).map_err(unreadable)?)?,
        Kind::Mlp => mlp(MlpWire::deserialize(value).map_err(unreadable)?)?,
    };
    if read.features <= CATEGORIES.len() {
        return Err(ArtifactFault::Unreadable("its features leave no room for a vector".to_owned()));
    }
    let features = Features::with_category(read.features);
    let card = Card { encoder: None, dimension: features.vector_length(), ..read.card };
    Ok(Learned { card, features, predictor: read.predictor, guard: None, efficiency_weight: 0.0 })
}

/// A card that says what the contract's artifacts can say.
fn card(kind: Kind, models: Vec<String>, means: Vec<f64>, examples: usize) -> Card {
    Card { means, examples, data: "unknown".to_owned(), ..Card::of(kind, "", 0, models) }
}

/// The length that all rows share.
fn length(rows: &[Vec<f32>]) -> Result<usize, ArtifactFault> {
    let length = rows.first().map_or(0, Vec::len);
    let sound = rows.iter().all(|row| row.len() == length && row.iter().all(|it| it.is_finite()));
    if length == 0 || !sound {
        return Err(ArtifactFault::Unreadable(
            "its rows are not of one length, or hold no numbers".to_owned(),
        ));
    }
    Ok(length)
}

/// Distinct names, in the order of their first occurrence.
fn distinct(names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names.iter().filter(|name| !name.is_empty()) {
        if !out.contains(name) {
            out.push(name.clone());
        }
    }
    out
}

/// Rows with 1 (or the quality) for the named model, 0 for others.
fn one_hot(names: &[String], models: &[String], quality: impl Fn(usize) -> f32) -> Vec<f32> {
    let row = |(at, name): (usize, &String)| -> Vec<f32> {
        let quality = quality(at);
        models.iter().map(|model| if model == name { quality } else { 0.0 }).collect()
    };
    names.iter().enumerate().flat_map(row).collect()
}

fn means(scores: &[f32], models: usize) -> Vec<f64> {
    let rows = scores.len().checked_div(models).unwrap_or(0).max(1) as f64;
    let mut sums = vec![0.0; models];
    for row in scores.chunks_exact(models.max(1)) {
        sums.iter_mut().zip(row).for_each(|(sum, it)| *sum += f64::from(*it));
    }
    sums.into_iter().map(|sum| sum / rows).collect()
}

fn knn(it: &KnnWire) -> Result<Read, ArtifactFault> {
    let features = length(&it.embeddings)?;
    if it.labels.len() != it.embeddings.len() {
        return Err(ArtifactFault::Unreadable("it has not as many labels as embeddings".to_owned()));
    }
    let models = distinct(&it.labels);
    let quality = |at: usize| it.qualities.get(at).copied().filter(|it| it.is_finite()).unwrap_or(1.0);
    let scores = one_hot(&it.labels, &models, quality);
    let means = means(&scores, models.len());
    let card = Card { k: it.k.max(1), ..card(Kind::Knn, models, means, it.labels.len()) };
    let predictor = knn::Knn::new(&card, Examples::exact(it.embeddings.concat(), features), scores);
    Ok(Read { predictor: Box::new(predictor), card, features })
}

fn kmeans(it: KmeansWire) -> Result<Read, ArtifactFault> {
    let features = length(&it.centroids)?;
    let clusters = it.centroids.len();
    if it.cluster_models.len() < clusters {
        return Err(ArtifactFault::Unreadable("a cluster has no model".to_owned()));
    }
    let (models, scores) = match it.candidate_set {
        Some(set) => {
            let columns = length(&it.scores)?;
            if columns != set.models.len() || it.scores.len() != clusters {
                return Err(ArtifactFault::Unreadable("its scores do not fit its models".to_owned()));
            }
            (set.models, it.scores.concat())
        }
        None => {
            let assigned: Vec<String> = it.cluster_models.into_iter().take(clusters).collect();
            let models = distinct(&assigned);
            let scores = one_hot(&assigned, &models, |_| 1.0);
            (models, scores)
        }
    };
    let means = means(&scores, models.len());
    let card = card(Kind::Kmeans, models, means, clusters);
    let predictor = kmeans::Kmeans::new(it.centroids.concat(), features, scores, &card);
    Ok(Read { predictor: Box::new(predictor), card, features })
}

fn svm(it: SvmWire) -> Result<Read, ArtifactFault> {
    let kernel = match it.kernel_type.to_ascii_lowercase().as_str() {
        "linear" => Kernel::Linear,
        "rbf" if it.gamma > 0.0 => Kernel::Gaussian(it.gamma),
        other => return Err(ArtifactFault::Format(format!("a kernel `{other}`"))),
    };
    let SvcWire { support_vectors, dual_coef, intercept, n_support } = it.svc;
    let counts: Vec<f64> = n_support.iter().map(|it| *it as f64).collect();
    let machine = Pairwise {
        kernel,
        vectors: support_vectors,
        coefficients: dual_coef,
        intercepts: intercept,
        counts: n_support,
    };
    if !machine.is_whole(it.model_names.len(), it.feature_dim) {
        return Err(ArtifactFault::Unreadable("its machines do not fit its models".to_owned()));
    }
    let total: f64 = counts.iter().sum();
    let means = counts.iter().map(|it| it / total.max(1.0)).collect();
    let card = card(Kind::Svm, it.model_names, means, 0);
    Ok(Read { predictor: Box::new(machine), card, features: it.feature_dim })
}

fn mlp(it: MlpWire) -> Result<Read, ArtifactFault> {
    let mut layers = Vec::new();
    for layer in it.layers {
        match layer {
            LayerWire::Linear { weight, bias } => {
                let biases = bias.unwrap_or_else(|| vec![0.0; weight.len()]);
                layers.push(Layer::Linear { weights: weight.concat(), biases });
            }
            LayerWire::Relu => layers.push(Layer::Relu),
            LayerWire::BatchNorm { num_features: n, weight, bias, running_mean, running_var, eps } => {
                let eps = eps.unwrap_or(1e-5);
                let filled = |it: Option<Vec<f32>>, value: f32| it.unwrap_or_else(|| vec![value; n]);
                let deviations =
                    filled(running_var, 1.0).into_iter().map(|it| (it + eps).max(f32::MIN_POSITIVE).sqrt());
                let scales: Vec<f32> =
                    filled(weight, 1.0).into_iter().zip(deviations).map(|(w, d)| w / d).collect();
                let means = filled(running_mean, 0.0);
                let shifts =
                    filled(bias, 0.0).into_iter().zip(&means).zip(&scales).map(|((b, m), s)| b - m * s);
                layers.push(Layer::Affine { shifts: shifts.collect(), scales });
            }
            LayerWire::Dropout {} => {}
        }
    }
    let models = it.model_names;
    let predictor = Mlp::new(layers, it.feature_dim, models.len())?;
    let means = vec![0.0; models.len()];
    Ok(Read {
        predictor: Box::new(predictor),
        card: card(Kind::Mlp, models, means, 0),
        features: it.feature_dim,
    })
}
