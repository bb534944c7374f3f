//! What a transaction changed in blocks that were there before it.
//!
//! Purpose: remember the old bytes, so that an `Err` restores them, and the exact ranges written,
//! so that they go into the record once. Works on cache lines of 64 bytes: bits for each of its
//! bytes say what was saved and what was written. So overlapping and adjacent ranges merge by
//! themselves and every write costs the same, the first and the millionth: 88 bytes of memory for
//! a line, whatever the number of writes to it. The first range of a block that is long is saved as
//! a run instead, by one copy: 4 KiB as lines are 64 entries of a map, and 64 parts of a record.
//! Invariants: a byte is read, saved and restored only if it was declared, or lies in the block
//! that was: the others of its line may belong to a block that another thread has reserved and
//! fills right now. A saved byte is what the image held when the level began. Savepoints may leave a line
//! and a run of the same bytes: what was saved last is put back first.

use std::ops::Range;

use adamant_wire::mutants::is_planted;

use crate::error::Result;
use crate::image::{Exclusive, Image};
use crate::keyed::Keyed;
use crate::marked::Finder;
use crate::range_list::trim;

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// A range of fewer lines is saved line by line.
const RUN_LINES_MIN: u64 = 4;

/// Lines that are put back while readers wait: some 100 microseconds.
const RESTORED_PART: u64 = 512;

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

/// Neighbouring lines that lie in one block and were saved as a whole.
#[derive(Debug)]
struct Run {
    /// Heap offsets.
    saved: Range<u64>,
    /// Heap offsets of what goes into the record.
    written: Range<u64>,
    /// Where in `Ranges::old` its bytes are.
    at: usize,
    /// Lines that were saved before it.
    lines_before: usize,
}

impl Run {
    /// Its bytes, in those of all runs.
    fn old<'o>(&self, old: &'o [u8]) -> &'o [u8] {
        let len = (self.saved.end - self.saved.start) as usize;
        old.get(self.at..self.at + len).unwrap_or_default()
    }

    /// The same in parts, each with its heap offset.
    fn parts<'o>(&self, old: &'o [u8], bytes: u64) -> impl Iterator<Item = (u64, &'o [u8])> {
        self.saved.clone().step_by(bytes as usize).zip(self.old(old).chunks(bytes as usize))
    }

    /// Notes for the record what of a range lies in this run, and what lies between that and what was
    /// noted before: some bytes at its ends, as it was one range that made it.
    fn write(&mut self, range: &Range<u64>) {
        let (start, end) = (range.start.max(self.saved.start), range.end.min(self.saved.end));
        if self.written.is_empty() {
            self.written = start..end;
        } else if start < end {
            self.written = self.written.start.min(start)..self.written.end.max(end);
        }
    }
}

/// The lines that one level of a transaction changed.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    lines: Keyed<Line>,
    /// By the heap offset of their block.
    runs: Keyed<Run>,
    /// The bytes before of all runs.
    old: Vec<u8>,
    /// Whether some of it is of levels within this one.
    has_merged: bool,
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
        for (start, mask) in lines_of(offset, len) {
            let (from, to) = (offset.max(start), (offset + len).min(start + LINE_BYTES));
            let mut old = [0; LINE_BYTES as usize];
            old[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - offset) as usize..(to - offset) as usize]);
            let written = if log { mask } else { 0 };
            self.take_line(start / LINE_BYTES, Line { written, saved: mask, old });
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
                None if block <= start
                    && start + LINE_BYTES <= block + block_bytes
                    && self.runs.entries().is_empty() =>
                {
                    self.save_line(image, start, written)?;
                    return Ok(true);
                }
                _ => {}
            }
        }
        self.declare_beside_run(image, block..block + block_bytes, offset..offset + len, log)?;
        Ok(true)
    }

    /// By the run of the block, which this range makes if it is long and there is none, and line by line
    /// what lies beside that.
    #[inline(never)]
    fn declare_beside_run(
        &mut self,
        image: &Image,
        block: Range<u64>,
        range: Range<u64>,
        log: bool,
    ) -> Result<()> {
        if self.runs.position(block.start).is_none() {
            self.save_run(image, &block, &range)?;
        }
        let mut run = range.start..range.start;
        if let Some(known) = self.runs.get_mut(block.start) {
            run = known.saved.clone();
            if log {
                known.write(&range);
            }
        }
        let beside = [range.start..range.end.min(run.start), range.start.max(run.end)..range.end];
        for part in beside.into_iter().filter(|part| !part.is_empty()) {
            self.declare_lines(image, &block, part, log)?;
        }
        Ok(())
    }

    /// Saves the lines that a range touches and that lie in its block, if they are many.
    fn save_run(&mut self, image: &Image, block: &Range<u64>, range: &Range<u64>) -> Result<()> {
        let start =
            (range.start / LINE_BYTES * LINE_BYTES).max(block.start.next_multiple_of(LINE_BYTES));
        let end = range.end.next_multiple_of(LINE_BYTES).min(block.end / LINE_BYTES * LINE_BYTES);
        if end < start + RUN_LINES_MIN * LINE_BYTES {
            return Ok(());
        }
        image.touch(start, end - start)?;
        self.add_run(block.start, (start..end, start..start), image.bytes(start, end - start)?);
        Ok(())
    }

    /// Adds a run: what is saved, what of that is written, and the bytes before.
    fn add_run(&mut self, block: u64, (saved, written): (Range<u64>, Range<u64>), old: &[u8]) {
        let (at, lines_before) = (self.old.len(), self.lines.entries().len());
        self.old.extend_from_slice(old);
        self.runs.insert(block, Run { saved, written, at, lines_before });
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
    fn declare_lines(
        &mut self,
        image: &Image,
        block: &Range<u64>,
        range: Range<u64>,
        log: bool,
    ) -> Result<()> {
        for (start, mask) in lines_of(range.start, range.end - range.start) {
            let end = start + LINE_BYTES;
            let is_whole = block.start <= start && end <= block.end;
            if is_whole && self.lines.position(start / LINE_BYTES).is_none() {
                self.save_line(image, start, if log { mask } else { 0 })?;
            } else {
                let from = range.start.max(start);
                self.declare(image, from, range.end.min(end) - from, log)?;
            }
        }
        Ok(())
    }

    /// Puts every saved byte back, what was saved last first. With `gives_way`, readers that wait are
    /// let in now and then.
    pub(crate) fn restore(&mut self, image: &mut Exclusive<'_>, gives_way: bool) -> Result<()> {
        let Self { lines, runs, old, .. } = self;
        let mut target = Restored { image, gives_way, lines: 0 };
        let mut runs = runs.drain().rev().map(|(_, run)| run).peekable();
        let is_newest_first = !is_planted("R5.what-was-saved-last-is-put-back-last");
        for (index, (line, known)) in lines.drain().enumerate().rev() {
            while let Some(run) = runs.next_if(|run| run.lines_before > index && is_newest_first) {
                target.put_run_back(&run, old)?;
            }
            for (at, len) in (Spans { start: 0, left: known.saved }) {
                let old = &known.old[at as usize..(at + len) as usize];
                target.put_back(line * LINE_BYTES + at, old)?;
            }
        }
        runs.try_for_each(|run| target.put_run_back(&run, old))?;
        forget_old(old);
        Ok(())
    }

    /// Hands everything to the level around this one: what that level saved itself is older.
    pub(crate) fn merge_into(&mut self, outer: &mut Self) {
        let Self { lines, runs, old, .. } = self;
        let mut runs = runs.drain().peekable();
        for (index, (line, known)) in lines.drain().enumerate() {
            while let Some((block, run)) = runs.next_if(|(_, run)| run.lines_before <= index) {
                outer.take_run(block, run, old);
            }
            outer.take_line(line, known);
        }
        runs.for_each(|(block, run)| outer.take_run(block, run, old));
        forget_old(old);
        outer.has_merged = true;
    }

    /// Takes a line that was saved later, by a level within this one or now: what is saved already stays.
    fn take_line(&mut self, line: u64, known: Line) {
        let Some(older) = self.lines.get_mut(line) else {
            return self.lines.insert(line, known);
        };
        older.written |= known.written;
        for (at, len) in (Spans { start: 0, left: known.saved & !older.saved }) {
            let range = at as usize..(at + len) as usize;
            older.old[range.clone()].copy_from_slice(&known.old[range]);
        }
        older.saved |= known.saved;
    }

    /// Takes a run of a level within this one; where this one has a run of the block, as lines.
    fn take_run(&mut self, block: u64, run: Run, old: &[u8]) {
        if self.runs.position(block).is_none() {
            let old = run.old(old);
            return self.add_run(block, (run.saved, run.written), old);
        }
        for (start, saved) in run.parts(old, LINE_BYTES) {
            let written = mask_of(start, &run.written);
            if let Some(old) = saved.first_chunk() {
                self.take_line(start / LINE_BYTES, Line { written, saved: u64::MAX, old: *old });
            }
        }
    }

    /// Forgets what was saved of a block that this level reserved, levels within it wrote to, and nobody
    /// has now: another thread may reserve and fill it before this level is undone.
    pub(crate) fn forget(&mut self, block: u64, bytes: u64) {
        if !self.has_merged || is_planted("S1.what-was-given-back-is-put-back") {
            return;
        }
        if let Some(run) = self.runs.get_mut(block) {
            run.saved.end = run.saved.start;
            run.written = run.saved.clone();
        }
        let range = block..block + bytes;
        let forget = |start: u64, known: &mut Line| {
            let mask = mask_of(start, &range);
            known.saved &= !mask;
            known.written &= !mask;
        };
        if bytes / LINE_BYTES > self.lines.entries().len() as u64 {
            self.lines.entries_mut().for_each(|(line, known)| forget(line * LINE_BYTES, known));
            return;
        }
        for (start, _) in lines_of(block, bytes) {
            if let Some(known) = self.lines.get_mut(start / LINE_BYTES) {
                forget(start, known);
            }
        }
    }

    /// Takes what lies in stretches of the heap, which are in order, out of the record: blocks that
    /// are freed by the same commit. The old bytes stay saved.
    pub(crate) fn leave_out(&mut self, stretches: &[(u64, u64)]) {
        let mut finder = Finder::new(stretches);
        for (line, known) in self.lines.entries_mut() {
            let (mut at, line_end) = (*line * LINE_BYTES, (*line + 1) * LINE_BYTES);
            while let Some((start, end)) = finder.find(at).filter(|(start, _)| *start < line_end) {
                known.written &= !mask_of(*line * LINE_BYTES, &(start..end));
                at = end.min(line_end);
                if at == line_end {
                    break;
                }
            }
        }
        for Run { written, .. } in self.runs.entries_mut().map(|(_, run)| run) {
            // Blocks are freed as a whole. Of what else is left out all but the ends stays: twice there.
            if let Some((start, end)) = finder.find(written.start)
                && start <= written.start
            {
                written.start = end.min(written.end);
            }
            if let Some((start, end)) = finder.find(written.end.saturating_sub(1))
                && written.end <= end
            {
                written.end = written.end.min(start.max(written.start));
            }
        }
    }

    /// Whether so many more lines need memory.
    pub(crate) fn is_short_of(&self, count: usize) -> bool {
        self.lines.is_short_of(count) || self.runs.is_short_of(count / RUN_LINES_MIN as usize)
    }

    /// Takes the memory for so many more lines.
    pub(crate) fn make_room(&mut self, count: usize) {
        self.lines.make_room(count);
        self.runs.make_room(count / RUN_LINES_MIN as usize);
    }

    /// Whether nothing was changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.entries().is_empty() && self.runs.entries().is_empty()
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

    /// Heap offset of every run with something for the record, and its place for `written`.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let runs = self.runs.entries().iter().zip(0u32..);
        runs.filter(|((_, run), _)| !run.written.is_empty())
            .map(|((_, run), index)| (run.written.start, index))
    }

    /// What was written in the run at a place.
    pub(crate) fn written(&self, place: u32) -> Range<u64> {
        self.runs.entries().get(place as usize).map_or(0..0, |(_, run)| run.written.clone())
    }

    /// Forgets everything, keeping memory.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        self.runs.clear();
        forget_old(&mut self.old);
        self.has_merged = false;
    }
}

/// Forgets old bytes; memory that long ranges took is given back.
fn forget_old(old: &mut Vec<u8>) {
    old.clear();
    trim(old);
}

/// What is put back.
struct Restored<'i, 'h> {
    image: &'i mut Exclusive<'h>,
    gives_way: bool,
    /// Lines since readers were let in.
    lines: u64,
}

impl Restored<'_, '_> {
    fn put_back(&mut self, offset: u64, old: &[u8]) -> Result<()> {
        self.lines += (old.len() as u64).div_ceil(LINE_BYTES);
        if self.gives_way && self.lines >= RESTORED_PART && self.image.are_readers_waiting() {
            // Until the next byte that is put back.
            self.image.let_in();
            self.lines = 0;
        }
        self.image.bytes_mut(offset, old.len() as u64)?.copy_from_slice(old);
        Ok(())
    }

    fn put_run_back(&mut self, run: &Run, old: &[u8]) -> Result<()> {
        let mut parts = run.parts(old, RESTORED_PART * LINE_BYTES);
        parts.try_for_each(|(offset, old)| self.put_back(offset, old))
    }
}

/// The lines that a range, which is not empty, touches: heap offset of each, and one bit for each of its bytes that
/// lies in the range.
fn lines_of(offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
    let range = offset..offset + len;
    (offset / LINE_BYTES * LINE_BYTES..range.end)
        .step_by(LINE_BYTES as usize)
        .map(move |start| (start, mask_of(start, &range)))
}

/// One bit for each byte of the line at a heap offset that lies in a range.
#[inline]
fn mask_of(start: u64, range: &Range<u64>) -> u64 {
    let (from, to) = (range.start.max(start), range.end.min(start + LINE_BYTES));
    if from < to { (u64::MAX >> (LINE_BYTES - (to - from))) << (from - start) } else { 0 }
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
