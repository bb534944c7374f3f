//! Cursors over the entries of one payload, forward and backward.
//!
//! Purpose: restores the prefix-compressed keys, one after the other.
//! Invariants: on a payload that no writer can have written the walk ends with an error, after at
//! most as many steps as the payload has bytes. A restored key is never longer than the maximum,
//! and at most the keys between two restarts are held.
//! Thread safety: one thread at a time.

use std::cmp::Ordering;
use std::ops::Range;

use adamant_slice::Slice;

use super::entry::{EntryAt, Malformed, Read};
use super::layout::RESTART_INTERVAL_MAX;
use super::reader::EntryBlock;
use crate::key::{Entry, KEY_BYTES_MAX};

/// Maximum bytes of an index key: one that is just above a key.
const INDEX_KEY_BYTES_MAX: usize = KEY_BYTES_MAX + 1;

/// What both cursors do.
pub(crate) trait Cursor: Sized {
    /// Whether it goes from the first entry to the last.
    const IS_FORWARD: bool;

    /// A cursor over the entries from offset `start` on that lie before `end`; both are entry
    /// boundaries.
    fn new(block: EntryBlock, start: usize, end: usize) -> Read<Self>;

    /// Goes to the next entry in its direction; false if there is none.
    fn advance(&mut self) -> Read<bool>;

    fn block(&self) -> &EntryBlock;

    /// The current entry.
    fn current(&self) -> Option<&EntryAt>;

    /// Its key.
    fn key(&self) -> &[u8];

    /// Its value, borrowed.
    fn value(&self) -> &[u8] {
        self.current().map_or(&[], |at| &self.block().bytes()[at.value()])
    }

    /// Decodes its value, given by its range in the payload, by `read`.
    fn read_value<T>(&self, read: fn(&[u8], Range<usize>) -> Read<T>) -> Read<T> {
        let at = self.current().ok_or(Malformed("expected an entry, found the end"))?;
        read(self.block().bytes(), at.value())
    }

    /// The current entry. Shares the payload's memory: the value always, the key if it is stored
    /// whole.
    #[inline]
    fn entry(&self) -> Option<Entry> {
        let (block, at) = (self.block(), self.current()?);
        let key =
            if at.shared == 0 { block.bytes().slice(at.suffix()) } else { Slice::new(self.key()) };
        Some(Entry { key, version: block.version(at) })
    }
}

/// The forward cursor.
#[derive(Debug)]
pub(crate) struct Forward {
    block: EntryBlock,
    /// Offset of the next entry.
    next: usize,
    /// Entries from this offset on are left out.
    end: usize,
    key: Vec<u8>,
    current: Option<EntryAt>,
}

impl Forward {
    /// A cursor over all entries.
    pub(crate) fn all(block: EntryBlock) -> Self {
        let end = block.entries_bytes();
        Self { block, next: 0, end, key: Vec::new(), current: None }
    }

    /// Continues with all entries of the block after this one; the last key before it stays known.
    pub(crate) fn followed_by(mut self, block: EntryBlock) -> Self {
        self.end = block.entries_bytes();
        self.next = 0;
        self.block = block;
        self
    }

    /// As [`Cursor::advance`], but also fails on an entry that is not after the one before, or
    /// that shares bytes with a key of another block.
    #[inline]
    pub(crate) fn advance_in_order(&mut self) -> Read<bool> {
        if self.next >= self.end {
            return Ok(false);
        }
        let entry = self.block.entry(self.next)?;
        if self.next == 0 && entry.shared > 0 {
            return Err(SHARES_TOO_MUCH);
        }
        if let Some(before) = &self.current {
            let rest = self.key.get(entry.shared..).ok_or(SHARES_TOO_MUCH)?;
            let order = rest.cmp(&self.block.bytes()[entry.suffix()]);
            if order.then(entry.sequence.cmp(&before.sequence)) != Ordering::Less {
                return Err(Malformed("expected entries that ascend"));
            }
        }
        self.go_to(entry)?;
        Ok(true)
    }

    #[inline]
    fn go_to(&mut self, entry: EntryAt) -> Read<()> {
        extend_key(&mut self.key, 0, &self.block, &entry)?;
        self.next = entry.end;
        self.current = Some(entry);
        Ok(())
    }
}

impl Cursor for Forward {
    const IS_FORWARD: bool = true;

    fn new(block: EntryBlock, start: usize, end: usize) -> Read<Self> {
        let next = if start < block.entries_bytes() { block.restart_before(start)? } else { start };
        let end = end.min(block.entries_bytes());
        let mut cursor = Self { block, next, end, key: Vec::new(), current: None };
        while cursor.next < start {
            let entry = cursor.block.entry(cursor.next)?;
            cursor.go_to(entry)?;
        }
        cursor.current = None;
        Ok(cursor)
    }

    #[inline]
    fn advance(&mut self) -> Read<bool> {
        if self.next >= self.end {
            self.current = None;
            return Ok(false);
        }
        let entry = self.block.entry(self.next)?;
        self.go_to(entry)?;
        Ok(true)
    }

    #[inline]
    fn block(&self) -> &EntryBlock {
        &self.block
    }

    #[inline]
    fn current(&self) -> Option<&EntryAt> {
        self.current.as_ref()
    }

    #[inline]
    fn key(&self) -> &[u8] {
        &self.key
    }
}

/// The backward cursor: reads the entries between two restarts at a time.
#[derive(Debug)]
pub(crate) struct Backward {
    block: EntryBlock,
    /// Entries before this offset are left out.
    start: usize,
    /// End of the entries that are neither in `run` nor handed out.
    end: usize,
    /// Entries to be handed out from the back, with the range of each one's key in `keys`.
    run: Vec<(EntryAt, usize, usize)>,
    keys: Vec<u8>,
    current: Option<(EntryAt, usize, usize)>,
}

impl Backward {
    fn load_run(&mut self) -> Read<()> {
        let restart = self.block.restart_before(self.end - 1)?;
        self.keys.clear();
        let (mut offset, mut key_start) = (restart, 0);
        while offset < self.end {
            let entry = self.block.entry(offset)?;
            let previous = self.keys.len() - key_start;
            if entry.shared > previous {
                return Err(SHARES_TOO_MUCH);
            }
            if self.run.len() == RESTART_INTERVAL_MAX {
                return Err(Malformed("expected a restart after at most 256 entries"));
            }
            let from = key_start;
            key_start = self.keys.len();
            self.keys.extend_from_within(from..from + entry.shared);
            let base = key_start;
            extend_key(&mut self.keys, base, &self.block, &entry)?;
            self.run.push((entry, key_start, self.keys.len()));
            offset = entry.end;
        }
        self.end = restart;
        Ok(())
    }
}

impl Cursor for Backward {
    const IS_FORWARD: bool = false;

    fn new(block: EntryBlock, start: usize, end: usize) -> Read<Self> {
        let end = end.min(block.entries_bytes());
        Ok(Self { block, start, end, run: Vec::new(), keys: Vec::new(), current: None })
    }

    fn advance(&mut self) -> Read<bool> {
        if self.run.is_empty() && self.start < self.end {
            self.load_run()?;
        }
        self.current = self.run.pop().filter(|(entry, ..)| entry.offset >= self.start);
        if self.current.is_none() {
            self.run.clear();
            self.end = self.start;
        }
        Ok(self.current.is_some())
    }

    #[inline]
    fn block(&self) -> &EntryBlock {
        &self.block
    }

    #[inline]
    fn current(&self) -> Option<&EntryAt> {
        self.current.as_ref().map(|(entry, ..)| entry)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.current.map_or(&[], |(_, start, end)| &self.keys[start..end])
    }
}

const SHARES_TOO_MUCH: Malformed =
    Malformed("expected a key that shares bytes with the one before it, found that one shorter");

/// Turns the bytes of `keys` from `base` on, the previous key or a prefix of it, into the key of
/// `entry`.
#[inline]
fn extend_key(keys: &mut Vec<u8>, base: usize, block: &EntryBlock, entry: &EntryAt) -> Read<()> {
    let suffix = &block.bytes()[entry.suffix()];
    if entry.shared > keys.len() - base {
        return Err(SHARES_TOO_MUCH);
    }
    if entry.shared + suffix.len() > INDEX_KEY_BYTES_MAX {
        return Err(Malformed("expected a key of at most 65536 bytes, found a longer one"));
    }
    keys.truncate(base + entry.shared);
    keys.extend_from_slice(suffix);
    Ok(())
}
