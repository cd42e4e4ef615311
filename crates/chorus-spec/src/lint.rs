//! What is wrong with a policy as a whole although each of its parts is right: routes that never win, guards that are
//! passed by, bands that overlap or leave gaps, and what nothing uses.
//!
//! It knows a checked [`Spec`] and no text. **Invariant:** a warning is a fact about the policy under every possible
//! request; where a question is too large to be answered, nothing is said.

mod bands;
mod decisions;
mod terms;
mod usage;

use crate::{Diagnostic, Family, Place, Recipe, Severity, Spec, code};
use bands::Reach;
use terms::Terms;

/// Checks every recipe of a configuration as a whole; all warnings, by place.
#[must_use]
pub fn lint(spec: &Spec) -> Vec<Diagnostic> {
    let mut notes = Notes::default();
    for recipe in &spec.recipes {
        notes.within(recipe);
        let reaches = bands::reaches(recipe);
        bands::check(recipe, &reaches, &mut notes);
        usage::check(recipe, &mut notes);
        decisions::check(recipe, &Terms::of(recipe, &reaches), &mut notes);
        if spec.default_model.is_none() {
            fallback(recipe, &mut notes);
        }
        if !spec.global.identity.trusted && spec.global.token_issuers.is_empty() {
            identity(recipe, &mut notes);
        }
    }
    notes.sorted()
}

fn fallback(recipe: &Recipe, notes: &mut Notes) {
    let is_unconditional = |d: &crate::Decision| terms::is_unconditional(d.rules.as_ref());
    let Some(last) = recipe.decisions.iter().max_by_key(|decision| decision.place) else {
        return;
    };
    if !recipe.decisions.iter().any(is_unconditional) {
        let message = "a request that no decision claims has nobody to answer it: there is neither a decision \
                       without rules nor a default model";
        let help = "set `providers.defaults.default_model`, or add a last decision without `rules`";
        notes.warn(code::MISSING_FALLBACK, last.place, "decisions", message, help);
    }
}

fn identity(recipe: &Recipe, notes: &mut Notes) {
    for decision in &recipe.decisions {
        let keys = decision.rules.iter().flat_map(crate::Condition::keys);
        let Some(role) = keys.into_iter().find(|key| key.family == Family::Authz) else {
            continue;
        };
        let message = format!(
            "`{}` asks for the role `{}`, and no header is believed to say who calls",
            decision.name,
            role.name()
        );
        let help = "where a proxy authenticates callers and strips their own headers, name its headers under \
                    `global.services.authz.identity`";
        notes.warn(
            code::UNTRUSTED_IDENTITY,
            decision.place,
            &named("decisions", &decision.name),
            message,
            help,
        );
    }
}

/// The path of a named member of a list.
fn named(list: &str, name: &str) -> String {
    format!("{list}[{name}]")
}

/// The warnings gathered so far.
#[derive(Debug, Default)]
struct Notes {
    /// The path of the recipe that is being looked at.
    prefix: String,
    list: Vec<Diagnostic>,
}

impl Notes {
    fn within(&mut self, recipe: &Recipe) {
        self.prefix = match recipe.name.as_str() {
            "default" => "routing".to_owned(),
            name => format!("recipes[{name}].routing"),
        };
    }

    fn warn(
        &mut self,
        code: &'static str,
        place: Place,
        path: &str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.list.push(Diagnostic {
            severity: Severity::Warning,
            code,
            message: message.into(),
            help: Some(help.into()),
            place,
            path: format!("{}.{path}", self.prefix),
        });
    }

    fn sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by(|a, b| (a.place, a.code, &a.message).cmp(&(b.place, b.code, &b.message)));
        self.list
    }
}
