//! Modules: no cycle inside a crate.
//!
//! An arrow goes from a file to the file that defines what it names by `crate::…`, `super::…` or a child's path.
//! A `pub use` is a door, not an arrow: names are followed through it to the file that defines them. Tests do not count.

use super::files::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// A module: its path from the crate's root; empty for the root itself.
type Module = Vec<String>;

/// Cycles, one line a knot.
pub(crate) fn check(sources: &[Source]) -> Vec<String> {
    let mut crates: BTreeMap<&Path, BTreeMap<Module, &Source>> = BTreeMap::new();
    for source in sources {
        if let Ok(inside) = source.path.strip_prefix(source.package.join("src")) {
            crates.entry(&source.package).or_default().insert(module_of(inside), source);
        }
    }
    crates.iter().flat_map(|(package, modules)| knots(package, modules)).collect()
}

fn module_of(inside: &Path) -> Module {
    let mut module: Module =
        inside.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| last == "mod") || module == ["lib"] || module == ["main"] {
        module.pop();
    }
    module
}

fn knots(package: &Path, modules: &BTreeMap<Module, &Source>) -> Vec<String> {
    let doors: BTreeMap<&Module, BTreeMap<String, Module>> =
        modules.iter().map(|(module, source)| (module, reexports(module, source))).collect();
    let arrows: BTreeMap<&Module, BTreeSet<Module>> = modules
        .iter()
        .map(|(module, source)| {
            let mut paths = Paths { module, found: Vec::new() };
            paths.visit_file(&source.syntax);
            let targets = paths.found.iter().filter_map(|path| resolve(path, modules, &doors));
            (module, targets.filter(|target| target != module).collect())
        })
        .collect();
    let reach = |from: &Module| {
        let mut seen = BTreeSet::new();
        let mut stack: Vec<Module> = arrows.get(from).into_iter().flatten().cloned().collect();
        while let Some(next) = stack.pop() {
            if seen.insert(next.clone()) {
                stack.extend(arrows.get(&next).into_iter().flatten().cloned());
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = modules.keys().map(|m| (m, reach(m))).collect();
    let mut told = BTreeSet::new();
    let mut problems = Vec::new();
    for (module, targets) in &reached {
        if !targets.contains(*module) || told.contains(*module) {
            continue;
        }
        let knot: Vec<&Module> =
            targets.iter().filter(|t| reached.get(*t).is_some_and(|back| back.contains(*module))).collect();
        let names: Vec<String> = knot.iter().map(|m| format!("crate::{}", m.join("::"))).collect();
        told.extend(knot.into_iter().cloned());
        problems.push(format!("{}: modules in a cycle: {}", package.display(), names.join(", ")));
    }
    problems
}

/// The file that a path leads to: as deep as modules go, then through `pub use` doors.
fn resolve(
    path: &[String],
    modules: &BTreeMap<Module, &Source>,
    doors: &BTreeMap<&Module, BTreeMap<String, Module>>,
) -> Option<Module> {
    let mut path = path.to_vec();
    for _ in 0..8 {
        let depth =
            (0..=path.len()).rev().find(|n| path.get(..*n).is_some_and(|p| modules.contains_key(p)))?;
        let (module, rest) = path.split_at(depth);
        let module = module.to_vec();
        let door = rest.first().and_then(|name| doors.get(&module)?.get(name));
        match door {
            Some(target) => path = target.iter().chain(rest.iter().skip(1)).cloned().collect(),
            None => return Some(module),
        }
    }
    None
}

/// Names that a file's `pub use` lets through, and the path each stands for.
fn reexports(module: &Module, source: &Source) -> BTreeMap<String, Module> {
    let mut names = BTreeMap::new();
    for item in &source.syntax.items {
        if let syn::Item::Use(item) = item
            && !matches!(item.vis, syn::Visibility::Inherited)
        {
            let mut leaves = Vec::new();
            unfold(&item.tree, &mut Vec::new(), &mut leaves);
            for (name, path) in leaves {
                names.insert(name, absolute(module, &path).unwrap_or_else(|| child(module, &path)));
            }
        }
    }
    names
}

/// `a::{b, c as d}` as `(b, a::b)` and `(d, a::c)`.
fn unfold(tree: &syn::UseTree, prefix: &mut Vec<String>, into: &mut Vec<(String, Vec<String>)>) {
    let leaf = |ident: &syn::Ident, prefix: &[String]| {
        let mut path = prefix.to_vec();
        if ident != "self" {
            path.push(ident.to_string());
        }
        path
    };
    match tree {
        syn::UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            unfold(&path.tree, prefix, into);
            prefix.pop();
        }
        syn::UseTree::Name(name) => {
            let path = leaf(&name.ident, prefix);
            into.push((path.last().cloned().unwrap_or_default(), path));
        }
        syn::UseTree::Rename(rename) => into.push((rename.rename.to_string(), leaf(&rename.ident, prefix))),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| unfold(tree, prefix, into)),
        syn::UseTree::Glob(_) => {}
    }
}

/// `crate::…`, `self::…` and `super::…` from the crate's root; `None` for other paths.
fn absolute(module: &[String], path: &[String]) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some(child(module, rest)),
        "super" => {
            let (_, parent) = module.split_last()?;
            match rest.first().map(String::as_str) {
                Some("super") => absolute(parent, rest),
                _ => Some(child(parent, rest)),
            }
        }
        _ => None,
    }
}

fn child(module: &[String], path: &[String]) -> Module {
    module.iter().chain(path).cloned().collect()
}

/// Collects what a file names inside its crate.
struct Paths<'m> {
    module: &'m Module,
    found: Vec<Module>,
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // `mod tests { use super::* }` is not an arrow of the module.
        let test = item.attrs.iter().any(|a| a.path().is_ident("cfg"));
        if !test {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited)
            && !item.attrs.iter().any(|a| a.path().is_ident("cfg"))
        {
            let mut leaves = Vec::new();
            unfold(&item.tree, &mut Vec::new(), &mut leaves);
            self.found.extend(leaves.iter().filter_map(|(_, path)| absolute(self.module, path)));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        self.found.extend(absolute(self.module, &names));
        visit::visit_path(self, path);
    }
}
