//! The run table: finds a run by its first page.
//!
//! Purpose: keep what the allocator knows of each run. A run with no available block that no shard
//! owns takes 17 bytes instead of some 70: a growing heap consists of such runs, one for each 10
//! pages or so, and they were most of its memory beside the medium.
//! Invariants: a run is in one of the two tables, and in the table of full runs only if it is full.
//! `get_mut` moves a run to the other table first, so callers see no difference.
//! Thread safety: none of its own; it belongs to the arena.

use crate::collections::offset_map::OffsetMap;

/// A run whose bitmap is loaded.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) class: u8,
    /// Whether threads without the image's exclusive lock reserve its blocks.
    pub(crate) is_open: bool,
    /// Whether a shard takes blocks from it. The shard took all that were available then.
    pub(crate) is_owned: bool,
    /// The list of its class that it is in.
    pub(crate) score: Option<u8>,
    /// The number of its blocks.
    pub(crate) count: u32,
    /// Blocks that can be reserved: the set bits of `words`.
    pub(crate) available: u32,
    /// One bit for every available block.
    pub(crate) words: Box<[u64]>,
}

impl Run {
    /// A run of `count` blocks, none of which is available.
    pub(crate) fn full(class: u8, is_open: bool, count: u32) -> Self {
        let words = vec![0; count.div_ceil(64) as usize].into_boxed_slice();
        Self { class, is_open, is_owned: false, score: None, count, available: 0, words }
    }
}

/// A run without available blocks, in few bytes.
#[derive(Clone, Copy, Debug)]
struct Full {
    class: u8,
    is_open: bool,
    count: u32,
}

/// Runs by their first page.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    loaded: OffsetMap<Run>,
    full: OffsetMap<Full>,
}

impl Runs {
    /// Whether a run is in the table.
    pub(crate) fn contains(&self, page: u64) -> bool {
        self.loaded.contains_key(&page) || self.full.contains_key(&page)
    }

    /// A run, if all of its blocks are available.
    pub(crate) fn empty(&self, page: u64) -> Option<&Run> {
        self.loaded.get(&page).filter(|run| run.available == run.count)
    }

    /// A run, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, page: u64) -> Option<&mut Run> {
        if !self.loaded.contains_key(&page) {
            let Full { class, is_open, count } = self.full.remove(&page)?;
            self.loaded.insert(page, Run::full(class, is_open, count));
        }
        self.loaded.get_mut(&page)
    }

    /// Adds a run, or replaces it.
    pub(crate) fn insert(&mut self, page: u64, run: Run) {
        self.full.remove(&page);
        self.loaded.insert(page, run);
    }

    /// Removes a run and returns it.
    pub(crate) fn remove(&mut self, page: u64) -> Option<Run> {
        let full = self.full.remove(&page);
        let loaded = self.loaded.remove(&page);
        loaded.or(full.map(|full| Run::full(full.class, full.is_open, full.count)))
    }

    /// Compacts a run if it is full and no shard owns it.
    pub(crate) fn fold(&mut self, page: u64) {
        let is_full = |run: &Run| run.available == 0 && !run.is_owned && run.score.is_none();
        if self.loaded.get(&page).is_some_and(is_full)
            && let Some(Run { class, is_open, count, .. }) = self.loaded.remove(&page)
        {
            self.full.insert(page, Full { class, is_open, count });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn folded_or_not_a_run_is_what_was_put_there() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut runs = Runs::default();
        let mut model: BTreeMap<u64, (u8, u32, Vec<u64>)> = BTreeMap::new();
        for step in 0..20_000 {
            let page = random.u64(1..40);
            match random.u8(..6) {
                0 => {
                    let (class, count) = (random.u8(..130), random.u32(1..600));
                    let run = Run { is_owned: random.bool(), ..Run::full(class, true, count) };
                    model.insert(page, (class, count, run.words.to_vec()));
                    runs.insert(page, run);
                }
                1 => {
                    let removed = runs.remove(page).map(|run| (run.class, run.count));
                    let expected = model.remove(&page).map(|(class, count, _)| (class, count));
                    assert_eq!(removed, expected, "step {step}");
                }
                2 => {
                    if let Some(run) = runs.get_mut(page) {
                        run.is_owned = false;
                        run.available = random.u32(..2) * run.count;
                        let word = if run.available > 0 { u64::MAX } else { 0 };
                        run.words.fill(word);
                        model.get_mut(&page).expect("known").2.fill(word);
                    }
                }
                3 => {
                    let run = runs.get_mut(page);
                    let found = run.map(|run| (run.class, run.count, run.words.to_vec()));
                    assert_eq!(found, model.get(&page).cloned(), "step {step}");
                }
                _ => runs.fold(page),
            }
            assert_eq!(runs.contains(page), model.contains_key(&page), "step {step}");
            let is_empty = model.get(&page).is_some_and(|(_, _, words)| words[0] != 0);
            assert_eq!(runs.empty(page).is_some(), is_empty, "step {step}");
        }
    }

    #[test]
    fn full_runs_take_little() {
        assert!(size_of::<(u64, Full)>() <= 16);
        assert!(size_of::<(u64, Run)>() >= 2 * size_of::<(u64, Full)>());
        let mut runs = Runs::default();
        for page in 0..10_000 {
            runs.insert(page, Run::full(3, false, 50));
            runs.fold(page);
        }
        assert!(runs.loaded.is_empty() && runs.loaded.capacity() < 16);
        assert_eq!(runs.full.len(), 10_000);
    }
}
