//! Columns of bytes: what is read and written, wherever its memory is.
//!
//! Invariants: nothing here touches Python objects, so it runs detached from the interpreter.

use std::sync::Arc;

use crate::errors::{Failure, Result};

/// Bytes with an owner, which lives as long as they are used.
#[derive(Clone)]
pub(crate) struct Bytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Bytes {
    pub(crate) fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(owner))
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// How the bytes of a row are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Each row has so many bytes.
    Fixed(usize),
    /// Rows lie between offsets of 32 bits.
    Short,
    /// Rows lie between offsets of 64 bits.
    Long,
}

/// Rows next to each other.
pub(crate) struct Chunk {
    pub(crate) layout: Layout,
    /// The row that its first one is in `data` and `offsets`.
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) offsets: Bytes,
    pub(crate) data: Bytes,
}

impl Chunk {
    /// The bytes of a row; none if the offsets do not ascend, or leave the data.
    fn row(&self, row: usize) -> Option<&[u8]> {
        let row = self.first + row;
        let (start, end) = match self.layout {
            Layout::Fixed(width) => (row * width, row * width + width),
            Layout::Short => (self.offset::<4>(row)?, self.offset::<4>(row + 1)?),
            Layout::Long => (self.offset::<8>(row)?, self.offset::<8>(row + 1)?),
        };
        self.data.as_ref().get(start..end)
    }

    /// Where its last row ends in the data.
    pub(crate) fn end_of_data(&self) -> Option<usize> {
        match self.layout {
            Layout::Fixed(width) => Some((self.first + self.rows) * width),
            Layout::Short => self.offset::<4>(self.first + self.rows),
            Layout::Long => self.offset::<8>(self.first + self.rows),
        }
    }

    fn offset<const BYTES: usize>(&self, at: usize) -> Option<usize> {
        let mut wide = [0; 8];
        wide[..BYTES].copy_from_slice(self.offsets.as_ref().get(at * BYTES..)?.get(..BYTES)?);
        usize::try_from(u64::from_le_bytes(wide)).ok()
    }
}

/// The rows of some chunks, in order.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) chunks: Vec<Chunk>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.rows).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<&[u8]>> {
        let each = self.chunks.iter().flat_map(|it| (0..it.rows).map(move |row| it.row(row)));
        each.enumerate().map(|(row, found)| {
            found.ok_or_else(|| {
                Failure::Invalid(format!(
                    "expected offsets that ascend within the data, found others at row {row}; \
                     nothing was written"
                ))
            })
        })
    }
}

/// Rows of any length that are being gathered.
pub(crate) struct Growing {
    offsets: Vec<u8>,
    data: Vec<u8>,
    /// A byte for each row: whether it is there.
    present: Vec<u8>,
}

impl Growing {
    pub(crate) fn new(rows: usize) -> Self {
        let mut offsets = Vec::with_capacity((rows + 1) * 8);
        offsets.extend_from_slice(&0_u64.to_le_bytes());
        Self { offsets, data: Vec::new(), present: Vec::with_capacity(rows) }
    }

    /// Appends bytes to the row that `end` ends.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
    }

    pub(crate) fn end(&mut self, is_present: bool) {
        self.offsets.extend_from_slice(&(self.data.len() as u64).to_le_bytes());
        self.present.push(u8::from(is_present));
    }

    /// Offsets, data, and whether each row is there.
    pub(crate) fn finish(self) -> [Bytes; 3] {
        [self.offsets, self.data, self.present].map(Bytes::new)
    }
}
