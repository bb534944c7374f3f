//! The report of a repair.

use std::path::PathBuf;

use crate::store::inspect::Finding;

/// Losses of a keyspace that are described one by one.
const LOSSES_DESCRIBED_MAX: usize = 100;

/// The result of a repair.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// All damage found; empty if the store was intact, and then nothing was done.
    pub findings: Vec<Finding>,
    /// Each keyspace of the new store.
    pub keyspaces: Vec<KeyspaceRepair>,
    /// The new path of the damaged store.
    pub damaged_path: Option<PathBuf>,
    /// Sequence number of the last commit that could be read.
    pub last_sequence: u64,
    /// Damaged pages of the pool.
    pub lost_pages: u64,
}

/// The result for one keyspace.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct KeyspaceRepair {
    /// Its name.
    pub name: String,
    /// The number of pairs that it should have; `None` if that was lost.
    pub expected: Option<u64>,
    /// Pairs saved.
    pub saved: u64,
    /// Of those, pairs of orphaned leaves.
    pub adopted: u64,
    /// Descriptions of what could not be read: the first hundred.
    pub losses: Vec<String>,
    /// The number of losses.
    pub loss_count: u64,
}

impl KeyspaceRepair {
    /// If no loss is known, the count of pairs shows one.
    pub(super) fn count(&mut self) {
        let Some(expected) = self.expected.filter(|expected| *expected != self.saved) else {
            return;
        };
        if self.loss_count == 0 {
            self.loss_count = 1;
            let found = self.saved;
            self.losses.push(format!("expected {expected} pairs as the head says, found {found}"));
        }
    }

    /// Notes a loss.
    pub(super) fn note(&mut self, loss: String) {
        self.loss_count += 1;
        if self.losses.len() < LOSSES_DESCRIBED_MAX {
            self.losses.push(loss);
        }
    }

    /// Adds what was saved of orphaned leaves.
    pub(super) fn adopt(&mut self, adopted: Self) {
        self.saved += adopted.saved;
        self.adopted += adopted.saved;
        self.loss_count += adopted.loss_count;
        self.losses.extend(adopted.losses);
        self.losses.truncate(LOSSES_DESCRIBED_MAX);
    }
}
