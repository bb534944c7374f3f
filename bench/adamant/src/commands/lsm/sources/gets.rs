//! Random reads of one table: values of 128 B and 1 KiB, blocks of 4 and 32 KiB.
//!
//! Rows: `sources.get.uncached`, where every block is read, verified and decompressed;
//! `sources.get.slice` and `sources.get.arc`, where all blocks are in the cache, and a value is
//! handed out as a part of its block, or copied into an `Arc<[u8]>`. Blocks are 4 KiB there.

use std::hint::black_box;
use std::sync::Arc;

use adamant_lsm::Table;
use adamant_slice::Slice;

use super::ground::{NAME, Place, cache, timed};
use crate::harness::data::{Data, Distribution, draw};
use crate::harness::error::{Result, ensure};
use crate::harness::measure::Measured;

const BLOCKS: [(&str, usize); 2] = [("4KiB", 4 << 10), ("32KiB", 32 << 10)];
const VALUE_BYTES: [usize; 2] = [128, 1024];
/// Capacities for nothing, and for everything.
const NO_CACHE: u64 = 1;
const LARGE_CACHE: u64 = 8 << 30;

pub(super) fn measure(place: &mut Place<'_>) -> Result<()> {
    let pairs = place.settings.pairs;
    let mut number = 0;
    for value_bytes in VALUE_BYTES {
        let data = Data::half_compressible(place.seed, value_bytes);
        for (name, block_bytes) in BLOCKS {
            number += 1;
            place.write_table(number, block_bytes, (&data, 0..pairs), |_| value_bytes)?;
            let table = place.open_table(number, &cache(NO_CACHE))?;
            let read = gets(place, &table, &data, |value| value)?;
            let row = format!("sources.get.uncached.{value_bytes}.{name}");
            place.report.add_rate(&row, NAME, pairs, read);
        }
        let table = place.open_table(number - 1, &cache(LARGE_CACHE))?;
        gets(place, &table, &data, |value| value)?;
        let sliced = gets(place, &table, &data, |value| value)?;
        let copied = gets(place, &table, &data, |value| Arc::<[u8]>::from(&value[..]))?;
        for (name, measured) in [("slice", sliced), ("arc", copied)] {
            let row = format!("sources.get.{name}.{value_bytes}");
            place.report.add_rate(&row, NAME, pairs, measured);
        }
    }
    Ok(())
}

/// As many gets as the settings say.
fn gets<T: AsRef<[u8]>>(
    place: &Place<'_>,
    table: &Table,
    data: &Data,
    hand_out: impl Fn(Slice) -> T,
) -> Result<Measured> {
    let settings = place.settings;
    let indices = draw(Distribution::Uniform, settings.pairs, settings.reads, place.seed);
    let keys: Vec<_> = indices.iter().map(|&index| data.key(index)).collect();
    let (bytes, measured) = timed(settings.reads, || {
        let mut bytes = 0;
        for key in &keys {
            if let Some(version) = table.get(key, u64::MAX)? {
                bytes += black_box(hand_out(version.value)).as_ref().len();
            }
        }
        Ok(bytes)
    })?;
    let expected = keys.len() * data.value_bytes();
    ensure(bytes == expected, || format!("got {bytes} bytes of {expected}"))?;
    Ok(measured)
}
