//! The fixture of `bplus`: one tree, with clocks and counters.
//!
//! Purpose: a rate for each kind of operation, and the storage cost of a change.
//! Invariants: works in a directory of its own, which is removed with the value. Times are
//! processor times of the thread: nothing here waits, and the machine may be busy.

use std::path::PathBuf;
use std::time::Instant;

use adamant_heap::{Heap, Transaction};
use adamant_trees::{Bplus, Cursor, OrderedMap};
use tempfile::TempDir;

use crate::commands::bplus::records::Records;
use crate::commands::bplus::settings::Settings;
use crate::commands::heap::Costs;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::thread_seconds;
use crate::harness::place::{self, DURABILITY, ENGINE};
use crate::harness::report::{Report, Unit};

/// Numbers of the operations that visit all pairs: each visits them in another order.
pub(super) const GETS: u64 = 1;
pub(super) const MISSES: u64 = 2;
pub(super) const SCANS: u64 = 3;
pub(super) const OVERWRITES: u64 = 4;
pub(super) const DELETES: u64 = 5;
const SAMPLES: u64 = 6;

/// Pairs whose values a check verifies.
const SAMPLE_PAIRS: usize = 20_000;
/// The root that names the tree.
const ROOT: usize = 0;

/// One tree in one round.
pub(super) struct Ground<'a> {
    pub(super) settings: &'a Settings,
    pub(super) records: &'a Records,
    report: &'a mut Report,
    directory: TempDir,
    tree: Option<(Heap, Bplus)>,
    /// Bytes of blocks that were allocated before the first insert.
    pub(super) empty_bytes: u64,
}

impl<'a> Ground<'a> {
    /// A fixture with an empty tree.
    pub(super) fn new(
        settings: &'a Settings,
        records: &'a Records,
        report: &'a mut Report,
    ) -> Result<Self> {
        let directory = place::work(settings.path.as_deref())?;
        let heap = place::open(&directory.path().join("heap"))?;
        let map = create(&heap)?;
        let empty_bytes = heap.occupancy()?.allocated_bytes();
        let tree = Some((heap, map));
        Ok(Self { settings, records, report, directory, tree, empty_bytes })
    }

    /// A directory in this one.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The heap and its tree.
    pub(super) fn tree(&self) -> Result<(&Heap, Bplus)> {
        let (heap, map) = self.tree.as_ref().ok_or("the tree was closed")?;
        Ok((heap, *map))
    }

    /// Adds a figure of this tree.
    pub(super) fn add(&mut self, row: &str, unit: Unit, operations: u64, figure: f64) {
        let row = format!("{row}.{}", self.records.name());
        self.report.add(&row, ENGINE, unit, operations, figure);
    }

    /// The rate of `work`, which does `operations` and changes nothing.
    pub(super) fn timed(
        &mut self,
        row: &str,
        operations: u64,
        work: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        let start = thread_seconds();
        work(self)?;
        let rate = operations as f64 / (thread_seconds() - start) / 1e3;
        self.add(row, Unit::ThousandPerSecond, operations, rate);
        Ok(())
    }

    /// The rate of changes of `visits`, each in a transaction of its own, and the storage cost of
    /// one: fences, flushed cache lines, bytes of log.
    pub(super) fn changed(
        &mut self,
        row: &str,
        visits: &[u32],
        work: impl Fn(&mut Transaction<'_>, Bplus, u64) -> Result<()>,
    ) -> Result<()> {
        let (heap, map) = self.tree()?;
        // Pending checkpoint work belongs to earlier rows.
        heap.checkpoint()?;
        let (before, start) = (Costs::of(heap), thread_seconds());
        for &index in visits {
            heap.transaction(DURABILITY, |tx| work(tx, map, index.into()))?;
        }
        let seconds = thread_seconds() - start;
        let costs = Costs::of(heap).since(before, visits.len() as u64);
        let operations = visits.len() as u64;
        self.add(row, Unit::ThousandPerSecond, operations, operations as f64 / seconds / 1e3);
        for (kind, unit, figure) in [
            ("fences", Unit::Fences, costs.fences),
            ("lines", Unit::Lines, costs.lines),
            ("log", Unit::Bytes, costs.log_bytes),
        ] {
            self.add(&format!("{kind}.{row}"), unit, operations, figure);
        }
        Ok(())
    }

    /// Compares the tree with its expected content: count, structure, order, present and absent
    /// keys, values of a sample.
    pub(super) fn verify(&self, pairs: u64, version: u64) -> Result<()> {
        let (heap, map) = self.tree()?;
        let view = heap.view()?;
        ensure(map.len(&view)? == pairs, || format!("expected {pairs} pairs"))?;
        ensure(map.check(&view)?.pairs == pairs, || "the check found other pairs".into())?;
        let mut cursor = map.cursor(&view);
        let (mut last, mut count) = (Vec::new(), 0);
        while let Some((key, _)) = cursor.next()? {
            ensure(last.as_slice() < key, || "keys are out of order".into())?;
            last.clear();
            last.extend_from_slice(key);
            count += 1;
        }
        ensure(count == pairs, || format!("a scan found {count} pairs of {pairs}"))?;
        let sample = self.records.visits(self.settings.pairs, SAMPLES);
        for index in sample.into_iter().take(SAMPLE_PAIRS).map(u64::from) {
            let value = map.get(&view, &self.records.key(index))?;
            let expected = (pairs > 0).then(|| self.records.value(index, version));
            ensure(value == expected, || format!("pair {index} is not what was written"))?;
            let missing = map.get(&view, &self.records.missing_key(index))?;
            ensure(missing.is_none(), || "a key is there that was not inserted".into())?;
        }
        Ok(())
    }

    /// Closes the heap and reopens it; milliseconds of wall clock until the first get has returned.
    pub(super) fn reopen(&mut self) -> Result<f64> {
        let (heap, _) = self.tree.take().ok_or("the tree was closed")?;
        heap.close()?;
        drop(heap);
        let key = self.records.key(0);
        let start = Instant::now();
        let heap = place::open(&self.place("heap"))?;
        let view = heap.view()?;
        let map = Bplus::open(&view, view.root(ROOT))?;
        let is_there = map.contains(&view, &key)?;
        let seconds = start.elapsed().as_secs_f64();
        ensure(is_there, || "a pair is missing after opening".into())?;
        drop(view);
        self.tree = Some((heap, map));
        Ok(seconds * 1e3)
    }

    /// Checks the heap's structure, closes it, and removes it.
    pub(super) fn end(&mut self) -> Result<()> {
        let (heap, _) = self.tree.take().ok_or("the tree was closed")?;
        let report = heap.check()?;
        ensure(report.findings.is_empty(), || format!("the check found {:?}", report.findings))?;
        heap.close()?;
        drop(heap);
        Ok(std::fs::remove_dir_all(self.place("heap"))?)
    }
}

/// Creates an empty tree that the heap's root names.
pub(super) fn create(heap: &Heap) -> Result<Bplus> {
    let created = heap.transaction(DURABILITY, |tx| {
        let map = Bplus::create(tx)?;
        tx.set_root(ROOT, map.head())?;
        Ok::<_, adamant_trees::Error>(map)
    });
    Ok(created?)
}
