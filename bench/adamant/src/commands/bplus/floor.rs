//! The lower bound for a crash-safe map: plain stores of records into the same memory.
//!
//! Purpose: pages touched for the first time; records appended and made durable by one fence each,
//! into such pages and into touched ones; the same with a second fence for a commit word. With
//! these rates, those of a tree can be rated on a machine that is faster or slower than the one for
//! which the targets were set.

use adamant_heap::{Flushing, OsDirectory};
use adamant_medium::bare::Bare;

use crate::commands::bplus::records::{Order, Records};
use crate::commands::bplus::settings::Settings;
use crate::harness::data::KEY_BYTES;
use crate::harness::error::Result;
use crate::harness::measure::thread_seconds;
use crate::harness::place;
use crate::harness::report::{Report, Unit};

/// The engine name of the rows.
pub(super) const NAME: &str = "floor";
/// Space is allocated in such steps, as in a heap.
const STEP_BYTES: u64 = 2 << 20;
/// A word at the start of the memory, alone in its line.
const WORD_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4096;

/// Adds the rows of a round.
pub(super) fn measure(settings: &Settings, value_bytes: usize, report: &mut Report) -> Result<()> {
    let directory = place::work(settings.path.as_deref())?;
    let medium = OsDirectory::open(directory.path())?;
    let records = Records::new(Order::Sequential, value_bytes, 1);
    let record_bytes = (KEY_BYTES + value_bytes) as u64;
    let bytes = WORD_BYTES + settings.pairs * record_bytes;
    let mut timed = |row: &str, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
        let start = thread_seconds();
        work()?;
        let rate = settings.pairs as f64 / (thread_seconds() - start) / 1e3;
        let (row, unit) = (format!("{row}.{value_bytes}"), Unit::ThousandPerSecond);
        report.add(&row, NAME, unit, settings.pairs, rate);
        Ok(())
    };
    let mut touched = Bare::create(&medium, bytes, Flushing::Volatile)?;
    timed("touch", &mut || touch(&mut touched, bytes))?;
    drop(touched);
    let mut bare = Bare::create(&medium, bytes, Flushing::Volatile)?;
    for (row, is_cold, has_word) in [
        ("append.cold", true, false),
        ("append.1fence", false, false),
        ("append.2fences", false, true),
    ] {
        timed(row, &mut || append(&mut bare, &records, settings.pairs, is_cold, has_word))?;
    }
    Ok(())
}

/// A store into each page, and nothing else.
fn touch(bare: &mut Bare, bytes: u64) -> Result<()> {
    for at in (0..bytes).step_by(PAGE_BYTES as usize) {
        if at % STEP_BYTES == 0 {
            bare.back(at, STEP_BYTES.min(bytes - at))?;
        }
        bare.store(at, &[1]);
    }
    Ok(())
}

/// Appends all records, each made durable by itself.
fn append(
    bare: &mut Bare,
    records: &Records,
    pairs: u64,
    is_cold: bool,
    has_word: bool,
) -> Result<()> {
    let mut record = vec![0; KEY_BYTES + records.value_bytes()];
    let (mut at, mut backed) = (WORD_BYTES, 0);
    for index in 0..pairs {
        record[..KEY_BYTES].copy_from_slice(&records.key(index));
        record[KEY_BYTES..].copy_from_slice(records.value(index, 0));
        let end = at + record.len() as u64;
        while is_cold && backed < end {
            bare.back(backed, STEP_BYTES)?;
            backed += STEP_BYTES;
        }
        bare.store(at, &record);
        bare.fence();
        if has_word {
            bare.store(0, &end.to_le_bytes());
            bare.fence();
        }
        at = end;
    }
    Ok(())
}
