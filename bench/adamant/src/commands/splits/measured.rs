//! Filling trees by each strategy: times, costs of splits, resulting space.

use std::path::PathBuf;

use adamant_heap::Heap;
use adamant_trees::{Bplus, OrderedMap};
use tempfile::TempDir;

use super::leaves::Leaves;
use super::settings::Settings;
use super::slots::Slots;
use super::strategy::Strategy;
use super::strings::{Copied, Swapped, SwappedWide};
use crate::commands::bplus::{Order, Records};
use crate::commands::heap::{Costs, used_bytes};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::thread_seconds;
use crate::harness::place::{self, DURABILITY};
use crate::harness::report::{Report, Unit};

/// One strategy in one round.
struct Ground<'a> {
    settings: &'a Settings,
    records: &'a Records,
    report: &'a mut Report,
    engine: &'static str,
    directory: TempDir,
}

/// The function that measures a strategy, and counts if requested.
type Measure = fn(&mut Ground<'_>, bool) -> Result<()>;

/// Adds a round of all strategies, which take turns in changing order. Counts are of round 0: they
/// are the same in each.
pub(super) fn measure(
    settings: &Settings,
    value_bytes: usize,
    round: u32,
    report: &mut Report,
) -> Result<()> {
    let records = Records::new(Order::Sequential, value_bytes, 1);
    let mut turns: [Measure; 5] = [
        strategy::<Copied>,
        strategy::<Swapped>,
        strategy::<SwappedWide>,
        strategy::<Slots>,
        bplus,
    ];
    let turn = round as usize % turns.len();
    turns.rotate_left(turn);
    for turn in turns {
        let directory = place::work(settings.path.as_deref())?;
        let (records, report) = (&records, &mut *report);
        turn(&mut Ground { settings, records, report, engine: "", directory }, round == 0)?;
    }
    Ok(())
}

impl Ground<'_> {
    fn place(&self) -> PathBuf {
        self.directory.path().join("heap")
    }

    fn add(&mut self, row: &str, unit: Unit, figure: f64) {
        let row = format!("{row}.{}", self.records.value_bytes());
        self.report.add(&row, self.engine, unit, self.settings.pairs, figure);
    }

    /// Bytes of keys and values divided by bytes of pages.
    fn add_efficiency(&mut self, heap: &Heap) -> Result<()> {
        let user_bytes = self.settings.pairs * self.records.record_bytes();
        self.add("efficiency", Unit::Speedup, user_bytes as f64 / used_bytes(heap)? as f64);
        Ok(())
    }

    fn fill<S: Strategy>(&self, heap: &Heap, mut each: Each<'_>) -> Result<Leaves<S>> {
        let mut tree = Leaves::<S>::create(heap, DURABILITY)?;
        for index in 0..self.settings.pairs {
            let (key, value) = (self.records.key(index), self.records.value(index, 0));
            let before = each.as_ref().map(|_| (Costs::of(heap), thread_seconds()));
            let done = tree.insert(heap, DURABILITY, (&key, value), |_| Ok(()))?;
            ensure(!done.replaced, || "a key was there".into())?;
            if let (Some(splits), Some(before), Some(stored)) = (&mut each, before, done.split) {
                splits.add(heap, before, stored);
            }
        }
        Ok(tree)
    }

    /// Verifies that exactly the inserted pairs are there, in order.
    fn verify<S: Strategy>(&self, heap: &Heap, tree: &Leaves<S>) -> Result<()> {
        let view = heap.view()?;
        let mut index = 0;
        let blocks = tree.visit(&view, |key, value| {
            let records = self.records;
            let is_right = key == records.key(index) && value == records.value(index, 0);
            index += 1;
            ensure(is_right, || format!("pair {index} is not what was written"))
        })?;
        ensure(index == self.settings.pairs, || format!("{index} pairs were found"))?;
        drop(view);
        let check = heap.check()?;
        ensure(check.is_clean() && check.blocks == blocks, || {
            format!("{blocks} blocks belong to the tree; the check found {check:?}")
        })
    }
}

/// The costs of splits, if requested.
type Each<'a> = Option<&'a mut Splits>;

/// The total costs of transactions with a split.
#[derive(Default)]
struct Splits {
    count: u64,
    seconds: f64,
    stored: u64,
    log_bytes: f64,
    fences: f64,
    lines: f64,
}

impl Splits {
    fn add(&mut self, heap: &Heap, (costs, seconds): (Costs, f64), stored: u64) {
        self.seconds += thread_seconds() - seconds;
        let costs = Costs::of(heap).since(costs, 1);
        self.count += 1;
        self.stored += stored;
        self.log_bytes += costs.log_bytes;
        self.fences += costs.fences;
        self.lines += costs.lines;
    }
}

/// Fills a tree by a strategy, once for its time, and once more for the cost of each split.
fn strategy<S: Strategy>(ground: &mut Ground<'_>, counts: bool) -> Result<()> {
    ground.engine = S::NAME;
    let heap = place::open(&ground.place())?;
    let start = thread_seconds();
    let tree = ground.fill::<S>(&heap, None)?;
    ground.add("fill", Unit::Milliseconds, (thread_seconds() - start) * 1e3);
    if counts {
        ground.add_efficiency(&heap)?;
    }
    let leaves = tree.leaf_count();
    heap.close()?;
    drop(heap);
    let heap = place::open(&ground.place())?;
    let tree = Leaves::<S>::open(&heap)?;
    ensure(tree.leaf_count() == leaves, || "another number of leaves was found".into())?;
    ground.verify(&heap, &tree)?;
    heap.close()?;
    drop(heap);
    std::fs::remove_dir_all(ground.place())?;
    if counts { count_splits::<S>(ground) } else { Ok(()) }
}

fn count_splits<S: Strategy>(ground: &mut Ground<'_>) -> Result<()> {
    let heap = place::open(&ground.place())?;
    let mut splits = Splits::default();
    ground.fill::<S>(&heap, Some(&mut splits))?;
    heap.close()?;
    let each = |sum: f64| sum / splits.count.max(1) as f64;
    ground.add("splits", Unit::Count, splits.count as f64);
    ground.add("split.time", Unit::Nanoseconds, each(splits.seconds * 1e9));
    ground.add("split.moved", Unit::Bytes, each(splits.stored as f64));
    ground.add("split.log", Unit::Bytes, each(splits.log_bytes));
    ground.add("split.fences", Unit::Fences, each(splits.fences));
    ground.add("split.lines", Unit::Lines, each(splits.lines));
    Ok(())
}

/// The same with Adamant's own tree.
fn bplus(ground: &mut Ground<'_>, counts: bool) -> Result<()> {
    ground.engine = Bplus::NAME;
    let heap = place::open(&ground.place())?;
    let start = thread_seconds();
    let tree = heap.transaction(DURABILITY, |tx| Bplus::create(tx))?;
    for index in 0..ground.settings.pairs {
        let (key, value) = (ground.records.key(index), ground.records.value(index, 0));
        let replaced = heap.transaction(DURABILITY, |tx| tree.insert(tx, &key, value))?;
        ensure(!replaced, || "a key was there".into())?;
    }
    ground.add("fill", Unit::Milliseconds, (thread_seconds() - start) * 1e3);
    let report = tree.check(&heap.view()?)?;
    ensure(report.pairs == ground.settings.pairs, || "pairs are missing".into())?;
    if counts {
        ground.add_efficiency(&heap)?;
        ground.add("splits", Unit::Count, report.leaves as f64 - 1.0);
    }
    Ok(heap.close()?)
}
