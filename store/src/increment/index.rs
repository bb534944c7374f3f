//! The file of an increment: its header, its index and its blocks.
//!
//! Purpose: the one place that knows how they are read and verified.
//! Invariants: what the file says of itself is believed only as far as its length goes, so no
//! memory is taken for more than it has; damage is an error that names the file. A block is
//! verified each time that it is read.
//! Thread safety: nothing changes after the opening.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use adamant_medium::error::{Error as MediumError, Result as MediumResult};
use adamant_medium::storage::File;
use adamant_wire::checksum::crc32c;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Error, Result};
use crate::increment::layout::{
    BLOCK_BYTES, FileEntry, Header, LinkIdentity, MAGIC, RunEntry, VERSION, ZERO_SLOT,
};

/// Bytes of the header before its checksum.
const HEADER_SUMMED_BYTES: usize = size_of::<Header>() - size_of::<u32>();
/// The most blocks of a pool file, and slots of an increment: 16 TiB.
pub(super) const BLOCKS_MAX: u64 = u32::MAX as u64 - 2;

/// An increment's file, with its index in memory.
#[derive(Debug)]
pub(super) struct Index {
    file: Arc<dyn File>,
    pub(super) header: Header,
    pub(super) parent_name: String,
    runs: Vec<RunEntry>,
    /// Those of the slots.
    checksums: Vec<u32>,
    pub(super) files: Vec<FileEntry>,
}

impl Index {
    /// Reads header and index.
    ///
    /// # Errors
    /// [`Error::Medium`] of kind `InvalidData` for a file that is no increment, or a damaged one;
    /// those of the storage backend.
    pub(super) fn read(file: Arc<dyn File>) -> Result<Self> {
        let mut bytes = [0; BLOCK_BYTES as usize];
        let len = file.len()?;
        file.read_at(&mut bytes, 0)?;
        let header = check_header(&*file, &bytes)?;
        let start = BLOCK_BYTES * (header.slots.get().min(BLOCKS_MAX) + 1);
        let parts = [
            (header.name_bytes.get().into(), 1),
            (header.runs.get(), size_of::<RunEntry>()),
            (header.slots.get(), size_of::<u32>()),
            (header.files.get(), size_of::<FileEntry>()),
        ];
        let index_bytes = |sum: u64, (count, bytes): (u64, usize)| {
            count.checked_mul(bytes as u64).and_then(|bytes| bytes.checked_add(sum))
        };
        let expected = parts.into_iter().try_fold(0, index_bytes);
        let expected = expected.and_then(|bytes| bytes.checked_add(start));
        if expected != Some(len) || header.blocks.get().max(header.slots.get()) > BLOCKS_MAX {
            let what = format!("expected {expected:?} bytes by its header, found {len}");
            return Err(damaged(&*file, len, what).into());
        }
        let mut bytes = vec![0; (len - start) as usize];
        file.read_at(&mut bytes, start)?;
        let (expected, found) = (header.index_checksum.get(), crc32c(0, &bytes));
        if expected != found {
            return Err(damaged(&*file, start, checksums("an index", expected, found)).into());
        }
        let (name, rest) = bytes.split_at(header.name_bytes.get() as usize);
        let (runs, rest) = rest.split_at(header.runs.get() as usize * size_of::<RunEntry>());
        let (checksums, files) = rest.split_at(header.slots.get() as usize * size_of::<u32>());
        let index = Self {
            parent_name: String::from_utf8_lossy(name).into_owned(),
            runs: entries(runs),
            checksums: checksums.as_chunks().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect(),
            files: entries(files),
            file,
            header,
        };
        index.check_runs()?;
        Ok(index)
    }

    /// Fails unless the runs ascend and lie within the pool and the slots.
    fn check_runs(&self) -> Result<()> {
        let mut at = 0;
        for run in &self.runs {
            let (first, count, slot) = (run.first.get(), run.count.get(), run.slot.get());
            let end = first.checked_add(count).filter(|end| *end <= self.header.blocks.get());
            let last = slot.checked_add(count);
            let has_slots = last.is_some_and(|last| last <= self.header.slots.get());
            match end {
                Some(end) if first >= at && count > 0 && (slot == ZERO_SLOT || has_slots) => {
                    at = end
                }
                _ => {
                    let what = format!(
                        "expected runs that ascend within {} blocks, found {run:?}",
                        self.header.blocks
                    );
                    return Err(damaged(&*self.file, 0, what).into());
                }
            }
        }
        Ok(())
    }

    /// The file.
    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// The identity by which its children know it.
    pub(super) fn identity(&self) -> LinkIdentity {
        identity_of(&self.header)
    }

    /// Blocks of the pool, and the slot of the first, if they are not zeros.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Range<u64>, Option<u64>)> {
        self.runs.iter().map(|run| {
            let range = run.first.get()..run.first.get() + run.count.get();
            (range, Some(run.slot.get()).filter(|slot| *slot != ZERO_SLOT))
        })
    }

    /// Reads whole blocks from consecutive slots.
    ///
    /// # Errors
    /// Of kind `InvalidData` for a damaged one; those of the storage backend.
    pub(super) fn read_blocks(&self, bytes: &mut [u8], slot: u64, block: u64) -> MediumResult<()> {
        self.file.read_at(bytes, position_of(slot))?;
        for (index, bytes) in (0..).zip(bytes.chunks(BLOCK_BYTES as usize)) {
            let expected = self.checksums.get((slot + index) as usize).copied().unwrap_or(0);
            let found = block_checksum(&self.header.uuid, block + index, bytes);
            if expected != found {
                let at = position_of(slot + index);
                return Err(damaged(&*self.file, at, checksums("a block", expected, found)));
            }
        }
        Ok(())
    }
}

/// The identity by which an increment's children know it.
pub(super) fn identity_of(header: &Header) -> LinkIdentity {
    let Header { uuid, sequence, checksum, .. } = *header;
    LinkIdentity { uuid, checkpoint: 0.into(), sequence, checksum }
}

/// Where a slot lies in the file.
pub(super) fn position_of(slot: u64) -> u64 {
    BLOCK_BYTES * (slot + 1)
}

/// Checksum of a block of the pool file: not that of the same bytes at another place, or in another
/// increment.
pub(super) fn block_checksum(uuid: &[u8; 16], block: u64, bytes: &[u8]) -> u32 {
    crc32c(crc32c(crc32c(0, uuid), &block.to_le_bytes()), bytes)
}

/// Checksum of a header.
pub(super) fn header_checksum(header: &Header) -> u32 {
    crc32c(0, &header.as_bytes()[..HEADER_SUMMED_BYTES])
}

/// The error for damage in a file of a chain.
pub(super) fn damaged(file: &dyn File, offset: u64, what: String) -> MediumError {
    let words = format!("{what}; the backup is damaged: use another one");
    let source = io::Error::new(io::ErrorKind::InvalidData, words);
    MediumError::io("read", file.path(), Some(offset), 0, source)
}

fn checksums(what: &str, expected: u32, found: u32) -> String {
    format!("expected {what} with checksum {expected:#010x}, found {found:#010x}")
}

fn check_header(file: &dyn File, bytes: &[u8]) -> Result<Header> {
    let zeros = bytes.iter().skip(size_of::<Header>());
    let header = Header::read_from_prefix(bytes).ok().filter(|_| zeros.copied().all(is_zero));
    let Some((header, _)) = header else {
        return Err(damaged(file, 0, "expected a header, and zeros behind it".into()).into());
    };
    if header.magic != MAGIC {
        let (expected, found) = (MAGIC.escape_ascii(), header.magic.escape_ascii());
        return Err(damaged(file, 0, format!("expected {expected}, found {found}")).into());
    }
    let (expected, found) = (header.checksum.get(), header_checksum(&header));
    if expected != found {
        return Err(damaged(file, 0, checksums("a header", expected, found)).into());
    }
    if header.version.get() != VERSION || u64::from(header.block_bytes.get()) != BLOCK_BYTES {
        let found = format!(
            "an increment of format {} with blocks of {} bytes, and this version knows {VERSION} and \
             {BLOCK_BYTES}: use the version that made it",
            header.version, header.block_bytes
        );
        return Err(Error::NotAStore { path: file.path().into(), found });
    }
    Ok(header)
}

fn is_zero(byte: u8) -> bool {
    byte == 0
}

fn entries<T: FromBytes + IntoBytes + Immutable + KnownLayout + Unaligned + Copy>(
    bytes: &[u8],
) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).filter_map(|entry| T::read_from_bytes(entry).ok()).collect()
}

#[cfg(test)]
mod tests {
    use adamant_medium::memory::MemoryDirectory;
    use adamant_medium::storage::Directory;
    use zerocopy::FromZeros;

    use super::*;

    /// The file of an increment with these numbers and this index, and checksums that match.
    fn file_of(mut header: Header, index: &[u8], len: u64) -> Arc<dyn File> {
        let file = MemoryDirectory::new().create("increment").unwrap();
        header.magic = MAGIC;
        header.version = VERSION.into();
        header.block_bytes = (BLOCK_BYTES as u32).into();
        header.index_checksum = crc32c(0, index).into();
        header.checksum = header_checksum(&header).into();
        file.set_len(len).unwrap();
        file.write_at(index, len - index.len() as u64).unwrap();
        file.write_at(header.as_bytes(), 0).unwrap();
        file
    }

    /// Byte by byte as `docs/format/increment.md` has it, without the structures of `layout.rs`.
    #[test]
    fn the_format_is_that_of_its_page() {
        let block = [7; BLOCK_BYTES as usize];
        let le =
            |numbers: &[u64]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>();
        let checksum = crc32c(crc32c(crc32c(0, &[5; 16]), &3_u64.to_le_bytes()), &block);
        let index = [
            &b"monday"[..],
            &le(&[3, 1, 0, 4, 2, u64::MAX]),
            &checksum.to_le_bytes(),
            &le(&[17, 99]),
            &[1, 0],
        ]
        .concat();
        let mut bytes = [&b"ADMNTINC\x01\0\0\0\0\x10\0\0"[..], &[5; 16]].concat();
        bytes.extend([&[9; 16][..], &le(&[2, 40]), &[1, 0, 0, 0]].concat());
        bytes.extend(le(&[41, 6, 1, 2, 1]));
        bytes.extend([6, 0, 0, 0]);
        bytes.extend(crc32c(0, &index).to_le_bytes());
        bytes.extend(crc32c(0, &bytes).to_le_bytes());
        assert_eq!(bytes.len(), 120);
        bytes.resize(4096, 0);
        let file = MemoryDirectory::new().create("increment").unwrap();
        file.write_at(&[&bytes[..], &block, &index].concat(), 0).unwrap();
        let found = Index::read(file).unwrap();
        assert_eq!((found.header.sequence.get(), found.header.blocks.get()), (41, 6));
        let parent = found.header.parent;
        assert_eq!((parent.uuid, parent.checkpoint.get(), parent.sequence.get()), ([9; 16], 2, 40));
        assert_eq!((parent.checksum.get(), &*found.parent_name), (1, "monday"));
        let runs: Vec<_> = found.runs().collect();
        assert_eq!(runs, [(3..4, Some(0)), (4..6, None)]);
        let [file] = &found.files[..] else { panic!("{:?}", found.files) };
        assert_eq!(
            (file.number.get(), file.bytes.get(), file.folder, file.is_here),
            (17, 99, 1, 0)
        );
        let mut read = [0; BLOCK_BYTES as usize];
        found.read_blocks(&mut read, 0, 3).unwrap();
        assert_eq!(read, block);
        found.read_blocks(&mut read, 0, 4).unwrap_err();
    }

    /// Files that somebody made: numbers that add up or not, runs that lead anywhere.
    #[test]
    fn an_index_is_believed_as_far_as_its_file_goes() {
        let mut random = fastrand::Rng::with_seed(1);
        let (mut opened, mut refused) = (0, 0);
        for _ in 0..20_000 {
            let any = |random: &mut fastrand::Rng, near: u64| match random.u32(..12) {
                0 => random.u64(..),
                1 => u64::MAX - random.u64(..9),
                2 => random.u64(..near + 9),
                _ => near,
            };
            let (slots, runs, files) = (random.u64(..4), random.u64(..4), random.u64(..3));
            let mut index = b"parent".to_vec();
            let (mut first, mut slot) = (0, 0);
            for _ in 0..runs {
                let run = RunEntry {
                    first: any(&mut random, first).into(),
                    count: any(&mut random, 1).into(),
                    slot: any(&mut random, slot).into(),
                };
                (first, slot) = (first + 2, slot + 1);
                index.extend_from_slice(run.as_bytes());
            }
            index.resize(index.len() + (slots * 4 + files * 18) as usize, 0);
            let mut header = Header::new_zeroed();
            header.blocks = any(&mut random, 8).into();
            header.slots = any(&mut random, slots).into();
            header.runs = any(&mut random, runs).into();
            header.files = any(&mut random, files).into();
            header.name_bytes = 6.into();
            let file = file_of(header, &index, position_of(slots) + index.len() as u64);
            let Ok(index) = Index::read(file) else {
                refused += 1;
                continue;
            };
            opened += 1;
            for (range, slot) in index.runs() {
                assert!(range.end <= index.header.blocks.get());
                let Some(slot) = slot else { continue };
                let mut bytes = vec![0; BLOCK_BYTES as usize * (range.end - range.start) as usize];
                // No checksum here is that of a block.
                index.read_blocks(&mut bytes, slot, range.start).unwrap_err();
            }
        }
        assert!(opened > 1000 && refused > 1000, "{opened} and {refused}");
    }
}
