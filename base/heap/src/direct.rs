//! What a commit wrote in place, where memory is the medium.
//!
//! Purpose: name fresh blocks and what was changed in place in the record, and see to it that they
//! are flushed. A few bytes share the fence of the record, under a checksum: a record that reached
//! the medium before its fence while they did not is dropped by recovery, and what undo entries of its
//! transaction saved is put back. More bytes than that are fenced before. So is what a savepoint
//! put back in place: no record names it, so no checksum would miss it.
//! Thread safety: belongs to the writer.

use adamant_medium::persist::Persist;
use adamant_wire::checksum::crc32c;

use crate::error::Result;
use crate::image::Image;
use crate::journal::{Entries, Entry, RecordBuilder};
use crate::lanes::Fresh;
use crate::range_list::RangeList;

/// Bytes that share the fence of their record at most: checking more than that by checksum costs
/// as much as one more fence, about 150 ns.
const SHARED_BYTES_MAX: u64 = 4096;

/// Collects ranges in ascending order; neighbours are joined.
#[derive(Debug)]
pub(crate) struct Direct<'h, 'i> {
    persist: &'h dyn Persist,
    image: &'i Image,
    /// Who wants to know the ranges, if anybody does.
    named: Option<&'i mut RangeList>,
    start: u64,
    end: u64,
    bytes: u64,
    crc: u32,
}

impl<'h, 'i> Direct<'h, 'i> {
    pub(crate) fn new(
        persist: &'h dyn Persist,
        image: &'i Image,
        named: Option<&'i mut RangeList>,
    ) -> Self {
        Self { persist, image, named, start: 0, end: 0, bytes: 0, crc: 0 }
    }

    /// Adds a range behind those added before.
    pub(crate) fn add(&mut self, start: u64, len: u64, record: &mut RecordBuilder) -> Result<()> {
        if start != self.end {
            self.put(record)?;
            self.start = start;
        }
        self.end = start + len;
        Ok(())
    }

    fn put(&mut self, record: &mut RecordBuilder) -> Result<()> {
        let len = self.end - self.start;
        if len == 0 {
            return Ok(());
        }
        record.direct(self.start, len);
        if let Some(named) = &mut self.named {
            named.add(self.start, len);
        }
        self.bytes += len;
        if self.bytes <= SHARED_BYTES_MAX {
            self.crc = crc32c(self.crc, self.image.bytes(self.start, len)?);
        }
        Ok(())
    }

    /// Ends the ranges of a record, and says how they become durable. `is_apart`: flushes that were
    /// begun for other bytes must not share the record's fence.
    pub(crate) fn finish(mut self, record: &mut RecordBuilder, is_apart: bool) -> Result<Fresh> {
        self.put(record)?;
        if is_apart || self.bytes > SHARED_BYTES_MAX {
            for entry in Entries::new(record.payload()) {
                if let Ok(Entry::Direct { offset, len }) = entry {
                    self.image.flush(self.persist, offset, len);
                }
            }
            self.persist.fence();
            return Ok(Fresh::Durable);
        }
        Ok(if self.bytes == 0 { Fresh::Durable } else { Fresh::Shared(self.crc) })
    }
}
