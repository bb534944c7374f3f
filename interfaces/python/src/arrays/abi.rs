//! The structures of Arrow's C data interface, as its specification has them.
//!
//! Purpose: one definition for those that we export and those that others lend us; they differ in
//! what their private pointer is.
//! Invariants: a structure is released by its callback when it is dropped, unless it was moved
//! away, which its null callback says. Pointers are `AtomicPtr`s, which are pointers in memory, and
//! may be sent to other threads, as the specification permits.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{ManuallyDrop, MaybeUninit, size_of};
use std::sync::atomic::AtomicPtr;

use crate::arrays::rows::Bytes;

/// Whose structure it is: the types of its private pointers.
pub(crate) trait Side: Sized {
    type Schema: Default;
    type Array: Default;
    type Stream: Default;
}

/// Those that others made.
pub(crate) struct Theirs;

impl Side for Theirs {
    type Schema = AtomicPtr<c_void>;
    type Array = AtomicPtr<c_void>;
    type Stream = AtomicPtr<c_void>;
}

/// Those that we made.
pub(crate) struct Ours;

impl Side for Ours {
    type Schema = Owned<Vec<Schema<Ours>>, AtomicPtr<Schema<Ours>>>;
    type Array = Owned<(Vec<Array<Ours>>, Vec<Bytes>, Vec<AtomicPtr<u8>>), AtomicPtr<Array<Ours>>>;
    type Stream = Owned<Box<dyn Batches>, ()>;
}

/// A source of batches, called by any thread, attached to the interpreter or not.
pub(crate) trait Batches: Send {
    fn schema(&self) -> Schema<Ours>;
    /// The next batch, a released array at the end.
    fn next(&mut self) -> Result<Array<Ours>, c_int>;
    fn last_error(&self) -> *const c_char;
}

/// What a structure of ours points to: dropped by the callback, and only by it, since a consumer
/// may have moved the structure.
#[repr(transparent)]
pub(crate) struct Owned<T, P>(Option<Unreleased<T, P>>);

type Unreleased<T, P> = ManuallyDrop<Box<(T, Vec<P>)>>;

impl<T, P> Default for Owned<T, P> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T, P> Owned<T, P> {
    fn new(owned: T, pointers: Vec<P>) -> Self {
        Self(Some(ManuallyDrop::new(Box::new((owned, pointers)))))
    }

    fn get(&mut self) -> Option<&mut T> {
        self.0.as_mut().map(|owned| &mut owned.0)
    }

    fn release(&mut self) {
        drop(self.0.take().map(ManuallyDrop::into_inner));
    }
}

/// `struct ArrowSchema`.
#[repr(C)]
pub(crate) struct Schema<S: Side> {
    pub(crate) format: AtomicPtr<c_char>,
    name: AtomicPtr<c_char>,
    metadata: AtomicPtr<c_char>,
    flags: i64,
    pub(crate) children_len: i64,
    pub(crate) children: AtomicPtr<AtomicPtr<Schema<S>>>,
    pub(crate) dictionary: AtomicPtr<Schema<S>>,
    pub(crate) release: Option<extern "C" fn(&mut Schema<S>)>,
    private: S::Schema,
}

/// `struct ArrowArray`.
#[repr(C)]
pub(crate) struct Array<S: Side> {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) buffers_len: i64,
    pub(crate) children_len: i64,
    pub(crate) buffers: AtomicPtr<AtomicPtr<u8>>,
    pub(crate) children: AtomicPtr<AtomicPtr<Array<S>>>,
    dictionary: AtomicPtr<Array<S>>,
    pub(crate) release: Option<extern "C" fn(&mut Array<S>)>,
    private: S::Array,
}

type GetSchema<S> = extern "C" fn(&mut Stream<S>, &mut MaybeUninit<Schema<S>>) -> c_int;
type GetNext<S> = extern "C" fn(&mut Stream<S>, &mut MaybeUninit<Array<S>>) -> c_int;

/// `struct ArrowArrayStream`.
#[repr(C)]
pub(crate) struct Stream<S: Side> {
    pub(crate) get_schema: Option<GetSchema<S>>,
    pub(crate) get_next: Option<GetNext<S>>,
    pub(crate) get_last_error: Option<extern "C" fn(&mut Stream<S>) -> *const c_char>,
    pub(crate) release: Option<extern "C" fn(&mut Stream<S>)>,
    private: S::Stream,
}

const _: () = assert!(size_of::<Schema<Ours>>() == 72 && size_of::<Schema<Theirs>>() == 72);
const _: () = assert!(size_of::<Array<Ours>>() == 80 && size_of::<Array<Theirs>>() == 80);
const _: () = assert!(size_of::<Stream<Ours>>() == 40 && size_of::<Stream<Theirs>>() == 40);

macro_rules! released {
    ($name:ident { $($field:ident),* }) => {
        impl<S: Side> Default for $name<S> {
            /// One that was released.
            fn default() -> Self {
                Self { $($field: Default::default()),* }
            }
        }

        impl<S: Side> Drop for $name<S> {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    release(self);
                }
            }
        }

        impl $name<Ours> {
            extern "C" fn release(&mut self) {
                self.private.release();
                self.release = None;
            }
        }
    };
}

released!(Schema {
    format,
    name,
    metadata,
    flags,
    children_len,
    children,
    dictionary,
    release,
    private
});
released!(Array {
    length,
    null_count,
    offset,
    buffers_len,
    children_len,
    buffers,
    children,
    dictionary,
    release,
    private
});
released!(Stream { get_schema, get_next, get_last_error, release, private });

/// The flag of fields that may have nulls.
const NULLABLE: i64 = 2;

impl Schema<Ours> {
    /// A type by its format, with a name, of these fields.
    pub(crate) fn new(
        format: &'static std::ffi::CStr,
        name: &'static std::ffi::CStr,
        is_nullable: bool,
        mut fields: Vec<Self>,
    ) -> Self {
        let mut pointers: Vec<_> = fields.iter_mut().map(|it| AtomicPtr::new(it)).collect();
        let mut schema = Self::default();
        schema.format = AtomicPtr::new(format.as_ptr().cast_mut());
        schema.name = AtomicPtr::new(name.as_ptr().cast_mut());
        schema.flags = if is_nullable { NULLABLE } else { 0 };
        schema.children_len = fields.len() as i64;
        schema.children = AtomicPtr::new(pointers.as_mut_ptr());
        schema.release = Some(Self::release);
        schema.private = Owned::new(fields, pointers);
        schema
    }
}

impl Array<Ours> {
    /// An array of buffers, the first of which is its bitmap; none for one without nulls.
    pub(crate) fn new(
        length: usize,
        nulls: usize,
        buffers: &[Option<&Bytes>],
        mut children: Vec<Self>,
    ) -> Self {
        let kept: Vec<Bytes> = buffers.iter().flatten().map(|it| (*it).clone()).collect();
        let mut each = kept.iter();
        let mut start = |is_there: bool| -> *mut u8 {
            let bytes = if is_there { each.next() } else { None };
            bytes.map_or(std::ptr::null_mut(), |it| it.as_ref().as_ptr().cast_mut())
        };
        let mut starts: Vec<_> =
            buffers.iter().map(|it| AtomicPtr::new(start(it.is_some()))).collect();
        let mut pointers: Vec<_> = children.iter_mut().map(|it| AtomicPtr::new(it)).collect();
        let mut array = Self::default();
        (array.length, array.null_count) = (length as i64, nulls as i64);
        (array.buffers_len, array.children_len) = (starts.len() as i64, children.len() as i64);
        array.buffers = AtomicPtr::new(starts.as_mut_ptr());
        array.children = AtomicPtr::new(pointers.as_mut_ptr());
        array.release = Some(Self::release);
        array.private = Owned::new((children, kept, starts), pointers);
        array
    }
}

impl Stream<Ours> {
    pub(crate) fn new(batches: Box<dyn Batches>) -> Self {
        let mut stream = Self::default();
        stream.get_schema = Some(Self::schema);
        stream.get_next = Some(Self::next);
        stream.get_last_error = Some(Self::last_error);
        stream.release = Some(Self::release);
        stream.private = Owned::new(batches, Vec::new());
        stream
    }

    extern "C" fn schema(&mut self, out: &mut MaybeUninit<Schema<Ours>>) -> c_int {
        let schema = self.private.get().map(|batches| batches.schema());
        out.write(schema.unwrap_or_default());
        0
    }

    extern "C" fn next(&mut self, out: &mut MaybeUninit<Array<Ours>>) -> c_int {
        let next = self.private.get().map_or(Ok(Array::default()), |batches| batches.next());
        let code = next.as_ref().err().copied().unwrap_or(0);
        out.write(next.unwrap_or_default());
        code
    }

    extern "C" fn last_error(&mut self) -> *const c_char {
        self.private.get().map_or(std::ptr::null(), |batches| batches.last_error())
    }
}
