//! The engines that can keep a keyspace, behind one enum.
//!
//! Purpose: the only file of the store that knows the engines; the others see a `Tree`.
//! Invariants: a `Tree` is the address of a head block and no more; what it names is verified by
//! the heap and the engine whenever it is followed (S3).
//! Thread safety: reading takes a view (shared lock), writing a transaction (exclusive lock).

use std::fmt;
use std::ops::{Bound, ControlFlow};

use adamant_heap::access::{Read, Write};
use adamant_trees::{Bplus, Cursor, Operation, OrderedMap, Pair, Report, Seek, Walk};

use crate::bounds::Direction;
use crate::error::{Error, Result};
use crate::layout::{ENGINE_BPLUS, KeyspaceEntry};

/// The data structure that keeps a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// A B+ tree whose leaves split without copying values: the default.
    Bplus,
}

impl Engine {
    /// The name that the command and messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bplus => "bplus",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The version of the bplus tree's format.
const BPLUS_FORMAT: u16 = 1;

/// An ordered map on the heap.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tree {
    Bplus(Bplus),
}

impl Tree {
    /// Makes an empty tree.
    pub(crate) fn create<W: Write>(engine: Engine, heap: &mut W) -> Result<Self> {
        match engine {
            Engine::Bplus => Ok(Self::Bplus(Bplus::create(heap)?)),
        }
    }

    /// The tree that an entry of the catalogue names.
    pub(crate) fn open<R: Read>(heap: &R, name: &str, entry: &KeyspaceEntry) -> Result<Self> {
        match (entry.engine.get(), entry.format.get()) {
            (ENGINE_BPLUS, BPLUS_FORMAT) => Self::open_bplus(heap, entry.head.get()),
            (engine, format) => Err(Error::UnknownEngine { name: name.into(), engine, format }),
        }
    }

    /// The bplus tree with this head.
    pub(crate) fn open_bplus<R: Read>(heap: &R, head: u64) -> Result<Self> {
        Ok(Self::Bplus(Bplus::open(heap, head)?))
    }

    /// What the catalogue says of this tree.
    pub(crate) fn entry(&self, id: u64) -> KeyspaceEntry {
        let (engine, format, head) = match self {
            Self::Bplus(tree) => (ENGINE_BPLUS, BPLUS_FORMAT, tree.head()),
        };
        KeyspaceEntry {
            id: id.into(),
            head: head.into(),
            engine: engine.into(),
            format: format.into(),
            reserved: 0.into(),
        }
    }

    /// Which engine this is.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Bplus(_) => Engine::Bplus,
        }
    }

    /// Entries in the tree. O(1).
    pub(crate) fn len<R: Read>(&self, heap: &R) -> Result<u64> {
        match self {
            Self::Bplus(tree) => Ok(tree.len(heap)?),
        }
    }

    /// The value of a key.
    pub(crate) fn find<'a, R: Read>(&self, heap: &'a R, key: &[u8]) -> Result<Option<&'a [u8]>> {
        match self {
            Self::Bplus(tree) => Ok(tree.get(heap, key)?),
        }
    }

    /// Hands the entries between the bounds to `each`, in order, until it breaks, or until at the
    /// end of a node it had `entries_min` of them: else the next scan would sort that node again.
    /// Returns where a later scan goes on that misses nothing which was there, given as the bound
    /// at this end; `None` when nothing is left.
    pub(crate) fn scan<'a, R: Read>(
        &self,
        heap: &'a R,
        direction: Direction,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        entries_min: usize,
        mut each: impl FnMut(Pair<'a>) -> ControlFlow<()>,
    ) -> Result<Option<Bound<&'a [u8]>>> {
        let Self::Bplus(tree) = self;
        let forward = direction == Direction::Up;
        let mut cursor = tree.cursor(heap);
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
                return Ok(cursor.fence(forward)?.map(bound));
            }
        }
    }

    /// Sets the value of a key; true if the key had one.
    pub(crate) fn insert<W: Write>(&self, heap: &mut W, key: &[u8], value: &[u8]) -> Result<bool> {
        match self {
            Self::Bplus(tree) => Ok(tree.insert(heap, key, value)?),
        }
    }

    /// Takes a key out; true if it was there.
    pub(crate) fn remove<W: Write>(&self, heap: &mut W, key: &[u8]) -> Result<bool> {
        match self {
            Self::Bplus(tree) => Ok(tree.remove(heap, key)?),
        }
    }

    /// Makes the changes of a batch, whose keys ascend strictly. `present` is room to work in.
    pub(crate) fn apply<W: Write>(
        &self,
        heap: &mut W,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()> {
        present.clear();
        match self {
            Self::Bplus(tree) => Ok(tree.apply_sorted(heap, operations, present)?),
        }
    }

    /// Frees all that the tree holds, and its head.
    pub(crate) fn destroy<W: Write>(self, heap: &mut W) -> Result<()> {
        match self {
            Self::Bplus(tree) => Ok(tree.destroy(heap)?),
        }
    }

    /// Blocks of the heap that a tree takes of which this was found.
    pub(crate) fn blocks(&self, report: &Report) -> u64 {
        match self {
            // The head, an entry for each pair, large values, the nodes, and a separator for each
            // leaf but the first.
            Self::Bplus(_) => {
                let nodes = report.leaves + report.inner_nodes;
                let separators = report.leaves.saturating_sub(1);
                1 + report.pairs + report.external_values + nodes + separators
            }
        }
    }

    /// Verifies every rule of the tree's structure.
    pub(crate) fn check<R: Read>(&self, heap: &R) -> Result<Report> {
        match self {
            Self::Bplus(tree) => Ok(tree.check(heap)?),
        }
    }
}
