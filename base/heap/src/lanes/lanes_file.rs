//! The file of lanes: its header and its watermark.
//!
//! Purpose: make it, judge it, and say how far its entries are needed no more.
//! Invariants: the watermark only grows; all entries up to it are applied durably, or void.
//! Thread safety: one thread at a time writes the watermark (`shared.rs` has the lock).

use std::path::PathBuf;

use adamant_medium::persist::Persist;
use adamant_medium::storage::Directory;
use adamant_wire::checksum::crc32c;
use adamant_wire::mutants::is_planted;
use zerocopy::{FromBytes, IntoBytes};

use super::layout::{
    ENTRY_ALIGN, LANE_BYTES, LANE_BYTES_MAX, LANE_COUNT, LANE_COUNT_MAX, LANE_COUNT_MIN,
    LANES_HEAD_BYTES, LANES_MAGIC, LanesHeader, WATERMARK_OFFSET, watermark_of, watermark_word,
};
use super::mapped::Mapped;
use crate::error::{Error, Result};
use crate::image::Mapping;
use crate::layout::FORMAT_VERSION;

/// Name of the file of lanes.
pub(super) const LANES_NAME: &str = "lanes";
/// What to do about damage.
pub(super) const ADVICE: &str = "restore a backup, or let `adamant repair` save what can be read";
/// Bytes of the header before its checksum.
const SUMMED_BYTES: usize = size_of::<LanesHeader>() - size_of::<u32>();

/// The mapped file of lanes.
#[derive(Debug)]
pub(super) struct LanesFile {
    pub(super) mapped: Mapped,
    pub(super) lane_count: u32,
    pub(super) lane_bytes: u64,
    uuid: [u8; 16],
    path: PathBuf,
}

impl LanesFile {
    /// Makes the file, durably but for its name. One that an earlier creation left is replaced.
    ///
    /// # Errors
    /// Those of the medium, out of space among them.
    pub(super) fn create(directory: &dyn Directory, uuid: [u8; 16]) -> Result<()> {
        if directory.open(LANES_NAME)?.is_some() {
            directory.remove(LANES_NAME)?;
        }
        let file = directory.create(LANES_NAME)?;
        file.allocate(0, LANES_HEAD_BYTES + u64::from(LANE_COUNT) * LANE_BYTES)?;
        let mut header = LanesHeader {
            magic: LANES_MAGIC,
            version: FORMAT_VERSION.into(),
            lane_count: LANE_COUNT.into(),
            lane_bytes: LANE_BYTES.into(),
            uuid,
            checksum: 0.into(),
        };
        header.checksum = crc32c(0, &header.as_bytes()[..SUMMED_BYTES]).into();
        file.write_at(header.as_bytes(), 0)?;
        file.write_at(&watermark_word(&uuid, 0).to_le_bytes(), WATERMARK_OFFSET)?;
        Ok(file.sync()?)
    }

    /// Maps the file and judges it.
    ///
    /// # Errors
    /// `Error::Damaged` when it is missing or not what was written; those of the medium.
    pub(super) fn open(
        directory: &dyn Directory,
        uuid: [u8; 16],
        mapping: Mapping,
    ) -> Result<Self> {
        let path = directory.path().join(LANES_NAME);
        let damaged = |offset, what| Error::Damaged { file: path.clone(), offset, what };
        let Some(file) = directory.open(LANES_NAME)? else {
            let what =
                format!("expected the lanes of an undo journal, found no such file; {ADVICE}");
            return Err(damaged(0, what));
        };
        let mapped = Mapped::map(&file, mapping)?;
        let header = LanesHeader::read_from_prefix(mapped.bytes(0, LANES_HEAD_BYTES));
        let Ok((header, _)) = header else {
            let what = format!("expected at least {LANES_HEAD_BYTES} bytes; {ADVICE}");
            return Err(damaged(mapped.len(), what));
        };
        let expected = crc32c(0, &header.as_bytes()[..SUMMED_BYTES]);
        let found = header.checksum.get();
        let is_sound = found == expected || is_planted("checksum.lanes-header");
        if is_sound && header.magic != LANES_MAGIC {
            let (expected, found) = (LANES_MAGIC.escape_ascii(), header.magic.escape_ascii());
            let what =
                format!("expected lanes, which start with {expected}, found {found}; {ADVICE}");
            return Err(damaged(0, what));
        }
        if !is_sound {
            let what = format!(
                "expected a header of lanes with checksum {expected:#010x}, found {found:#010x}; \
                 {ADVICE}"
            );
            return Err(damaged(0, what));
        }
        let (lane_count, lane_bytes) = (header.lane_count.get(), header.lane_bytes.get());
        let is_known = header.version.get() == FORMAT_VERSION
            && header.uuid == uuid
            && (LANE_COUNT_MIN..=LANE_COUNT_MAX).contains(&lane_count)
            && (ENTRY_ALIGN..=LANE_BYTES_MAX).contains(&lane_bytes)
            && lane_bytes.is_multiple_of(ENTRY_ALIGN);
        let needed = LANES_HEAD_BYTES + u64::from(lane_count) * lane_bytes;
        if !is_known || mapped.len() < needed {
            let what = format!(
                "expected {LANE_COUNT_MIN} to {LANE_COUNT_MAX} lanes of pool {:032x} in format \
                 {FORMAT_VERSION}, found {} bytes, where {lane_count} lanes of {lane_bytes} bytes of pool \
                 {:032x} in format {} take {needed}; {ADVICE}",
                u128::from_le_bytes(uuid),
                mapped.len(),
                u128::from_le_bytes(header.uuid),
                header.version
            );
            return Err(damaged(0, what));
        }
        Ok(Self { mapped, lane_count, lane_bytes, uuid, path })
    }

    /// The identity of the pool that the file in a directory says it is of, if its header is whole.
    ///
    /// # Errors
    /// Those of the medium.
    pub(super) fn identity(directory: &dyn Directory) -> Result<Option<[u8; 16]>> {
        let Some(file) = directory.open(LANES_NAME)? else { return Ok(None) };
        let mut bytes = [0; size_of::<LanesHeader>()];
        if file.len()? < bytes.len() as u64 {
            return Ok(None);
        }
        file.read_at(&mut bytes, 0)?;
        let header = LanesHeader::read_from_bytes(&bytes).ok();
        let is_whole = |header: &LanesHeader| {
            header.magic == LANES_MAGIC
                && header.checksum.get() == crc32c(0, &header.as_bytes()[..SUMMED_BYTES])
        };
        Ok(header.filter(is_whole).map(|header| header.uuid))
    }

    /// Where a lane begins.
    pub(super) fn lane_offset(&self, lane: usize) -> u64 {
        LANES_HEAD_BYTES + lane as u64 * self.lane_bytes
    }

    /// For messages.
    pub(super) fn path(&self) -> &PathBuf {
        &self.path
    }

    /// The stored watermark.
    ///
    /// # Errors
    /// `Error::Damaged` when it proves itself wrong.
    pub(super) fn watermark(&self) -> Result<u64> {
        let word = self.mapped.load_word(WATERMARK_OFFSET);
        watermark_of(&self.uuid, word).ok_or_else(|| Error::Damaged {
            file: self.path.clone(),
            offset: WATERMARK_OFFSET,
            what: format!("expected a watermark, found {word:#018x}; {ADVICE}"),
        })
    }

    /// Raises the watermark, durably. What it covers must be durable before.
    pub(super) fn raise(&self, persist: &dyn Persist, sequence: u64) {
        self.mapped.store_word(WATERMARK_OFFSET, watermark_word(&self.uuid, sequence));
        self.settle(persist);
    }

    /// Makes the watermark durable as it is found: the process that raised it may have died before
    /// its fence.
    pub(super) fn settle(&self, persist: &dyn Persist) {
        self.mapped.flush(persist, WATERMARK_OFFSET, 8);
        persist.fence();
    }
}
