//! What clients have done, and saw.
//!
//! Moments are numbers in the order in which things happened: all is simulated in one thread.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use adamant_sim::linearizable::{Kind, Operation, is_linearizable};
use serde::{Deserialize, Serialize};

use crate::nodes::Content;

/// Keys that are set, read and counted up.
pub(crate) const KEYS: usize = 6;

/// What a client asks for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Action {
    Read { key: usize },
    Write { key: usize, value: i64, id: u64 },
    Add { key: usize, id: u64 },
}

/// What it is told.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Outcome {
    Read(Option<i64>),
    Written,
    Sum(i64),
    /// Nothing was done, for this node does not lead.
    Undone {
        leader: Option<u64>,
    },
    /// Maybe it was done.
    Unknown,
}

/// What became of a write with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Undone,
    Unknown,
}

/// Nodes that reach too few others, from a moment on.
#[derive(Debug)]
struct Cut {
    nodes: BTreeSet<u64>,
    since: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Record {
    moment: Cell<u64>,
    ids: Cell<u64>,
    histories: RefCell<[Vec<Operation>; KEYS]>,
    fates: RefCell<BTreeMap<u64, Fate>>,
    cut: RefCell<Option<Cut>>,
    acknowledged: Cell<u64>,
    /// Of nodes that reached too few others.
    unacknowledged: Cell<u64>,
    is_over: Cell<bool>,
}

impl Action {
    pub(crate) fn is_read(self) -> bool {
        matches!(self, Self::Read { .. })
    }

    fn key(self) -> usize {
        match self {
            Self::Read { key } | Self::Write { key, .. } | Self::Add { key, .. } => key,
        }
    }

    fn id(self) -> Option<u64> {
        match self {
            Self::Read { .. } => None,
            Self::Write { id, .. } | Self::Add { id, .. } => Some(id),
        }
    }

    /// What it was, as far as a client was told.
    fn kind(self, outcome: Outcome) -> Kind {
        match (self, outcome) {
            (Self::Read { .. }, Outcome::Read(found)) => Kind::Read(found),
            (Self::Add { .. }, Outcome::Sum(sum)) => Kind::Add(Some(sum)),
            (Self::Add { .. }, Outcome::Unknown) => Kind::Add(None),
            (Self::Write { value, .. }, Outcome::Written | Outcome::Unknown) => Kind::Write(value),
            _ => panic!("{self:?} was answered {outcome:?}"),
        }
    }
}

impl Record {
    pub(crate) fn now(&self) -> u64 {
        self.moment.set(self.moment.get() + 1);
        self.moment.get()
    }

    /// The number of a write.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.set(self.ids.get() + 1);
        self.ids.get()
    }

    /// Something to do.
    pub(crate) fn action(&self, random: &mut fastrand::Rng) -> Action {
        let key = random.usize(..KEYS);
        let kind = random.u8(..10);
        if kind < 5 {
            return Action::Read { key };
        }
        let id = self.next_id();
        // Far apart, so that what was added to it is known by it.
        let value = i64::try_from(id).unwrap() * 1_000_000;
        if kind < 9 { Action::Write { key, value, id } } else { Action::Add { key, id } }
    }

    /// Notes what a client was told by a node.
    pub(crate) fn note(&self, node: u64, action: Action, start: u64, outcome: Outcome) {
        let end = self.now();
        let fate = match outcome {
            Outcome::Undone { .. } => Fate::Undone,
            Outcome::Unknown => Fate::Unknown,
            Outcome::Read(_) | Outcome::Written | Outcome::Sum(_) => Fate::Done,
        };
        let cut = self.cut.borrow();
        if let Some(cut) = &*cut
            && cut.nodes.contains(&node)
            && start > cut.since
        {
            assert!(fate != Fate::Done, "{cut:?}: node {node} answered {action:?} {outcome:?}");
            self.unacknowledged.set(self.unacknowledged.get() + 1);
        }
        if let Some(id) = action.id() {
            self.fates.borrow_mut().insert(id, fate);
            if fate == Fate::Done {
                self.acknowledged.set(self.acknowledged.get() + 1);
            }
        }
        // A look that saw nothing says nothing.
        let says_nothing = fate == Fate::Unknown && action.id().is_none();
        if fate != Fate::Undone && !says_nothing {
            let end = (fate == Fate::Done).then_some(end);
            let operation = Operation { start, end, kind: action.kind(outcome) };
            self.histories.borrow_mut()[action.key()].push(operation);
        }
    }

    /// Whether a client was told what became of its write.
    pub(crate) fn is_told(&self, id: u64) -> bool {
        self.fates.borrow().contains_key(&id)
    }

    /// Writes that were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.get()
    }

    /// What was asked of nodes that reached too few others, and not done as far as they said.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.unacknowledged.get()
    }

    /// From now on these nodes reach too few others: whatever is asked of them is not to be
    /// acknowledged.
    pub(crate) fn cut(&self, nodes: BTreeSet<u64>) {
        *self.cut.borrow_mut() = Some(Cut { nodes, since: self.now() });
    }

    pub(crate) fn uncut(&self) {
        *self.cut.borrow_mut() = None;
    }

    pub(crate) fn end(&self) {
        self.is_over.set(true);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Verifies by what there is at last: `values` of keys, and `done` by the numbers of writes.
    pub(crate) fn verify(&self, values: &Content, done: &Content) {
        for (id, fate) in &*self.fates.borrow() {
            let is_there = done.contains_key(id.to_string().as_bytes());
            assert!(is_there || *fate != Fate::Done, "write {id} was acknowledged, and is lost");
            assert!(!is_there || *fate != Fate::Undone, "write {id} was refused, and was done");
        }
        let mut histories = self.histories.borrow_mut();
        for (key, history) in histories.iter_mut().enumerate() {
            let value = values.get(&key_of(key)[..]).map(|value| number_of(value));
            let (start, end) = (self.now(), Some(self.now()));
            history.push(Operation { start, end, kind: Kind::Read(value) });
            assert!(is_linearizable(history), "key {key}: {history:?}");
        }
        let of_fate = |fate| self.fates.borrow().values().filter(|&&it| it == fate).count();
        println!(
            "{} writes acknowledged, {} refused, {} of unknown outcome; {} asked of nodes that were \
             cut off",
            of_fate(Fate::Done),
            of_fate(Fate::Undone),
            of_fate(Fate::Unknown),
            self.unacknowledged()
        );
    }
}

pub(crate) fn key_of(key: usize) -> Vec<u8> {
    format!("key {key}").into_bytes()
}

pub(crate) fn number_of(value: &[u8]) -> i64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}
