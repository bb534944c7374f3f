//! What a transaction changed in blocks that were there before it.
//!
//! Purpose: remember the old bytes, so that an `Err` restores them, and the exact ranges written,
//! so that they go into the record once. Works on cache lines of 64 bytes: bits for each of its
//! bytes say what was saved and what was written. So overlapping and adjacent ranges merge by
//! themselves and every write costs the same, the first and the millionth: 88 bytes of memory for
//! a line, whatever the number of writes to it.
//! Invariants: a byte is read, saved and restored only if it was declared, or lies in the block
//! that was: the others of its line may belong to a block that another thread has reserved and
//! fills right now. A saved byte is what the image held when the level began.

use std::ops::Range;

use crate::error::Result;
use crate::image::{Exclusive, Image};
use crate::keyed::Keyed;
use crate::marked::Finder;

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// Lines that are put back while readers wait: some 100 microseconds.
const RESTORED_PART: usize = 512;

/// A line of which something was saved.
#[derive(Debug)]
struct Line {
    /// One bit for every byte that goes into the record.
    written: u64,
    /// One bit for every byte of `old` that is one.
    saved: u64,
    /// The bytes before.
    old: [u8; LINE_BYTES as usize],
}

/// The lines that one level of a transaction changed.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    lines: Keyed<Line>,
}

impl Ranges {
    /// Saves those of `len` bytes at `offset` that are not saved yet, and notes the range for the
    /// record if `log` says so.
    pub(crate) fn declare(
        &mut self,
        image: &Image,
        offset: u64,
        len: u64,
        log: bool,
    ) -> Result<()> {
        // First: what was saved is put back where a page is refused, which must not fail.
        image.touch(offset, len)?;
        // All of it is looked up once; a range lies in one block.
        let bytes = image.bytes(offset, len)?;
        let end = offset + len;
        let mut line = offset / LINE_BYTES;
        while line * LINE_BYTES < end {
            let start = line * LINE_BYTES;
            let from = offset.max(start) - start;
            let to = end.min(start + LINE_BYTES) - start;
            let mask = (u64::MAX >> (LINE_BYTES - (to - from))) << from;
            let written = if log { mask } else { 0 };
            let part = &bytes[(start + from - offset) as usize..(start + to - offset) as usize];
            if let Some(known) = self.lines.get_mut(line) {
                known.written |= written;
                let missing = mask & !known.saved;
                for (at, len) in (Spans { start: 0, left: missing }) {
                    let (at, from) = (at as usize, from as usize);
                    let source = &part[at - from..at - from + len as usize];
                    known.old[at..at + len as usize].copy_from_slice(source);
                }
                known.saved |= mask;
            } else {
                let mut old = [0; LINE_BYTES as usize];
                old[from as usize..to as usize].copy_from_slice(part);
                self.lines.insert(line, Line { written, saved: mask, old });
            }
            line += 1;
        }
        Ok(())
    }

    /// As [`Ranges::declare`], of a range in a block of which all bytes may be read, saved and
    /// restored: lines that lie in it are saved as a whole, which costs less than a part and makes
    /// the next range in them a matter of a few instructions. Returns whether something was saved.
    #[inline]
    pub(crate) fn declare_in(
        &mut self,
        image: &Image,
        (block, block_bytes): (u64, u64),
        (offset, len): (u64, u64),
        log: bool,
    ) -> Result<bool> {
        let (from, start) = (offset % LINE_BYTES, offset - offset % LINE_BYTES);
        if from + len <= LINE_BYTES && len > 0 {
            let mask = (u64::MAX >> (LINE_BYTES - len)) << from;
            let written = if log { mask } else { 0 };
            match self.lines.get_mut(start / LINE_BYTES) {
                Some(known) if known.saved & mask == mask => {
                    known.written |= written;
                    return Ok(false);
                }
                None if block <= start && start + LINE_BYTES <= block + block_bytes => {
                    self.save_line(image, start, written)?;
                    return Ok(true);
                }
                _ => {}
            }
        }
        self.declare_lines(image, block..block + block_bytes, (offset, len), log)?;
        Ok(true)
    }

    /// Saves all of a line that nothing was saved of.
    fn save_line(&mut self, image: &Image, start: u64, written: u64) -> Result<()> {
        image.touch(start, LINE_BYTES)?;
        if let Some(old) = image.bytes(start, LINE_BYTES)?.first_chunk() {
            self.lines.insert(start / LINE_BYTES, Line { written, saved: u64::MAX, old: *old });
        }
        Ok(())
    }

    /// Line by line.
    #[cold]
    fn declare_lines(
        &mut self,
        image: &Image,
        block: Range<u64>,
        (offset, len): (u64, u64),
        log: bool,
    ) -> Result<()> {
        for (start, mask) in lines_of(offset, len) {
            let end = start + LINE_BYTES;
            let is_whole = block.start <= start && end <= block.end;
            if is_whole && self.lines.position(start / LINE_BYTES).is_none() {
                self.save_line(image, start, if log { mask } else { 0 })?;
            } else {
                let from = offset.max(start);
                self.declare(image, from, (offset + len).min(end) - from, log)?;
            }
        }
        Ok(())
    }

    /// Puts every saved byte back. With `gives_way`, readers that wait are let in now and then.
    pub(crate) fn restore(&mut self, image: &mut Exclusive<'_>, gives_way: bool) -> Result<()> {
        for (count, (line, known)) in self.lines.drain().enumerate() {
            if gives_way
                && count % RESTORED_PART == RESTORED_PART - 1
                && image.are_readers_waiting()
            {
                // Until the next byte that is put back.
                image.let_in();
            }
            for (at, len) in (Spans { start: 0, left: known.saved }) {
                let old = &known.old[at as usize..(at + len) as usize];
                image.bytes_mut(line * LINE_BYTES + at, len)?.copy_from_slice(old);
            }
        }
        Ok(())
    }

    /// Hands everything to the level around this one: what that level saved itself is older.
    pub(crate) fn merge_into(&mut self, outer: &mut Self) {
        for (line, known) in self.lines.drain() {
            let Some(older) = outer.lines.get_mut(line) else {
                outer.lines.insert(line, known);
                continue;
            };
            older.written |= known.written;
            for (at, len) in (Spans { start: 0, left: known.saved & !older.saved }) {
                let range = at as usize..(at + len) as usize;
                older.old[range.clone()].copy_from_slice(&known.old[range]);
            }
            older.saved |= known.saved;
        }
    }

    /// Takes what lies in stretches of the heap, which are in order, out of the record: blocks that
    /// are freed by the same commit. The old bytes stay saved.
    pub(crate) fn leave_out(&mut self, stretches: &[(u64, u64)]) {
        let mut finder = Finder::new(stretches);
        for (line, known) in self.lines.entries_mut() {
            let (mut at, line_end) = (*line * LINE_BYTES, (*line + 1) * LINE_BYTES);
            while let Some((start, end)) = finder.find(at).filter(|(start, _)| *start < line_end) {
                let (from, to) = (start.max(at), end.min(line_end));
                if let Some((_, mask)) = lines_of(from, to - from).next() {
                    known.written &= !mask;
                }
                at = to;
                if at == line_end {
                    break;
                }
            }
        }
    }

    /// Whether so many more lines need memory.
    pub(crate) fn is_short_of(&self, count: usize) -> bool {
        self.lines.is_short_of(count)
    }

    /// Takes the memory for so many more lines.
    pub(crate) fn make_room(&mut self, count: usize) {
        self.lines.make_room(count);
    }

    /// Whether nothing was changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.entries().is_empty()
    }

    /// Heap offset of every line with something for the record, and its place for `spans`.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let entries = self.lines.entries().iter().zip(0u32..);
        entries
            .filter(|((_, line), _)| line.written != 0)
            .map(|((line, _), index)| (line * LINE_BYTES, index))
    }

    /// The ranges written in the line at a place: (heap offset, bytes).
    pub(crate) fn spans(&self, place: u32) -> Spans {
        let entry = self.lines.entries().get(place as usize);
        entry.map_or(Spans { start: 0, left: 0 }, |(line, saved)| Spans {
            start: line * LINE_BYTES,
            left: saved.written,
        })
    }

    /// Forgets everything, keeping memory.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
    }
}

/// The lines that a range, which is not empty, touches: heap offset of each, and one bit for each of its bytes that
/// lies in the range.
fn lines_of(offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset + len;
    (offset / LINE_BYTES * LINE_BYTES..end).step_by(LINE_BYTES as usize).map(move |start| {
        let from = offset.max(start) - start;
        let to = end.min(start + LINE_BYTES) - start;
        (start, (u64::MAX >> (LINE_BYTES - (to - from))) << from)
    })
}

/// Runs of one bits, as heap ranges.
pub(crate) struct Spans {
    start: u64,
    left: u64,
}

impl Iterator for Spans {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        if self.left == 0 {
            return None;
        }
        let from = u64::from(self.left.trailing_zeros());
        let len = u64::from((self.left >> from).trailing_ones());
        let ones = u64::MAX >> (LINE_BYTES - len);
        self.left &= !(ones << from);
        Some((self.start + from, len))
    }
}
