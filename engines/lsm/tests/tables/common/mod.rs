//! Directories, models and random entries for the tests of tables and blob files.

#![allow(dead_code, reason = "each test uses its part")]

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use adamant_lsm::{
    Cache, CacheOptions, Compression, Entry, EntryKind, Identity, Result, Table, TableMeta,
    TableOptions, TableWriter, Version,
};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_slice::Slice;

pub(crate) const UUID: [u8; 16] = *b"the pool's uuid.";

/// Entries in their order: by key, then the newest first.
pub(crate) type Model = BTreeMap<(Vec<u8>, Reverse<u64>), (EntryKind, Vec<u8>)>;

pub(crate) fn identity(number: u64) -> Identity {
    Identity { uuid: UUID, number }
}

pub(crate) fn directory() -> Arc<dyn Directory> {
    Arc::new(MemoryDirectory::new())
}

pub(crate) fn cache() -> Arc<Cache> {
    Arc::new(Cache::new(CacheOptions::default()))
}

/// Keys with common prefixes, of few letters so that many are prefixes of others.
pub(crate) fn key(random: &mut fastrand::Rng) -> Vec<u8> {
    let prefix: &[u8] = [&b""[..], b"user/", b"user/a long prefix that many keys have/", b"\xFF"]
        [random.usize(0..4)];
    let length = random.usize(0..7);
    let rest = (0..length).map(|_| [0, b'a', b'b', b'c', 0xFE, 0xFF][random.usize(0..6)]);
    prefix.iter().copied().chain(rest).collect()
}

/// Random entries, some keys with many versions.
pub(crate) fn model(random: &mut fastrand::Rng, entry_count: usize) -> Model {
    let mut model = Model::new();
    while model.len() < entry_count {
        let key = key(random);
        let versions = if random.u8(..20) == 0 { random.usize(1..40) } else { 1 };
        for _ in 0..versions {
            let sequence = random.u64(0..1000);
            let kind = if random.u8(..5) == 0 { EntryKind::Tombstone } else { EntryKind::Value };
            let bytes = if kind == EntryKind::Tombstone { 0 } else { random.usize(0..60) };
            let value = (0..bytes).map(|_| random.u8(b'a'..b'd')).collect();
            model.insert((key.clone(), Reverse(sequence)), (kind, value));
        }
    }
    model
}

/// Key and version of an entry, and its kind and value.
pub(crate) type Item<'a> = (&'a (Vec<u8>, Reverse<u64>), &'a (EntryKind, Vec<u8>));

pub(crate) fn entry(((key, sequence), (kind, value)): Item<'_>) -> Entry {
    let value = Slice::new(value);
    let version = Version { sequence: sequence.0, kind: *kind, value };
    Entry { key: Slice::new(key), version }
}

/// The newest version in the model that is not newer than `sequence_max`.
pub(crate) fn newest(model: &Model, key: &[u8], sequence_max: u64) -> Option<Version> {
    let from = (key.to_vec(), Reverse(sequence_max));
    let found = model.range(from..).next().map(entry)?;
    (found.key == key).then_some(found.version)
}

pub(crate) fn write(
    directory: &Arc<dyn Directory>,
    number: u64,
    options: TableOptions,
    model: &Model,
) -> Result<TableMeta> {
    let mut writer = TableWriter::create(directory, identity(number), options)?;
    for item in model {
        writer.add(&entry(item))?;
    }
    writer.finish()
}

pub(crate) fn open(directory: &Arc<dyn Directory>, number: u64) -> Result<Arc<Table>> {
    Ok(Arc::new(Table::open(directory, identity(number), &cache(), &Arc::default())?))
}

/// The entries of the model between two bounds.
pub(crate) fn between(model: &Model, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Vec<Entry> {
    let is_in = |entry: &Entry| {
        let key = &*entry.key;
        (match lower {
            Bound::Included(bound) => key >= bound,
            Bound::Excluded(bound) => key > bound,
            Bound::Unbounded => true,
        }) && (match upper {
            Bound::Included(bound) => key <= bound,
            Bound::Excluded(bound) => key < bound,
            Bound::Unbounded => true,
        })
    };
    model.iter().map(entry).filter(is_in).collect()
}

pub(crate) fn bound<'a>(random: &mut fastrand::Rng, key: &'a [u8]) -> Bound<&'a [u8]> {
    match random.u8(..5) {
        0 | 1 => Bound::Included(key),
        2 | 3 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    }
}

/// Those that this build has.
pub(crate) fn compressions() -> Vec<Compression> {
    let all = [Compression::None, Compression::Lz4, Compression::zstd()];
    all.into_iter().filter(|compression| compression.is_built()).collect()
}

/// Options of every shape, all of them small, so that a small table has many blocks of each kind.
pub(crate) fn options() -> Vec<TableOptions> {
    let mut all = Vec::new();
    for (block_bytes, restart_interval, partition_bytes) in
        [(64, 1, 64), (200, 3, 100), (500, 16, 300), (4096, 256, 4096), (1 << 20, 16, 1 << 20)]
    {
        for (turn, compression) in compressions().into_iter().enumerate() {
            let hash_index = (turn % 2 == 0) == (block_bytes > 400);
            let filter_bits_per_key = if block_bytes == 500 { 0 } else { 10 };
            all.push(TableOptions {
                block_bytes,
                restart_interval,
                hash_index,
                compression,
                filter_bits_per_key,
                partition_bytes,
            });
        }
    }
    all
}

/// All bytes of a file.
pub(crate) fn bytes_of(directory: &Arc<dyn Directory>, name: &str) -> Vec<u8> {
    let file = directory.open(name).unwrap().unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// A directory with one file.
pub(crate) fn directory_with(name: &str, bytes: &[u8]) -> Arc<dyn Directory> {
    let directory = directory();
    directory.create(name).unwrap().write_at(bytes, 0).unwrap();
    directory
}
