//! What was tried and lost, and the lines that say so.

use std::collections::BTreeMap;

/// Losses after which a campaign ends: more of them tell nothing new.
const LOSSES_MAX: u64 = 3;

/// Counts by kind and detail: tries, losses.
#[derive(Default)]
pub(crate) struct Report {
    counts: BTreeMap<(&'static str, String), (u64, u64)>,
}

impl Report {
    pub(crate) fn add(&mut self, kind: &'static str, detail: &str, count: u64) {
        self.entry(kind, detail).0 += count;
    }

    pub(crate) fn add_loss(&mut self, kind: &'static str, detail: &str) {
        self.entry(kind, detail).1 += 1;
    }

    fn entry(&mut self, kind: &'static str, detail: &str) -> &mut (u64, u64) {
        self.counts.entry((kind, detail.to_owned())).or_default()
    }

    pub(crate) fn losses(&self) -> u64 {
        self.counts.values().map(|(_, losses)| losses).sum()
    }

    /// Whether it is no use to go on.
    pub(crate) fn is_lost(&self) -> bool {
        self.losses() >= LOSSES_MAX
    }

    /// Prints a line each, as `cargo xtask proof` reads them.
    pub(crate) fn print(&self) {
        for ((kind, detail), (count, losses)) in &self.counts {
            println!("proof\t{kind}\t{detail}\t{count}\t{losses}");
        }
    }
}
