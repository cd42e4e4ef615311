//! From settings to a selector that is ready. It knows every selector, and no file system: bytes are brought to it.

use crate::automix::Automix;
use crate::elo::{Elo, Ratings};
use crate::hybrid::Hybrid;
use crate::latency_aware::LatencyAware;
use crate::learned::{ArtifactFault, EncoderIdentity, Kind, Learned};
use crate::multi_factor::MultiFactor;
use crate::router_dc::RouterDc;
use crate::selector::Selector;
use crate::thompson::Thompson;
use chorus_spec::{LearnedSettings, SelectorMethod};

/// What a selector is prepared with besides its settings.
#[derive(Clone, Copy)]
pub struct Supply<'a> {
    /// The bytes of a file that the settings name; the error is a sentence for people.
    pub read: &'a dyn Fn(&str) -> Result<Vec<u8>, String>,
    /// Whose vectors requests will come as; `None` without an encoder.
    pub encoder: Option<EncoderIdentity<'a>>,
    /// The decision's candidates.
    pub pool: &'a [&'a str],
    /// Ratings that `hybrid` takes as experience, as written.
    pub ratings_path: Option<&'a str>,
}

impl std::fmt::Debug for Supply<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supply")
            .field("encoder", &self.encoder)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

/// Prepares a selector. `None` is one that has nothing to choose by: `prompt`, whose choice a model makes, and a learned
/// one without an artifact.
///
/// # Errors
/// An artifact that is not there, is not sound, or was made for another encoder or other models.
pub fn prepare(
    method: &SelectorMethod,
    supply: Supply<'_>,
) -> Result<Option<Box<dyn Selector>>, ArtifactFault> {
    let ratings = |path: Option<&str>| path.map(|path| supply.ratings(path)).transpose();
    Ok(match method {
        SelectorMethod::RouterDc(it) => Some(Box::new(RouterDc(*it))),
        SelectorMethod::Hybrid(it) => Some(Box::new(Hybrid::new(*it, ratings(supply.ratings_path)?))),
        SelectorMethod::LatencyAware(it) => Some(Box::new(LatencyAware(*it))),
        SelectorMethod::MultiFactor(it) => Some(Box::new(MultiFactor(*it))),
        SelectorMethod::Automix(it) => Some(Box::new(Automix(*it))),
        SelectorMethod::Prompt(_) => None,
        SelectorMethod::Knn(it) => supply.learned(Kind::Knn, it)?,
        SelectorMethod::Kmeans(it) => supply.learned(Kind::Kmeans, it)?,
        SelectorMethod::Svm(it) => supply.learned(Kind::Svm, it)?,
        SelectorMethod::Mlp(it) => supply.learned(Kind::Mlp, it)?,
        SelectorMethod::Elo(it) => match ratings(it.path.as_deref())? {
            Some(ratings) => Some(Box::new(Elo::new(it.clone(), ratings))),
            None => None,
        },
        SelectorMethod::Thompson(it) => {
            Some(Box::new(Thompson::new(it.clone(), ratings(it.path.as_deref())?)))
        }
    })
}

impl Supply<'_> {
    fn bytes(&self, path: &str) -> Result<Vec<u8>, ArtifactFault> {
        (self.read)(path).map_err(ArtifactFault::Absent)
    }

    fn ratings(&self, path: &str) -> Result<Ratings, ArtifactFault> {
        let ratings = Ratings::parse(&self.bytes(path)?)?;
        ratings.fit(self.pool)?;
        Ok(ratings)
    }

    fn learned(
        &self,
        kind: Kind,
        settings: &LearnedSettings,
    ) -> Result<Option<Box<dyn Selector>>, ArtifactFault> {
        let Some(path) = settings.path.as_deref() else {
            return Ok(None);
        };
        let learned = Learned::parse(kind, &self.bytes(path)?)?;
        learned.fit(self.encoder, self.pool)?;
        Ok(Some(Box::new(learned.with(settings))))
    }
}
