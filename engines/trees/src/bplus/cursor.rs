//! Walking the pairs in both directions.
//!
//! Purpose: leaves have no links to their neighbours; a cursor keeps its path and steps sideways
//! at the lowest inner node that has a next child. So splits store nothing for scans, and a
//! cursor sees the leaves ahead of it in the parent and can ask for them in time.
//! Invariants: keys only rise (fall) as a cursor goes forward (back), which is checked from leaf
//! to leaf, so that a scan of a damaged tree ends.

use adamant_heap::access::Read;

use super::find::{Path, Target, path, prefetch_leaf, separator};
use super::layout::{Inner, Leaf};
use super::sort::{Sorted, prefetch_entries};
use crate::error::{Error, Result};
use crate::tree::{Cursor, Pair, Seek};

/// Leaves asked for ahead of the one that a scan is in.
const LEAVES_AHEAD: usize = 8;
/// Empty leaves in a row that a whole tree cannot have: an empty leaf is an only child, and only
/// children of neighbouring parents merge unless a level's end lies between them.
const EMPTY_LEAVES_MAX: usize = 64;

/// A cursor of a B+ tree. About 3 KiB, so that a scan allocates nothing.
pub struct BplusCursor<'r, R> {
    read: &'r R,
    tree: u64,
    path: Path,
    sorted: Sorted<'r>,
    /// Entries of the leaf below the gap.
    gap: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not yet at a leaf.
    New,
    /// At the leaf that a seek went to.
    Sought,
    /// Going from leaf to leaf.
    Scanning,
}

impl<'r, R: Read> BplusCursor<'r, R> {
    /// A cursor before the first pair; nothing is read yet.
    pub(super) fn new(read: &'r R, tree: u64) -> Self {
        Self { read, tree, path: Path::default(), sorted: Sorted::new(), gap: 0, state: State::New }
    }

    /// Goes to the next leaf with entries in a direction; false when there is none.
    fn step(&mut self, forward: bool) -> Result<bool> {
        let edge = match self.sorted.len() {
            0 => None,
            len => Some(self.sorted.entry(if forward { len - 1 } else { 0 }).key),
        };
        for _ in 0..EMPTY_LEAVES_MAX {
            if !self.sidestep(forward)? {
                return Ok(false);
            }
            self.look_ahead(forward)?;
            self.gap = 0;
            self.sorted.load(self.read, self.path.leaf)?;
            let len = self.sorted.len();
            if len == 0 {
                continue;
            }
            let near = self.sorted.entry(if forward { 0 } else { len - 1 }).key;
            if edge.is_some_and(|edge| if forward { near <= edge } else { near >= edge }) {
                let what = "holds keys out of the order of the leaves";
                return Err(Error::Damaged { block: self.path.leaf, what });
            }
            self.gap = if forward { 0 } else { len };
            return Ok(true);
        }
        Err(Error::Damaged { block: self.path.leaf, what: "ends a long row of empty leaves" })
    }

    /// Makes the path that of the neighbouring leaf; false when there is none.
    fn sidestep(&mut self, forward: bool) -> Result<bool> {
        for depth in (0..self.path.height).rev() {
            let level = self.path.level(depth);
            let step = &mut self.path.steps[depth];
            let target = if forward && step.position + 1 < step.count {
                step.position += 1;
                Target::First
            } else if !forward && step.position > 0 {
                step.position -= 1;
                Target::Last
            } else {
                continue;
            };
            let inner = Inner::at(self.read, step.node, level)?;
            let child = inner.child(usize::from(step.position));
            self.path.descend(self.read, depth + 1, child, target)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Asks for the leaves ahead under the same parent, and for the entries of the next one, the
    /// leaf itself having been asked for some leaves ago.
    fn look_ahead(&mut self, forward: bool) -> Result<()> {
        let step = self.path.steps[self.path.height - 1];
        let parent = Inner::at(self.read, step.node, 1)?;
        let position = usize::from(step.position);
        let distance = |by: usize| {
            if forward {
                Some(position + by).filter(|ahead| *ahead < parent.len())
            } else {
                position.checked_sub(by)
            }
        };
        let entered = if forward { position == 0 } else { position + 1 == parent.len() };
        let nearest = if entered || self.state != State::Scanning { 1 } else { LEAVES_AHEAD };
        self.state = State::Scanning;
        for ahead in (nearest..=LEAVES_AHEAD).filter_map(distance) {
            prefetch_leaf(self.read, parent.child(ahead));
        }
        if let Some(Ok(leaf)) = distance(1).map(|next| Leaf::at(self.read, parent.child(next))) {
            prefetch_entries(self.read, leaf);
        }
        Ok(())
    }
}

impl<'r, R: Read> Cursor<'r> for BplusCursor<'r, R> {
    fn seek(&mut self, seek: Seek<'_>) -> Result<()> {
        // Until all of it has succeeded, the cursor stands before the first pair.
        self.state = State::New;
        let target = match seek {
            Seek::First => Target::First,
            Seek::Last => Target::Last,
            Seek::Before(key) | Seek::After(key) => Target::Key(key),
        };
        self.path = path(self.read, self.tree, target)?;
        self.sorted.load(self.read, self.path.leaf)?;
        self.gap = match seek {
            Seek::First => 0,
            Seek::Last => self.sorted.len(),
            Seek::Before(key) => self.sorted.rank(key, false),
            Seek::After(key) => self.sorted.rank(key, true),
        };
        self.state = State::Sought;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Pair<'r>>> {
        if self.state == State::New {
            self.seek(Seek::First)?;
        }
        if self.gap == self.sorted.len() && !self.step(true)? {
            return Ok(None);
        }
        let entry = self.sorted.entry(self.gap);
        self.gap += 1;
        Ok(Some((entry.key, entry.value(self.read)?)))
    }

    fn previous(&mut self) -> Result<Option<Pair<'r>>> {
        if self.state == State::New {
            self.seek(Seek::First)?;
        }
        if self.gap == 0 && !self.step(false)? {
            return Ok(None);
        }
        self.gap -= 1;
        let entry = self.sorted.entry(self.gap);
        Ok(Some((entry.key, entry.value(self.read)?)))
    }

    fn is_at_edge(&self, forward: bool) -> bool {
        self.gap == if forward { self.sorted.len() } else { 0 }
    }

    fn fence(&self, forward: bool) -> Result<Option<&'r [u8]>> {
        let depth = self.path.height;
        let block = if forward {
            self.path.upper_fence(self.read, depth)?
        } else {
            self.path.lower_fence(self.read, depth)?
        };
        if block == 0 { Ok(None) } else { separator(self.read, block).map(Some) }
    }
}
