//! The file of a savepoint: its name, its moment, and the checksums that the pool's pages had.
//!
//! Purpose: written once, whole and durable before it has its name.
//! Invariants: everything that is read of it is verified.
//! Thread safety: nothing changes after opening.

use std::sync::Arc;

use adamant_medium::storage::{Directory, File};
use adamant_wire::checksum::crc32c;
use adamant_wire::le;
use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::image::pool_file::PoolFile;
use crate::journal::savepoints::layout::{
    SAVEPOINT_MAGIC, SAVEPOINT_NAME_BYTES_MAX, SAVEPOINT_VERSION, SavepointHeader,
};
use crate::journal::savepoints::pool_checksums;
use crate::layout::{DESCRIPTOR_BYTES, PAGE_BYTES, TABLE_BASE};

/// The bytes of what is attached at most.
const ATTACHED_BYTES_MAX: u64 = 1 << 30;

/// What a savepoint is made from.
#[derive(Debug)]
pub(in crate::journal) struct NewSavepoint<'n> {
    pub(in crate::journal) name: &'n str,
    pub(in crate::journal) number: u64,
    pub(in crate::journal) sequence: u64,
    pub(in crate::journal) pages: u64,
    pub(in crate::journal) made_ms: u64,
    pub(in crate::journal) attached: &'n [u8],
}

/// A savepoint that is there and whole, but for its blocks, each of which is verified when it is
/// read.
#[derive(Clone, Debug)]
pub(in crate::journal) struct SavepointFile {
    pub(in crate::journal) name: String,
    pub(in crate::journal) number: u64,
    pub(in crate::journal) uuid: [u8; 16],
    pub(in crate::journal) sequence: u64,
    pub(in crate::journal) pages: u64,
    pub(in crate::journal) made_ms: u64,
    pub(in crate::journal) attached: Vec<u8>,
    /// Those of the blocks of checksums, 4 bytes each.
    sums: Vec<u8>,
    file: Arc<dyn File>,
    pub(in crate::journal) bytes: u64,
}

/// Whether a pool of some data pages has the page at a heap offset.
pub(in crate::journal) fn covers(pages: u64, page: u64) -> bool {
    match page.checked_sub(TABLE_BASE) {
        Some(table) => table < pages * DESCRIPTOR_BYTES,
        None => page < pages * PAGE_BYTES,
    }
}

/// Writes the file of a savepoint, durably but for its name.
///
/// # Errors
/// Those of the medium.
pub(in crate::journal) fn write(
    directory: &dyn Directory,
    file_name: &str,
    pool: &PoolFile,
    new: &NewSavepoint<'_>,
) -> Result<()> {
    let blocks = pool_checksums::read(pool, new.pages)?;
    let mut index = [new.name.as_bytes(), new.attached].concat();
    for block in blocks.chunks(PAGE_BYTES as usize) {
        index.extend_from_slice(&crc32c(0, block).to_le_bytes());
    }
    let mut header = SavepointHeader {
        magic: SAVEPOINT_MAGIC,
        version: SAVEPOINT_VERSION.into(),
        name_bytes: (new.name.len() as u32).into(),
        number: new.number.into(),
        uuid: *pool.uuid(),
        sequence: new.sequence.into(),
        pages: new.pages.into(),
        made_ms: new.made_ms.into(),
        attached_bytes: (new.attached.len() as u64).into(),
        index_checksum: crc32c(0, &index).into(),
        checksum: 0.into(),
    };
    header.checksum = checksum(&header).into();
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(PAGE_BYTES as usize, 0);
    bytes.extend_from_slice(&index);
    bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES as usize), 0);
    bytes.extend_from_slice(&blocks);
    let file = directory.create(file_name)?;
    file.write_at(&bytes, 0)?;
    Ok(file.sync()?)
}

fn checksum(header: &SavepointHeader) -> u32 {
    let bytes = header.as_bytes();
    crc32c(0, &bytes[..bytes.len() - size_of::<u32>()])
}

impl SavepointFile {
    /// Opens the file of the savepoint with a number, of a pool with this UUID.
    ///
    /// # Errors
    /// `Error::Damaged` if it is none, of another pool, or not whole; those of the medium.
    pub(in crate::journal) fn open(
        file: Arc<dyn File>,
        number: u64,
        uuid: &[u8; 16],
    ) -> Result<Self> {
        let bytes = file.len()?;
        let mut head = [0; size_of::<SavepointHeader>()];
        if bytes < PAGE_BYTES {
            return Err(damaged(&*file, 0, "a whole header"));
        }
        file.read_at(&mut head, 0)?;
        let Ok(header) = SavepointHeader::read_from_bytes(&head) else {
            return Err(damaged(&*file, 0, "a header"));
        };
        if header.magic != SAVEPOINT_MAGIC || header.checksum.get() != checksum(&header) {
            return Err(damaged(&*file, 0, "a header with its checksum"));
        }
        if header.version.get() > SAVEPOINT_VERSION {
            let what = format!(
                "expected a savepoint of format {SAVEPOINT_VERSION} at most, found format {}: what \
                 has to be kept for it while the store is written is not known here; open the \
                 store for reading only, or with the version of this program that wrote it, which \
                 can delete it",
                header.version
            );
            return Err(Error::Unsupported { file: file.path().into(), what });
        }
        if header.uuid != *uuid {
            return Err(damaged(&*file, 24, "the UUID of this store's pool"));
        }
        let (pages, name_bytes) = (header.pages.get(), header.name_bytes.get() as usize);
        let blocks = pool_checksums::block_count(pages.min(1 << 40));
        let attached_bytes = header.attached_bytes.get().min(ATTACHED_BYTES_MAX);
        let index_bytes = name_bytes as u64 + attached_bytes + blocks * 4;
        let expected = index_end(index_bytes) + blocks * PAGE_BYTES;
        let is_plausible = name_bytes <= SAVEPOINT_NAME_BYTES_MAX && header.number.get() == number;
        if !is_plausible || bytes != expected {
            return Err(damaged(&*file, 0, "a header of this number, and all that it names"));
        }
        let mut index = vec![0; index_bytes as usize];
        file.read_at(&mut index, PAGE_BYTES)?;
        if crc32c(0, &index) != header.index_checksum.get() {
            return Err(damaged(&*file, PAGE_BYTES, "an index with its checksum"));
        }
        let sums = index.split_off(name_bytes + attached_bytes as usize);
        let attached = index.split_off(name_bytes);
        let Ok(name) = String::from_utf8(index) else {
            return Err(damaged(&*file, PAGE_BYTES, "a name in UTF-8"));
        };
        Ok(Self {
            name,
            number,
            uuid: header.uuid,
            sequence: header.sequence.get(),
            pages,
            made_ms: header.made_ms.get(),
            attached,
            sums,
            file,
            bytes,
        })
    }

    /// Reads the block of checksums that the pool file has at an offset.
    ///
    /// # Errors
    /// `Error::Damaged`; those of the medium.
    pub(in crate::journal) fn read_block(&self, offset: u64, block: &mut [u8]) -> Result<()> {
        let Some(number) = pool_checksums::block_at(offset, self.pages) else {
            block.fill(0);
            return Ok(());
        };
        let blocks = pool_checksums::block_count(self.pages);
        let at = self.bytes - (blocks - number) * PAGE_BYTES;
        self.file.read_at(block, at)?;
        match le::u32_at(&self.sums, number as usize * 4) == Some(crc32c(0, block)) {
            true => Ok(()),
            false => Err(damaged(&*self.file, at, "checksums of pages with their checksum")),
        }
    }

    /// Path of the file, for messages.
    pub(in crate::journal) fn path(&self) -> &std::path::Path {
        self.file.path()
    }
}

/// Where the blocks begin behind an index.
fn index_end(index_bytes: u64) -> u64 {
    (PAGE_BYTES + index_bytes).next_multiple_of(PAGE_BYTES)
}

fn damaged(file: &dyn File, offset: u64, expected: &str) -> Error {
    Error::Damaged {
        file: file.path().into(),
        offset,
        what: format!(
            "expected {expected}, found other bytes: this savepoint cannot be read; delete it, or \
             put the file back"
        ),
    }
}
