//! Moves of values without a copy: to other keys, and to other trees.
//!
//! Purpose: all trees share the same entry blocks. So a pair that keeps its key moves unchanged
//! from one tree to another, of any kind: one word leaves a node, and one is added to another.
//! Under another key, a small new entry takes over the block of the value. So a move costs the same
//! for a value of 5 KB and one of 500 MB, and a reader that borrowed the value goes on reading it.
//! Invariants: a move replaces what is at its target, as `rename(2)` does. After any failure the
//! transaction must fail, too, and then nothing has moved.

use std::ops::{Bound, ControlFlow};

use adamant_heap::access::{Read, Write};

use crate::error::Result;
use crate::loose::DetachedEntry;
use crate::slot::{Body, validate_key, write_body};
use crate::tree::{Cursor, OrderedMap, Seek, Walk};

/// Maximum key bytes of a piece of a range, whatever the caller asked for.
const PIECE_KEY_BYTES_MAX: usize = 1 << 20;

/// The result of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// There was no pair to move: nothing was changed.
    Absent,
    /// It is in its new place, where there was none before.
    Placed,
    /// It is in its new place; the pair that was there before is gone.
    Replaced,
}

impl Moved {
    /// Whether there was a pair to move.
    pub fn is_moved(self) -> bool {
        self != Self::Absent
    }
}

/// A piece of a range that was moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MovedPart {
    /// Pairs moved.
    pub moved: u64,
    /// How many of them replaced one.
    pub replaced: u64,
    /// The key after which the next piece begins; `None` when nothing was left of the range.
    pub last: Option<Vec<u8>>,
}

/// Moves between places of one tree, and between trees on one heap: O(1) in the size of values.
pub trait Moves: OrderedMap {
    /// Moves the pair of `key` to `new_key`, where it replaces any existing pair. A move to its own
    /// key does nothing. O(log n).
    ///
    /// # Errors
    /// `Error::KeyTooLong` of the new key (nothing was changed); `Error::Damaged`, or the heap's,
    /// out of space among them.
    fn rename<W: Write>(&self, tx: &mut W, key: &[u8], new_key: &[u8]) -> Result<Moved> {
        self.move_to(tx, key, self, new_key)
    }

    /// Moves the pair of `key` to `new_key` of a tree on the same heap, which may be of another
    /// kind, or this one. It replaces any existing pair. Under the same key only nodes are written,
    /// and only what the target needs for one more pair is allocated. O(log n).
    ///
    /// # Errors
    /// As [`Moves::rename`].
    fn move_to<W: Write, T: OrderedMap>(
        &self,
        tx: &mut W,
        key: &[u8],
        target: &T,
        new_key: &[u8],
    ) -> Result<Moved> {
        validate_key(new_key)?;
        if self.head() == target.head() && key == new_key {
            return Ok(if self.contains(tx, key)? { Moved::Placed } else { Moved::Absent });
        }
        let Some(entry) = self.take(tx, key)? else { return Ok(Moved::Absent) };
        let entry = entry.with_key(tx, new_key)?;
        insert_entry(tx, target, entry)
    }

    /// Sets the value of a key to the first `len` bytes of an unowned block, which the tree owns
    /// from then on. `len` must be above 4,096, since shorter values lie in their entries. It
    /// replaces any existing pair. O(log n).
    ///
    /// # Errors
    /// As [`Moves::rename`], and `Error::ValueTooLong`.
    fn insert_block<W: Write>(
        &self,
        tx: &mut W,
        key: &[u8],
        block: u64,
        len: usize,
    ) -> Result<Moved> {
        let entry = write_body(tx, key, &Body::External { block, len })?;
        insert_entry(tx, self, DetachedEntry::at(entry))
    }

    /// Swaps the values of two keys, the other of which may be of another tree on the same heap;
    /// false, and nothing is changed, unless both are there. O(log n): one slot of each tree
    /// changes, and blocks of values only change their owners.
    ///
    /// # Errors
    /// `Error::Damaged`, or the heap's, out of space among them.
    fn swap<W: Write, T: OrderedMap>(
        &self,
        tx: &mut W,
        key: &[u8],
        other: &T,
        other_key: &[u8],
    ) -> Result<bool> {
        let (Some(left), Some(right)) = (self.find(tx, key)?, other.find(tx, other_key)?) else {
            return Ok(false);
        };
        if self.head() == other.head() && key == other_key {
            return Ok(true);
        }
        let (left, right) = (left.body(), right.body());
        let new_left = DetachedEntry::at(write_body(tx, key, &right)?);
        let new_right = DetachedEntry::at(write_body(tx, other_key, &left)?);
        let olds = [self.insert_entry(tx, new_left)?, other.insert_entry(tx, new_right)?];
        for old in olds.into_iter().flatten() {
            old.free_without_value(tx)?;
        }
        Ok(true)
    }

    /// Moves the pairs of a range, from the lowest key up, to another tree on the same heap, under
    /// their keys, until `pairs_max` were moved or their keys have 1 MiB: a piece that fits a
    /// transaction whatever the range. The next piece begins after the last key of this one. A move
    /// within the same tree does nothing. O(log n) a pair.
    ///
    /// # Errors
    /// As [`Moves::rename`].
    fn move_range<W: Write, T: OrderedMap>(
        &self,
        tx: &mut W,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        target: &T,
        pairs_max: usize,
    ) -> Result<MovedPart> {
        let mut piece = MovedPart::default();
        if self.head() == target.head() {
            return Ok(piece);
        }
        let (keys, ends, is_whole) = keys_of(tx, self, (lower, upper), pairs_max)?;
        let mut start = 0;
        for end in ends {
            let key = &keys[std::mem::replace(&mut start, end)..end];
            let moved = match self.take(tx, key)? {
                Some(entry) => insert_entry(tx, target, entry)?,
                None => Moved::Absent,
            };
            piece.moved += u64::from(moved.is_moved());
            piece.replaced += u64::from(moved == Moved::Replaced);
            if !is_whole && end == keys.len() {
                piece.last = Some(key.to_vec());
            }
        }
        Ok(piece)
    }
}

impl<T: OrderedMap> Moves for T {}

/// The first keys of a range, concatenated, with the end of each, and whether they are all.
fn keys_of<R: Read>(
    read: &R,
    source: &impl OrderedMap,
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    pairs_max: usize,
) -> Result<(Vec<u8>, Vec<usize>, bool)> {
    let (mut keys, mut ends) = (Vec::new(), Vec::new());
    let mut cursor = source.cursor(read);
    cursor.seek(Seek::lower(lower))?;
    loop {
        let walk = cursor.walk(true, upper, &mut |(key, _)| {
            keys.extend_from_slice(key);
            ends.push(keys.len());
            let is_full = ends.len() >= pairs_max || keys.len() >= PIECE_KEY_BYTES_MAX;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match walk {
            Walk::Edge => {}
            Walk::End => return Ok((keys, ends, true)),
            Walk::Broken(_) => return Ok((keys, ends, false)),
        }
    }
}

/// Puts an entry into a tree, and frees the one that it replaces.
fn insert_entry<W: Write>(
    tx: &mut W,
    target: &impl OrderedMap,
    entry: DetachedEntry,
) -> Result<Moved> {
    match target.insert_entry(tx, entry)? {
        None => Ok(Moved::Placed),
        Some(old) => {
            old.free(tx)?;
            Ok(Moved::Replaced)
        }
    }
}
