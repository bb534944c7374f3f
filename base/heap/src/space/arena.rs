//! The arena: free pages and the available blocks of runs, in memory, shared by all threads.
//!
//! Purpose: hand out runs and pages without touching the medium. The medium holds only descriptors
//! and bitmaps. The arena is rebuilt from them on first need, one zone of descriptors or one run's
//! bitmap at a time.
//! Invariants: a bit of a loaded run is available, here or in the shard that owns the run, only if
//! it is clear on the medium, not reserved, and not retired. The metadata of a zone is loaded
//! before any of its descriptors changes. A run has at most one owner.
//! Thread safety: none of its own; it lives in a mutex (`state.rs`).

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use crate::collections::extents::Extents;
use crate::collections::range_set::RangeSet;
use crate::error::{Error, Result};
use crate::image::class::{Class, ClassTable};
use crate::image::mapping::Image;
use crate::image::page_state::Pages;
use crate::journal::RecordBuilder;
use crate::layout::{
    KIND_EXTENT, KIND_EXTENT_CONTINUED, KIND_FREE, KIND_RUN, KIND_RUN_CONTINUED, KIND_SYSTEM,
    PAGE_BYTES, ZONE_PAGES,
};
use crate::space::runs::{Run, Runs};
use crate::space::shard::Active;

/// Partly full runs are listed by how full they are, in quarters. Finer steps would move a run at
/// every block that comes back; quarters move it four times in its life.
const SCORES: usize = 4;

/// Pages of a chunk (256 KiB): the file grows and gets holes by whole chunks, so that descriptors
/// of new pages fill cache lines, and freed space is worth a system call.
pub(crate) const CHUNK_PAGES: u64 = 64;

/// Entries of the retired queue that a short look goes through.
const RETIRED_LOOKED_AT_MAX: usize = 4096;

/// The list that a run belongs in: the fullest runs come first, so the others have time to empty.
fn wanted_score(run: &Run) -> Option<u8> {
    let is_listed = run.available > 0 && !run.is_owned;
    let score = u64::from(run.available) * SCORES as u64 / (u64::from(run.count) + 1);
    is_listed.then_some(score as u8)
}

/// Loaded runs of one class with available blocks that no shard owns, by score. Within one score
/// the lowest address is used first, so that the upper part of a shrinking heap empties.
#[derive(Debug, Default)]
struct Partial([BTreeSet<u64>; SCORES]);

impl Partial {
    fn first(&self) -> Option<u64> {
        self.0.iter().find_map(|runs| runs.first().copied())
    }
}

/// The runs of one class.
#[derive(Debug, Default)]
struct ClassRuns {
    /// Runs that are not open.
    closed: Partial,
    open: Partial,
    /// Runs whose bitmap is not loaded yet.
    unloaded: Vec<u64>,
}

impl ClassRuns {
    fn partial(&mut self, is_open: bool) -> &mut Partial {
        if is_open { &mut self.open } else { &mut self.closed }
    }
}

/// Something freed by a commit that a pin may still see.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retired {
    /// Blocks of a run.
    Blocks {
        /// First page of the run.
        run: u64,
        /// Which word of its bitmap.
        word: u32,
        /// Which blocks of that word.
        mask: u64,
    },
    /// Pages.
    Pages {
        /// The first.
        start: u64,
        /// How many.
        pages: u64,
    },
}

/// The volatile half of the allocator, except what the shards own.
#[derive(Debug)]
pub(crate) struct Arena {
    booted: Vec<bool>,
    /// Pages from here on had never been allocated when the heap was opened.
    boot_end: u64,
    /// Pages from here on have never been handed out.
    tail: u64,
    /// One past the last page ever allocated, as the root page says.
    pub(crate) pages_end: u64,
    states: Arc<Pages>,
    free: Extents,
    /// Pages taken for the next runs of transactions that pack.
    plot: Range<u64>,
    /// Pages that may have no space in the file, because `shrink` freed it or because a crash undid
    /// the last growth. They are backed before they are handed out (R5). Whole chunks, or up to the
    /// end of the file; none of them is in use.
    pub(crate) holes: RangeSet,
    /// Those of them that have none for certain: this process has freed it.
    punched: RangeSet,
    classes: Vec<ClassRuns>,
    runs: Runs,
    /// Roughly oldest first: (sequence number of the commit that freed it, what).
    retired: VecDeque<(u64, Retired)>,
    /// Runs that may have become empty.
    emptied: Vec<u64>,
    /// The record of the arena's own commits; kept for its memory.
    pub(crate) record: RecordBuilder,
    /// Memory for the list of runs in such a commit.
    pub(crate) unmaking: Vec<(u64, u8)>,
}

impl Arena {
    /// The arena of a heap whose allocated pages end at `pages_end`. Scans nothing.
    pub(crate) fn new(classes: &ClassTable, pages_end: u64, image: &Image) -> Self {
        // A crash may have taken the space of the last growth, though not the file's length.
        let mut holes = RangeSet::default();
        holes.add(pages_end, image.pages());
        Self {
            booted: vec![false; pages_end.div_ceil(ZONE_PAGES) as usize],
            boot_end: pages_end,
            tail: pages_end,
            pages_end,
            states: Arc::clone(image.states()),
            free: Extents::default(),
            plot: 0..0,
            holes,
            punched: RangeSet::default(),
            classes: (0..classes.len()).map(|_| ClassRuns::default()).collect(),
            runs: Runs::default(),
            retired: VecDeque::new(),
            emptied: Vec::new(),
            record: RecordBuilder::new(),
            unmaking: Vec::new(),
        }
    }

    /// Makes room for the runs of classes up to this one.
    pub(crate) fn add_class(&mut self, class: u8) {
        if self.classes.len() <= usize::from(class) {
            self.classes.resize_with(usize::from(class) + 1, ClassRuns::default);
        }
    }

    /// Gives the blocks that came back to its run to a shard that has used it up; if there are
    /// none, it owns the run no longer. Returns whether there were any.
    pub(crate) fn refill(&mut self, active: &mut Active) -> bool {
        let Some(run) = self.runs.get_mut(active.run()) else { return false };
        if run.available > 0 {
            active.take_over(active.run(), &mut run.words);
            run.available = 0;
            return true;
        }
        run.is_owned = false;
        self.runs.fold(active.run());
        active.disown();
        false
    }

    /// Gives a partly full run of a class to a shard that owns none; returns whether there was one.
    pub(crate) fn give_run(&mut self, active: &mut Active, class: u8, is_open: bool) -> bool {
        let Some(runs) = self.classes.get_mut(usize::from(class)) else { return false };
        let Some(page) = runs.partial(is_open).first() else { return false };
        let Some(run) = self.runs.get_mut(page) else { return false };
        active.take_over(page, &mut run.words);
        run.available = 0;
        run.is_owned = true;
        self.list(page);
        true
    }

    /// Takes a run back from the shard that owned it, with the blocks that are still available.
    pub(crate) fn take_back(&mut self, page: u64, available: &[u64]) {
        let Some(run) = self.runs.get_mut(page) else { return };
        for (own, given) in run.words.iter_mut().zip(available) {
            debug_assert!(*own & given == 0, "a block is available in one place");
            *own |= given;
        }
        run.available = run.words.iter().map(|word| word.count_ones()).sum();
        run.is_owned = false;
        self.list(page);
        self.note_empty(page);
        self.runs.fold(page);
    }

    /// A closed run with available blocks that no shard owns.
    pub(crate) fn closed_run(&mut self, class: u8) -> Option<u64> {
        self.classes.get_mut(usize::from(class))?.closed.first()
    }

    /// Makes a run that no shard owns an open one. Its descriptors must say so already.
    pub(crate) fn open_run(&mut self, page: u64) {
        let Some(run) = self.runs.get_mut(page) else { return };
        debug_assert!(!run.is_owned, "its owner would go on as if nobody else could reserve");
        if let Some(score) = run.score.take()
            && let Some(runs) = self.classes.get_mut(usize::from(run.class))
        {
            runs.partial(run.is_open).0[usize::from(score)].remove(&page);
        }
        run.is_open = true;
        self.list(page);
    }

    /// Puts a run into the list for its state.
    fn list(&mut self, page: u64) {
        let Some(run) = self.runs.get_mut(page) else { return };
        let wanted = wanted_score(run);
        if run.score == wanted {
            return;
        }
        let Some(runs) = self.classes.get_mut(usize::from(run.class)) else { return };
        let partial = runs.partial(run.is_open);
        if let Some(score) = run.score {
            partial.0[usize::from(score)].remove(&page);
        }
        if let Some(score) = wanted {
            partial.0[usize::from(score)].insert(page);
        }
        run.score = wanted;
    }

    /// The next run of a class whose bitmap should be loaded, newest first.
    pub(crate) fn take_unloaded(&mut self, class: u8) -> Option<u64> {
        let runs = self.classes.get_mut(usize::from(class))?;
        while let Some(page) = runs.unloaded.pop() {
            if !self.runs.contains(page) {
                return Some(page);
            }
        }
        None
    }

    /// Whether the bitmap of a run is loaded.
    pub(crate) fn is_loaded(&self, run: u64) -> bool {
        self.runs.contains(run)
    }

    /// Adds a run from the medium; `allocated` returns each word of its bitmap.
    pub(crate) fn load_run(
        &mut self,
        page: u64,
        class: u8,
        shape: &Class,
        is_open: bool,
        mut allocated: impl FnMut(usize) -> Result<u64>,
    ) -> Result<()> {
        let mut left = shape.block_count;
        let mut available = 0;
        let mut words = vec![0; shape.bitmap_words()].into_boxed_slice();
        for (index, free) in words.iter_mut().enumerate() {
            let bits = left.min(64);
            left -= bits;
            *free = !allocated(index)? & if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            available += free.count_ones();
        }
        let count = shape.block_count as u32;
        let run = Run { class, is_open, is_owned: false, score: None, count, available, words };
        self.runs.insert(page, run);
        self.list(page);
        self.note_empty(page);
        self.runs.fold(page);
        Ok(())
    }

    /// Adds a new run; the caller hands all of its blocks to a shard.
    pub(crate) fn add_run(&mut self, page: u64, class: u8, shape: &Class, is_open: bool) {
        let full = Run::full(class, is_open, shape.block_count as u32);
        self.runs.insert(page, Run { is_owned: true, ..full });
    }

    /// Finds empty runs that no shard owns, among up to `count_max` candidates: first page and
    /// class of each, in order. Returns whether there may be more.
    pub(crate) fn take_emptied(&mut self, found: &mut Vec<(u64, u8)>, count_max: usize) -> bool {
        found.clear();
        let rest = self.emptied.len().saturating_sub(count_max);
        for page in self.emptied.drain(rest..) {
            if let Some(run) = self.runs.empty(page)
                && !run.is_owned
            {
                found.push((page, run.class));
            }
        }
        // A run may have been emptied more than once since the last time.
        found.sort_unstable();
        found.dedup();
        rest > 0
    }

    /// Makes `take_emptied` find a run again.
    pub(crate) fn keep_emptied(&mut self, page: u64) {
        self.emptied.push(page);
    }

    /// Forgets an empty run; its pages become free.
    pub(crate) fn remove_run(&mut self, page: u64, pages: u64) {
        if let Some(run) = self.runs.remove(page)
            && let Some(runs) = self.classes.get_mut(usize::from(run.class))
            && let Some(score) = run.score
        {
            runs.partial(run.is_open).0[usize::from(score)].remove(&page);
        }
        self.give_pages(page, pages);
    }

    /// Takes back reserved blocks of one bitmap word that were not published.
    pub(crate) fn give_back(&mut self, run: u64, word: u64, mask: u64) {
        self.make_available(run, word as u32, mask);
    }

    /// Queues something that the commit with this sequence number freed.
    pub(crate) fn retire(&mut self, sequence: u64, retired: Retired) {
        self.retired.push_back((sequence, retired));
    }

    /// Whether blocks of a run may be retired. False is certain; a long queue is not searched.
    pub(crate) fn may_have_retired(&self, page: u64) -> bool {
        let is_of = |(_, retired): &(u64, Retired)| matches!(retired, Retired::Blocks { run, .. } if *run == page);
        self.retired.len() > RETIRED_LOOKED_AT_MAX || self.retired.iter().any(is_of)
    }

    /// Makes reusable what commits up to `sequence` freed: no pin can see it any more. Blocks for
    /// which `is_lent` (first page of the run, number in the run; 0 for an extent) returns true
    /// keep waiting. Looks at up to `count_max` entries; returns whether there may be more.
    pub(crate) fn release(
        &mut self,
        sequence: u64,
        count_max: usize,
        is_lent: impl Fn(u64, u64) -> bool,
    ) -> bool {
        let mut waiting = Vec::new();
        let mut has_more = true;
        for _ in 0..count_max {
            let front = self.retired.front().copied();
            let Some((freed, retired)) = front.filter(|(freed, _)| *freed <= sequence) else {
                has_more = false;
                break;
            };
            self.retired.pop_front();
            match retired {
                Retired::Blocks { run, word, mask } => {
                    let borrowed = (0..64)
                        .filter(|bit| mask >> bit & 1 == 1)
                        .filter(|bit| is_lent(run, u64::from(word) * 64 + bit))
                        .fold(0, |borrowed, bit| borrowed | 1_u64 << bit);
                    if borrowed != 0 {
                        waiting.push((freed, Retired::Blocks { run, word, mask: borrowed }));
                    }
                    if mask != borrowed {
                        self.make_available(run, word, mask & !borrowed);
                    }
                }
                Retired::Pages { start, .. } if is_lent(start, 0) => waiting.push((freed, retired)),
                Retired::Pages { start, pages } => self.give_pages(start, pages),
            }
        }
        waiting.into_iter().rev().for_each(|retired| self.retired.push_front(retired));
        has_more
    }

    /// The number of blocks and extents that are freed but not reusable yet.
    pub(crate) fn retired(&self) -> u64 {
        let count = |retired: &Retired| match retired {
            Retired::Blocks { mask, .. } => u64::from(mask.count_ones()),
            Retired::Pages { .. } => 1,
        };
        self.retired.iter().map(|(_, retired)| count(retired)).sum()
    }

    /// The number of entries that wait to become reusable, or to free their pages.
    pub(crate) fn waiting(&self) -> usize {
        self.retired.len() + self.emptied.len()
    }

    fn make_available(&mut self, page: u64, word: u32, mask: u64) {
        let Some(run) = self.runs.get_mut(page) else { return };
        if let Some(word) = run.words.get_mut(word as usize) {
            debug_assert!(*word & mask == 0, "a block comes back once");
            *word |= mask;
            run.available += mask.count_ones();
        }
        if run.score != wanted_score(run) {
            self.list(page);
        }
        self.note_empty(page);
    }

    fn note_empty(&mut self, page: u64) {
        if self.runs.empty(page).is_some() {
            self.emptied.push(page);
        }
    }

    /// The first page behind all that were ever used.
    pub(crate) fn tail(&self) -> u64 {
        self.tail
    }

    /// Takes `pages` contiguous pages: free ones, else pages beyond all that were ever used. `Err`
    /// says how many data pages the heap must have for the latter.
    pub(crate) fn take_pages(&mut self, pages: u64, backed: u64) -> std::result::Result<u64, u64> {
        if let Some(start) = self.free.take(pages) {
            return Ok(start);
        }
        let start = self.tail;
        if start + pages > backed {
            return Err(start + pages);
        }
        self.tail = start + pages;
        Ok(start)
    }

    /// As [`Arena::take_pages`], but takes a whole chunk.
    pub(crate) fn take_chunk(&mut self, backed: u64) -> std::result::Result<u64, u64> {
        if let Some(start) = self.free.take_aligned(CHUNK_PAGES) {
            return Ok(start);
        }
        let (tail, start) = (self.tail, self.tail.next_multiple_of(CHUNK_PAGES));
        if start + CHUNK_PAGES > backed {
            return Err(start + CHUNK_PAGES);
        }
        self.tail = start + CHUNK_PAGES;
        if tail < start {
            self.give_pages(tail, start - tail);
        }
        Ok(start)
    }

    /// Takes contiguous pages from the plot, if it has as many.
    pub(crate) fn take_from_plot(&mut self, pages: u64) -> Option<u64> {
        let start = self.plot.start;
        let has_them = self.plot.end - start >= pages;
        self.plot.start += if has_them { pages } else { 0 };
        has_them.then_some(start)
    }

    /// Replaces the plot by these pages, which the caller has taken; returns whether any were left
    /// of the last one, which are free now.
    pub(crate) fn set_plot(&mut self, plot: Range<u64>) -> bool {
        let rest = std::mem::replace(&mut self.plot, plot);
        if !rest.is_empty() {
            self.give_pages(rest.start, rest.end - rest.start);
        }
        !rest.is_empty()
    }

    /// Whether any of these pages is known to be free.
    pub(crate) fn has_free(&self, start: u64, pages: u64) -> bool {
        let is_in_plot = start < self.plot.end && self.plot.start < start + pages;
        is_in_plot || self.free.overlaps(start, pages)
    }

    /// Frees pages. From now on no reader needs what a record says of them (C3).
    pub(crate) fn give_pages(&mut self, start: u64, pages: u64) {
        self.states.note_clean(start..start + pages);
        self.free.give(start, pages);
    }

    /// Where the free pages at the end begin. The metadata of all zones must be loaded.
    pub(crate) fn free_tail(&self) -> u64 {
        let last = self.free.ranges().last();
        last.filter(|(start, pages)| start + pages == self.tail)
            .map_or(self.tail, |(start, _)| start)
    }

    /// Notes that pages have no space in the file.
    pub(crate) fn note_punched(&mut self, start: u64, end: u64) {
        self.holes.add(start, end);
        self.punched.add(start, end);
    }

    /// Notes that pages have space in the file, or are cut off.
    pub(crate) fn note_backed(&mut self, start: u64, end: u64) {
        self.holes.remove(start, end);
        self.punched.remove(start, end);
    }

    /// Whole free chunks below a page that are not known to be holes, as ranges (start, end). The
    /// metadata of all zones must be loaded.
    pub(crate) fn free_chunks(&self, end: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        for (start, pages) in self.free.ranges() {
            let last = (start + pages).min(end);
            let (first, last) = (start.next_multiple_of(CHUNK_PAGES), last - last % CHUNK_PAGES);
            self.punched.gaps(first, last, |start, end| found.push((start, end)));
        }
        found
    }

    /// Cuts the heap at this page: all pages from there on are free and count as never handed out.
    pub(crate) fn cut(&mut self, tail: u64) {
        debug_assert!(tail >= self.free_tail() && tail <= self.tail);
        self.free.cut(tail);
        self.tail = tail;
        self.pages_end = self.pages_end.min(tail);
        // Drops runs that were freed since they were noted; their pages may no longer exist.
        for runs in &mut self.classes {
            runs.unloaded.retain(|run| *run < tail);
        }
    }

    /// The first zone whose metadata is not loaded yet.
    pub(crate) fn unbooted_zone(&self) -> Option<u64> {
        self.booted.iter().position(|booted| !booted).map(|zone| zone as u64)
    }

    /// The pages of a zone whose metadata must be loaded before its descriptors change, if any.
    pub(crate) fn to_boot(&self, zone: u64) -> Option<(u64, u64)> {
        let booted = self.booted.get(zone as usize).copied().unwrap_or(true);
        (!booted).then(|| (zone * ZONE_PAGES, ((zone + 1) * ZONE_PAGES).min(self.boot_end)))
    }

    /// Loads the descriptors of a zone: free pages become usable, runs are noted. Validates all of
    /// them first: an invalid zone adds nothing, however often it is loaded. O(pages of the zone),
    /// about 0.1 ms.
    pub(crate) fn boot(&mut self, zone: u64, classes: &ClassTable, image: &Image) -> Result<()> {
        let Some((mut page, end)) = self.to_boot(zone) else { return Ok(()) };
        let (mut free, mut runs) = (Vec::new(), Vec::new());
        let mut free_start = None;
        while page < end {
            let descriptor = image.descriptor(page)?;
            let argument = u64::from(descriptor.argument.get());
            let skip = match descriptor.kind {
                KIND_FREE => {
                    free_start.get_or_insert(page);
                    page += 1;
                    continue;
                }
                KIND_RUN => {
                    let class = descriptor.class.get();
                    runs.push((page, class));
                    classes.get(class).map_or(0, |shape| shape.run_pages)
                }
                KIND_EXTENT | KIND_EXTENT_CONTINUED => argument,
                KIND_RUN_CONTINUED | KIND_SYSTEM => 1,
                _ => 0,
            };
            if skip == 0 {
                return Err(Error::InvalidPointer {
                    offset: page * PAGE_BYTES,
                    what: "is on a page whose descriptor makes no sense",
                });
            }
            free.extend(free_start.take().map(|start| (start, page - start)));
            page += skip;
        }
        free.extend(free_start.map(|start| (start, end - start)));
        for (start, pages) in free {
            self.free.give(start, pages);
            // The file does not say which of them are holes: an earlier process may have shrunk it.
            let (first, last) = (start.next_multiple_of(CHUNK_PAGES), start + pages);
            let is_last = last == self.boot_end;
            let last = if is_last { last } else { last - last % CHUNK_PAGES };
            self.holes.add(first, last);
        }
        for (page, class) in runs {
            if !self.runs.contains(page)
                && let Some(runs) = self.classes.get_mut(usize::from(class))
            {
                runs.unloaded.push(page);
            }
        }
        if let Some(booted) = self.booted.get_mut(zone as usize) {
            *booted = true;
        }
        Ok(())
    }
}
