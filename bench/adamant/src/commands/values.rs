//! `values`: records as people store them, by each way to store values, and by peers.
//!
//! Rows: `values.load`, sorted, in batches of 1,000; `.space`, bytes on the disk for an entry,
//! without the log; `.open`, of the closed store; `.get`, random; `.scan`, of all entries; `.put`,
//! random, one by one; `.convert`, of all values, from plain ones, which a dictionary is trained
//! from. Commits survive the death of the process; no row waits for the device.

use std::path::{Path, PathBuf};

use adamant::Compression;
use tempfile::TempDir;

use crate::engines::adamant::{
    AdamantEngine, EncryptedEngine, EncryptedLz4Engine, EncryptedZstdEngine, Lz4Engine, ZstdEngine,
};
use crate::harness::data::{Data, Distribution, draw};
use crate::harness::engine::{Direction, Durability, Engine, Setup};
use crate::harness::error::{Result, ensure};
use crate::harness::key::Key;
use crate::harness::measure::{Measured, Stopwatch};
use crate::harness::records::read_records;
use crate::harness::report::{Report, Unit};

/// Entries of a batch.
const BATCH: usize = 1_000;
/// Bytes of a dictionary.
const DICTIONARY_BYTES: usize = 16 << 10;
/// The store's name in its folder.
const STORE: &str = "store";
const SETUP: Setup = Setup { durability: Durability::Buffered, log_bytes_max: 128 << 20 };

/// The settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The working directory.
    pub path: PathBuf,
    /// Entries.
    pub entries: u64,
    /// Gets of a row, and puts.
    pub reads: u64,
    /// Rounds of every engine.
    pub rounds: u32,
    /// JSON lines of the records; `None`: the repository's sample.
    pub records: Option<PathBuf>,
    /// Seed of all randomness.
    pub seed: u64,
}

/// The records under as many prefixes as there are entries.
///
/// # Errors
/// Those of reading the records.
pub fn data(settings: &Settings) -> Result<Data> {
    let records = read_records(settings.records.as_deref())?;
    Ok(Data::repeated(settings.seed, records, settings.entries))
}

/// Measures Adamant; `tell` is called with each next step.
///
/// # Errors
/// The first of a store or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("values", AdamantEngine::NAME);
    let data = data(settings)?;
    for round in 0..settings.rounds {
        tell(&format!("round {} of {}", round + 1, settings.rounds));
        own(settings, &data, &mut report)?;
    }
    Ok(report)
}

/// All ways of Adamant to store values.
///
/// # Errors
/// As [`run`].
pub fn own(settings: &Settings, data: &Data, report: &mut Report) -> Result<()> {
    measure::<AdamantEngine>(settings, data, report)?;
    measure::<Lz4Engine>(settings, data, report)?;
    measure::<ZstdEngine>(settings, data, report)?;
    measure::<EncryptedEngine>(settings, data, report)?;
    measure::<EncryptedLz4Engine>(settings, data, report)?;
    measure::<EncryptedZstdEngine>(settings, data, report)?;
    convert(settings, data, report, (Lz4Engine::NAME, Compression::Lz4, false))?;
    convert(settings, data, report, (ZstdEngine::NAME, Compression::zstd(), false))?;
    convert(settings, data, report, ("zstd, dictionary", Compression::zstd(), true))
}

fn measure<E: Engine>(settings: &Settings, data: &Data, report: &mut Report) -> Result<()> {
    measure_settled::<E>(settings, data, report, |_| Ok(()))
}

/// One engine; `settle` does, after the load, what it leaves to later: else its data would be in
/// its log.
///
/// # Errors
/// As [`run`].
pub fn measure_settled<E: Engine>(
    settings: &Settings,
    data: &Data,
    report: &mut Report,
    settle: impl FnOnce(&E) -> Result<()>,
) -> Result<()> {
    let (folder, engine) = open::<E>(settings)?;
    let loaded = load(&engine, settings, data)?;
    report.add_rate("values.load", E::NAME, settings.entries, loaded);
    settle(&engine)?;
    engine.close()?;
    measure_closed::<E>(&folder.path().join(STORE), (settings, data), E::NAME, report)
}

/// What plain values are converted at; and the rows of a way that no engine opens by itself.
fn convert(
    settings: &Settings,
    data: &Data,
    report: &mut Report,
    (name, compression, has_dictionary): (&'static str, Compression, bool),
) -> Result<()> {
    let (folder, engine) = open::<AdamantEngine>(settings)?;
    load(&engine, settings, data)?;
    let (store, keyspace) = (engine.store(), engine.keyspace().name());
    let train = || store.train_dictionary(keyspace, DICTIONARY_BYTES);
    let dictionary = has_dictionary.then(train).transpose()?;
    let watch = Stopwatch::start();
    store.compress_values(keyspace, compression, dictionary.as_deref())?;
    let entries = settings.entries;
    report.add_rate("values.convert", name, entries, watch.measured(entries));
    if !has_dictionary {
        return engine.close();
    }
    store.shrink()?;
    engine.close()?;
    let path = folder.path().join(STORE);
    measure_closed::<AdamantEngine>(&path, (settings, data), name, report)
}

/// A new store in a folder of its own.
fn open<E: Engine>(settings: &Settings) -> Result<(TempDir, E)> {
    let folder = tempfile::Builder::new().prefix("adamant-bench-").tempdir_in(&settings.path)?;
    let path = folder.path().join(STORE);
    std::fs::create_dir(&path)?;
    let engine = E::open(&path, SETUP)?;
    Ok((folder, engine))
}

/// Puts all entries, sorted.
fn load<E: Engine>(engine: &E, settings: &Settings, data: &Data) -> Result<Measured> {
    let mut order: Vec<u64> = (0..settings.entries).collect();
    order.sort_by_cached_key(|index| data.key(*index).to_vec());
    let watch = Stopwatch::start();
    for part in order.chunks(BATCH) {
        let values: Vec<Vec<u8>> =
            part.iter().map(|&index| data.value(index, 0).to_vec()).collect();
        let keys = part.iter().map(|&index| data.key(index));
        let batch: Vec<(Key, &[u8])> = keys.zip(values.iter().map(Vec::as_slice)).collect();
        engine.put_batch(&batch)?;
    }
    Ok(watch.measured(settings.entries))
}

/// The rows of a closed store.
fn measure_closed<E: Engine>(
    path: &Path,
    (settings, data): (&Settings, &Data),
    name: &'static str,
    report: &mut Report,
) -> Result<()> {
    let entries = settings.entries;
    let space = E::space(path)?.ok_or("a persistent engine takes space")?;
    let bytes = space.data_bytes as f64 / entries as f64;
    report.add("values.space", name, Unit::Bytes, entries, bytes);
    let watch = Stopwatch::start();
    let engine = E::open(path, SETUP)?;
    let milliseconds = watch.measured(1).seconds * 1e3;
    report.add("values.open", name, Unit::Milliseconds, entries, milliseconds);
    read_and_write(&engine, (settings, data), name, report)?;
    engine.close()
}

fn read_and_write<E: Engine>(
    engine: &E,
    (settings, data): (&Settings, &Data),
    name: &'static str,
    report: &mut Report,
) -> Result<()> {
    let entries = settings.entries;
    let indices = draw(Distribution::Uniform, entries, settings.reads, settings.seed);
    let keys: Vec<Key> = indices.iter().map(|&index| data.key(index)).collect();
    let count = keys.len() as u64;
    // Everything is in memory before.
    for is_measured in [false, true] {
        let (watch, mut found) = (Stopwatch::start(), 0);
        for key in &keys {
            found += u64::from(engine.get(key)?.is_some());
        }
        ensure(found == count, || format!("got {found} values of {count}"))?;
        if is_measured {
            report.add_rate("values.get", name, count, watch.measured(count));
        }
    }
    let (watch, mut bytes) = (Stopwatch::start(), 0);
    let scanned = engine.scan(None, Direction::Ascending, u64::MAX, &mut |_, value| {
        bytes += value.len();
    })?;
    ensure(scanned == entries && bytes > 0, || format!("got {scanned} entries of {entries}"))?;
    report.add_rate("values.scan", name, entries, watch.measured(entries));
    let watch = Stopwatch::start();
    for (key, &index) in keys.iter().zip(&indices) {
        engine.put(key, data.value((index + 1) % entries, 0))?;
    }
    report.add_rate("values.put", name, count, watch.measured(count));
    Ok(())
}

/// The settings of a working directory: 200,000 entries, or a quarter.
pub fn settings_in(path: &Path, is_quick: bool) -> Settings {
    let entries = if is_quick { 50_000 } else { 200_000 };
    let path = path.to_path_buf();
    Settings { path, entries, reads: entries, rounds: 3, records: None, seed: 1 }
}
