//! The fixture of a group of rows: a heap of its own, with clocks and counters.
//!
//! Purpose: every timed row also reports its storage cost, in the unit of its backend: bytes of log
//! for files, fences and flushed cache lines for memory.
//! Invariants: rows of a group work in a directory of their own, removed with the value.

use std::path::{Path, PathBuf};

use adamant_heap::{Durability, Heap, Write};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::commands::heap::medium::{Costs, Medium};
use crate::commands::heap::settings::Settings;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::thread_seconds;
use crate::harness::report::{Report, Unit};

/// Bytes of the objects in most rows.
pub(super) const OBJECT_BYTES: u64 = 64;
/// Objects reserved by each transaction that fills a heap.
const FILL_BATCH: u64 = 1_000;

/// One backend in one group of one round.
pub(super) struct Ground<'a> {
    pub(super) settings: &'a Settings,
    pub(super) medium: Medium,
    report: &'a mut Report,
    curves: &'a mut Vec<Value>,
    directory: TempDir,
    heaps: u32,
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        medium: Medium,
        report: &'a mut Report,
        curves: &'a mut Vec<Value>,
    ) -> Result<Self> {
        let parent = settings.path.clone().unwrap_or_else(|| medium.default_path());
        std::fs::create_dir_all(&parent)?;
        let directory = tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(parent)?;
        Ok(Self { settings, medium, report, curves, directory, heaps: 0 })
    }

    /// The durability of commits on this backend.
    pub(super) fn durability(&self) -> Durability {
        self.medium.durability()
    }

    /// A new directory for a heap.
    pub(super) fn fresh_directory(&mut self) -> PathBuf {
        self.heaps += 1;
        self.directory.path().join(self.heaps.to_string())
    }

    /// Opens the heap in a directory; creates both if there is nothing.
    pub(super) fn open(&self, directory: &Path) -> Result<Heap> {
        self.open_with_workers(directory, 0)
    }

    /// The same, with this many threads for work after commits.
    pub(super) fn open_with_workers(&self, directory: &Path, workers: u8) -> Result<Heap> {
        self.medium.open(directory, workers)
    }

    /// An empty heap.
    pub(super) fn empty_heap(&mut self) -> Result<Heap> {
        let directory = self.fresh_directory();
        self.open(&directory)
    }

    /// A heap whose first `bytes` were touched and are free again: the first touch of a page, and
    /// growth, are no part of the rows.
    pub(super) fn touched_heap(&mut self, objects: u64) -> Result<Heap> {
        let heap = self.empty_heap()?;
        let blocks = self.fill(&heap, objects, OBJECT_BYTES, true)?;
        self.free_all(&heap, &blocks)?;
        Ok(heap)
    }

    /// Allocates `count` objects of `bytes` bytes; their first word is their number, if they are
    /// written at all.
    pub(super) fn fill(
        &self,
        heap: &Heap,
        count: u64,
        bytes: u64,
        written: bool,
    ) -> Result<Vec<u64>> {
        let mut blocks = Vec::with_capacity(count as usize);
        while (blocks.len() as u64) < count {
            let some = FILL_BATCH.min(count - blocks.len() as u64);
            heap.transaction(self.durability(), |transaction| -> Result<()> {
                for _ in 0..some {
                    let block = transaction.reserve(bytes)?;
                    if written {
                        let number = (blocks.len() as u64).to_le_bytes();
                        let content = transaction.write(block, 0, bytes as usize)?;
                        content.fill(0);
                        content[..8.min(bytes as usize)]
                            .copy_from_slice(&number[..8.min(bytes as usize)]);
                    }
                    blocks.push(block);
                }
                Ok(())
            })?;
        }
        Ok(blocks)
    }

    /// Frees blocks, many in each transaction.
    pub(super) fn free_all(&self, heap: &Heap, blocks: &[u64]) -> Result<()> {
        for some in blocks.chunks(FILL_BATCH as usize) {
            heap.transaction(self.durability(), |transaction| -> Result<()> {
                some.iter().try_for_each(|&block| Ok(transaction.free(block)?))
            })?;
        }
        Ok(())
    }

    /// Times `work`, which does `operations`, on this thread; returns the seconds. They are
    /// processor times of the thread: commits wait for nothing here, and the machine may be busy.
    pub(super) fn timed(
        &mut self,
        heap: &Heap,
        row: &str,
        operations: u64,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<f64> {
        let seconds = self.counted(heap, row, operations, work)?;
        self.add(row, Unit::Nanoseconds, operations, seconds * 1e9 / operations as f64);
        Ok(seconds)
    }

    /// The same without the row of nanoseconds: only the storage cost of the work.
    pub(super) fn counted(
        &mut self,
        heap: &Heap,
        row: &str,
        operations: u64,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<f64> {
        // Pending checkpoint work belongs to earlier rows.
        heap.checkpoint()?;
        let before = Costs::of(heap);
        let start = thread_seconds();
        work()?;
        let seconds = thread_seconds() - start;
        let costs = Costs::of(heap).since(before, operations);
        for (kind, unit, figure) in costs.figures(self.medium) {
            self.add(&format!("{kind}.{row}"), unit, operations, figure);
        }
        Ok(seconds)
    }

    /// Adds a figure of this backend.
    pub(super) fn add(&mut self, row: &str, unit: Unit, operations: u64, figure: f64) {
        self.report.add(row, self.medium.name(), unit, operations, figure);
    }

    /// Adds points of a plot.
    pub(super) fn add_curve(&mut self, name: &str, points: &[(f64, f64)]) {
        let engine = self.medium.name();
        self.curves.push(json!({"curve": name, "engine": engine, "points": points}));
    }

    /// Checks a heap's structure, closes it, and removes it.
    pub(super) fn finish(&self, heap: Heap) -> Result<()> {
        let report = heap.check()?;
        ensure(report.findings.is_empty(), || {
            format!("{}: the check found {:?}", self.medium.name(), report.findings)
        })?;
        heap.close()?;
        drop(heap);
        let used = self.directory.path().join(self.heaps.to_string());
        Ok(std::fs::remove_dir_all(used)?)
    }
}
