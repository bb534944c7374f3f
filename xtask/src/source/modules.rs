//! The import graph of a crate's modules, and its cycles.
//!
//! Purpose: every path that starts with `crate`, `self`, `super` or the name of a submodule is
//! resolved, through re-exports, to the module that defines its target. Modules in braces count as
//! part of their file's module. Test-only code is left out.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::Path;

use crate::source::imports::Imports;
use crate::source::sources::{self, Module};

/// The imports between the modules of one crate.
pub(crate) struct Graph {
    modules: Vec<Module>,
    /// By names from the root down.
    index: HashMap<Vec<String>, usize>,
    /// For each module the module of the file it is in.
    owner: Vec<usize>,
    /// From a module to those it imports, each with the first such place.
    edges: Vec<BTreeMap<usize, Place>>,
}

/// The place of an import.
#[derive(Clone)]
struct Place {
    line: usize,
    path: String,
}

impl Graph {
    /// Reads the crate whose root file is `entry`.
    ///
    /// # Errors
    /// In words, when a file is missing or is not Rust.
    pub(crate) fn load(entry: &Path) -> Result<Self, String> {
        Ok(Self::of(sources::tree(entry)?))
    }

    fn of(modules: Vec<Module>) -> Self {
        let index: HashMap<_, _> =
            modules.iter().enumerate().map(|(at, module)| (module.path.clone(), at)).collect();
        let owner = modules
            .iter()
            .map(|module| {
                let mut path = module.path.clone();
                while modules[index[&path]].inline {
                    path.pop();
                }
                index[&path]
            })
            .collect();
        let edges = vec![BTreeMap::new(); modules.len()];
        let mut graph = Self { modules, index, owner, edges };
        let found: Vec<Imports> = graph.modules.iter().map(Imports::of).collect();
        for (at, imports) in found.iter().enumerate() {
            for (path, line) in &imports.paths {
                let target = graph.owner[graph.resolve(&found, path, 0)];
                let source = graph.owner[at];
                if source != target {
                    let place = Place { line: *line, path: format!("crate::{}", path.join("::")) };
                    graph.edges[source].entry(target).or_insert(place);
                }
            }
        }
        graph
    }

    /// Number of modules with a file of their own.
    pub(crate) fn len(&self) -> usize {
        self.modules.iter().filter(|module| !module.inline).count()
    }

    /// Number of import edges between modules.
    pub(crate) fn import_count(&self) -> usize {
        self.edges.iter().map(BTreeMap::len).sum()
    }

    /// For each strongly connected set of modules its shortest cycle, in words.
    pub(crate) fn cycles(&self) -> Vec<String> {
        let mut reported = BTreeSet::new();
        let mut cycles = Vec::new();
        for start in 0..self.modules.len() {
            if reported.contains(&start) {
                continue;
            }
            if let Some(cycle) = self.shortest_cycle(start) {
                let knot = (0..self.modules.len())
                    .filter(|&other| self.reaches(start, other) && self.reaches(other, start));
                reported.extend(knot);
                cycles.push(self.describe(&cycle));
            }
        }
        cycles
    }

    /// Imports of a module by one whose `mod` line is above its own, in words.
    pub(crate) fn upward(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (source, targets) in self.edges.iter().enumerate() {
            for (&target, place) in targets {
                let (from, to) = (&self.modules[source].path, &self.modules[target].path);
                let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
                let (Some(a), Some(b)) = (from.get(shared), to.get(shared)) else { continue };
                let children = &self.modules[self.index[&from[..shared]]].children;
                let position = |name| children.iter().position(|child| child == name);
                if position(a) < position(b) {
                    problems.push(format!(
                        "{}:{} imports {}, but `mod {b};` stands below `mod {a};`: a module \
                         imports only those above it",
                        self.modules[source].file.display(),
                        place.line,
                        place.path,
                    ));
                }
            }
        }
        problems
    }

    /// The module that defines the target of a full path: the deepest one on it, after re-exports
    /// were followed.
    fn resolve(&self, imports: &[Imports], path: &[String], depth: usize) -> usize {
        let mut at = self.index[&Vec::new()];
        for (count, name) in path.iter().enumerate() {
            if let Some(&below) = self.index.get(&path[..=count]) {
                at = below;
                continue;
            }
            // A re-export of a re-export of ... of itself must end somewhere.
            if depth > 16 || imports[at].defined.contains(name) {
                return at;
            }
            if let Some(target) = imports[at].renamed.get(name) {
                let full: Vec<String> = target.iter().chain(&path[count + 1..]).cloned().collect();
                return self.resolve(imports, &full, depth + 1);
            }
            let rest = &path[count..];
            let through_glob = imports[at].globs.iter().find_map(|glob| {
                let full: Vec<String> = glob.iter().chain(rest).cloned().collect();
                let module = self.resolve(imports, glob, depth + 1);
                let known = imports[module].defined.contains(name)
                    || imports[module].renamed.contains_key(name);
                known.then(|| self.resolve(imports, &full, depth + 1))
            });
            return through_glob.unwrap_or(at);
        }
        at
    }

    /// The shortest path from a module back to itself.
    fn shortest_cycle(&self, start: usize) -> Option<Vec<usize>> {
        let mut before: HashMap<usize, usize> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for &next in self.edges[at].keys() {
                if next == start {
                    let mut cycle = vec![at];
                    while let Some(&earlier) = before.get(cycle.last()?) {
                        cycle.push(earlier);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if let Entry::Vacant(unseen) = before.entry(next) {
                    unseen.insert(at);
                    queue.push_back(next);
                }
            }
        }
        None
    }

    fn reaches(&self, source: usize, target: usize) -> bool {
        let mut seen = BTreeSet::from([source]);
        let mut stack = vec![source];
        while let Some(at) = stack.pop() {
            if at == target {
                return true;
            }
            stack.extend(self.edges[at].keys().filter(|&&next| seen.insert(next)));
        }
        false
    }

    fn describe(&self, cycle: &[usize]) -> String {
        let mut words = Vec::new();
        for (position, &at) in cycle.iter().enumerate() {
            let next = cycle[(position + 1) % cycle.len()];
            let place = &self.edges[at][&next];
            words.push(format!(
                "{} imports {} ({}:{})",
                self.name(at),
                place.path,
                self.modules[at].file.display(),
                place.line
            ));
        }
        words.join("; ")
    }

    fn name(&self, at: usize) -> String {
        match self.modules[at].path.join("::") {
            root if root.is_empty() => "the root module".to_owned(),
            name => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str, text: &str, children: &[&str]) -> Module {
        Module {
            path: path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            file: format!("{path}.rs").into(),
            inline: false,
            items: syn::parse_file(text).unwrap().items,
            children: children.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn finds_a_cycle_through_a_re_export() {
        let graph = Graph::of(vec![
            module("", "pub use crate::high::High;", &["low", "high"]),
            module("low", "use crate::High; pub struct Low;", &[]),
            module("high", "use crate::low::Low; pub struct High(Low);", &[]),
        ]);
        let cycles = graph.cycles();
        assert_eq!(cycles.len(), 1, "{cycles:?}");
        assert!(cycles[0].contains("low imports crate::High"), "{cycles:?}");
        assert!(cycles[0].contains("high imports crate::low::Low"), "{cycles:?}");
    }

    #[test]
    fn finds_paths_outside_of_use_lines() {
        let graph = Graph::of(vec![
            module("", "", &["low", "high"]),
            module("low", "fn low() { println!(\"{}\", crate::high::HIGH) }", &[]),
            module("high", "pub const HIGH: u8 = 1; fn high() { super::low::low() }", &[]),
        ]);
        assert_eq!(graph.cycles().len(), 1);
        assert_eq!(graph.upward().len(), 1);
    }

    #[test]
    fn a_child_that_uses_its_parent_is_a_cycle() {
        let graph = Graph::of(vec![
            module("", "", &["tree"]),
            module("tree", "pub use find::find; pub struct Tree;", &["find"]),
            module("tree::find", "use super::Tree; pub fn find(_: Tree) {}", &[]),
        ]);
        assert_eq!(graph.cycles().len(), 1);
    }

    #[test]
    fn bottom_up_is_fine() {
        let graph = Graph::of(vec![
            module("", "pub use error::*; pub use tree::Tree;", &["error", "tree"]),
            module("error", "pub(in crate::tree) struct Error;", &[]),
            module("tree", "use crate::error::{self, Error}; pub struct Tree;", &[]),
        ]);
        assert_eq!(graph.cycles(), Vec::<String>::new());
        assert_eq!(graph.upward(), Vec::<String>::new());
    }

    #[test]
    fn a_module_above_must_not_import_one_below() {
        let graph = Graph::of(vec![
            module("", "", &["first", "second"]),
            module("first", "use super::second::Second;", &[]),
            module("second", "pub struct Second;", &[]),
        ]);
        assert_eq!(graph.cycles(), Vec::<String>::new());
        assert_eq!(graph.upward().len(), 1);
    }
}
