//! The engines that can hold a keyspace, behind one enum.
//!
//! Purpose: the only file of the store that knows the engines; the others see a `Tree`.
//! Invariants: a `Tree` is the address of a head block and no more; the heap and the engine verify
//! what it refers to whenever they follow it (S3).
//! Thread safety: reading takes a view (shared lock), writing a transaction (exclusive lock).

use std::collections::HashSet;
use std::fmt;
use std::ops::{Bound, ControlFlow, RangeInclusive};
use std::str::FromStr;

use adamant_heap::View;
use adamant_heap::access::{Read, Write};
use adamant_slice::Slice;
use adamant_trees::{
    Bplus, Btree, Checking, Critbit, Cursor, Estimate, Moved, MovedPart, Moves, Operation,
    OrderedMap, Pair, Redblack, Report, Salvaged, Seek, Walk,
};

use crate::bounds::Direction;
use crate::error::{Error, Result};
use crate::layout::{
    ENGINE_BPLUS, ENGINE_BTREE, ENGINE_CRITBIT, ENGINE_LSM, ENGINE_REDBLACK, KIND_PLAIN,
    KeyspaceEntry,
};

/// Pairs per step when one tree is filled from another; their keys are in memory beside the trees.
pub(crate) const FILL_PAIRS: usize = 1024;

/// The data structure of a keyspace.
///
/// ```
/// use adamant::Engine;
///
/// assert_eq!(Engine::default(), Engine::Bplus);
/// let engine: Engine = "lsm".parse()?;
/// assert_eq!((engine, engine.name()), (Engine::Lsm, "lsm"));
/// assert!("rtree".parse::<Engine>().unwrap_err().to_string().contains("redblack"));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// A B+ tree whose leaves split without copying values: the default.
    #[default]
    Bplus,
    /// A B-tree, with pairs in all of its nodes.
    Btree,
    /// A crit-bit tree, whose inserts change the fewest bytes.
    Critbit,
    /// A red-black tree.
    Redblack,
    /// A log-structured merge tree, for data much larger than memory; keeps its files beside the
    /// pool.
    Lsm,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 5] = [Self::Bplus, Self::Btree, Self::Critbit, Self::Redblack, Self::Lsm];

    /// The name that the command line and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bplus => "bplus",
            Self::Btree => "btree",
            Self::Critbit => "critbit",
            Self::Redblack => "redblack",
            Self::Lsm => "lsm",
        }
    }

    /// The engine with this number in the catalogue, if this version knows it in that format.
    pub(crate) fn numbered(number: u16, format: u16) -> Option<Self> {
        let engine = match number {
            ENGINE_BPLUS => Self::Bplus,
            ENGINE_BTREE => Self::Btree,
            ENGINE_CRITBIT => Self::Critbit,
            ENGINE_REDBLACK => Self::Redblack,
            ENGINE_LSM => Self::Lsm,
            _ => return None,
        };
        (engine.formats().contains(&format)).then_some(engine)
    }

    /// The versions of its format that this version reads and changes.
    fn formats(self) -> RangeInclusive<u16> {
        match self {
            // The trees say which of the two they have.
            Self::Bplus => FORMAT..=FORMAT_BPLUS,
            _ => self.format()..=self.format(),
        }
    }

    /// The version of the format of a new one.
    fn format(self) -> u16 {
        match self {
            Self::Lsm => FORMAT_LSM,
            Self::Bplus => FORMAT_BPLUS,
            Self::Btree | Self::Critbit | Self::Redblack => FORMAT,
        }
    }

    fn number(self) -> u16 {
        match self {
            Self::Bplus => ENGINE_BPLUS,
            Self::Btree => ENGINE_BTREE,
            Self::Critbit => ENGINE_CRITBIT,
            Self::Redblack => ENGINE_REDBLACK,
            Self::Lsm => ENGINE_LSM,
        }
    }

    /// The catalogue's entry of a map of this engine with that head.
    pub(crate) fn entry(self, id: u64, head: u64) -> KeyspaceEntry {
        KeyspaceEntry {
            id: id.into(),
            head: head.into(),
            engine: self.number().into(),
            format: self.format().into(),
            kind: KIND_PLAIN.into(),
            types_bytes: 0.into(),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        let known = || Self::ALL.map(Self::name).join(", ");
        found.ok_or_else(|| Error::EngineName { name: name.into(), known: known() })
    }
}

/// The format version of each tree on the heap.
const FORMAT: u16 = 1;
/// The format version of the B+ tree. The leaves of version 1 are tagged by hashes.
const FORMAT_BPLUS: u16 = 2;
/// The format version of the LSM tree. Version 1 had no checksums on the heap.
const FORMAT_LSM: u16 = 2;

/// An ordered map on the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tree {
    Bplus(Bplus),
    Btree(Btree),
    Critbit(Critbit),
    Redblack(Redblack),
}

/// Dispatches to the map that a `Tree` is.
macro_rules! with {
    ($this:expr, $tree:ident => $work:expr) => {
        match $this {
            Tree::Bplus($tree) => $work,
            Tree::Btree($tree) => $work,
            Tree::Critbit($tree) => $work,
            Tree::Redblack($tree) => $work,
        }
    };
}

impl Tree {
    /// Makes an empty tree.
    pub(crate) fn create<W: Write>(engine: Engine, heap: &mut W) -> Result<Self> {
        Ok(match engine {
            Engine::Bplus => Self::Bplus(Bplus::create(heap)?),
            Engine::Btree => Self::Btree(Btree::create(heap)?),
            Engine::Critbit => Self::Critbit(Critbit::create(heap)?),
            Engine::Redblack => Self::Redblack(Redblack::create(heap)?),
            Engine::Lsm => return Err(no_tree()),
        })
    }

    /// Opens the tree of an engine with this head.
    pub(crate) fn open_as<R: Read>(heap: &R, engine: Engine, head: u64) -> Result<Self> {
        Ok(match engine {
            Engine::Bplus => Self::Bplus(Bplus::open(heap, head)?),
            Engine::Btree => Self::Btree(Btree::open(heap, head)?),
            Engine::Critbit => Self::Critbit(Critbit::open(heap, head)?),
            Engine::Redblack => Self::Redblack(Redblack::open(heap, head)?),
            Engine::Lsm => return Err(no_tree()),
        })
    }

    /// Heap offset of the head.
    pub(crate) fn head(&self) -> u64 {
        with!(self, tree => tree.head())
    }

    /// Emits what can be read of a damaged tree. Adds the leaves of a bplus tree that were read to
    /// `leaves`.
    pub(crate) fn salvage<'r, R: Read>(
        heap: &'r R,
        engine: Engine,
        head: u64,
        leaves: &mut HashSet<u64>,
        each: &mut dyn FnMut(Salvaged<'r>),
    ) {
        match engine {
            Engine::Bplus => Bplus::salvage(heap, head, leaves, each),
            Engine::Btree => Btree::salvage(heap, head, each),
            Engine::Critbit => Critbit::salvage(heap, head, each),
            Engine::Redblack => Redblack::salvage(heap, head, each),
            // Salvaged elsewhere.
            Engine::Lsm => {}
        }
    }

    /// Its engine.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Bplus(_) => Engine::Bplus,
            Self::Btree(_) => Engine::Btree,
            Self::Critbit(_) => Engine::Critbit,
            Self::Redblack(_) => Engine::Redblack,
        }
    }

    /// The number of entries. O(1).
    pub(crate) fn len<R: Read>(&self, heap: &R) -> Result<u64> {
        with!(self, tree => Ok(tree.len(heap)?))
    }

    /// The value of a key.
    pub(crate) fn find<'a, R: Read>(&self, heap: &'a R, key: &[u8]) -> Result<Option<&'a [u8]>> {
        with!(self, tree => Ok(tree.get(heap, key)?))
    }

    /// The value of a key, and the offset of its block if it has one of its own.
    pub(crate) fn find_with_block<'a, R: Read>(
        &self,
        heap: &'a R,
        key: &[u8],
    ) -> Result<Option<(&'a [u8], Option<u64>)>> {
        with!(self, tree => Ok(tree.get_with_block(heap, key)?))
    }

    /// Passes the entries between the bounds to `each`, in order, until it breaks, or until it had
    /// `entries_min` of them and a node ends: otherwise the next scan would sort that node again.
    /// Returns where a later scan continues without missing an entry, as the bound at this end;
    /// `None` if nothing is left.
    pub(crate) fn scan<'a, R: Read>(
        &self,
        heap: &'a R,
        direction: Direction,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        entries_min: usize,
        each: impl FnMut(Pair<'a>) -> ControlFlow<()>,
    ) -> Result<Option<Bound<&'a [u8]>>> {
        let forward = direction == Direction::Up;
        with!(self, tree => {
            scan(&mut tree.cursor(heap), forward, (lower, upper), entries_min, each)
        })
    }

    /// Moves all entries of another tree of the same heap to this empty one: their blocks stay in
    /// place. O(n log n).
    pub(crate) fn fill<W: Write>(&self, heap: &mut W, source: &Self) -> Result<()> {
        let mut lower = Bound::Unbounded;
        loop {
            let range = (lower.as_ref().map(Vec::as_slice), Bound::Unbounded);
            let piece = source.move_range(heap, range, self, FILL_PAIRS)?;
            match piece.last {
                Some(key) => lower = Bound::Excluded(key),
                None => return Ok(()),
            }
        }
    }

    /// Sets the value of a key; true if the key had one.
    pub(crate) fn insert<W: Write>(&self, heap: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        with!(self, tree => Ok(tree.insert(heap, key, value)?))
    }

    /// Sets the value of a key to a block that begins with it and has no other owner.
    pub(crate) fn insert_block<W: Write>(
        &self,
        heap: &mut W,
        key: &[u8],
        block: u64,
        bytes: usize,
    ) -> Result<()> {
        with!(self, tree => tree.insert_block(heap, key, block, bytes)?);
        Ok(())
    }

    /// Removes a key; true if it existed.
    pub(crate) fn remove<W: Write>(&self, heap: &mut W, key: &[u8]) -> Result<bool> {
        with!(self, tree => Ok(tree.remove(heap, key)?))
    }

    /// Moves the entry of a key to a key of a tree of the same heap, which may be this one.
    pub(crate) fn move_to<W: Write>(
        &self,
        heap: &mut W,
        key: &[u8],
        target: &Self,
        new_key: &[u8],
    ) -> Result<Moved> {
        with!(self, source => with!(target, target => {
            Ok(source.move_to(heap, key, target, new_key)?)
        }))
    }

    /// Swaps the values of two keys; false if one of them does not exist.
    pub(crate) fn swap<W: Write>(
        &self,
        heap: &mut W,
        key: &[u8],
        other: &Self,
        other_key: &[u8],
    ) -> Result<bool> {
        with!(self, one => with!(other, other => Ok(one.swap(heap, key, other, other_key)?)))
    }

    /// The first keys of a range, at most so many.
    pub(crate) fn keys<R: Read>(
        &self,
        heap: &R,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<Slice>> {
        let mut keys = Vec::with_capacity(entries_max);
        self.scan(heap, Direction::Up, range, usize::MAX, |(key, _)| {
            keys.push(Slice::from(key));
            let is_full = keys.len() >= entries_max;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(keys)
    }

    /// Moves the first entries of a range, about so many, to another tree of the same heap.
    pub(crate) fn move_range<W: Write>(
        &self,
        heap: &mut W,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        target: &Self,
        entries_max: usize,
    ) -> Result<MovedPart> {
        with!(self, source => with!(target, target => {
            Ok(source.move_range(heap, range, target, entries_max)?)
        }))
    }

    /// Applies the changes of a batch, whose keys are strictly ascending. `present` is scratch
    /// space.
    pub(crate) fn apply<W: Write>(
        &self,
        heap: &mut W,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()> {
        present.clear();
        with!(self, tree => Ok(tree.apply_sorted(heap, operations, present)?))
    }

    /// Inserts pairs with strictly ascending keys; returns how many replaced one.
    pub(crate) fn load_sorted<W: Write>(&self, heap: &mut W, pairs: &[Pair<'_>]) -> Result<u64> {
        with!(self, tree => Ok(tree.load_sorted(heap, pairs)?))
    }

    /// Copies entries from a key on, about so many, side by side and into full nodes; returns the
    /// key at which the next part begins.
    pub(crate) fn compact_part<W: Write>(
        &self,
        heap: &mut W,
        from: &[u8],
        entries_max: usize,
    ) -> Result<Option<Vec<u8>>> {
        with!(self, tree => Ok(tree.compact_part(heap, from, entries_max)?))
    }

    /// An estimate of a range.
    pub(crate) fn estimate<R: Read>(
        &self,
        heap: &R,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Estimate> {
        with!(self, tree => Ok(tree.estimate(heap, lower, upper)?))
    }

    /// Frees the tree, with its head.
    pub(crate) fn destroy<W: Write>(self, heap: &mut W) -> Result<()> {
        with!(self, tree => Ok(tree.destroy(heap)?))
    }

    /// Heap blocks of a tree, given its report.
    pub(crate) fn blocks(&self, report: &Report) -> u64 {
        // The head, an entry for each pair, large values, the nodes.
        let nodes = report.leaves + report.inner_nodes;
        let blocks = 1 + report.pairs + report.external_values + nodes;
        match self {
            // And a separator for each leaf but the first.
            Self::Bplus(_) => blocks + report.leaves.saturating_sub(1),
            Self::Btree(_) | Self::Critbit(_) | Self::Redblack(_) => blocks,
        }
    }

    /// Verifies every rule of the tree's structure.
    pub(crate) fn check<R: Read>(&self, heap: &R) -> Result<Report> {
        with!(self, tree => Ok(tree.check(heap)?))
    }

    /// The same until a transaction waits for the view, from where the last part ended; returns
    /// whether it was the last one.
    pub(crate) fn check_part(&self, view: &View<'_>, checking: &mut Checking) -> Result<bool> {
        let is_wanted = || view.is_waited_for();
        with!(self, tree => Ok(tree.check_part(view, checking, &is_wanted)?))
    }
}

/// This file knows only trees on the heap.
fn no_tree() -> Error {
    Error::Damaged { what: "expected the head of a tree, found one of the engine lsm".into() }
}

/// [`Tree::scan`], by a cursor of any tree.
fn scan<'a>(
    cursor: &mut impl Cursor<'a>,
    forward: bool,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    entries_min: usize,
    mut each: impl FnMut(Pair<'a>) -> ControlFlow<()>,
) -> Result<Option<Bound<&'a [u8]>>> {
    cursor.seek(if forward { Seek::lower(lower) } else { Seek::upper(upper) })?;
    let until = if forward { upper } else { lower };
    let mut entries = 0;
    loop {
        let walk = cursor.walk(forward, until, &mut |pair| {
            entries += 1;
            each(pair)
        })?;
        match walk {
            Walk::End => return Ok(None),
            Walk::Broken(key) => return Ok(Some(Bound::Excluded(key))),
            Walk::Edge => {}
        }
        if entries >= entries_min {
            let bound = if forward { Bound::Included } else { Bound::Excluded };
            return Ok(cursor.resume_key(forward)?.map(bound));
        }
    }
}
