//! The state of one directory: visible names, durable names, and the changes in between.
//!
//! Invariant: applying all changes to the durable names gives the visible ones.

use std::collections::BTreeMap;

use crate::choice::{Decisions, Doubts};

/// The file or directory of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File(u64),
    Directory(u64),
}

/// The state of a directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    visible: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    changes: Vec<Change>,
}

#[derive(Clone, Debug)]
struct Change {
    operation: u64,
    removed: Option<String>,
    /// Two of them when names are exchanged.
    added: Vec<(String, Node)>,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The next successful sync makes it durable.
    Unsynced,
    /// A sync failed on it, so no later one will write it.
    Doubtful,
    /// Durable, but kept in the list behind doubtful ones, for the order.
    Durable,
}

impl Names {
    pub(crate) fn get(&self, name: &str) -> Option<Node> {
        self.visible.get(name).copied()
    }

    pub(crate) fn visible(&self) -> &BTreeMap<String, Node> {
        &self.visible
    }

    /// All nodes that have a name, or may have one after a power cut.
    pub(crate) fn reachable(&self) -> impl Iterator<Item = Node> {
        let added = self.changes.iter().flat_map(|change| &change.added);
        let named = self.visible.values().chain(self.durable.values());
        named.copied().chain(added.map(|(_, node)| *node))
    }

    pub(crate) fn add(&mut self, operation: u64, name: String, node: Node) {
        self.change(operation, None, vec![(name, node)]);
    }

    pub(crate) fn remove(&mut self, operation: u64, name: String) {
        self.change(operation, Some(name), Vec::new());
    }

    pub(crate) fn rename(&mut self, operation: u64, source: String, target: String) {
        let node = self.visible[&source];
        self.change(operation, Some(source), vec![(target, node)]);
    }

    pub(crate) fn exchange(&mut self, operation: u64, one: String, other: String) {
        let (first, second) = (self.visible[&one], self.visible[&other]);
        self.change(operation, None, vec![(one, second), (other, first)]);
    }

    fn change(&mut self, operation: u64, removed: Option<String>, added: Vec<(String, Node)>) {
        let change = Change { operation, removed, added, standing: Standing::Unsynced };
        change.apply(&mut self.visible);
        self.changes.push(change);
    }

    /// A sync that succeeds.
    pub(crate) fn sync(&mut self) {
        for change in &mut self.changes {
            if change.standing == Standing::Unsynced {
                change.standing = Standing::Durable;
            }
        }
        let durable = |change: &Change| change.standing == Standing::Durable;
        let count = self.changes.iter().take_while(|change| durable(change)).count();
        for change in self.changes.drain(..count) {
            change.apply(&mut self.durable);
        }
    }

    /// A sync that fails.
    pub(crate) fn sync_failed(&mut self) {
        for change in &mut self.changes {
            if change.standing == Standing::Unsynced {
                change.standing = Standing::Doubtful;
            }
        }
    }

    /// Adds the things in doubt here, in the order in which `crash` asks.
    pub(crate) fn doubts(&self, doubts: &mut Doubts) {
        for change in self.changes.iter().filter(|change| change.standing != Standing::Durable) {
            doubts.add(std::iter::once(change.operation));
        }
    }

    /// The directory after a power cut.
    pub(crate) fn crash(&self, decisions: &mut Decisions) -> Names {
        let mut left = self.durable.clone();
        for change in &self.changes {
            if change.standing == Standing::Durable || decisions.next(1) > 0 {
                change.apply(&mut left);
            }
        }
        Names { visible: left.clone(), durable: left, changes: Vec::new() }
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        if let Some(name) = &self.removed {
            names.remove(name);
        }
        names.extend(self.added.iter().cloned());
    }
}
