//! The other types, behind the trait of the benchmark.

use std::cmp::Ordering;
use std::io::{self, Read};
use std::sync::Arc;

use adamant_bench::commands::slice::{ByteString, Contender, VecBytes};
use bytes::Bytes;
use byteview::ByteView;
use hipstr::HipByt;

/// All that take part, Adamant's slice first.
pub fn contenders() -> Vec<Contender> {
    vec![
        Contender::of::<adamant_slice::Slice>(),
        Contender::of::<View>(),
        Contender::of::<Shared>(),
        Contender::of::<Counted>(),
        Contender::of::<VecBytes>(),
        Contender::of::<Hip>(),
    ]
}

/// Name of the type that Adamant's slice descends from.
pub const BYTEVIEW: &str = View::NAME;

/// What all of these do in the same way.
macro_rules! as_its_bytes {
    () => {
        #[inline]
        fn bytes(&self) -> &[u8] {
            &self.0
        }

        #[inline]
        fn equals(&self, other: &Self) -> bool {
            self.0 == other.0
        }

        #[inline]
        fn order(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }
    };
}

/// Reads into a vector, for types that have nothing better.
#[inline]
fn read_vec(reader: &mut impl Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// `byteview::ByteView`.
#[derive(Clone)]
pub struct View(ByteView);

impl ByteString for View {
    const NAME: &'static str = "byteview";

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        Self(ByteView::new(bytes))
    }

    #[inline]
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        ByteView::from_reader(reader, len).map(Self)
    }

    #[inline]
    fn part(&self, start: usize, end: usize) -> Self {
        Self(self.0.slice(start..end))
    }

    as_its_bytes!();
}

/// `bytes::Bytes`.
#[derive(Clone)]
pub struct Shared(Bytes);

impl ByteString for Shared {
    const NAME: &'static str = "bytes";

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        Self(Bytes::copy_from_slice(bytes))
    }

    #[inline]
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        read_vec(reader, len).map(|bytes| Self(bytes.into()))
    }

    #[inline]
    fn part(&self, start: usize, end: usize) -> Self {
        Self(self.0.slice(start..end))
    }

    as_its_bytes!();
}

/// `Arc<[u8]>`, whose parts are copies.
#[derive(Clone)]
pub struct Counted(Arc<[u8]>);

impl ByteString for Counted {
    const NAME: &'static str = "Arc<[u8]>";

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    #[inline]
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        read_vec(reader, len).map(|bytes| Self(bytes.into()))
    }

    #[inline]
    fn part(&self, start: usize, end: usize) -> Self {
        Self(self.0[start..end].into())
    }

    as_its_bytes!();
}

/// `hipstr::HipByt`.
#[derive(Clone)]
pub struct Hip(HipByt<'static>);

impl ByteString for Hip {
    const NAME: &'static str = "hipstr";

    #[inline]
    fn copy_of(bytes: &[u8]) -> Self {
        Self(HipByt::from(bytes).into_owned())
    }

    #[inline]
    fn read(reader: &mut impl Read, len: usize) -> io::Result<Self> {
        read_vec(reader, len).map(|bytes| Self(bytes.into()))
    }

    #[inline]
    fn part(&self, start: usize, end: usize) -> Self {
        Self(self.0.slice(start..end))
    }

    as_its_bytes!();
}
