//! Reading and writing through `std::io`.
//!
//! Purpose: slices straight from a reader, without a vector in between.
//! Invariants: a reader only ever sees initialised memory, since safe readers may read it.

use std::io::{self, BufRead, Read, Write};

use crate::builder::Builder;
use crate::error::Error;
use crate::shared::Block;
use crate::slice::{INLINE_BYTES_MAX, Slice, check_length};

impl Slice {
    /// Reads exactly `len` bytes. Allocates `len` bytes before it reads: check lengths that come
    /// from a file against the file first.
    ///
    /// # Errors
    /// The reader's, `UnexpectedEof` when it ends early, `InvalidInput` when `len` is more than
    /// `SLICE_BYTES_MAX`.
    #[inline]
    pub fn from_reader(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        if len <= INLINE_BYTES_MAX {
            let mut bytes = [0; INLINE_BYTES_MAX];
            let bytes = &mut bytes[..len];
            reader.read_exact(bytes)?;
            // Not the whole array of 20 bytes: loading pieces as one word costs 6
            // ns.
            return Ok(Self::new(bytes));
        }
        check_length(len)?;
        let mut block = Block::zeroed(len as u32);
        reader.read_exact(block.bytes_mut())?;
        Ok(Self::from_block(block, len))
    }

    /// Reads exactly `len` bytes. Copies bytes that are in the reader's buffer, without writing
    /// zeros first: for values that are short beside the buffer that saves a tenth.
    ///
    /// # Errors
    /// As [`Slice::from_reader`].
    #[inline]
    pub fn from_buffered(reader: &mut impl BufRead, len: usize) -> io::Result<Self> {
        if let Some(bytes) = reader.fill_buf()?.get(..len) {
            check_length(len)?;
            let slice = Self::new(bytes);
            reader.consume(len);
            return Ok(slice);
        }
        Self::from_reader(reader, len)
    }
}

impl Write for Builder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error {
            Error::NotUtf8 { .. } => io::ErrorKind::InvalidData,
            Error::TooLong { .. } | Error::OutOfRange { .. } => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}
