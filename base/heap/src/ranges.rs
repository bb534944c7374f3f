//! What a transaction changed in blocks that were there before it.
//!
//! Purpose: remember the old bytes, so that an `Err` restores them, and the exact ranges written,
//! so that they go into the record once. Works on cache lines of 64 bytes: a line is saved when
//! it is first written, and one bit for each of its bytes says what was written. So overlapping
//! and adjacent ranges merge by themselves and every write costs the same, the first and the
//! millionth: 80 bytes of memory for a line, whatever the number of writes to it.
//! Invariants: a saved line holds what the image held when the level began, but for bytes of
//! blocks that the level itself reserved (those vanish with it).

use crate::error::Result;
use crate::image::Image;
use crate::keyed::Keyed;

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// A saved line.
#[derive(Debug)]
struct Line {
    /// One bit for every byte that goes into the record.
    written: u64,
    /// The bytes before.
    old: [u8; LINE_BYTES as usize],
}

/// The lines that one level of a transaction changed.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    lines: Keyed<Line>,
}

impl Ranges {
    /// Saves the lines of `len` bytes at `offset` that are not saved yet, and notes the range for
    /// the record if `log` says so.
    pub(crate) fn declare(
        &mut self,
        image: &Image,
        offset: u64,
        len: u64,
        log: bool,
    ) -> Result<()> {
        let end = offset + len;
        let mut line = offset / LINE_BYTES;
        while line * LINE_BYTES < end {
            let start = line * LINE_BYTES;
            let from = offset.max(start) - start;
            let to = end.min(start + LINE_BYTES) - start;
            let mask = if log { (u64::MAX >> (LINE_BYTES - (to - from))) << from } else { 0 };
            if let Some(saved) = self.lines.get_mut(line) {
                saved.written |= mask;
            } else {
                let mut old = [0; LINE_BYTES as usize];
                old.copy_from_slice(image.bytes(start, LINE_BYTES)?);
                self.lines.insert(line, Line { written: mask, old });
            }
            line += 1;
        }
        Ok(())
    }

    /// Puts every saved line back.
    pub(crate) fn restore(&mut self, image: &mut Image) -> Result<()> {
        for (line, saved) in self.lines.drain() {
            image.bytes_mut(line * LINE_BYTES, LINE_BYTES)?.copy_from_slice(&saved.old);
        }
        Ok(())
    }

    /// Hands everything to the level around this one: what that level saved itself is older.
    pub(crate) fn merge_into(&mut self, outer: &mut Self) {
        for (line, saved) in self.lines.drain() {
            match outer.lines.get_mut(line) {
                Some(older) => older.written |= saved.written,
                None => outer.lines.insert(line, saved),
            }
        }
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
