//! Compressions of keyspaces on real records, repeated under prefixes of their keys.
//!
//! Rows, for each compression and size of blocks: `sources.compression.space`, bytes of all files
//! for an entry; `.load`, puts by batches of 100 until all is merged to the last level; `.get`,
//! random gets without a cache, so that each decompresses a block; `.scan`, of all entries.
//! The store has no threads of its own, so that all its work is in the times of the thread.

use adamant::{
    Compression, Durability, Engine, KeyspaceOptions, LevelCompression, LsmOptions, Options, Store,
};

use super::ground::{NAME, Place, timed};
use crate::harness::data::{Data, Distribution, draw};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::disk_bytes;
use crate::harness::records::read_records;
use crate::harness::report::Unit;

const BLOCKS: [(&str, u32); 2] = [("4KiB", 4 << 10), ("16KiB", 16 << 10)];
const BATCH_PUTS: u64 = 100;
/// Bytes of memtables and tables, so that there are some tens of tables.
const TABLE_BYTES: u64 = 8 << 20;
/// Of the pairs of other parts, whose values are much smaller.
const PAIRS_PART: u64 = 4;

pub(super) fn measure(place: &mut Place<'_>) -> Result<()> {
    let settings = place.settings;
    let records = read_records(settings.records.as_deref())?;
    let pairs = settings.pairs / PAIRS_PART;
    let data = Data::repeated(place.seed, records, pairs);
    let lz4 = LevelCompression::from(Compression::Lz4);
    let all = [
        ("none", Compression::None.into()),
        ("lz4", lz4),
        ("zstd", Compression::zstd().into()),
        ("lz4_zstd", lz4.bottommost(Compression::zstd())),
    ];
    for (block_name, block_bytes) in BLOCKS {
        for (name, compression) in all {
            let options = KeyspaceOptions::new().compression(compression).block_bytes(block_bytes);
            measure_one(place, (&data, pairs), &format!("{name}.{block_name}"), options)?;
        }
    }
    Ok(())
}

fn measure_one(
    place: &mut Place<'_>,
    (data, pairs): (&Data, u64),
    name: &str,
    options: KeyspaceOptions,
) -> Result<()> {
    let folder =
        tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&place.settings.path)?;
    let path = folder.path().join("store");
    let mut lsm = LsmOptions::default();
    (lsm.memtable_bytes_max, lsm.table_bytes_max) = (TABLE_BYTES, TABLE_BYTES);
    lsm.base_bytes_min = 4 * TABLE_BYTES;
    let of_store = Options::new().lsm(lsm).background(false).cache_bytes_max(1);
    let store = Store::open_with(&path, of_store.durability(Durability::Buffered))?;
    let keyspace = store.create_keyspace_with("data", options.engine(Engine::Lsm))?;
    let ((), load) = timed(pairs, || {
        for start in (0..pairs).step_by(BATCH_PUTS as usize) {
            let mut batch = store.batch();
            for index in start..pairs.min(start + BATCH_PUTS) {
                batch.put(&keyspace, &*data.key(index), data.value(index, 0))?;
            }
            batch.commit()?;
        }
        Ok(keyspace.compact()?)
    })?;
    let bytes = disk_bytes(&path.join("tables"))? + disk_bytes(&path.join("blobs"))?;
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
        keyspace.iter().try_fold(0, |entries, entry| entry.map(|_| entries + 1)).map_err(Into::into)
    })?;
    ensure(entries == pairs, || format!("got {entries} entries of {pairs}"))?;
    let report = &mut *place.report;
    let row = |part: &str| format!("sources.compression.{part}.{name}");
    let per_entry = bytes as f64 / pairs as f64;
    report.add(&row("space"), NAME, Unit::Bytes, pairs, per_entry);
    report.add_rate(&row("load"), NAME, pairs, load);
    report.add_rate(&row("get"), NAME, pairs, gets);
    report.add_rate(&row("scan"), NAME, pairs, scan);
    Ok(())
}
