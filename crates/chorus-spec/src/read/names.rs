//! Everything that a file declares by name, gathered before anything refers to it.
//!
//! It knows names only, not what stands behind them. **Invariant:** the names that a rule may use are those that the
//! signals emit at run time, so a rule that passes here can come true.

use super::cursor::Cursor;
use super::house::House;
use super::nearest::suggest;
use crate::diagnostic::code;
use crate::{Family, KnowledgeBase, LooperKind, Model, ModelId, SelectionSettings};
use std::collections::{BTreeMap, BTreeSet};

/// The container of each family under `signals`.
pub(super) const CONTAINERS: [(&str, Family); 20] = [
    ("keywords", Family::Keyword),
    ("embeddings", Family::Embedding),
    ("domains", Family::Domain),
    ("fact_check", Family::FactCheck),
    ("user_feedbacks", Family::UserFeedback),
    ("reasks", Family::Reask),
    ("preferences", Family::Preference),
    ("language", Family::Language),
    ("context", Family::Context),
    ("structure", Family::Structure),
    ("complexity", Family::Complexity),
    ("modality", Family::Modality),
    ("role_bindings", Family::Authz),
    ("jailbreak", Family::Jailbreak),
    ("pii", Family::Pii),
    ("kb", Family::Kb),
    ("conversation", Family::Conversation),
    ("events", Family::Event),
    ("metadata", Family::Metadata),
    ("classifiers", Family::Classifier),
];

/// Names that lead to a router or a looper, never to a model.
#[derive(Debug, Default)]
pub(super) struct Reserved {
    /// Each name with where it leads, such as "recipe `default`".
    leads: BTreeMap<String, Lead>,
}

/// Where a reserved name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lead {
    /// To a recipe.
    Recipe(String),
    /// To the decisions of one looper.
    Looper(LooperKind),
}

impl Reserved {
    /// Adds a name; the first owner stays.
    pub(super) fn add(&mut self, name: &str, lead: Lead) {
        self.leads.entry(name.to_owned()).or_insert(lead);
    }

    /// Where the name leads, if it is reserved.
    pub(super) fn lead(&self, name: &str) -> Option<&Lead> {
        self.leads.get(name)
    }
}

/// Who asks for a model: the words of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker<'a> {
    /// The recipe; `default` for the top level.
    pub(super) recipe: &'a str,
    /// The decision, or the signal rule.
    pub(super) decision: &'a str,
    /// `panel`, `judge`, `candidate`, `classifier`.
    pub(super) role: &'a str,
}

/// Who can answer, and which names cannot.
#[derive(Debug)]
pub(super) struct Answerers<'a> {
    pub(super) models: &'a BTreeMap<ModelId, Model>,
    /// Names of models that were refused; a reference to one is not a second error.
    pub(super) refused: &'a BTreeSet<String>,
    pub(super) reserved: &'a Reserved,
    pub(super) has_default: bool,
    /// What selectors fall back on.
    pub(super) selection: &'a SelectionSettings,
    /// What plugins of routes fall back on.
    pub(super) house: &'a House,
}

impl Answerers<'_> {
    /// The model that this text names; reports a reserved or unknown name.
    pub(super) fn model(&self, at: &Cursor<'_>, asker: Asker<'_>) -> Option<ModelId> {
        let name = at.text()?;
        if let Some(lead) = self.reserved.lead(&name) {
            at.error_help(
                code::RECURSION,
                format!(
                    "`{name}` is not a model, and its use here would recurse: {}",
                    circle(&name, lead, asker)
                ),
                "name a model of `providers.models`".to_owned(),
            );
            return None;
        }
        self.known(at, name)
    }

    fn known(&self, at: &Cursor<'_>, name: String) -> Option<ModelId> {
        let id = ModelId::new(name);
        if self.models.contains_key(&id) {
            return Some(id);
        }
        if !self.refused.contains(id.as_str()) {
            let known: Vec<&str> = self.models.keys().map(ModelId::as_str).collect();
            let help = suggest(id.as_str(), &known, "declare it under `providers.models`");
            at.error_help(code::UNKNOWN_REFERENCE, format!("no model is named `{id}`"), help);
        }
        None
    }
}

/// The way back, such as "panel of `deep` → `vllm-sr/auto` → recipe `default` → `deep`".
fn circle(name: &str, lead: &Lead, Asker { recipe, decision, role }: Asker<'_>) -> String {
    let back = match lead {
        Lead::Recipe(target) if target == recipe => format!("recipe `{target}` → `{decision}`"),
        Lead::Recipe(target) => format!("recipe `{target}`"),
        Lead::Looper(LooperKind::Fusion) => format!("Fusion decisions → `{decision}`"),
        Lead::Looper(kind) => format!("{} decisions → `{decision}`", kind.as_str()),
    };
    format!("{role} of `{decision}` → `{name}` → {back}")
}

/// The facts that rules and scores of one recipe may ask for.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    emitted: BTreeMap<Family, BTreeSet<String>>,
    knowledge: &'a [KnowledgeBase],
}

impl<'a> Facts<'a> {
    /// Gathers what the signals and mappings of a `routing` block emit.
    pub(super) fn gather(routing: &Cursor<'_>, knowledge: &'a [KnowledgeBase]) -> Self {
        let mut facts = Self { emitted: BTreeMap::new(), knowledge };
        for (container, family) in CONTAINERS {
            for rule in routing.dig(&["signals"]).map(|s| s.items(container)).unwrap_or_default() {
                facts.add_rule(family, &rule);
            }
        }
        for mapping in routing.dig(&["projections"]).map(|p| p.items("mappings")).unwrap_or_default() {
            mapping
                .items("outputs")
                .iter()
                .for_each(|output| facts.add_name(Family::Projection, output, "name"));
        }
        facts
    }

    fn add_rule(&mut self, family: Family, rule: &Cursor<'_>) {
        match family {
            Family::Complexity => {
                let Some(name) = peek(rule, "name") else { return };
                ["hard", "medium", "easy"]
                    .iter()
                    .for_each(|label| self.add(family, format!("{name}:{label}")));
            }
            Family::Domain => {
                self.add_name(family, rule, "name");
                let categories = rule.get("mmlu_categories").map(|at| at.elements()).unwrap_or_default();
                categories
                    .iter()
                    .filter_map(|at| at.node().text())
                    .for_each(|name| self.add(family, name.to_owned()));
            }
            Family::Authz => self.add_name(family, rule, "role"),
            Family::Classifier => {
                let Some(name) = peek(rule, "name") else { return };
                let labels = rule.get("labels").map(|at| at.elements()).unwrap_or_default();
                labels
                    .iter()
                    .filter_map(|at| at.node().text())
                    .for_each(|label| self.add(family, format!("{name}:{label}")));
            }
            _ => self.add_name(family, rule, "name"),
        }
    }

    /// The knowledge base that this text names; reports an unknown one.
    pub(super) fn knowledge_base(&self, at: &Cursor<'_>) -> Option<&'a KnowledgeBase> {
        let name = at.node().text()?;
        let found = self.knowledge.iter().find(|base| base.name == name);
        if found.is_none() {
            let known: Vec<&str> = self.knowledge.iter().map(|base| base.name.as_str()).collect();
            let help = suggest(name, &known, "declare it under `global.model_catalog.kbs`");
            at.error_help(code::UNKNOWN_REFERENCE, format!("no knowledge base is named `{name}`"), help);
        }
        found
    }

    fn add_name(&mut self, family: Family, at: &Cursor<'_>, key: &str) {
        if let Some(name) = peek(at, key) {
            self.add(family, name);
        }
    }

    fn add(&mut self, family: Family, name: String) {
        self.emitted.entry(family).or_default().insert(name);
    }

    /// Whether the family emits that name.
    pub(super) fn has(&self, family: Family, name: &str) -> bool {
        self.emitted.get(&family).is_some_and(|names| names.contains(name))
    }

    /// Reports the name at `at` if the family does not emit it.
    pub(super) fn demand(&self, at: &Cursor<'_>, family: Family, name: &str) -> bool {
        if self.has(family, name) {
            return true;
        }
        let known: Vec<&str> = self.emitted.get(&family).into_iter().flatten().map(String::as_str).collect();
        let forms: Vec<String> = known
            .iter()
            .filter(|k| k.strip_prefix(name).is_some_and(|t| t.starts_with(':')))
            .map(|k| format!("`{k}`"))
            .collect();
        let help = if forms.is_empty() {
            suggest(name, &known, &format!("no {family} is declared in this recipe"))
        } else {
            Some(format!("`{name}` by itself never occurs; write {}", forms.join(", ")))
        };
        at.error_help(code::UNKNOWN_REFERENCE, format!("no {family} emits `{name}`"), help);
        false
    }
}

fn peek(at: &Cursor<'_>, key: &str) -> Option<String> {
    at.get(key).and_then(|name| name.node().text().map(str::to_owned))
}

/// Reports the second of two like names.
pub(super) fn unique(seen: &mut BTreeSet<String>, at: &Cursor<'_>, what: &str, name: &str) -> bool {
    let is_new = seen.insert(name.to_owned());
    if !is_new {
        let named = at.get("name").unwrap_or_else(|| at.clone());
        named.error(code::DUPLICATE_NAME, format!("a second {what} is named `{name}`"));
    }
    is_new
}
