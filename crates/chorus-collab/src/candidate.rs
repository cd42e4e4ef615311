//! Who may answer, with what a looper may know of them.

/// One candidate of a decision.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Candidate {
    /// The logical model.
    pub model: String,
    /// Its share of a weighted distribution; `None` counts as 1.
    pub weight: Option<f64>,
    /// Its size in parameters, as declared (`param_size`).
    pub parameters: Option<f64>,
    /// Its price in US dollars for a million output tokens.
    pub price: Option<f64>,
    /// Its declared quality in 0..=1 (`quality_score`).
    pub quality: Option<f64>,
    /// Its strength among the components (Bradley–Terry, in logits), where the bundle knows it.
    pub rating: Option<f64>,
}
