//! From a request to a choice: the model's name, the decision that won, or why there is none.
//!
//! The evaluation endpoint, `explain` and live requests share this code, so that they cannot disagree (case D01).

use crate::fault::{Code, Fault};
use crate::identity::{Identity, identify};
use crate::mom::Mom;
use crate::overlay;
use crate::selection::Sight;
use crate::served::{Asked, Decided, Depth};
use crate::turns::Turns;
use chorus_collab::fusion::FusionOverlay;
use chorus_policy::Scope;
use chorus_spec::{Decision, LooperKind, ModelId, Recipe};
use smol_str::SmolStr;

/// A request whose way is known.
#[derive(Debug)]
pub struct Routed {
    /// Index of the recipe that was asked; `None` for a concrete model.
    pub recipe: Option<usize>,
    /// The verdict and its evidence; `None` for a concrete model.
    pub decided: Option<Decided>,
    /// What was chosen.
    pub choice: Choice,
    /// Why, for people.
    pub reason: String,
    /// The request's own Fusion settings, where they have an effect.
    pub overlay: Option<FusionOverlay>,
    /// Remarks for the client.
    pub warnings: Vec<String>,
    /// What its selector sees.
    pub sight: Sight,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The decision at that index of the recipe.
    Decision(usize),
    /// A panel that only this request asks for.
    RequestPanel,
    /// The default model: no decision matched.
    Default(ModelId),
    /// The concrete model that the client named.
    Direct(ModelId),
    /// Nobody: a decision that may win needs what this version does not run, or nothing matched and nothing is default.
    Nobody(Fault),
}

impl Routed {
    /// The decision that was chosen, if one was.
    #[must_use]
    pub fn decision<'a>(&self, mom: &'a Mom) -> Option<&'a Decision> {
        let recipe = mom.recipes.get(self.recipe?)?;
        match self.choice {
            Choice::Decision(at) => recipe.recipe.decisions.get(at),
            _ => None,
        }
    }

    /// The turns of its plugins; no decision has none.
    pub(crate) fn turns(&self, mom: &Mom) -> Turns {
        let Choice::Decision(at) = self.choice else { return Turns::default() };
        let recipe = self.recipe.and_then(|recipe| mom.recipes.get(recipe));
        recipe.and_then(|recipe| recipe.turns(at)).cloned().unwrap_or_default()
    }

    /// The name of the recipe that was asked.
    #[must_use]
    pub fn recipe_name(&self, mom: &Mom) -> Option<SmolStr> {
        Some(mom.recipes.get(self.recipe?)?.recipe.name.as_str().into())
    }

    /// What the client is told won: a decision, or the panel that it brought itself. Source: contract §2.1.
    #[must_use]
    pub fn won(&self, mom: &Mom) -> Option<SmolStr> {
        match self.choice {
            Choice::RequestPanel => Some(SmolStr::new_static("fusion_direct")),
            _ => self.decision(mom).map(|decision| decision.name.as_str().into()),
        }
    }

    /// The contract's word for how candidates become an answer.
    #[must_use]
    pub fn algorithm<'a>(&self, mom: &'a Mom) -> &'a str {
        match self.choice {
            Choice::RequestPanel => "fusion",
            _ => self.decision(mom).map_or("static", |decision| decision.algorithm.kind()),
        }
    }
}

/// Routes a request.
///
/// # Errors
/// An unknown model, a malformed Fusion plugin, or a looper's slug where no decision of that looper can serve.
pub async fn route(mom: &Mom, asked: &Asked, depth: Depth) -> Result<Routed, Fault> {
    let overlay = overlay::of(&asked.request)?;
    match identify(&mom.spec, asked.request.model())? {
        Identity::Model(model) => Ok(Routed {
            recipe: None,
            decided: None,
            choice: Choice::Direct(model),
            reason: "the request names a concrete model".to_owned(),
            warnings: unused(overlay.as_ref(), "a concrete model was asked for"),
            overlay: None,
            sight: Sight::default(),
        }),
        Identity::Recipe(at) => by_recipe(mom, at, asked, depth, overlay).await,
        Identity::Looper(kind) => by_looper(mom, kind, asked, depth, overlay).await,
    }
}

async fn by_recipe(
    mom: &Mom,
    at: usize,
    asked: &Asked,
    depth: Depth,
    overlay: Option<FusionOverlay>,
) -> Result<Routed, Fault> {
    let served = mom.recipe(at)?;
    let decided = served.decide(asked, &Scope::All, depth).await?;
    let (choice, reason) = match (&decided.verdict.blocked, &decided.verdict.winner) {
        (Some(blocked), _) => {
            (Choice::Nobody(blocked_fault(blocked)), "a signal is not supported yet".to_owned())
        }
        (None, Some(won)) => (Choice::Decision(won.decision), format!("the decision `{}` matched", won.name)),
        (None, None) => nothing_matched(mom, &served.recipe),
    };
    let fusion = matches!(&choice, Choice::Decision(at) if is_of(&served.recipe, *at, LooperKind::Fusion));
    let (overlay, warnings) = match overlay {
        Some(overlay) if fusion => (Some(overlay), Vec::new()),
        other => (None, unused(other.as_ref(), "the decision that won is not a Fusion decision")),
    };
    Ok(Routed {
        recipe: Some(at),
        decided: Some(decided),
        choice,
        reason,
        overlay,
        warnings,
        sight: Sight::default(),
    })
}

/// A looper's slug: a decision of that looper that matches, else (of Fusion) the request's own panel, else the
/// first-ranked decision of that looper, else a clear refusal. Source: contract §2.1.
async fn by_looper(
    mom: &Mom,
    kind: LooperKind,
    asked: &Asked,
    depth: Depth,
    overlay: Option<FusionOverlay>,
) -> Result<Routed, Fault> {
    let served = mom.recipe(0)?;
    let fit: Vec<usize> =
        (0..served.recipe.decisions.len()).filter(|at| is_of(&served.recipe, *at, kind)).collect();
    let decided = served.decide(asked, &Scope::Only(fit.clone()), depth).await?;
    let (overlay, warnings) = match overlay {
        Some(own) if kind != LooperKind::Fusion => (None, unused(Some(&own), "another looper was asked for")),
        overlay => (overlay, Vec::new()),
    };
    let own_panel =
        overlay.as_ref().is_some_and(|own| own.panel.as_ref().is_some_and(|panel| !panel.is_empty()));
    let first_ranked = fit.iter().copied().max_by_key(|at| rank(&served.recipe, *at));
    let name = title(kind);
    let (choice, reason) = match (&decided.verdict.winner, first_ranked) {
        (Some(won), _) => {
            (Choice::Decision(won.decision), format!("the {name} decision `{}` matched", won.name))
        }
        (None, _) if own_panel => (Choice::RequestPanel, "the request brings its own panel".to_owned()),
        (None, Some(at)) => (
            Choice::Decision(at),
            format!("no {name} decision matched; the one of highest priority answers a direct request"),
        ),
        (None, None) => return Err(no_decision(kind, asked.request.model())),
    };
    Ok(Routed {
        recipe: Some(0),
        decided: Some(decided),
        choice,
        reason,
        overlay,
        warnings,
        sight: Sight::default(),
    })
}

fn no_decision(kind: LooperKind, model: &str) -> Fault {
    let name = title(kind);
    if kind == LooperKind::Fusion {
        let text = format!(
            "no eligible Fusion decision for the model `{model}`: the policy has none, and the request brings no panel \
             (plugins: [{{\"id\": \"fusion\", \"analysis_models\": […]}}])"
        );
        return Fault::new(Code::NoFusionDecision, text).at("model");
    }
    let text = format!("no eligible {name} decision for the model `{model}`: the policy has none");
    Fault::new(Code::NoLooperDecision, text).at("model")
}

/// The looper's name as people write it.
fn title(kind: LooperKind) -> &'static str {
    match kind {
        LooperKind::Confidence => "Confidence",
        LooperKind::Ratings => "Ratings",
        LooperKind::ReMoM => "ReMoM",
        LooperKind::Fusion => "Fusion",
        LooperKind::Workflows => "Workflows",
        LooperKind::Poll => "Poll",
    }
}

fn nothing_matched(mom: &Mom, recipe: &Recipe) -> (Choice, String) {
    match &mom.spec.default_model {
        Some(model) => {
            (Choice::Default(model.clone()), "no decision matched; the default model answers".to_owned())
        }
        None => {
            let text =
                format!("no decision of the recipe `{}` matched, and there is no default model", recipe.name);
            (Choice::Nobody(Fault::new(Code::NoRoute, text)), "no decision matched".to_owned())
        }
    }
}

fn blocked_fault(blocked: &chorus_policy::Blocked) -> Fault {
    let missing: Vec<String> = blocked.missing.iter().map(ToString::to_string).collect();
    let text = format!(
        "whether the decision `{}` applies depends on {}, which this version does not evaluate yet",
        blocked.decision,
        missing.join(", ")
    );
    Fault::new(Code::NotSupported, text)
}

fn is_of(recipe: &Recipe, at: usize, kind: LooperKind) -> bool {
    recipe.decisions.get(at).is_some_and(|d| d.algorithm.looper() == Some(kind))
}

/// Priority, then the earlier one.
fn rank(recipe: &Recipe, at: usize) -> (i64, std::cmp::Reverse<usize>) {
    (recipe.decisions.get(at).map_or(i64::MIN, |d| d.priority), std::cmp::Reverse(at))
}

fn unused(overlay: Option<&FusionOverlay>, why: &str) -> Vec<String> {
    overlay.map(|_| format!("fusion_plugin_unused: {why}")).into_iter().collect()
}
