//! A session: an engine, and its expected content.
//!
//! Purpose: workloads change the engine and this record of its expected content; `verify` compares.
//! Invariants: records `removed .. next` exist and no others; the values of the first `entries`
//! have a version in `versions`, the others have version 0.
//! Thread safety: workloads with several threads take indices from `next` by `take_index`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::harness::data::{Data, Distribution, draw};
use crate::harness::engine::{Direction, Durability, Engine, Setup};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::Measured;
use crate::harness::report::{Report, Unit};

/// Existing records that `verify` samples.
const SAMPLES: u64 = 2_000;

/// An engine under measurement.
pub struct Session<'a, E> {
    /// The engine; taken out only while it is reopened.
    engine: Option<E>,
    /// The durability that it was opened for.
    durability: Durability,
    /// Its directory.
    pub directory: PathBuf,
    /// Its records.
    pub data: &'a Data,
    /// Number of loaded records.
    pub entries: u64,
    /// Differs between rounds.
    pub seed: u64,
    /// The suffix of row names: empty, or the kind of values.
    pub suffix: &'static str,
    /// The first index that does not exist yet.
    next: AtomicU64,
    /// The first index that was not removed.
    removed: u64,
    versions: RangeInclusive<u64>,
    log_bytes_max: u64,
}

impl<'a, E: Engine> Session<'a, E> {
    /// Opens an empty engine in `directory`, for deferred writes.
    ///
    /// # Errors
    /// The engine's.
    pub fn begin(
        directory: &Path,
        data: &'a Data,
        entries: u64,
        log_bytes_max: u64,
        seed: u64,
        suffix: &'static str,
    ) -> Result<Self> {
        let setup = Setup { durability: Durability::Deferred, log_bytes_max };
        Ok(Self {
            engine: Some(E::open(directory, setup)?),
            durability: setup.durability,
            directory: directory.to_owned(),
            data,
            entries,
            seed,
            suffix,
            next: AtomicU64::new(0),
            removed: 0,
            versions: 0..=0,
            log_bytes_max,
        })
    }

    /// The engine.
    ///
    /// # Panics
    /// If an earlier call that closed it failed: a measurement ends with its first error.
    pub fn engine(&self) -> &E {
        self.engine.as_ref().expect("the session ends with the first error")
    }

    /// The options for writes that wait for `durability`.
    pub fn setup(&self, durability: Durability) -> Setup {
        Setup { durability, log_bytes_max: self.log_bytes_max }
    }

    /// Reopens it for writes that wait for `durability`, unless it is open for those already.
    ///
    /// # Errors
    /// The engine's.
    pub fn reopen(&mut self, durability: Durability) -> Result<()> {
        if self.engine.is_some() && self.durability == durability {
            return Ok(());
        }
        self.renew(durability)
    }

    /// Closes and opens it in any case, so that pending work from before does not affect the next
    /// measurement.
    ///
    /// # Errors
    /// The engine's.
    pub fn renew(&mut self, durability: Durability) -> Result<()> {
        let setup = self.setup(durability);
        let engine = self.close()?;
        let engine = engine.reopen(&self.directory, setup)?;
        self.resume(engine, durability);
        Ok(())
    }

    /// Takes the engine out; `resume` puts one back.
    ///
    /// # Errors
    /// When it is out already.
    pub fn close(&mut self) -> Result<E> {
        self.engine.take().ok_or_else(|| "the engine is closed already".into())
    }

    /// Puts an engine back that was opened for writes that wait for `durability`.
    pub fn resume(&mut self, engine: E, durability: Durability) {
        self.engine = Some(engine);
        self.durability = durability;
    }

    /// Index of a record that is about to be written for the first time.
    pub fn take_index(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that records below `next` exist.
    pub fn set_next(&mut self, next: u64) {
        self.next = AtomicU64::new(next);
    }

    /// The first index that does not exist.
    pub fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Notes that all records below `removed` are gone.
    pub fn set_removed(&mut self, removed: u64) {
        self.removed = removed;
    }

    /// Version that the next overwrites write: a new one.
    pub fn newer_version(&self) -> u64 {
        self.versions.end() + 1
    }

    /// Notes that the first `entries` now have versions in this range.
    pub fn set_versions(&mut self, versions: RangeInclusive<u64>) {
        self.versions = versions;
    }

    /// The oldest version that may still be there.
    pub fn oldest_version(&self) -> u64 {
        *self.versions.start()
    }

    /// Records operations per second, and the processor time.
    pub fn add_rate(&self, report: &mut Report, row: &str, measured: Measured) {
        let row = format!("{row}{}", self.suffix);
        report.add_rate(&row, E::NAME, self.entries, measured);
    }

    /// Records any figure of an engine with this number of entries.
    pub fn add(&self, report: &mut Report, row: &str, unit: Unit, sample: f64) {
        report.add(&format!("{row}{}", self.suffix), E::NAME, unit, self.entries, sample);
    }

    /// Compares the content with the expected one: the count, a sample of the values, absent
    /// records, and (with `in_order`) all keys in both directions.
    ///
    /// # Errors
    /// The first difference.
    pub fn verify(&self, after: &str, in_order: bool) -> Result<()> {
        if !E::KEEPS_CONTENTS {
            return Ok(());
        }
        let failure = |what: String| format!("{} after {after}: {what}", E::NAME);
        let (engine, next) = (self.engine(), self.next());
        let expected = next - self.removed;
        let count = engine.count()?;
        ensure(count == expected, || failure(format!("expected {expected} entries, got {count}")))?;
        for index in draw(Distribution::Uniform, next, SAMPLES, self.seed) {
            let value = engine.get(&self.data.key(index))?;
            let holds = match &value {
                None => index < self.removed,
                Some(value) => index >= self.removed && self.is_value_of(index, value.as_ref()),
            };
            ensure(holds, || failure(format!("record {index} is not what was written")))?;
            let missing = engine.get(&self.data.missing_key(index))?;
            ensure(missing.is_none(), || failure(format!("record {index} was never written")))?;
        }
        if in_order {
            self.verify_order(Direction::Ascending, expected)?;
            self.verify_order(Direction::Descending, expected)?;
        }
        Ok(())
    }

    fn is_value_of(&self, index: u64, value: &[u8]) -> bool {
        let versions = if index < self.entries { self.versions.clone() } else { 0..=0 };
        versions.into_iter().any(|version| value == self.data.value(index, version))
    }

    fn verify_order(&self, direction: Direction, expected: u64) -> Result<()> {
        let mut before: Option<Vec<u8>> = None;
        let mut in_order = true;
        let count = self.engine().scan(None, direction, u64::MAX, &mut |key, _| {
            in_order &= match (&before, direction) {
                (None, _) => true,
                (Some(before), Direction::Ascending) => before.as_slice() < key,
                (Some(before), Direction::Descending) => before.as_slice() > key,
            };
            let before = before.get_or_insert_default();
            before.clear();
            before.extend_from_slice(key);
        })?;
        ensure(in_order && count == expected, || {
            format!("{}: a scan gave {count} entries of {expected}, in order: {in_order}", E::NAME)
        })
    }
}
