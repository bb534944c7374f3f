//! Tracing: which blocks an object owns.
//!
//! Purpose: let a scan follow the pointers of objects whose types it does not know.

use std::collections::BTreeMap;

use zerocopy::FromBytes;
use zerocopy::little_endian as le;

use crate::error::Result;
use crate::image::mapping::Image;
use crate::objects::access::Read;
use crate::objects::any_ptr::AnyPtr;
use crate::objects::array::{Array, Bytes, Text};
use crate::objects::persistent::{Layout, Persistent};
use crate::ptr::Ptr;
use crate::space::blocks::Blocks;

/// A persistent type that tells which blocks it owns.
///
/// The implementation traces every field that owns something, and nothing else: not the pointer of
/// an element to its predecessor, which another element owns already.
///
/// ```
/// use adamant_heap::{Persistent, Ptr, Text, Trace, Tracer};
/// # use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
/// # #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
/// # #[repr(C)]
/// struct Entry {
///     title: Text,
///     next: Ptr<Entry>,
///     before: Ptr<Entry>,
/// }
/// # impl Persistent for Entry {
/// #     const NAME: &'static str = "example.entry";
/// #     const VERSION: u32 = 1;
/// # }
///
/// impl Trace for Entry {
///     fn trace(&self, tracer: &mut Tracer) {
///         self.title.trace(tracer);
///         self.next.trace(tracer);
///     }
/// }
/// ```
pub trait Trace: Persistent {
    /// Traces every field that owns something.
    fn trace(&self, tracer: &mut Tracer);
}

/// Collects what objects own.
#[derive(Debug, Default)]
pub struct Tracer {
    pub(crate) owned: Vec<Owned>,
    pub(crate) any: Vec<AnyPtr>,
    pub(crate) structures: Vec<Structure>,
    pub(crate) parts: Vec<u64>,
    pub(crate) damaged: Vec<(u64, &'static str)>,
}

impl Tracer {
    /// Notes a data structure that is owned: its first block at heap offset `head`, and blocks that
    /// only its own code can find, by `walk`. `layout` is that of the type that names it.
    pub fn structure(&mut self, head: u64, layout: Layout, walk: Walk) {
        self.structures.push(Structure { head, layout, walk });
    }

    /// Notes a block of the structure that is walked, in addition to its first one.
    pub fn part(&mut self, block: u64) {
        self.parts.push(block);
    }

    /// Notes that a block of the structure that is walked is damaged: for the report.
    pub fn damaged(&mut self, block: u64, what: &'static str) {
        self.damaged.push((block, what));
    }
}

/// Traces the structure whose first block is at that heap offset: notes each of its other blocks as
/// a [part](Tracer::part), and traces what its values own. Must end whatever the blocks hold.
///
/// # Errors
/// Those that are not about one block: they end the scan.
pub type Walk = fn(&Traced<'_>, u64, &mut Tracer) -> Result<()>;

/// A data structure that an object owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Structure {
    pub(crate) head: u64,
    pub(crate) layout: Layout,
    pub(crate) walk: Walk,
}

/// The heap during a scan.
#[derive(Debug)]
pub struct Traced<'s> {
    blocks: Blocks<'s>,
    image: &'s Image,
}

impl<'s> Traced<'s> {
    pub(crate) fn new(blocks: Blocks<'s>, image: &'s Image) -> Self {
        Self { blocks, image }
    }
}

impl Read for Traced<'_> {
    fn block(&self, block: u64) -> Result<&[u8]> {
        self.blocks.block(self.image, block)
    }

    fn prefetch(&self, offset: u64) {
        self.image.prefetch(offset);
    }
}

/// Values that an object owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owned {
    pub(crate) offset: u64,
    /// How many values there are.
    pub(crate) len: u64,
    pub(crate) kind: Kind,
}

/// The facts about a type that a scan needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) layout: Layout,
    /// Traces all values in bytes of that type.
    pub(crate) trace: fn(&[u8], &mut Tracer),
}

impl Kind {
    pub(crate) const fn of<T: Trace>() -> Self {
        Self { layout: T::STORED, trace: trace_all::<T> }
    }
}

fn trace_all<T: Trace>(bytes: &[u8], tracer: &mut Tracer) {
    // Blocks are aligned for every persistent type, and the scan cut the bytes to whole values.
    if let Ok(values) = <[T]>::ref_from_bytes(bytes) {
        values.iter().for_each(|value| value.trace(tracer));
    }
}

/// The types that a scan knows: those of named roots, and those that an [`AnyPtr`] points to. All
/// others are known from the types of the pointers to them.
#[derive(Clone, Debug, Default)]
pub struct Types {
    kinds: BTreeMap<u64, Kind>,
}

impl Types {
    /// No types.
    pub fn new() -> Self {
        Self::default()
    }

    /// These types, and `T`.
    #[must_use]
    pub fn with<T: Trace>(mut self) -> Self {
        self.kinds.insert(T::STORED.id(), Kind::of::<T>());
        self
    }

    pub(crate) fn get(&self, id: u64) -> Option<Kind> {
        self.kinds.get(&id).copied()
    }
}

impl<T: Trace> Trace for Ptr<T> {
    fn trace(&self, tracer: &mut Tracer) {
        if !self.is_null() {
            tracer.owned.push(Owned { offset: self.offset(), len: 1, kind: Kind::of::<T>() });
        }
    }
}

impl<T: Trace> Trace for Array<T> {
    fn trace(&self, tracer: &mut Tracer) {
        if !self.is_empty() {
            let (offset, len) = (self.offset(), self.len());
            tracer.owned.push(Owned { offset, len, kind: Kind::of::<T>() });
        }
    }
}

impl Trace for Bytes {
    fn trace(&self, tracer: &mut Tracer) {
        self.0.trace(tracer);
    }
}

impl Trace for Text {
    fn trace(&self, tracer: &mut Tracer) {
        self.0.trace(tracer);
    }
}

impl Trace for AnyPtr {
    fn trace(&self, tracer: &mut Tracer) {
        if !self.is_null() {
            tracer.any.push(*self);
        }
    }
}

impl<T: Trace, const N: usize> Trace for [T; N] {
    fn trace(&self, tracer: &mut Tracer) {
        self.iter().for_each(|value| value.trace(tracer));
    }
}

macro_rules! owns_nothing {
    ($($kind:ty),* $(,)?) => {$(
        impl Trace for $kind {
            fn trace(&self, _: &mut Tracer) {}
        }
    )*};
}

owns_nothing! {
    u8, i8, u16, i16, u32, i32, u64, i64, f32, f64,
    le::U16, le::I16, le::U32, le::I32, le::U64, le::I64, le::U128, le::I128, le::F32, le::F64,
}
