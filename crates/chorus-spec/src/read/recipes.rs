//! Recipes and the entrypoints that lead to them.
//!
//! It knows that a recipe is closed: its rules see its own signals only.

use super::cursor::Cursor;
use super::globals::STRATEGIES;
use super::names::{Answerers, Facts, Lead, Reserved, unique};
use super::nearest::suggest;
use super::{decisions, projections, signals};
use crate::diagnostic::code;
use crate::{DEFAULT_RECIPE as DEFAULT, Entrypoint, KnowledgeBase, Recipe, Strategy};
use std::collections::BTreeSet;

/// Reads all recipes; the first is `default`.
pub(super) fn read(
    root: &Cursor<'_>,
    strategy: Strategy,
    answerers: &Answerers<'_>,
    knowledge: &[KnowledgeBase],
) -> Vec<Recipe> {
    let recipe = |routing: &Cursor<'_>, name: &str| {
        let facts = Facts::gather(routing, knowledge);
        policy(routing, name, strategy, &facts, answerers)
    };
    let mut seen = BTreeSet::new();
    let mut named = Vec::new();
    for at in root.items("recipes") {
        let Some(name) = at.required("name") else { continue };
        if unique(&mut seen, &at, "recipe", &name) {
            let mut recipe = match at.get("routing") {
                Some(routing) => recipe(&routing, &name),
                None => Recipe { strategy, ..Recipe::default() },
            };
            recipe.description = at.string("description").unwrap_or_default();
            recipe.name = name;
            named.push(recipe);
        }
    }
    let top = root.get("routing").map(|routing| recipe(&routing, DEFAULT));
    let top_has_policy =
        top.as_ref().is_some_and(|recipe| !(recipe.decisions.is_empty() && recipe.signals.is_empty()));
    let explicit = named.iter().position(|recipe| recipe.name == DEFAULT);
    if top_has_policy && explicit.is_some() {
        let message = "`default` is the top-level `routing`; a recipe of that name stands beside it";
        root.get("recipes").unwrap_or_else(|| root.clone()).error(code::DUPLICATE_NAME, message);
    }
    let first = match explicit {
        Some(index) => named.remove(index),
        None => top.unwrap_or_else(|| Recipe { name: DEFAULT.to_owned(), strategy, ..Recipe::default() }),
    };
    std::iter::once(first).chain(named).collect()
}

fn policy(
    routing: &Cursor<'_>,
    name: &str,
    strategy: Strategy,
    facts: &Facts<'_>,
    answerers: &Answerers<'_>,
) -> Recipe {
    Recipe {
        name: name.to_owned(),
        description: String::new(),
        strategy: routing.word("strategy", &STRATEGIES).unwrap_or(strategy),
        signals: signals::read(routing, name, facts, answerers),
        projections: projections::read(routing, facts),
        decisions: decisions::read(routing, name, facts, answerers),
    }
}

/// Reads the entrypoints and reserves their names.
pub(super) fn entrypoints(root: &Cursor<'_>, reserved: &mut Reserved) -> Vec<Entrypoint> {
    let recipes: Vec<String> = root
        .items("recipes")
        .iter()
        .filter_map(|at| at.get("name")?.node().text().map(str::to_owned))
        .collect();
    let mut entrypoints = Vec::new();
    for at in root.items("entrypoints") {
        let model_names = at.some_strings("model_names");
        let Some(recipe) = at.required("recipe") else {
            continue;
        };
        if recipe != DEFAULT && !recipes.contains(&recipe) {
            let known: Vec<&str> = [DEFAULT].into_iter().chain(recipes.iter().map(String::as_str)).collect();
            let named = at.get("recipe").unwrap_or_else(|| at.clone());
            named.error_help(
                code::UNKNOWN_REFERENCE,
                format!("no recipe is named `{recipe}`"),
                suggest(&recipe, &known, ""),
            );
        }
        for (index, name) in model_names.iter().enumerate() {
            if reserved.lead(name).is_some() {
                let item = at.items("model_names").into_iter().nth(index).unwrap_or_else(|| at.clone());
                let message = format!("`{name}` is already an automatic name, a looper or an entrypoint");
                item.error(code::NAME_COLLISION, message);
            }
            reserved.add(name, Lead::Recipe(recipe.clone()));
        }
        entrypoints.push(Entrypoint { model_names, recipe, place: at.place() });
    }
    entrypoints
}
