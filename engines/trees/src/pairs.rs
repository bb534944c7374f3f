//! Counters of a check.

use std::collections::HashSet;

use adamant_heap::access::Read;

use crate::checking::{Checking, Report};
use crate::error::Result;
use crate::kind::damaged;
use crate::slot::{Entry, Slot};
use crate::visit::{entry, once};

/// The blocks and pairs of a tree that is being checked.
#[derive(Default)]
pub(crate) struct Pairs {
    seen: HashSet<u64>,
    pub(crate) report: Report,
}

impl Pairs {
    /// Continues from a report.
    pub(crate) fn after(report: Report) -> Self {
        Self { seen: HashSet::new(), report }
    }

    /// Notes a node or a head.
    pub(crate) fn block(&mut self, block: u64) -> Result<()> {
        once(&mut self.seen, block)
    }

    /// Verifies a single pair, and counts it.
    pub(crate) fn pair<'r, R: Read>(&mut self, read: &'r R, slot: Slot) -> Result<Entry<'r>> {
        once(&mut self.seen, slot.entry())?;
        let entry = entry(read, slot)?;
        if let Some(block) = entry.value_block() {
            once(&mut self.seen, block)?;
            self.report.external_values += 1;
        }
        self.report.pairs += 1;
        self.report.key_bytes += entry.key.len() as u64;
        self.report.value_bytes += entry.value(read)?.len() as u64;
        Ok(entry)
    }

    /// Counts a pair of words.
    pub(crate) fn words(&mut self, entry: Entry<'_>) {
        self.report.pairs += 1;
        self.report.key_bytes += entry.key.len() as u64;
        self.report.value_bytes += entry.value_len() as u64;
    }

    /// Ends the last part, if the head's count of pairs is correct.
    pub(crate) fn finish(self, tree: u64, pairs: u64, checking: &mut Checking) -> Result<bool> {
        if checking.is_whole() && self.report.pairs != pairs {
            return damaged(tree, "counts other pairs than there are");
        }
        checking.report = self.report;
        Ok(true)
    }
}
