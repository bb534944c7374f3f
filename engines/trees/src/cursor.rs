//! The cursor of the trees of single pairs.
//!
//! Purpose: a gap is a pair and a side of it, so that a step to and fro over a gap moves nothing.
//! Invariants: keys only rise (fall) as the cursor goes forward (back). This is checked at each
//! step, so that a scan of a damaged tree ends.

use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

use adamant_heap::access::Read;
use adamant_wire::key::{is_above, is_below};

use crate::error::{Error, Result};
use crate::kind::Trail;
use crate::slot::Entry;
use crate::tree::{Cursor, Pair, Seek, Walk};

/// Pairs that a walk hands out before it reports a good place to pause.
const WALK_PAIRS: usize = 64;

/// A cursor of a `btree`, `critbit` or `redblack`.
pub struct PairCursor<'r, R, T> {
    read: &'r R,
    tree: u64,
    trail: T,
    /// The pair that the trail leads to; none in an empty tree.
    entry: Option<Entry<'r>>,
    /// Whether the gap lies above that pair.
    above: bool,
    /// Whether the trail has a position.
    started: bool,
}

impl<'r, R: Read, T: Trail> PairCursor<'r, R, T> {
    /// A cursor before the first pair; nothing is read yet.
    pub(crate) fn new(read: &'r R, tree: u64) -> Self {
        Self { read, tree, trail: T::NEW, entry: None, above: false, started: false }
    }

    /// Goes to a pair, which lies beyond the current one in a direction.
    fn enter(&mut self, entry: Entry<'r>, forward: bool) -> Result<Entry<'r>> {
        let order = if forward { Ordering::Greater } else { Ordering::Less };
        if self.entry.is_some_and(|last| entry.key.cmp(last.key) != order) {
            let what = "holds keys that are out of their order";
            return Err(Error::Damaged { block: self.tree, what });
        }
        self.entry = Some(entry);
        Ok(entry)
    }

    /// Steps over the next pair in a direction.
    #[inline]
    fn advance(&mut self, forward: bool) -> Result<Option<Entry<'r>>> {
        if !self.started {
            self.seek(Seek::First)?;
        }
        let Some(entry) = self.entry else { return Ok(None) };
        if self.above != forward {
            self.above = forward;
            return Ok(Some(entry));
        }
        // Until the step has succeeded, the cursor is before the first pair.
        self.started = false;
        let entry = match self.trail.step(self.read, forward)? {
            Some(entry) => Some(self.enter(entry, forward)?),
            None => None,
        };
        self.started = true;
        Ok(entry)
    }

    fn pair(&self, entry: &Entry<'r>) -> Result<Pair<'r>> {
        Ok((entry.key, entry.value(self.read)?))
    }
}

impl<R, T: Clone> Clone for PairCursor<'_, R, T> {
    fn clone(&self) -> Self {
        Self { trail: self.trail.clone(), ..*self }
    }
}

impl<'r, R: Read, T: Trail> Cursor<'r> for PairCursor<'r, R, T> {
    fn seek(&mut self, seek: Seek<'_>) -> Result<()> {
        self.started = false;
        let found = match seek {
            Seek::First => {
                self.trail.end(self.read, self.tree, false)?.map(|pair| (pair, Ordering::Greater))
            }
            Seek::Last => {
                self.trail.end(self.read, self.tree, true)?.map(|pair| (pair, Ordering::Less))
            }
            Seek::Before(key) | Seek::After(key) => self.trail.near(self.read, self.tree, key)?,
        };
        self.entry = None;
        if let Some((entry, order)) = found {
            self.entry = Some(entry);
            self.above = match order {
                Ordering::Less => true,
                Ordering::Equal => matches!(seek, Seek::After(_)),
                Ordering::Greater => false,
            };
        }
        self.started = true;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Pair<'r>>> {
        self.advance(true)?.map(|entry| self.pair(&entry)).transpose()
    }

    fn previous(&mut self) -> Result<Option<Pair<'r>>> {
        self.advance(false)?.map(|entry| self.pair(&entry)).transpose()
    }

    /// Always true: each pair is as good a place to pause as any other.
    fn is_at_edge(&self, _forward: bool) -> bool {
        true
    }

    fn walk(
        &mut self,
        forward: bool,
        until: Bound<&[u8]>,
        each: &mut impl FnMut(Pair<'r>) -> ControlFlow<()>,
    ) -> Result<Walk<'r>> {
        for _ in 0..WALK_PAIRS {
            let Some(entry) = self.advance(forward)? else { return Ok(Walk::End) };
            let is_within =
                if forward { is_below(entry.key, until) } else { is_above(entry.key, until) };
            if !is_within {
                // Steps back over it.
                self.above = !forward;
                return Ok(Walk::End);
            }
            if each(self.pair(&entry)?).is_break() {
                return Ok(Walk::Broken(entry.key));
            }
        }
        Ok(Walk::Edge)
    }

    fn resume_key(&self, forward: bool) -> Result<Option<&'r [u8]>> {
        let mut ahead = self.clone();
        if !ahead.started {
            ahead.seek(Seek::First)?;
        }
        if forward {
            return Ok(ahead.advance(true)?.map(|entry| entry.key));
        }
        if ahead.advance(false)?.is_none() {
            return Ok(None);
        }
        // The pair above the gap, which the last step crossed.
        let above = if self.above { self.clone().advance(true)? } else { self.entry };
        Ok(above.map(|entry| entry.key))
    }
}
