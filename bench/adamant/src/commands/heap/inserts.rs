//! A hash table with chains: many inserts in one transaction against a transaction for each.

use adamant_heap::{Durability, Heap, Read, Transaction, Write};

use crate::commands::heap::ground::{Ground, OBJECT_BYTES};
use crate::harness::error::{Result, ensure};
use crate::harness::report::Unit;

/// Maximum average length of a chain.
const CHAIN: u64 = 4;
/// Bytes of a page of buckets, and its number of buckets: tables consist of blocks that can be
/// changed in a copy.
const PAGE_BYTES: u64 = 4_096;
const PAGE_BUCKETS: u64 = PAGE_BYTES / 8;
/// Bytes of an entry that are written: its key, the offset of the next, a word of value.
const ENTRY_BYTES: usize = 64;

/// All rows of this group.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let count = ground.settings.inserts;
    let each = insert_all(ground, "inserts.each", false)?;
    let together = insert_all(ground, "inserts.together", true)?;
    ground.add("inserts.speedup", Unit::Speedup, count, each / together);
    Ok(())
}

/// Inserts all keys into a new table, in one transaction or in one for each; returns the seconds.
fn insert_all(ground: &mut Ground<'_>, row: &str, together: bool) -> Result<f64> {
    let count = ground.settings.inserts;
    let durability = ground.durability();
    let buckets = count.div_ceil(CHAIN).next_power_of_two().max(PAGE_BUCKETS);
    let heap = ground.empty_heap()?;
    let pages = ground.fill(&heap, buckets / PAGE_BUCKETS, PAGE_BYTES, true)?;
    let table = Table { pages, mask: buckets - 1 };
    table.clear(&heap, durability)?;
    let seconds = ground.timed(&heap, row, count, || {
        if together {
            return heap.transaction(durability, |transaction| {
                (0..count).try_for_each(|key| table.insert(transaction, key))
            });
        }
        (0..count).try_for_each(|key| {
            heap.transaction(durability, |transaction| table.insert(transaction, key))
        })
    })?;
    let found = table.entries(&heap)?;
    ensure(found == count, || format!("{row}: {found} of {count} entries are in the table"))?;
    ground.finish(heap)?;
    Ok(seconds)
}

/// A hash table: words that are offsets of the first entries of chains, in pages.
struct Table {
    pages: Vec<u64>,
    mask: u64,
}

impl Table {
    /// The page of a bucket, and the offset in it.
    fn place(&self, bucket: u64) -> (u64, usize) {
        let page = self.pages[(bucket / PAGE_BUCKETS) as usize];
        (page, (bucket % PAGE_BUCKETS * 8) as usize)
    }

    fn clear(&self, heap: &Heap, durability: Durability) -> Result<()> {
        heap.transaction(durability, |transaction| {
            self.pages.iter().try_for_each(|&page| {
                transaction.write(page, 0, PAGE_BYTES as usize)?.fill(0);
                Ok(())
            })
        })
    }

    fn insert(&self, transaction: &mut Transaction<'_>, key: u64) -> Result<()> {
        let scrambled = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (page, at) = self.place((scrambled ^ (scrambled >> 32)) & self.mask);
        let first = word(transaction, page, at)?;
        let entry = transaction.reserve(OBJECT_BYTES)?;
        let bytes = transaction.write(entry, 0, ENTRY_BYTES)?;
        bytes.fill(0);
        bytes[..8].copy_from_slice(&key.to_le_bytes());
        bytes[8..16].copy_from_slice(&first.to_le_bytes());
        bytes[16..24].copy_from_slice(&key.to_le_bytes());
        Ok(transaction.update_u64(page, at, entry)?)
    }

    fn entries(&self, heap: &Heap) -> Result<u64> {
        let view = heap.view()?;
        let mut found = 0;
        for bucket in 0..=self.mask {
            let (page, at) = self.place(bucket);
            let mut next = word(&view, page, at)?;
            while next != 0 {
                found += 1;
                next = word(&view, next, 8)?;
            }
        }
        Ok(found)
    }
}

/// The word at offset `at` of a block.
fn word(heap: &impl Read, block: u64, at: usize) -> Result<u64> {
    let bytes = heap.block(block)?.get(at..).and_then(|rest| rest.first_chunk::<8>());
    Ok(u64::from_le_bytes(*bytes.ok_or("a block is shorter than its words")?))
}
