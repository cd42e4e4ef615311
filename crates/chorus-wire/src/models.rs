//! `GET /v1/models`.

/// The list.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ModelList {
    /// Always `list`.
    pub object: &'static str,
    /// The models; never null.
    pub data: Vec<ModelCard>,
}

/// One public model.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ModelCard {
    /// Its name.
    pub id: String,
    /// Always `model`.
    pub object: &'static str,
    /// Seconds since 1970.
    pub created: u64,
    /// Who serves it.
    pub owned_by: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What a request can rely on: the declared window, or the least over eligible members (case B19).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u32>,
}

impl ModelList {
    /// A list of those models.
    #[must_use]
    pub fn new(data: Vec<ModelCard>) -> Self {
        Self { object: "list", data }
    }
}
