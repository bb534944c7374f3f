//! A shard: the runs from which one thread, or the writer, reserves without a shared lock.
//!
//! Purpose: reserve a block of a run in a few instructions. A shard owns one run of each class. It
//! took over all available blocks of the run, and goes to the arena when they are used up.
//! Invariants: a block is available in one place only, here or in the arena. Blocks that come back
//! to an owned run wait for its owner in the arena, unless the owner itself gives them back.
//! Thread safety: none of its own; the writer's shard belongs to the holder of the writer lock.

use std::mem;

/// The run of one class that a shard takes blocks from.
#[derive(Debug, Default)]
pub(crate) struct Active {
    /// First page of the run; 0 if there is none.
    run: u64,
    /// Available blocks.
    left: u32,
    /// The word to search first.
    cursor: u32,
    /// One bit for every available block.
    words: Vec<u64>,
}

impl Active {
    /// First page of the run; 0 if there is none.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Takes over the available blocks of a run, which leaves none.
    pub(crate) fn take_over(&mut self, run: u64, words: &mut [u64]) {
        debug_assert_eq!(self.left, 0, "the last run was used up");
        self.run = run;
        self.cursor = 0;
        self.words.clear();
        self.words.extend(words.iter_mut().map(mem::take));
        self.left = self.words.iter().map(|word| word.count_ones()).sum();
    }

    /// Owns a new run of `count` blocks.
    pub(crate) fn begin(&mut self, run: u64, count: u64) {
        debug_assert_eq!(self.left, 0, "the last run was used up");
        self.run = run;
        self.cursor = 0;
        self.left = count as u32;
        self.words.clear();
        self.words.resize((count / 64) as usize, u64::MAX);
        if !count.is_multiple_of(64) {
            self.words.push(u64::MAX >> (64 - count % 64));
        }
    }

    /// Gives up the run, which is used up.
    pub(crate) fn disown(&mut self) {
        debug_assert_eq!(self.left, 0, "its blocks would be nowhere");
        self.run = 0;
    }

    #[inline]
    fn take(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        let count = self.words.len();
        let mut at = self.cursor as usize;
        for _ in 0..count {
            let word = self.words.get_mut(at)?;
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                self.cursor = at as u32;
                self.left -= 1;
                return Some(at as u64 * 64 + u64::from(bit));
            }
            at = if at + 1 == count { 0 } else { at + 1 };
        }
        None
    }

    fn give_back(&mut self, word: u64, mask: u64) {
        if let Some(word) = self.words.get_mut(word as usize) {
            debug_assert!(*word & mask == 0, "a block comes back once");
            *word |= mask;
            self.left += mask.count_ones();
        }
    }
}

/// The active runs, by class.
#[derive(Debug)]
pub(crate) struct Shard {
    /// Whether its runs are open ones.
    is_open: bool,
    /// Whether it makes new runs while there is space, instead of taking partly full ones.
    is_packing: bool,
    active: Vec<Active>,
}

impl Shard {
    /// A shard that owns nothing yet.
    pub(crate) fn new(is_open: bool) -> Self {
        Self { is_open, is_packing: false, active: Vec::new() }
    }

    /// A shard that owns nothing yet, and whose blocks will lie side by side.
    pub(crate) fn packing() -> Self {
        Self { is_packing: true, ..Self::new(false) }
    }

    /// Whether it makes new runs while there is space.
    pub(crate) fn is_packing(&self) -> bool {
        self.is_packing
    }

    /// Whether its runs are open ones.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Reserves a block of a class: the first page of its run, and which one. O(1).
    #[inline]
    pub(crate) fn take(&mut self, class: u8) -> Option<(u64, u64)> {
        let active = self.active.get_mut(usize::from(class))?;
        let index = active.take()?;
        Some((active.run, index))
    }

    /// Takes back reserved blocks of one bitmap word if their run is active here; returns whether
    /// it is.
    #[inline]
    pub(crate) fn give_back(&mut self, class: u8, run: u64, word: u64, mask: u64) -> bool {
        let Some(active) = self.active.get_mut(usize::from(class)) else { return false };
        let is_here = active.run == run;
        if is_here {
            active.give_back(word, mask);
        }
        is_here
    }

    /// Gives up all runs: the first page of each, and its blocks that are available still.
    pub(crate) fn give_up(&mut self, mut each: impl FnMut(u64, &[u64])) {
        for active in &mut self.active {
            let Active { run, words, .. } = mem::take(active);
            if run != 0 {
                each(run, &words);
            }
        }
    }

    /// The active run of a class.
    pub(crate) fn active(&mut self, class: u8) -> &mut Active {
        let class = usize::from(class);
        if class >= self.active.len() {
            self.active.resize_with(class + 1, Active::default);
        }
        &mut self.active[class]
    }
}
