//! The fixture of `slice`: settings and timing.

use std::time::Instant;

use crate::harness::report::{Report, Unit};

/// Batches of a figure, the shortest of which counts.
const BATCHES: u32 = 12;

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Operations of a batch.
    pub operations: u64,
    /// Strings that are sorted and searched.
    pub strings: usize,
    /// Records of a block that is read.
    pub records: usize,
    /// Rounds of every type.
    pub rounds: u32,
}

impl Settings {
    /// The full run, as rated: some two minutes with six types.
    pub fn full() -> Self {
        Self { operations: 40_000, strings: 1_000_000, records: 2_000, rounds: 7 }
    }

    /// Fewer rounds.
    pub fn quick() -> Self {
        Self { rounds: 3, ..Self::full() }
    }
}

/// A type in its turn.
pub(super) struct Ground<'a> {
    pub(super) settings: &'a Settings,
    pub(super) engine: &'static str,
    pub(super) report: &'a mut Report,
}

impl Ground<'_> {
    /// Adds a row: nanoseconds of each of `operations`, all of which `work` does.
    pub(super) fn timed(&mut self, row: &str, operations: u64, mut work: impl FnMut()) {
        let mut seconds = f64::MAX;
        for _ in 0..BATCHES {
            let start = Instant::now();
            work();
            seconds = seconds.min(start.elapsed().as_secs_f64());
        }
        self.add(row, operations, seconds * 1e9 / operations as f64);
    }

    /// Adds a row: nanoseconds of `operation`, which is repeated.
    pub(super) fn repeated(&mut self, row: &str, mut operation: impl FnMut()) {
        let operations = self.settings.operations;
        self.timed(row, operations, || (0..operations).for_each(|_| operation()));
    }

    /// Adds measured nanoseconds.
    pub(super) fn add(&mut self, row: &str, operations: u64, nanoseconds: f64) {
        self.report.add(row, self.engine, Unit::Nanoseconds, operations, nanoseconds);
    }
}
