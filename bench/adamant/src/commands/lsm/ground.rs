//! The fixture of `lsm`: an engine, its expected content, and the report.
//!
//! Invariants: the engine holds all entries with the value of `version`, until a process was killed
//! that rewrote some of them.

use std::path::Path;

use crate::commands::lsm::settings::{Set, Settings};
use crate::harness::data::{Data, KEY_BYTES};
use crate::harness::engine::{LsmEngine, LsmSetup, Space};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{Measured, disk_bytes, once};
use crate::harness::report::{Report, Unit};

/// Bytes that LZ4 gets at once: many times its window.
const PIECE_BYTES: usize = 4 << 20;
/// The share of blocks in memory after a cold start: next to none.
const COLD_SHARE: u64 = 100;
pub(super) const MEBIBYTE: f64 = (1 << 20) as f64;

pub(super) struct Ground<'a, E> {
    pub(super) settings: &'a Settings,
    pub(super) set: &'a Set,
    pub(super) data: Data,
    pub(super) seed: u64,
    pub(super) version: u64,
    pub(super) report: &'a mut Report,
    path: &'a Path,
    engine: Option<E>,
    /// Bytes of all keys and values in order after LZ4.
    lz4_bytes: u64,
}

impl<'a, E: LsmEngine> Ground<'a, E> {
    pub(super) fn begin(
        settings: &'a Settings,
        set: &'a Set,
        seed: u64,
        path: &'a Path,
        report: &'a mut Report,
    ) -> Result<Self> {
        let data = Data::half_compressible(seed, set.value_bytes);
        let lz4_bytes = lz4_bytes(&data, set.entries);
        let (version, engine) = (0, None);
        let mut ground =
            Self { settings, set, data, seed, version, report, path, engine, lz4_bytes };
        ground.open(ground.setup())?;
        Ok(ground)
    }

    pub(super) fn engine(&self) -> Result<&E> {
        Ok(self.engine.as_ref().ok_or("the engine is closed")?)
    }

    pub(super) fn path(&self) -> &Path {
        self.path
    }

    /// A cache of a tenth of the data.
    pub(super) fn setup(&self) -> LsmSetup {
        let cache_bytes = self.user_bytes(self.set.entries) / 10;
        LsmSetup { cache_bytes, memtable_bytes: self.settings.memtable_bytes }
    }

    /// Bytes of keys and values of `entries` entries.
    pub(super) fn user_bytes(&self, entries: u64) -> u64 {
        entries * (KEY_BYTES + self.set.value_bytes) as u64
    }

    pub(super) fn add(&mut self, row: &str, unit: Unit, sample: f64) {
        let row = format!("{row}.{}", self.set.name);
        self.report.add(&row, E::NAME, unit, self.set.entries, sample);
    }

    pub(super) fn add_rate(&mut self, row: &str, measured: Measured) {
        let row = format!("{row}.{}", self.set.name);
        self.report.add_rate(&row, E::NAME, self.set.entries, measured);
    }

    pub(super) fn open(&mut self, setup: LsmSetup) -> Result<()> {
        self.engine = Some(E::open_lsm(self.path, setup)?);
        Ok(())
    }

    pub(super) fn close(&mut self) -> Result<()> {
        self.engine.take().map_or(Ok(()), E::close)
    }

    /// Closes and opens, with a row of the time to open.
    pub(super) fn reopen(&mut self, row: &str) -> Result<()> {
        self.close()?;
        let setup = self.setup();
        let (_, opened) = once(|| self.open(setup))?;
        self.add(row, Unit::Milliseconds, opened.milliseconds());
        Ok(())
    }

    /// Closes and opens with next to no cache.
    pub(super) fn reopen_cold(&mut self) -> Result<()> {
        self.close()?;
        let setup = self.setup();
        self.open(LsmSetup { cache_bytes: setup.cache_bytes * 10 / COLD_SHARE, ..setup })
    }

    /// Rows of the bytes on the disk, relative to those of `entries` and to their size after LZ4.
    pub(super) fn space(&mut self, when: &str, entries: u64) -> Result<()> {
        let Some(Space { data_bytes, log_bytes }) = E::space(self.path)? else { return Ok(()) };
        let all = disk_bytes(self.path)?;
        ensure(all >= data_bytes, || "a file grew while the disk was looked at".to_owned())?;
        let lz4_bytes = self.lz4_bytes as f64 * entries as f64 / self.set.entries as f64;
        let user_bytes = self.user_bytes(entries) as f64;
        self.add(&format!("space.{when}.vs_user"), Unit::Share, data_bytes as f64 / user_bytes);
        self.add(&format!("space.{when}.vs_lz4"), Unit::Share, data_bytes as f64 / lz4_bytes);
        self.add(&format!("space.{when}.logs"), Unit::Mebibytes, log_bytes as f64 / MEBIBYTE);
        Ok(())
    }
}

/// Bytes of all keys and values after LZ4, in key order.
fn lz4_bytes(data: &Data, entries: u64) -> u64 {
    let (mut piece, mut total) = (Vec::with_capacity(PIECE_BYTES + 4096), 0);
    for index in data.in_key_order(entries) {
        piece.extend_from_slice(&data.key(index));
        piece.extend_from_slice(data.value(index, 0));
        if piece.len() >= PIECE_BYTES {
            total += lz4_flex::block::compress(&piece).len() as u64;
            piece.clear();
        }
    }
    total + lz4_flex::block::compress(&piece).len() as u64
}
