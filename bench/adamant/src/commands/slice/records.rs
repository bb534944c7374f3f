//! Reading a block of records, each with its length before it: a table of a log-structured store
//! does this with every block, and byteview was introduced with this measurement.

use std::hint::black_box;
use std::io::{self, Read};

use crate::commands::slice::ground::Ground;
use crate::commands::slice::string::ByteString;
use crate::harness::error::{Result, ensure};

/// Lengths of records that all types but the plain ones keep inline.
const INLINE_BYTES: std::ops::RangeInclusive<usize> = 8..=20;
/// Lengths of longer ones, as in the report on byteview.
const LONGER_BYTES: std::ops::RangeInclusive<usize> = 24..=150;

/// A block: little-endian lengths of 4 bytes, and as many bytes after each.
fn block(count: usize, lengths: std::ops::RangeInclusive<usize>) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut block = Vec::new();
    for _ in 0..count {
        let len = random.usize(lengths.clone());
        block.extend((len as u32).to_le_bytes());
        block.extend((0..len).map(|_| random.u8(..)));
    }
    block
}

fn read_len(reader: &mut &[u8]) -> io::Result<usize> {
    let mut len = [0; 4];
    reader.read_exact(&mut len)?;
    Ok(u32::from_le_bytes(len) as usize)
}

/// All rows of this group.
pub(super) fn measure<S: ByteString>(ground: &mut Ground<'_>) -> Result<()> {
    let count = ground.settings.records;
    let (inline, longer) = (block(count, INLINE_BYTES), block(count, LONGER_BYTES));
    reads(ground, "block.inline", &inline, |reader, len| S::read(reader, len))?;
    reads(ground, "block.longer", &longer, |reader, len| S::read(reader, len))?;
    reads(ground, "block.longer.buffered", &longer, |reader, len| S::read_buffered(reader, len))
}

/// Reads all records of a block and drops them.
fn reads<S: ByteString>(
    ground: &mut Ground<'_>,
    row: &str,
    block: &[u8],
    read: impl Fn(&mut &[u8], usize) -> io::Result<S>,
) -> Result<()> {
    let count = ground.settings.records;
    let mut strings: Vec<S> = Vec::with_capacity(count);
    let mut failed = false;
    ground.timed(row, count as u64, || {
        strings.clear();
        let mut reader: &[u8] = black_box(block);
        while !reader.is_empty() {
            match read_len(&mut reader).and_then(|len| read(&mut reader, len)) {
                Ok(string) => strings.push(string),
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        black_box(&strings);
    });
    let bytes: usize = strings.iter().map(|string| string.bytes().len() + 4).sum();
    ensure(!failed && strings.len() == count && bytes == block.len(), || {
        format!("{} did not read the whole block", S::NAME)
    })
}
