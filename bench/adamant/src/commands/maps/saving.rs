//! Many inserts into a B-tree in one transaction, with and without the merging of saved ranges.
//!
//! Purpose: measures the benefit of noting each byte only once in a transaction. This cannot be
//! switched off in the heap, where the written bytes are masks over lines, which merge by nature.
//! So "off" is a [`Write`] in front of the transaction that saves the old bytes of every range that
//! a change requests, whether they were saved before or not, as a log without a set of ranges does.

use std::mem::size_of;

use adamant_heap::{Heap, Ptr, Read, Transaction, Write};
use adamant_trees::{Btree, OrderedMap};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::ground::bytes_of;
use super::settings::Settings;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::thread_seconds;
use crate::harness::place::{self, DURABILITY, ENGINE};
use crate::harness::report::{Report, Unit};

/// Inserts for each pair of the other rows.
const INSERTS_EACH: u64 = 5;
/// Odd, so that different numbers give different keys.
const SCRAMBLER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A transaction, and the old bytes of every range written in it.
struct Saving<'t, 'h> {
    tx: &'t mut Transaction<'h>,
    /// For each range: block, start, bytes, and the bytes.
    log: Vec<u8>,
}

impl Saving<'_, '_> {
    fn save(&mut self, block: u64, at: usize, len: usize) -> adamant_heap::Result<()> {
        let old = self.tx.block(block)?.get(at..at + len).unwrap_or_default();
        for word in [block, at as u64, len as u64] {
            self.log.extend_from_slice(&word.to_le_bytes());
        }
        self.log.extend_from_slice(old);
        Ok(())
    }
}

impl Read for Saving<'_, '_> {
    fn block(&self, block: u64) -> adamant_heap::Result<&[u8]> {
        self.tx.block(block)
    }

    fn prefetch(&self, offset: u64) {
        self.tx.prefetch(offset);
    }
}

impl Write for Saving<'_, '_> {
    fn reserve(&mut self, bytes: u64) -> adamant_heap::Result<u64> {
        self.tx.reserve(bytes)
    }

    fn write(&mut self, block: u64, at: usize, len: usize) -> adamant_heap::Result<&mut [u8]> {
        self.save(block, at, len)?;
        self.tx.write(block, at, len)
    }

    fn write_as<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        ptr: Ptr<T>,
    ) -> adamant_heap::Result<&mut T> {
        self.save(ptr.offset(), 0, size_of::<T>())?;
        self.tx.write_as(ptr)
    }

    fn update_u64(&mut self, block: u64, at: usize, value: u64) -> adamant_heap::Result<()> {
        self.save(block, at, size_of::<u64>())?;
        self.tx.update_u64(block, at, value)
    }

    fn free(&mut self, block: u64) -> adamant_heap::Result<()> {
        self.tx.free(block)
    }
}

/// Adds `saving.on`, `saving.off`, their ratio, and the bytes of the log for an insert.
pub(super) fn measure(settings: &Settings, report: &mut Report) -> Result<()> {
    let inserts = INSERTS_EACH * settings.pairs;
    let mut add = |row: &str, unit: Unit, figure: f64| {
        report.add(&format!("saving.{row}"), ENGINE, unit, inserts, figure);
    };
    let (on, _) = inserts_all(settings, inserts, false)?;
    let (off, bytes) = inserts_all(settings, inserts, true)?;
    add("on", Unit::Nanoseconds, on);
    add("off", Unit::Nanoseconds, off);
    add("off.bytes", Unit::Bytes, bytes);
    add("on.by_off", Unit::Share, on / off);
    Ok(())
}

/// Inserts random keys in one transaction; nanoseconds, and bytes of the log, for each.
fn inserts_all(settings: &Settings, inserts: u64, saves: bool) -> Result<(f64, f64)> {
    let directory = place::work(settings.path.as_deref())?;
    let heap = place::open(&directory.path().join("heap"))?;
    let start = thread_seconds();
    let (map, bytes) = insert_in_one(&heap, inserts, saves)?;
    let seconds = thread_seconds() - start;
    let view = heap.view()?;
    ensure(map.check(&view)?.pairs == inserts, || "pairs are missing".into())?;
    drop(view);
    heap.close()?;
    Ok((seconds * 1e9 / inserts as f64, bytes as f64 / inserts as f64))
}

fn insert_in_one(heap: &Heap, inserts: u64, saves: bool) -> Result<(Btree, usize)> {
    heap.transaction(DURABILITY, |tx| {
        let map = Btree::create(tx)?;
        if !saves {
            insert_random(tx, map, inserts)?;
            return Ok((map, 0));
        }
        let mut saving = Saving { tx, log: Vec::new() };
        insert_random(&mut saving, map, inserts)?;
        Ok((map, saving.log.len()))
    })
}

fn insert_random<W: Write>(tx: &mut W, map: Btree, inserts: u64) -> Result<()> {
    for number in 1..=inserts {
        // A multiplication alone makes steps of one length, which are no random keys.
        let key = number.wrapping_mul(SCRAMBLER).swap_bytes().wrapping_mul(SCRAMBLER);
        let replaced = map.insert(tx, &bytes_of(key), &number.to_le_bytes())?;
        ensure(!replaced, || "a key was there".into())?;
    }
    Ok(())
}
