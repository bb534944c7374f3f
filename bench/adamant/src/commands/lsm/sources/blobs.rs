//! Zipfian reads of ten values in a blob file, all of them in the cache: the time of a read does
//! not depend on their size.
//!
//! Rows: `sources.blob.4KiB`, `.64KiB`, `.1MiB`.

use std::hint::black_box;
use std::sync::Arc;

use adamant_lsm::{BlobFile, BlobOptions, BlobWriter, Compression};

use super::ground::{NAME, Place, cache, identity, timed};
use crate::harness::data::{Data, Distribution, draw};
use crate::harness::error::{Result, ensure};
use crate::harness::report::Unit;

const VALUES: u64 = 10;
const SIZES: [(&str, usize); 3] = [("4KiB", 4 << 10), ("64KiB", 64 << 10), ("1MiB", 1 << 20)];
/// Enough for all.
const CACHE_BYTES: u64 = 256 << 20;

pub(super) fn measure(place: &mut Place<'_>) -> Result<()> {
    let reads = place.settings.reads;
    let choices = draw(Distribution::Zipfian, VALUES, reads, place.seed);
    for (number, (name, bytes)) in (1..).zip(SIZES) {
        let data = Data::half_compressible(place.seed, bytes);
        let options = BlobOptions { compression: Compression::Lz4 };
        let mut writer = BlobWriter::create(&place.directory, identity(number), options)?;
        let mut keyed = Vec::new();
        for index in 0..VALUES {
            let key = data.key(index);
            let pointer = writer.add(&key, data.value(index, 0))?;
            keyed.push((key, pointer));
        }
        writer.finish()?;
        let file = BlobFile::open(
            &place.directory,
            identity(number),
            &cache(CACHE_BYTES),
            &Arc::default(),
        )?;
        for (index, (key, pointer)) in (0..).zip(&keyed) {
            let is_right = file.get(pointer, key)?[..] == *data.value(index, 0);
            ensure(is_right, || format!("value {index} of {bytes} bytes is another one"))?;
        }
        let (total, measured) = timed(reads, || {
            let mut total = 0;
            for &index in &choices {
                let (key, pointer) = &keyed[index as usize];
                total += black_box(file.get(pointer, key)?).len() as u64;
            }
            Ok(total)
        })?;
        let nanoseconds = measured.seconds * 1e9 / reads as f64;
        let expected = reads * bytes as u64;
        ensure(total == expected, || format!("got {total} bytes of {expected}"))?;
        let row = format!("sources.blob.{name}");
        place.report.add(&row, NAME, Unit::Nanoseconds, VALUES, nanoseconds);
    }
    Ok(())
}
