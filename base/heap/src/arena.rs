//! What is free, in memory.
//!
//! Purpose: hand out blocks and pages without touching the medium. The medium holds descriptors
//! and bitmaps only; all of this is rebuilt from them, a zone of descriptors or the bitmap of a
//! run at a time, when it is first needed.
//! Invariants: a bit of a loaded run is available here only if it is clear on the medium, not
//! reserved, and not retired. A zone is booted before any of its descriptors changes.
//! Thread safety: none of its own; it belongs to the writer (`tx.rs`).

use std::collections::{BTreeSet, VecDeque};

use crate::class::{Class, ClassTable};
use crate::error::{Error, Result};
use crate::extents::Extents;
use crate::image::Image;
use crate::keyed::OffsetMap;
use crate::layout::{
    KIND_EXTENT, KIND_EXTENT_CONTINUED, KIND_FREE, KIND_RUN, KIND_RUN_CONTINUED, KIND_SYSTEM,
    PAGE_BYTES, ZONE_PAGES,
};

/// A run whose bitmap is known.
#[derive(Debug)]
struct Run {
    class: u8,
    /// Blocks that can be reserved.
    available: u32,
    /// Blocks that are allocated or reserved.
    live: u32,
    /// Word to look at first.
    cursor: u32,
    /// One bit for every available block.
    words: Box<[u64]>,
}

impl Run {
    fn take(&mut self) -> Option<u64> {
        if self.available == 0 {
            return None;
        }
        let count = self.words.len();
        for step in 0..count {
            let at = (self.cursor as usize + step) % count;
            let word = self.words.get_mut(at)?;
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                self.cursor = at as u32;
                self.available -= 1;
                self.live += 1;
                return Some(at as u64 * 64 + u64::from(bit));
            }
        }
        None
    }

    fn make_available(&mut self, index: u64) {
        if let Some(word) = self.words.get_mut((index / 64) as usize) {
            debug_assert!(*word & (1 << (index % 64)) == 0, "a block comes back once");
            *word |= 1 << (index % 64);
            self.available += 1;
        }
    }
}

/// The runs of one class.
#[derive(Debug, Default)]
struct ClassRuns {
    /// The run that blocks are taken from.
    current: Option<u64>,
    /// Loaded runs with available blocks; the lowest address is used first, so that the upper
    /// part of a shrinking heap empties.
    partial: BTreeSet<u64>,
    /// Runs whose bitmap was not looked at yet.
    unloaded: Vec<u64>,
}

/// Something freed by a commit that a pin may still look at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Retired {
    /// A block of a run.
    Block {
        /// First page of the run.
        run: u64,
        /// Which block.
        index: u64,
    },
    /// Pages.
    Pages {
        /// The first.
        start: u64,
        /// How many.
        pages: u64,
    },
}

/// The volatile half of the allocator.
#[derive(Debug)]
pub(crate) struct Arena {
    booted: Vec<bool>,
    /// Pages from here on have never been allocated when the heap was opened.
    boot_end: u64,
    /// Pages from here on have never been allocated.
    tail: u64,
    free: Extents,
    classes: Vec<ClassRuns>,
    runs: OffsetMap<Run>,
    /// Oldest first: (sequence number of the commit that freed it, what).
    retired: VecDeque<(u64, Retired)>,
}

impl Arena {
    /// The arena of a heap whose allocated pages end at `pages_end`. Nothing is scanned.
    pub(crate) fn new(classes: &ClassTable, pages_end: u64) -> Self {
        Self {
            booted: vec![false; pages_end.div_ceil(ZONE_PAGES) as usize],
            boot_end: pages_end,
            tail: pages_end,
            free: Extents::default(),
            classes: (0..classes.len()).map(|_| ClassRuns::default()).collect(),
            runs: OffsetMap::default(),
            retired: VecDeque::new(),
        }
    }

    /// Reserves a block of a class from the runs that are loaded. O(1) amortised.
    #[inline]
    pub(crate) fn take_block(&mut self, class: u8) -> Option<(u64, u64)> {
        let runs = self.classes.get_mut(usize::from(class))?;
        loop {
            if let Some(page) = runs.current
                && let Some(index) = self.runs.get_mut(&page).and_then(Run::take)
            {
                return Some((page, index));
            }
            runs.current = Some(runs.partial.pop_first()?);
        }
    }

    /// The next run of a class whose bitmap should be looked at, newest first.
    pub(crate) fn take_unloaded(&mut self, class: u8) -> Option<u64> {
        let runs = self.classes.get_mut(usize::from(class))?;
        while let Some(page) = runs.unloaded.pop() {
            if !self.runs.contains_key(&page) {
                return Some(page);
            }
        }
        None
    }

    /// Whether the bitmap of a run is known.
    pub(crate) fn is_loaded(&self, run: u64) -> bool {
        self.runs.contains_key(&run)
    }

    /// Takes in the bitmap of a run: one set bit for every allocated block.
    pub(crate) fn load_run(&mut self, page: u64, class: u8, shape: &Class, bitmap: &[u64]) {
        let mut left = shape.block_count;
        let mut available = 0;
        let words: Box<[u64]> = bitmap
            .iter()
            .map(|allocated| {
                let bits = left.min(64);
                left -= bits;
                let free = !allocated & if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
                available += free.count_ones();
                free
            })
            .collect();
        let live = shape.block_count as u32 - available;
        self.runs.insert(page, Run { class, available, live, cursor: 0, words });
        if available > 0 {
            self.offer(page, class);
        }
    }

    /// Takes in a new run, all of whose blocks are free.
    pub(crate) fn add_run(&mut self, page: u64, class: u8, shape: &Class) {
        self.load_run(page, class, shape, &vec![0; shape.bitmap_words()]);
    }

    /// Forgets a run; its pages are the caller's.
    pub(crate) fn remove_run(&mut self, page: u64) {
        if let Some(run) = self.runs.remove(&page)
            && let Some(runs) = self.classes.get_mut(usize::from(run.class))
        {
            runs.partial.remove(&page);
            if runs.current == Some(page) {
                runs.current = None;
            }
        }
    }

    /// Blocks of a loaded run that are allocated or reserved; `None` while blocks are taken from
    /// it: that run stays, else an alternation of insert and remove would make and unmake it.
    pub(crate) fn live_unless_current(&self, run: u64) -> Option<u64> {
        let found = self.runs.get(&run)?;
        let runs = self.classes.get(usize::from(found.class))?;
        (runs.current != Some(run)).then_some(u64::from(found.live))
    }

    /// A reservation that was not published.
    pub(crate) fn give_back(&mut self, run: u64, index: u64) {
        if let Some(found) = self.runs.get_mut(&run) {
            found.live -= 1;
        }
        self.make_available(run, index);
    }

    /// A block was freed by the commit with this sequence number.
    pub(crate) fn retire_block(&mut self, sequence: u64, run: u64, index: u64) {
        if let Some(found) = self.runs.get_mut(&run) {
            found.live -= 1;
        }
        self.retired.push_back((sequence, Retired::Block { run, index }));
    }

    /// Pages were freed by the commit with this sequence number.
    pub(crate) fn retire_pages(&mut self, sequence: u64, start: u64, pages: u64) {
        self.retired.push_back((sequence, Retired::Pages { start, pages }));
    }

    /// Makes reusable what was freed by commits up to `sequence`: no pin looks at it any more.
    pub(crate) fn release(&mut self, sequence: u64) {
        while let Some((freed, retired)) = self.retired.front().copied() {
            if freed > sequence {
                break;
            }
            self.retired.pop_front();
            match retired {
                Retired::Block { run, index } => self.make_available(run, index),
                Retired::Pages { start, pages } => self.free.give(start, pages),
            }
        }
    }

    /// Things freed but not reusable yet.
    pub(crate) fn retired(&self) -> usize {
        self.retired.len()
    }

    fn make_available(&mut self, run: u64, index: u64) {
        let Some(found) = self.runs.get_mut(&run) else { return };
        found.make_available(index);
        if found.available == 1 {
            let class = found.class;
            self.offer(run, class);
        }
    }

    fn offer(&mut self, run: u64, class: u8) {
        if let Some(runs) = self.classes.get_mut(usize::from(class))
            && runs.current != Some(run)
        {
            runs.partial.insert(run);
        }
    }

    /// Takes `pages` contiguous pages: of the free ones, else beyond all that were ever used.
    /// `Err` says how many data pages the heap must have for the latter.
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

    /// Whether any of these pages is known to be free.
    pub(crate) fn has_free(&self, start: u64, pages: u64) -> bool {
        self.free.overlaps(start, pages)
    }

    /// Pages come back unused.
    pub(crate) fn give_pages(&mut self, start: u64, pages: u64) {
        self.free.give(start, pages);
    }

    /// The first zone whose descriptors were not looked at yet.
    pub(crate) fn unbooted_zone(&self) -> Option<u64> {
        self.booted.iter().position(|booted| !booted).map(|zone| zone as u64)
    }

    /// The pages of a zone that must be looked at before its descriptors change, if any.
    pub(crate) fn to_boot(&self, zone: u64) -> Option<(u64, u64)> {
        let booted = self.booted.get(zone as usize).copied().unwrap_or(true);
        (!booted).then(|| (zone * ZONE_PAGES, ((zone + 1) * ZONE_PAGES).min(self.boot_end)))
    }

    /// Looks at the descriptors of a zone: free pages become usable, runs are noted. All of them
    /// are judged first: a zone that makes no sense adds nothing, however often it is looked at.
    /// O(pages of the zone), about 0.1 ms.
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
        }
        for (page, class) in runs {
            if !self.runs.contains_key(&page)
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
