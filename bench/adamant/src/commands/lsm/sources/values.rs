//! Compressed values of trees on real records, repeated under prefixes of their keys.
//!
//! Rows, for each way to store values: `sources.values.space`, bytes of the pool for an entry;
//! `.load`, sorted; `.put`, random puts of other records; `.get`, random gets; `.scan`, of all
//! entries, lent; `.convert`, all values, from plain ones. The engine is `bplus`, all of it in
//! memory, and the store has no threads of its own.

use std::ops::ControlFlow;

use adamant::{Compression, Durability, Options, Store};

use super::ground::{NAME, Place, timed};
use crate::harness::data::{Data, Distribution, draw};
use crate::harness::error::{Result, ensure};
use crate::harness::records::read_records;
use crate::harness::report::Unit;

/// Of the pairs of other parts, whose values are much smaller.
const PAIRS_PART: u64 = 4;
/// Bytes of the dictionary.
const DICTIONARY_BYTES: usize = 16 << 10;

pub(super) fn measure(place: &mut Place<'_>) -> Result<()> {
    let records = read_records(place.settings.records.as_deref())?;
    let pairs = place.settings.pairs / PAIRS_PART;
    let data = Data::repeated(place.seed, records, pairs);
    for (name, compression, has_dictionary) in [
        ("none", Compression::None, false),
        ("lz4", Compression::Lz4, false),
        ("zstd", Compression::zstd(), false),
        ("zstd_dictionary", Compression::zstd(), true),
    ] {
        measure_one(place, (&data, pairs), name, (compression, has_dictionary))?;
    }
    Ok(())
}

fn measure_one(
    place: &mut Place<'_>,
    (data, pairs): (&Data, u64),
    name: &str,
    (compression, has_dictionary): (Compression, bool),
) -> Result<()> {
    let mut order: Vec<u64> = (0..pairs).collect();
    order.sort_by_key(|index| data.key(*index).to_vec());
    let sorted = || order.iter().map(|&index| (data.key(index).to_vec(), data.value(index, 0)));
    let open = |name: &str| -> Result<_> {
        let folder =
            tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&place.settings.path)?;
        let options = Options::new().background(false).durability(Durability::Buffered);
        Ok((Store::open_with(folder.path().join(name), options)?, folder))
    };
    // Converted from plain values, and trained from them.
    let (store, _plain_folder) = open("plain")?;
    store.keyspace("data")?.load_sorted(sorted())?;
    let dictionary =
        has_dictionary.then(|| store.train_dictionary("data", DICTIONARY_BYTES)).transpose()?;
    let dictionary = dictionary.as_deref();
    let ((), convert) = timed(pairs, || {
        store.compress_values("data", compression, dictionary)?;
        Ok(())
    })?;
    drop(store);
    let (store, _folder) = open("store")?;
    let keyspace = store.keyspace("data")?;
    store.compress_values("data", compression, dictionary)?;
    let ((), load) = timed(pairs, || Ok(keyspace.load_sorted(sorted()).map(drop)?))?;
    store.shrink()?;
    let bytes = store.stats()?.heap.pool_bytes;
    let indices = draw(Distribution::Uniform, pairs, place.settings.reads / 4, place.seed);
    let keys: Vec<_> = indices.iter().map(|&index| data.key(index)).collect();
    let (found, gets) = timed(keys.len() as u64, || {
        let mut found = 0;
        for key in &keys {
            found += usize::from(keyspace.get(&**key)?.is_some());
        }
        Ok(found)
    })?;
    ensure(found == keys.len(), || format!("got {found} values of {}", keys.len()))?;
    let (entries, scan) = timed(pairs, || {
        let mut entries = 0;
        keyspace.iter().lend(|_, value| {
            entries += u64::from(!value.is_empty());
            ControlFlow::<()>::Continue(())
        })?;
        Ok(entries)
    })?;
    ensure(entries == pairs, || format!("got {entries} entries of {pairs}"))?;
    let ((), puts) = timed(keys.len() as u64, || {
        for (key, &index) in keys.iter().zip(&indices) {
            keyspace.put(&**key, data.value((index + 1) % pairs, 0))?;
        }
        Ok(())
    })?;
    let report = &mut *place.report;
    let row = |part: &str| format!("sources.values.{part}.{name}");
    report.add(&row("space"), NAME, Unit::Bytes, pairs, bytes as f64 / pairs as f64);
    report.add_rate(&row("load"), NAME, pairs, load);
    report.add_rate(&row("put"), NAME, keys.len() as u64, puts);
    report.add_rate(&row("get"), NAME, keys.len() as u64, gets);
    report.add_rate(&row("scan"), NAME, pairs, scan);
    if compression != Compression::None {
        report.add_rate(&row("convert"), NAME, pairs, convert);
    }
    Ok(())
}
