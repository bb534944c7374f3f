//! Promises: the commits that a crash must leave, as far as the history goes.
//!
//! Purpose: a workload numbers its commits from 1 and marks in the history of its disk what it was
//! promised about each; at a crash point that tells which commits may be recovered.

use crate::disk::SimDisk;

/// Marks by commit: their number in the history is `commit * KINDS + kind`.
const KINDS: u64 = 4;

/// A promise about a commit. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Nothing yet: the commit was requested.
    Begun = 0,
    /// The commit survives the death of the process.
    Buffered = 1,
    /// The commit survives a power cut.
    Durable = 2,
}

impl Mark {
    /// Puts the mark into the history of a disk, for a commit and all before it.
    pub fn put(self, disk: &SimDisk, commit: u64) {
        disk.mark(commit * KINDS + self as u64);
    }

    /// The commits with this mark, or a stronger one.
    fn made(self, marks: &[u64]) -> impl Iterator<Item = u64> {
        marks.iter().filter(move |&&mark| mark % KINDS >= self as u64).map(|mark| mark / KINDS)
    }

    fn last(self, marks: &[u64]) -> u64 {
        self.made(marks).max().unwrap_or(0)
    }
}

/// The commits that may be the last one recovered. Commit 0 is the empty disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Promise {
    /// The last commit that must be there.
    pub least: u64,
    /// The last commit that had begun.
    pub most: u64,
    /// Whether the store of the commits must exist: a commit has this mark, be it number 0.
    pub created: bool,
}

impl Promise {
    /// After a power cut at a crash point.
    pub fn at_power_cut(disk: &SimDisk, point: u64) -> Promise {
        Self::at(Mark::Durable, disk, point)
    }

    /// After the death of the process at a crash point.
    pub fn at_death(disk: &SimDisk, point: u64) -> Promise {
        Self::at(Mark::Buffered, disk, point)
    }

    /// No less than this commit, and no more; commit 0 may still have to be created.
    pub fn exactly(commit: u64) -> Promise {
        Promise { least: commit, most: commit, created: false }
    }

    fn at(mark: Mark, disk: &SimDisk, point: u64) -> Promise {
        let marks = disk.marks(point);
        let created = mark.made(&marks).next().is_some();
        Promise { least: mark.last(&marks), most: Mark::Begun.last(&marks), created }
    }
}
