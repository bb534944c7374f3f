//! The border to memory of others: Arrow arrays that are read, buffers that are written.
//!
//! Purpose: takes structures out of capsules, and their buffers as bytes with an owner.
//! Invariants: whoever offers a capsule promises, by the specification of the C data interface,
//! that its structures are valid, that pointers in them are null or point to as many elements as
//! the structure says, and that none of this changes until it is released. What was released is
//! not looked at; bytes of a buffer keep the array that they are of. The blocks below rest on that
//! promise.
//! Thread safety: what is read does not change; a release may be called by any thread.

use std::ffi::CStr;
use std::mem::{MaybeUninit, take};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrays::abi::{Array, Schema, Stream, Theirs};
use crate::arrays::rows::Bytes;

/// What moves out of a capsule: its type has to be the one that the name stands for.
pub(crate) trait Capsule: Default {
    const NAME: &'static CStr;

    /// Whether it was moved away or released: its pointers lead nowhere then.
    fn is_released(&self) -> bool;
}

impl Capsule for Schema<Theirs> {
    const NAME: &'static CStr = c"arrow_schema";

    fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

impl Capsule for Array<Theirs> {
    const NAME: &'static CStr = c"arrow_array";

    fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

impl Capsule for Stream<Theirs> {
    const NAME: &'static CStr = c"arrow_array_stream";

    fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

/// Moves the structure out of a capsule, which keeps a released one.
///
/// # Errors
/// The object is no capsule of that name, or its structure was taken before.
#[allow(unsafe_code)]
pub(crate) fn moved<T: Capsule>(object: &Bound<'_, PyAny>) -> PyResult<T> {
    let capsule = object.cast::<PyCapsule>()?;
    let mut pointer: NonNull<T> = capsule.pointer_checked(Some(T::NAME))?.cast();
    // SAFETY: a capsule of this name holds this structure, by the specification; the interpreter is
    // attached, so no other consumer looks at it before this function returns.
    let taken = take(unsafe { pointer.as_mut() });
    if taken.is_released() {
        return Err(PyValueError::new_err(
            "expected an array of Arrow in a capsule, found one that was taken before; export it \
             again",
        ));
    }
    Ok(taken)
}

/// The pointer at a place of a list of pointers; null if there is no list.
#[allow(unsafe_code)]
fn element<T>(list: &AtomicPtr<AtomicPtr<T>>, at: usize) -> *mut T {
    let Some(list) = NonNull::new(list.load(Ordering::Relaxed)) else {
        return std::ptr::null_mut();
    };
    // SAFETY: callers stay below the structure's count of elements.
    let place = unsafe { list.add(at) };
    // SAFETY: the list has that element, and it does not change.
    let pointer = unsafe { place.as_ref() };
    pointer.load(Ordering::Relaxed)
}

/// What a pointer of a structure points to.
#[allow(unsafe_code)]
fn behind<T>(pointer: &*mut T) -> Option<&T> {
    // SAFETY: null, or valid as long as the structure, which outlives the borrow of its pointer.
    unsafe { pointer.as_ref() }
}

/// The format of a type, such as `z`.
#[allow(unsafe_code)]
pub(crate) fn format_of(schema: &Schema<Theirs>) -> String {
    let Some(format) = NonNull::new(schema.format.load(Ordering::Relaxed)) else {
        return String::new();
    };
    // SAFETY: a string that ends with a zero, by the specification; it is copied here.
    let format = unsafe { CStr::from_ptr(format.as_ptr()) };
    format.to_string_lossy().into_owned()
}

pub(crate) fn has_dictionary(schema: &Schema<Theirs>) -> bool {
    !schema.dictionary.load(Ordering::Relaxed).is_null()
}

/// Calls a closure with the types of fields.
pub(crate) fn fields<T>(
    schema: &Schema<Theirs>,
    mut each: impl FnMut(&Schema<Theirs>) -> T,
) -> Vec<T> {
    let count = usize::try_from(schema.children_len).unwrap_or(0);
    (0..count).filter_map(|at| behind(&element(&schema.children, at)).map(&mut each)).collect()
}

/// An array of others, which is released when nothing of it is used any more.
pub(crate) type Shared = Arc<Array<Theirs>>;

/// Which array it is: the whole, or one of its children.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Whole,
    Child(usize),
}

/// The array of a part.
pub(crate) fn part<T>(
    array: &Shared,
    part: Part,
    look: impl FnOnce(&Array<Theirs>) -> T,
) -> Option<T> {
    match part {
        Part::Whole => Some(look(array)),
        Part::Child(at) if (at as i64) < array.children_len => {
            behind(&element(&array.children, at)).map(look)
        }
        Part::Child(_) => None,
    }
}

/// A buffer of an array.
struct Buffer {
    start: AtomicPtr<u8>,
    len: usize,
    /// Keeps the memory.
    _array: Shared,
}

impl AsRef<[u8]> for Buffer {
    #[allow(unsafe_code)]
    fn as_ref(&self) -> &[u8] {
        let start = self.start.load(Ordering::Relaxed);
        // SAFETY: a buffer of at least this length, not null, that does not change while the array
        // is not released, and `_array` keeps it.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

/// The first bytes of a buffer of an array, which has so many; none if it has no such buffer.
pub(crate) fn buffer(array: &Shared, of: Part, at: usize, len: usize) -> Option<Bytes> {
    let start = part(array, of, |it| {
        let has_it = (at as i64) < it.buffers_len && isize::try_from(len).is_ok();
        if has_it { element(&it.buffers, at) } else { std::ptr::null_mut() }
    })?;
    if start.is_null() {
        return (len == 0).then(|| Bytes::new([]));
    }
    Some(Bytes::new(Buffer { start: AtomicPtr::new(start), len, _array: Arc::clone(array) }))
}

/// The type of a stream's batches, or why there is none.
pub(crate) fn schema_of(stream: &mut Stream<Theirs>) -> Result<Schema<Theirs>, String> {
    let mut out = MaybeUninit::new(Schema::default());
    let code = stream.get_schema.map_or(-1, |get| get(stream, &mut out));
    filled(stream, code, out)
}

/// The next batch of a stream, a released array at its end, or why there is none.
pub(crate) fn next_of(stream: &mut Stream<Theirs>) -> Result<Array<Theirs>, String> {
    let mut out = MaybeUninit::new(Array::default());
    let code = stream.get_next.map_or(-1, |get| get(stream, &mut out));
    filled(stream, code, out)
}

#[allow(unsafe_code)]
fn filled<T>(stream: &mut Stream<Theirs>, code: i32, out: MaybeUninit<T>) -> Result<T, String> {
    if code == 0 {
        // SAFETY: it was made from a value, and a callee that says 0 replaced it by a valid one.
        return Ok(unsafe { out.assume_init() });
    }
    let words = stream.get_last_error.map(|get| get(stream).cast_mut()).and_then(NonNull::new);
    let Some(words) = words else { return Err(format!("its source says error {code}")) };
    // SAFETY: a string that ends with a zero, valid until the next call; it is copied here.
    let words = unsafe { CStr::from_ptr(words.as_ptr()) };
    Err(words.to_string_lossy().into_owned())
}

/// Copies bytes into a buffer of Python, from a place on; false if they do not fit there, or it
/// cannot be written so.
#[allow(unsafe_code)]
pub(crate) fn write(_: Python<'_>, buffer: &PyUntypedBuffer, at: usize, bytes: &[u8]) -> bool {
    let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= buffer.len_bytes());
    if !fits || buffer.readonly() || !buffer.is_c_contiguous() {
        return false;
    }
    let start = buffer.buf_ptr().cast::<u8>().wrapping_add(at);
    // SAFETY: a contiguous buffer that may be written, of at least `at + bytes.len()` bytes, stays
    // where it is while `buffer` is; `bytes` are memory of ours, so they do not overlap. No code of
    // Python writes to it meanwhile, since the interpreter is attached, and whoever lends it to
    // threads that are not has agreed with them who writes.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
    true
}
