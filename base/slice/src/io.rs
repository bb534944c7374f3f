//! Reading and writing through `std::io`.
//!
//! Purpose: slices straight from a reader, without a vector in between.
//! Invariants: a reader only ever sees initialised memory, since safe readers may look at it.

use std::io::{self, Read, Write};

use crate::builder::Builder;
use crate::error::Error;
use crate::slice::Slice;

impl Slice {
    /// Reads exactly `len` bytes. Allocates `len` bytes before it reads: check lengths that come
    /// from a file against the file first.
    ///
    /// # Errors
    /// The reader's, `UnexpectedEof` when it ends early, `InvalidInput` when `len` is more than
    /// `SLICE_BYTES_MAX`.
    pub fn from_reader(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        let mut builder = Builder::zeroed(len)?;
        reader.read_exact(&mut builder)?;
        Ok(builder.freeze())
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
