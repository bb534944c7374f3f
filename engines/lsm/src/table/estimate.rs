//! The share of a table that lies within a range.
//!
//! Purpose: the index says at which offset of the file the data block of a key begins, and blocks
//! have about equal lengths. At most two parts of the index are read, and no data block.
//! Invariants: a share is between 0 and 1.

use std::ops::Bound;

use super::index;
use super::reader::Table;
use crate::error::Result;
use crate::file::FILE_HEADER_BYTES;

/// The expected distance of two keys in a block, if it is as likely to be any.
const WITHIN_BLOCK: f64 = 1.0 / 3.0;

/// A place in the data of a table.
struct Place {
    /// Offset of a block, or of what is behind the last one.
    offset: u64,
    /// Bytes of the block; 0 at an end.
    bytes: u32,
}

impl Place {
    /// Somewhere in the block.
    fn middle(&self) -> f64 {
        self.offset as f64 + f64::from(self.bytes) / 2.0
    }
}

impl Table {
    /// The share of its entries between two bounds, approximately.
    ///
    /// # Errors
    /// `Missing`, `Unsupported`, `Damaged`; those of the storage backend.
    pub(crate) fn share(&self, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>)) -> Result<f64> {
        let Some(end) = self.data_end() else { return Ok(0.0) };
        let start = FILE_HEADER_BYTES as u64;
        let ends = [Place { offset: start, bytes: 0 }, Place { offset: end, bytes: 0 }];
        let [first, last] = ends;
        let low = match lower {
            Bound::Unbounded => first,
            Bound::Included(key) | Bound::Excluded(key) if key < &*self.meta().key_min => first,
            Bound::Included(key) | Bound::Excluded(key) => self.place(key, end)?,
        };
        let high = match upper {
            Bound::Unbounded => last,
            Bound::Included(key) | Bound::Excluded(key) if key > &*self.meta().key_max => last,
            Bound::Included(key) | Bound::Excluded(key) => self.place(key, end)?,
        };
        let bytes = match low.bytes > 0 && low.offset == high.offset {
            true => f64::from(low.bytes) * WITHIN_BLOCK,
            false => high.middle() - low.middle(),
        };
        Ok((bytes / end.saturating_sub(start).max(1) as f64).clamp(0.0, 1.0))
    }

    /// Where a key would be.
    fn place(&self, key: &[u8], end: u64) -> Result<Place> {
        let last = Place { offset: end, bytes: 0 };
        let Some((top, offset)) = self.top() else { return Ok(last) };
        let found = top.seek(key, u64::MAX).map_err(self.damaged(*offset))?;
        let Some(found) = found else { return Ok(last) };
        let partition = index::partition_at(top.bytes(), found.entry.value());
        let at = partition.map_err(self.damaged(*offset))?.index;
        let block = self.index(at)?;
        let damaged = self.damaged(at.offset);
        let found = block.seek(key, u64::MAX).map_err(&damaged)?;
        let Some(found) = found else { return Ok(Place { offset: at.offset, bytes: 0 }) };
        let data = index::handle_at(block.bytes(), found.entry.value()).map_err(&damaged)?;
        Ok(Place { offset: data.offset, bytes: data.bytes })
    }
}
