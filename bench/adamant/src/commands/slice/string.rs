//! The interface of benchmarked byte strings.

use std::cmp::Ordering;
use std::io::{self, BufRead, Read};

use adamant_slice::Slice;

/// An immutable string of bytes.
pub trait ByteString: Clone + Send + Sync + 'static {
    /// The engine name of rows.
    const NAME: &'static str;

    /// A copy of `bytes`.
    fn copy_of(bytes: &[u8]) -> Self;

    /// The next `len` bytes of a reader, in the best way of the type.
    ///
    /// # Errors
    /// The reader's.
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self>;

    /// The same for a reader that has a buffer.
    ///
    /// # Errors
    /// The reader's.
    #[inline]
    fn read_buffered(reader: &mut impl BufRead, len: usize) -> io::Result<Self> {
        Self::read(reader, len)
    }

    /// The part `start..end`, which shares memory if the type can.
    fn part(&self, start: usize, end: usize) -> Self;

    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// Whether both are equal, by the type's comparison.
    fn equals(&self, other: &Self) -> bool;

    /// The order of both, by the type's comparison.
    fn order(&self, other: &Self) -> Ordering;
}

impl ByteString for Slice {
    const NAME: &'static str = "adamant";

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }

    #[inline]
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        Self::from_reader(reader, len)
    }

    #[inline]
    fn read_buffered(reader: &mut impl BufRead, len: usize) -> io::Result<Self> {
        Self::from_buffered(reader, len)
    }

    #[inline]
    fn part(&self, start: usize, end: usize) -> Self {
        self.slice(start..end)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }

    #[inline]
    fn equals(&self, other: &Self) -> bool {
        self == other
    }

    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}

/// A type without any sharing.
pub type VecBytes = Vec<u8>;

impl ByteString for VecBytes {
    const NAME: &'static str = "Vec<u8>";

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        bytes.to_vec()
    }

    #[inline]
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        let mut bytes = vec![0; len];
        reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    #[inline]
    fn part(&self, start: usize, end: usize) -> Self {
        self[start..end].to_vec()
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        self
    }

    #[inline]
    fn equals(&self, other: &Self) -> bool {
        self == other
    }

    #[inline]
    fn order(&self, other: &Self) -> Ordering {
        self.cmp(other)
    }
}
