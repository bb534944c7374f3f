//! The fixture of all parts: the working directory, timing, tables to be read.

use std::path::PathBuf;
use std::sync::Arc;

use adamant_lsm::{Cache, CacheOptions, Compression, EntryKind, Identity};
use adamant_lsm::{Table, TableOptions, TableWriter};
use adamant_medium::storage::Directory;

use crate::harness::data::{Data, KEY_BYTES};
use crate::harness::error::Result;
use crate::harness::measure::{Measured, Stopwatch, thread_seconds};
use crate::harness::report::Report;

/// The engine name of the rows.
pub(super) const NAME: &str = "adamant";
/// The identity of the files.
const UUID: [u8; 16] = *b"adamant-bench's.";

/// The settings.
#[derive(Clone, Debug)]
pub struct SourcesSettings {
    /// The working directory.
    pub path: PathBuf,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of repetitions.
    pub rounds: u32,
    /// Pairs of a table.
    pub pairs: u64,
    /// Reads of a row.
    pub reads: u64,
    /// JSON lines of the records that are compressed; `None`: the repository's sample.
    pub records: Option<PathBuf>,
    /// The only part that is measured; `None`: all.
    pub part: Option<String>,
}

impl SourcesSettings {
    /// 1,000,000 pairs in each of ten tables that are merged, and in each that is read.
    pub fn full(path: PathBuf) -> Self {
        Self {
            path,
            seed: 1,
            rounds: 1,
            pairs: 1_000_000,
            reads: 1_000_000,
            records: None,
            part: None,
        }
    }

    /// A tenth.
    pub fn quick(path: PathBuf) -> Self {
        Self { pairs: 100_000, reads: 100_000, ..Self::full(path) }
    }
}

/// The working place of a part.
pub(super) struct Place<'p> {
    pub(super) settings: &'p SourcesSettings,
    pub(super) directory: Arc<dyn Directory>,
    pub(super) report: &'p mut Report,
    pub(super) seed: u64,
}

/// Runs `work`, which does `operations`, and measures the processor time of the thread.
pub(super) fn timed<T>(operations: u64, work: impl FnOnce() -> Result<T>) -> Result<(T, Measured)> {
    let (watch, before) = (Stopwatch::start(), thread_seconds());
    let result = work()?;
    let seconds = thread_seconds() - before;
    Ok((result, Measured { seconds, ..watch.measured(operations) }))
}

pub(super) fn identity(number: u64) -> Identity {
    Identity { uuid: UUID, number }
}

pub(super) fn cache(block_bytes: u64) -> Arc<Cache> {
    Arc::new(Cache::new(CacheOptions { block_bytes, ..CacheOptions::default() }))
}

impl Place<'_> {
    /// Writes a table of records with these indices; `value_bytes` gives the length of each value.
    pub(super) fn write_table(
        &self,
        number: u64,
        block_bytes: usize,
        (data, indices): (&Data, impl Iterator<Item = u64>),
        value_bytes: impl Fn(u64) -> usize,
    ) -> Result<()> {
        let options =
            TableOptions { block_bytes, compression: Compression::Lz4, ..TableOptions::default() };
        let mut writer = TableWriter::create(&self.directory, identity(number), options)?;
        let mut keyed: Vec<([u8; KEY_BYTES], u64)> = Vec::new();
        for index in indices {
            let mut key = [0; KEY_BYTES];
            key.copy_from_slice(&data.key(index));
            keyed.push((key, index));
        }
        keyed.sort_unstable();
        for (key, index) in keyed {
            let value = &data.value(index, 0)[..value_bytes(index)];
            writer.add_parts(&key, 1, EntryKind::Value, value)?;
        }
        writer.finish()?;
        Ok(())
    }

    pub(super) fn open_table(&self, number: u64, cache: &Arc<Cache>) -> Result<Arc<Table>> {
        Ok(Arc::new(Table::open(&self.directory, identity(number), cache, &Arc::default())?))
    }
}
