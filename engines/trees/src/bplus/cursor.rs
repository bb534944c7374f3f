//! The cursor of the B+ tree, in both directions.
//!
//! Purpose: leaves have no links to their neighbours; a cursor keeps its path and steps sideways at
//! the lowest inner node that has a next child. So splits store nothing for scans, and a cursor
//! sees the leaves ahead of it in the parent and can prefetch them in time.
//! Invariants: keys only rise (fall) as a cursor goes forward (back). This is checked from leaf to
//! leaf, so that a scan of a damaged tree ends.

use std::ops::{Bound, ControlFlow, Range};

use adamant_heap::access::Read;

use super::find::{Path, Target, path, prefetch_entry, prefetch_leaf, separator};
use super::layout::{Inner, LEAF_SLOTS, Leaf};
use super::sort::Sorted;
use crate::error::{Error, Result};
use crate::slot::Entry;
use crate::tree::{Cursor, Pair, Seek, Walk};

/// Leaves that are prefetched: the next one, whose slots are read meanwhile, and the one after it.
const LEAVES_AHEAD: usize = 2;
/// Pairs of the first leaf that are handed out before the entries of the next one are prefetched: a
/// scan that ends earlier needs none of them, and the leaf has arrived by then. Of the first leaf's
/// entries twice as many are prefetched ahead.
const PAIRS_ALONE: usize = 8;
/// More consecutive empty leaves than an intact tree can have: an empty leaf is an only child, and
/// only children of neighbouring parents merge unless a level's end lies between them.
const EMPTY_LEAVES_MAX: usize = 64;

/// A cursor of a B+ tree. About 3 KiB, so that a scan allocates nothing.
pub struct BplusCursor<'r, R> {
    read: &'r R,
    tree: u64,
    path: Path,
    sorted: Sorted<'r>,
    /// Number of entries of the leaf below the gap.
    gap: usize,
    state: State,
    ahead: Ahead<'r>,
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

/// The next leaf, whose entries are prefetched while those of the current leaf are handed out, one
/// for one. So no more prefetches are pending than a processor can handle at once, and a scan that
/// ends early has issued few.
struct Ahead<'r> {
    /// The leaf's offset; 0 for none.
    block: u64,
    leaf: Option<&'r Leaf>,
    /// Bits of the entries that were not prefetched yet.
    left: u64,
}

impl Ahead<'_> {
    const NONE: Self = Self { block: 0, leaf: None, left: 0 };

    /// Prefetches one more entry.
    #[inline]
    fn ask<R: Read>(&mut self, read: &R) {
        if self.left != 0
            && let Some(leaf) = self.leaf
        {
            let index = (self.left.trailing_zeros() as usize).min(LEAF_SLOTS - 1);
            self.left &= self.left - 1;
            prefetch_entry(read, leaf.slot(index).entry());
        }
    }
}

impl<'r, R: Read> BplusCursor<'r, R> {
    /// A cursor before the first pair; nothing is read yet.
    pub(super) fn new(read: &'r R, tree: u64) -> Self {
        Self {
            read,
            tree,
            path: Path::default(),
            sorted: Sorted::new(),
            gap: 0,
            state: State::New,
            ahead: Ahead::NONE,
        }
    }

    /// Goes to the next leaf with entries in a direction; false when there is none.
    fn step(&mut self, forward: bool) -> Result<bool> {
        let edge = match self.sorted.len() {
            0 => None,
            len => Some(self.sorted.entry(self.read, if forward { len - 1 } else { 0 })?.key),
        };
        for _ in 0..EMPTY_LEAVES_MAX {
            if !self.sidestep(forward)? {
                return Ok(false);
            }
            self.gap = 0;
            self.load()?;
            let len = self.sorted.len();
            if len == 0 {
                continue;
            }
            let near = self.sorted.entry(self.read, if forward { 0 } else { len - 1 })?.key;
            if edge.is_some_and(|edge| if forward { near <= edge } else { near >= edge }) {
                let what = "holds keys out of the order of the leaves";
                return Err(Error::Damaged { block: self.path.leaf, what });
            }
            self.gap = if forward { 0 } else { len };
            self.look_ahead(forward)?;
            self.state = State::Scanning;
            return Ok(true);
        }
        Err(Error::Damaged { block: self.path.leaf, what: "ends a long row of empty leaves" })
    }

    /// Moves the path to the neighbouring leaf; false when there is none.
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

    /// Loads the leaf of the path; prefetches the rest of its entries first.
    fn load(&mut self) -> Result<()> {
        if self.ahead.block != self.path.leaf {
            self.ahead = Ahead::NONE;
            return self.sorted.load(self.read, self.path.leaf);
        }
        while self.ahead.left != 0 {
            self.ahead.ask(self.read);
        }
        self.sorted.load_ready(self.read, self.path.leaf)
    }

    /// The leaf that is `by` leaves ahead, under the same parent.
    fn leaf_ahead(&self, forward: bool, by: usize) -> Result<Option<u64>> {
        let Some(depth) = self.path.height.checked_sub(1) else { return Ok(None) };
        let step = self.path.steps[depth];
        let parent = Inner::at(self.read, step.node, 1)?;
        let position = usize::from(step.position);
        let ahead = if forward { position.checked_add(by) } else { position.checked_sub(by) };
        Ok(ahead.filter(|ahead| *ahead < parent.len()).map(|ahead| parent.child(ahead)))
    }

    /// Prefetches the leaf after the next one, and selects the next one, which was prefetched
    /// before, for prefetching its entries.
    fn look_ahead(&mut self, forward: bool) -> Result<()> {
        if let Some(leaf) = self.leaf_ahead(forward, LEAVES_AHEAD)? {
            prefetch_leaf(self.read, leaf);
        }
        self.ahead = match self.leaf_ahead(forward, 1)? {
            // A leaf that cannot be read is an error when the scan reaches it.
            Some(block) => match Leaf::at(self.read, block) {
                Ok(leaf) => Ahead { block, leaf: Some(leaf), left: leaf.used() },
                Err(_) => Ahead::NONE,
            },
            None => Ahead::NONE,
        };
        Ok(())
    }

    /// Number of pairs of the leaf between the gap and a bound in that direction.
    fn count_until(&self, forward: bool, until: Bound<&[u8]>) -> Result<usize> {
        let len = self.sorted.len();
        let (key, included) = match until {
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
            Bound::Unbounded => return Ok(if forward { len - self.gap } else { self.gap }),
        };
        // The bound of a long scan nearly always lies beyond the whole leaf, and then, maybe,
        // beyond its fences.
        let end = match (len, forward) {
            (0, _) => 0,
            (_, true) if self.sorted.entry(self.read, len - 1)?.key < key => len,
            (_, false) if self.sorted.entry(self.read, 0)?.key > key => 0,
            (_, true) if self.sorted.entry(self.read, 0)?.key > key => 0,
            (_, false) if self.sorted.entry(self.read, len - 1)?.key < key => len,
            _ => self.sorted.rank(self.read, key, forward == included)?,
        };
        Ok(if forward { end.saturating_sub(self.gap) } else { self.gap.saturating_sub(end) })
    }

    /// Hands out `count` pairs from the gap on. Returns the key at which `each` broke.
    #[inline]
    fn hand_out(
        &mut self,
        forward: bool,
        count: usize,
        each: &mut impl FnMut(Pair<'r>) -> ControlFlow<()>,
    ) -> Result<Option<&'r [u8]>> {
        if forward {
            let mut entries = self.sorted.offsets(self.gap..self.gap + count);
            let broken = hand_over(self.read, &mut self.ahead, &mut entries, each)?;
            self.gap += count - entries.len();
            Ok(broken)
        } else {
            let mut entries = self.sorted.offsets(self.gap - count..self.gap).rev();
            let broken = hand_over(self.read, &mut self.ahead, &mut entries, each)?;
            self.gap -= count - entries.len();
            Ok(broken)
        }
    }

    /// Prefetches some of the entries from the gap on.
    fn prefetch(&self, forward: bool, some: Range<usize>) {
        let gap = self.gap;
        let positions = if forward {
            gap + some.start..gap + some.end
        } else {
            gap - some.end..gap - some.start
        };
        self.sorted.prefetch(self.read, positions);
    }
}

/// Hands entries to `each` until it breaks, and for each prefetches one of the next leaf.
#[inline]
fn hand_over<'r, R: Read>(
    read: &'r R,
    ahead: &mut Ahead<'_>,
    entries: &mut impl Iterator<Item = u64>,
    each: &mut impl FnMut(Pair<'r>) -> ControlFlow<()>,
) -> Result<Option<&'r [u8]>> {
    for offset in entries {
        ahead.ask(read);
        let entry = Entry::read(read, offset)?;
        if each((entry.key, entry.value(read)?)).is_break() {
            return Ok(Some(entry.key));
        }
    }
    Ok(None)
}

impl<'r, R: Read> Cursor<'r> for BplusCursor<'r, R> {
    fn seek(&mut self, seek: Seek<'_>) -> Result<()> {
        // Until the seek has succeeded, the cursor is before the first pair.
        self.state = State::New;
        let target = match seek {
            Seek::First => Target::First,
            Seek::Last => Target::Last,
            Seek::Before(key) | Seek::After(key) => Target::Key(key),
        };
        self.ahead = Ahead::NONE;
        self.path = path(self.read, self.tree, target)?;
        self.load()?;
        self.gap = match seek {
            Seek::First => 0,
            Seek::Last => self.sorted.len(),
            Seek::Before(key) => self.sorted.rank(self.read, key, false)?,
            Seek::After(key) => self.sorted.rank(self.read, key, true)?,
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
        let entry = self.sorted.entry(self.read, self.gap)?;
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
        let entry = self.sorted.entry(self.read, self.gap)?;
        Ok(Some((entry.key, entry.value(self.read)?)))
    }

    fn is_at_edge(&self, forward: bool) -> bool {
        self.gap == if forward { self.sorted.len() } else { 0 }
    }

    fn walk(
        &mut self,
        forward: bool,
        until: Bound<&[u8]>,
        each: &mut impl FnMut(Pair<'r>) -> ControlFlow<()>,
    ) -> Result<Walk<'r>> {
        if self.state == State::New {
            self.seek(Seek::First)?;
        }
        if self.is_at_edge(forward) && !self.step(forward)? {
            return Ok(Walk::End);
        }
        let mut count = self.count_until(forward, until)?;
        if self.state == State::Sought {
            let alone = count.min(PAIRS_ALONE);
            self.prefetch(forward, 0..count.min(2 * PAIRS_ALONE));
            if let Some(leaf) = self.leaf_ahead(forward, 1)? {
                prefetch_leaf(self.read, leaf);
            }
            if let Some(key) = self.hand_out(forward, alone, each)? {
                return Ok(Walk::Broken(key));
            }
            count -= alone;
            self.look_ahead(forward)?;
            self.state = State::Scanning;
            while count > PAIRS_ALONE {
                self.prefetch(forward, PAIRS_ALONE..count.min(2 * PAIRS_ALONE));
                if let Some(key) = self.hand_out(forward, PAIRS_ALONE, each)? {
                    return Ok(Walk::Broken(key));
                }
                count -= PAIRS_ALONE;
            }
        }
        Ok(match self.hand_out(forward, count, each)? {
            Some(key) => Walk::Broken(key),
            None if self.is_at_edge(forward) => Walk::Edge,
            None => Walk::End,
        })
    }

    fn resume_key(&self, forward: bool) -> Result<Option<&'r [u8]>> {
        let depth = self.path.height;
        let block = if forward {
            self.path.upper_fence(self.read, depth)?
        } else {
            self.path.lower_fence(self.read, depth)?
        };
        if block == 0 { Ok(None) } else { separator(self.read, block).map(Some) }
    }
}
