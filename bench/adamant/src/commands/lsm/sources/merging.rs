//! Merging ten tables of pairs whose values have 24 to 150 bytes.
//!
//! Rows: `sources.merge.stream`, with descriptors of their own that read ahead, as compactions do;
//! `sources.merge.cached`, with the ranges of scans, through the shared descriptors and cache;
//! `sources.read.stream`, reading alone; `sources.slices`, the share of a merge that makes the
//! slices of keys and values: they are made once more, and the difference is measured.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;

use adamant_lsm::{Compression, Entry, Table, TableOptions, TableStream, TableWriter};
use adamant_slice::Slice;

use super::ground::{NAME, Place, cache, identity, timed};
use crate::harness::data::Data;
use crate::harness::error::{Result, ensure};
use crate::harness::report::Unit;

const TABLES: u64 = 10;
const VALUE_BYTES_MIN: u64 = 24;
const VALUE_BYTES_MAX: u64 = 150;
/// Bytes of the shared cache, as by default.
const CACHE_BYTES: u64 = 64 << 20;

type Read = adamant_lsm::Result<Entry>;

pub(super) fn measure(place: &mut Place<'_>) -> Result<()> {
    let data = Data::half_compressible(place.seed, VALUE_BYTES_MAX as usize);
    let pairs = TABLES * place.settings.pairs;
    let value_bytes =
        |index: u64| (VALUE_BYTES_MIN + index % (VALUE_BYTES_MAX - VALUE_BYTES_MIN + 1)) as usize;
    for table in 0..TABLES {
        let indices = (table..pairs).step_by(TABLES as usize);
        place.write_table(table + 1, 4096, (&data, indices), value_bytes)?;
    }
    let streams = |place: &Place<'_>| -> Result<Vec<TableStream>> {
        (1..=TABLES)
            .map(|number| Ok(TableStream::open(&place.directory, identity(number))?))
            .collect()
    };
    let ((), merged) = timed(pairs, || write_merged(place, streams(place)?, pairs, TABLES + 1))?;
    let shared = cache(CACHE_BYTES);
    let tables = (1..=TABLES).map(|number| place.open_table(number, &shared));
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let all = |table: &Arc<Table>| table.range(Bound::Unbounded, Bound::Unbounded);
    let ranges = tables.iter().map(all).collect();
    let ((), cached) = timed(pairs, || write_merged(place, ranges, pairs, TABLES + 2))?;
    let ((), read) = timed(pairs, || {
        for entry in streams(place)?.into_iter().flatten() {
            black_box(&entry?);
        }
        Ok(())
    })?;
    let ((), again) = timed(pairs, || {
        for entry in streams(place)?.into_iter().flatten() {
            let entry = entry?;
            // As the stream does: the key was assembled from parts, the value is a part of the
            // block.
            black_box((Slice::new(&entry.key), entry.version.value.slice(..)));
        }
        Ok(())
    })?;
    let share = 100.0 * (again.seconds - read.seconds).max(0.0) / merged.seconds;
    place.report.add_rate("sources.merge.stream", NAME, pairs, merged);
    place.report.add_rate("sources.merge.cached", NAME, pairs, cached);
    place.report.add_rate("sources.read.stream", NAME, pairs, read);
    place.report.add("sources.slices", NAME, Unit::Percent, pairs, share);
    Ok(())
}

/// Merges runs to a table.
fn write_merged<R: Iterator<Item = Read>>(
    place: &Place<'_>,
    runs: Vec<R>,
    pairs: u64,
    number: u64,
) -> Result<()> {
    let options = TableOptions { compression: Compression::Lz4, ..TableOptions::default() };
    let mut writer = TableWriter::create(&place.directory, identity(number), options)?;
    let mut heads = BinaryHeap::new();
    for mut rest in runs {
        if let Some(entry) = rest.next() {
            heads.push(Head { entry: entry?, rest });
        }
    }
    while let Some(mut head) = heads.pop() {
        writer.add(&head.entry)?;
        if let Some(entry) = head.rest.next() {
            head.entry = entry?;
            heads.push(head);
        }
    }
    let written = writer.finish()?.entries;
    ensure(written == pairs, || format!("merged {written} pairs of {pairs}"))
}

/// A run, at its next entry. The least one is the greatest of the heap.
struct Head<R> {
    entry: Entry,
    rest: R,
}

impl<R> PartialEq for Head<R> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<R> Eq for Head<R> {}

impl<R> PartialOrd for Head<R> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<R> Ord for Head<R> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.entry.order(&self.entry)
    }
}
