//! The FFI boundary: arguments from C and results to C. All unsafe code of this crate.
//!
//! Purpose: the types of arguments say what C vouches for; they are transparent over the pointers
//! that the header shows: [`In`] a pointer to read, [`Out`] one to write, [`Taken`] a handle to be
//! freed, [`Slice`] bytes to read, [`Reader`], [`Feeder`], [`Clock`] and [`Work`] functions to
//! call. Safe Rust cannot make one. C makes one by a call, and thereby vouches for the conventions
//! at the top of the header; Rust makes one by an unsafe `new`, and vouches for the same. Every
//! proof below rests on that. Detectable mistakes are refused all the same: null, bad alignment,
//! handles of another kind, lengths that no memory has.
//!
//! Invariants: a handle is a box that starts with the number of its kind. Its content is only ever
//! borrowed shared, so that two calls on one handle never create an exclusive reference.
//! Thread safety: the contents of handles are `Send` and `Sync`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::border::failure::{Failure, Result};

/// A type of handle.
pub trait Opaque: Sized {
    /// The content of a handle.
    type Content: Send + Sync + 'static;
    /// Its number, in the first bytes of the box.
    const KIND: u32;
    /// Its name in messages.
    const NAME: &'static str;
}

/// The kind of a freed box: a later use gets an error, unless its memory was reused meanwhile.
const FREED: u32 = 0xDEAD_0000;

/// The box behind a handle.
#[repr(C)]
struct Held<C> {
    kind: AtomicU32,
    content: C,
}

/// A pointer from C to read from.
#[repr(transparent)]
pub struct In<T>(*const T);

impl<T> In<T> {
    /// The argument that a call from C with this pointer makes.
    ///
    /// # Safety
    /// The pointer is null, or follows the conventions of the header: a handle that was not freed,
    /// text that ends with a zero byte, a struct. Nothing writes to it or frees it during
    /// the call, nor while a slice that the call made of it is used.
    pub unsafe fn new(pointer: *const T) -> Self {
        Self(pointer)
    }

    /// Whether it is null.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl<T: Opaque> In<T> {
    /// The content of the handle.
    pub(crate) fn get(&self) -> Result<&T::Content> {
        check_kind(self.0)?;
        // SAFETY: C vouches that a handle points to a box that `Out::give` made and that was not
        // freed, and `check_kind` has verified that it is one of this type; contents are only
        // borrowed shared (`Held`).
        let held = unsafe { &*self.0.cast::<Held<T::Content>>() };
        Ok(&held.content)
    }
}

/// Refuses a pointer that is detectably no handle of this type.
fn check_kind<T: Opaque>(handle: *const T) -> Result<()> {
    if handle.is_null() {
        return Err(Failure::invalid(format!("expected a handle of {}, found NULL", T::NAME)));
    }
    let kind = handle.cast::<AtomicU32>();
    if !handle.cast::<Held<T::Content>>().is_aligned() {
        return Err(Failure::invalid(format!("this is no handle of {}", T::NAME)));
    }
    // SAFETY: C vouches that it is a handle, and each starts with such a number. It is aligned.
    let kind = unsafe { &*kind }.load(Ordering::Relaxed);
    match kind {
        _ if kind == T::KIND => Ok(()),
        FREED => Err(Failure::invalid(format!("this handle of {} was freed", T::NAME))),
        _ => Err(Failure::invalid(format!("expected a handle of {}, found another", T::NAME))),
    }
}

impl In<c_char> {
    /// The text; `None` for null.
    pub(crate) fn text_or_none(&self) -> Option<&CStr> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: C vouches that text ends with a zero byte and does not change during the call.
        Some(unsafe { CStr::from_ptr(self.0) })
    }

    /// The text.
    pub(crate) fn text(&self, what: &str) -> Result<&CStr> {
        self.text_or_none()
            .ok_or_else(|| Failure::invalid(format!("expected text for the {what}, found NULL")))
    }

    /// The text as a slice for C, without a copy.
    pub(crate) fn slice(&self) -> Slice {
        self.text_or_none().map_or(Slice::NONE, |text| {
            let bytes = text.to_bytes();
            Slice { data: bytes.as_ptr(), len: bytes.len() }
        })
    }
}

impl In<c_void> {
    /// The bytes at the pointer, of the length that C gives.
    pub(crate) fn bytes(&self, len: usize) -> Slice {
        Slice { data: self.0.cast::<u8>(), len }
    }
}

impl In<Range> {
    /// The range; `None` for null.
    pub(crate) fn range(&self) -> Result<Option<&Range>> {
        if self.0.is_null() {
            return Ok(None);
        }
        if !self.0.is_aligned() {
            return Err(Failure::invalid("the pointer to the range is not aligned"));
        }
        // SAFETY: it is aligned and not null; C vouches that a range is there, and any bits are a
        // valid one: pointers, lengths and numbers. `Slice::bytes` checks its slices.
        Ok(Some(unsafe { &*self.0 }))
    }
}

impl In<Slice> {
    /// So many slices, one after the other.
    pub(crate) fn slices(&self, count: usize) -> Result<&[Slice]> {
        if count == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() || !self.0.is_aligned() {
            let words = format!("expected {count} slices, found NULL, or what is not aligned");
            return Err(Failure::invalid(words));
        }
        if count.checked_mul(size_of::<Slice>()).is_none_or(|it| isize::try_from(it).is_err()) {
            return Err(Failure::invalid(format!("no memory has {count} slices")));
        }
        // SAFETY: not null, aligned and no longer than any memory; C vouches that so many slices
        // are there and do not change during the call. `Slice::bytes` checks each.
        Ok(unsafe { std::slice::from_raw_parts(self.0, count) })
    }
}

/// A handle from C that the call changes: in C not a pointer to const.
#[repr(transparent)]
pub struct Changed<T>(In<T>);

impl<T> Changed<T> {
    /// The argument that a call from C with this pointer makes.
    ///
    /// # Safety
    /// As for [`In::new`].
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(In(pointer))
    }
}

// The content of a handle is only borrowed shared, so access is the same.
impl<T> Deref for Changed<T> {
    type Target = In<T>;

    fn deref(&self) -> &In<T> {
        &self.0
    }
}

/// A pointer from C to write to; null where the header allows it.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Out<T> {
    /// The argument that a call from C with this pointer makes.
    ///
    /// # Safety
    /// It is null, or may be written to until the call returns, and nothing else uses it meanwhile.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Whether it is null.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Refuses null, before any work is done.
    pub(crate) fn need(&self, what: &str) -> Result<()> {
        match self.0.is_null() {
            true => Err(Failure::invalid(format!("expected a place for the {what}, found NULL"))),
            false => self.check_alignment(what),
        }
    }

    fn check_alignment(&self, what: &str) -> Result<()> {
        match self.0.is_aligned() {
            true => Ok(()),
            false => Err(Failure::invalid(format!("the place for the {what} is not aligned"))),
        }
    }

    /// Writes the value there, unless it is null.
    pub(crate) fn set(&self, value: T) {
        if !self.0.is_null() && self.0.is_aligned() {
            // SAFETY: not null and aligned, and C vouches that it may be written to. The old value
            // is plain data of C, which needs no drop.
            unsafe { self.0.write(value) }
        }
    }
}

impl<T: Opaque> Out<*mut T> {
    /// Gives handles to the first places of an array, one for each content; null for those without.
    pub(crate) fn give_all(&self, contents: Vec<Option<T::Content>>) {
        if self.0.is_null() || !self.0.is_aligned() {
            return;
        }
        for (index, content) in contents.into_iter().enumerate() {
            // SAFETY: C vouches for as many places as there are contents.
            let place = Self(unsafe { self.0.add(index) });
            match content {
                Some(content) => place.give(content),
                None => place.set(ptr::null_mut()),
            }
        }
    }

    /// Refuses null; otherwise writes a null handle, until there is a better one.
    pub(crate) fn need_handle(&self) -> Result<()> {
        self.need(T::NAME)?;
        self.set(ptr::null_mut());
        Ok(())
    }

    /// Makes a handle there, unless it is null; from then on the caller owns it.
    pub(crate) fn give(&self, content: T::Content) {
        if self.0.is_null() || !self.0.is_aligned() {
            return;
        }
        let held = Held { kind: AtomicU32::new(T::KIND), content };
        self.set(Box::into_raw(Box::new(held)).cast::<T>());
    }
}

impl Out<Slice> {
    /// Lends bytes, which must stay for as long as the header says.
    pub(crate) fn lend(&self, bytes: &[u8]) {
        self.set(Slice { data: bytes.as_ptr(), len: bytes.len() });
    }
}

/// Memory of C to copy to; its length is another argument.
#[repr(transparent)]
pub struct Buffer(*mut c_void);

impl Buffer {
    /// The argument that a call from C with this pointer makes.
    ///
    /// # Safety
    /// It is null, or has as many bytes as the call says, which nothing else uses meanwhile.
    pub unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }

    /// Copies bytes there; false if the buffer is too short.
    pub(crate) fn fill(&self, buffer_bytes: usize, bytes: &[u8]) -> Result<bool> {
        if bytes.len() > buffer_bytes || bytes.is_empty() {
            return Ok(bytes.is_empty());
        }
        if self.0.is_null() {
            return Err(Failure::invalid(format!(
                "expected a buffer of {buffer_bytes} bytes, found NULL"
            )));
        }
        // SAFETY: C vouches for `buffer_bytes` bytes there, which nothing else uses; these are no
        // more, and a value of the store does not overlap memory of C.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.cast::<u8>(), bytes.len()) };
        Ok(true)
    }
}

/// A handle that C gives back to be freed; may be null.
#[repr(transparent)]
pub struct Taken<T>(*mut T);

impl<T: Opaque> Taken<T> {
    /// The argument that a call from C with this pointer makes.
    ///
    /// # Safety
    /// It is null, or a handle that was not freed and is not used any more.
    pub unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Its content, before it is freed; `None` for null.
    pub(crate) fn content(&self) -> Result<Option<&T::Content>> {
        if self.0.is_null() {
            return Ok(None);
        }
        check_kind(self.0.cast_const())?;
        // SAFETY: as in `In::get`; it lives until `free` takes `self`.
        let held = unsafe { &*self.0.cast_const().cast::<Held<T::Content>>() };
        Ok(Some(&held.content))
    }

    /// Frees it.
    pub(crate) fn free(self) -> Result<()> {
        if self.0.is_null() {
            return Ok(());
        }
        check_kind(self.0.cast_const())?;
        // SAFETY: `Out::give` made it from a box of this type, as `check_kind` has verified, and C
        // vouches that it was not freed before and that nothing uses it.
        let held = unsafe { Box::from_raw(self.0.cast::<Held<T::Content>>()) };
        held.kind.store(FREED, Ordering::Relaxed);
        Ok(())
    }
}

/// Bytes: how many, and where. Whose they are, and for how long, is said where a slice is used.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    /// Where; NULL for none.
    data: *const u8,
    /// How many.
    len: usize,
}

impl Slice {
    const NONE: Self = Self { data: ptr::null(), len: 0 };

    /// The argument that a call from C with these bytes makes.
    ///
    /// # Safety
    /// There are so many bytes, which do not change during the call; if there are none the pointer
    /// may be null.
    pub unsafe fn new(data: *const u8, len: usize) -> Self {
        Self { data, len }
    }

    /// Whether it is absent, rather than an empty string.
    pub(crate) fn is_none(&self) -> bool {
        self.data.is_null() && self.len == 0
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        if self.len == 0 {
            return Ok(&[]);
        }
        if self.data.is_null() {
            return Err(Failure::invalid(format!("expected {} bytes, found NULL", self.len)));
        }
        if isize::try_from(self.len).is_err() {
            return Err(Failure::invalid(format!("no memory has {} bytes", self.len)));
        }
        // SAFETY: not null and no longer than any memory; C vouches that the bytes are there and do
        // not change during the call.
        Ok(unsafe { std::slice::from_raw_parts(self.data, self.len) })
    }
}

/// A [`Slice`] on its way to C.
#[repr(transparent)]
pub struct Lent(Slice);

impl Lent {
    /// Bytes that stay for as long as the header says.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(Slice { data: bytes.as_ptr(), len: bytes.len() })
    }

    /// No bytes.
    pub(crate) fn none() -> Self {
        Self(Slice::NONE)
    }

    /// The bytes, as C would read them.
    ///
    /// # Safety
    /// The bytes are still lent: their owner has neither ended the loan nor been freed.
    pub unsafe fn bytes<'a>(&self) -> &'a [u8] {
        if self.0.data.is_null() {
            return &[];
        }
        // SAFETY: they were a slice when they were lent, and the caller vouches that they still
        // are.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.len) }
    }
}

/// A function of C's that is lent a value. It gets back the `context` that was given with it. It
/// may look at the bytes until it returns. It must not use the store, which would be
/// ADAMANT_REENTRANT.
#[repr(transparent)]
pub struct Reader(Option<unsafe extern "C-unwind" fn(context: *mut c_void, value: Lent)>);

impl Reader {
    /// The argument that a call from C with this function makes.
    ///
    /// # Safety
    /// It may be called with its context, on this thread, during the call.
    pub unsafe fn new(function: unsafe extern "C-unwind" fn(*mut c_void, Lent)) -> Self {
        Self(Some(function))
    }

    /// The function, with its context.
    pub(crate) fn with(self, context: Context) -> Result<impl FnOnce(&[u8])> {
        let function = self.0.ok_or_else(|| Failure::invalid("expected a reader, found NULL"))?;
        Ok(move |bytes: &[u8]| {
            // SAFETY: C vouches that the function may be called with this context during the call.
            unsafe { function(context.0, Lent::new(bytes)) }
        })
    }
}

/// A function of C's that gives one entry after the other: it puts key and value where it is told,
/// and returns other than 0; or 0 when there are no more. What it gives must stay until it is
/// called again. It gets back the `context` that was given with it.
#[repr(transparent)]
pub struct Feeder(
    Option<
        unsafe extern "C-unwind" fn(
            context: *mut c_void,
            key: *mut Slice,
            value: *mut Slice,
        ) -> c_int,
    >,
);

impl Feeder {
    /// The argument that a call from C with this function makes.
    ///
    /// # Safety
    /// It may be called with its context, on this thread, during the call.
    pub unsafe fn new(
        function: unsafe extern "C-unwind" fn(*mut c_void, *mut Slice, *mut Slice) -> c_int,
    ) -> Self {
        Self(Some(function))
    }

    /// The function with its context, as an iterator over entries.
    pub(crate) fn with(self, context: Context) -> Result<impl FnMut() -> Option<(Slice, Slice)>> {
        let function = self.0.ok_or_else(|| Failure::invalid("expected a feeder, found NULL"))?;
        Ok(move || {
            let (mut key, mut value) = (Slice::NONE, Slice::NONE);
            // SAFETY: C vouches that the function may be called with this context during the call;
            // both places are ours, and live until it returns.
            let code = unsafe { function(context.0, &mut key, &mut value) };
            (code != 0).then_some((key, value))
        })
    }
}

/// A function of C's that says what time it is: milliseconds since 1970, UTC, which should not go
/// back. It gets back the `context` that was given with it. It is called on any thread, and on
/// several at once, until the last handle that has it is freed. It must not use the store.
#[repr(transparent)]
pub struct Clock(Option<unsafe extern "C-unwind" fn(context: *mut c_void) -> u64>);

/// The context of a function that is called on any thread.
struct SharedContext(*mut c_void);

// SAFETY: nothing here dereferences it; C vouches that its function may be called with it on any
// thread (`Clock::new`).
unsafe impl Send for SharedContext {}
// SAFETY: the same, on several threads at once.
unsafe impl Sync for SharedContext {}

impl SharedContext {
    fn pointer(&self) -> *mut c_void {
        self.0
    }
}

impl Clock {
    /// The argument that a call from C with this function makes.
    ///
    /// # Safety
    /// It may be called with its context, on any thread and on several at once, until the last
    /// handle that has it is freed.
    pub unsafe fn new(function: unsafe extern "C-unwind" fn(*mut c_void) -> u64) -> Self {
        Self(Some(function))
    }

    /// The function, with its context.
    pub(crate) fn with(self, context: Context) -> Result<impl Fn() -> u64 + Send + Sync + 'static> {
        let function = self.0.ok_or_else(|| Failure::invalid("expected a clock, found NULL"))?;
        let context = SharedContext(context.0);
        Ok(move || {
            // SAFETY: C vouches that the function may be called with this context on any thread
            // while a handle has it, and this is dropped with the last of them.
            unsafe { function(context.pointer()) }
        })
    }
}

/// A function of C's that works with a handle which is good until it returns, and is not to be
/// freed by it. It returns 0 if all went well. It gets back the `context` that was given with it.
#[repr(transparent)]
pub struct Work<T>(
    Option<unsafe extern "C-unwind" fn(context: *mut c_void, handle: *mut T) -> c_int>,
);

impl<T: Opaque> Work<T> {
    /// The argument that a call from C with this function makes.
    ///
    /// # Safety
    /// It may be called with its context, on this thread, during the call, as often as the call
    /// says.
    pub unsafe fn new(function: unsafe extern "C-unwind" fn(*mut c_void, *mut T) -> c_int) -> Self {
        Self(Some(function))
    }

    /// The function with its context: it takes the content of a handle and returns a number.
    pub(crate) fn with(self, context: Context) -> Result<impl Fn(T::Content) -> Result<c_int>> {
        let function = self.0.ok_or_else(|| Failure::invalid("expected a function, found NULL"))?;
        Ok(move |content: T::Content| {
            let mut handle: *mut T = ptr::null_mut();
            Out(&mut handle).give(content);
            // SAFETY: C vouches that the function may be called with this context during the call;
            // the handle was just made, and is freed below.
            let code = unsafe { function(context.0, handle) };
            Taken(handle).free()?;
            Ok(code)
        })
    }
}

/// What C gives with a function: passed on, and never looked at.
#[repr(transparent)]
pub struct Context(*mut c_void);

impl Context {
    /// This pointer, whatever it points to.
    pub fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }

    /// The pointer, to be passed on.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.0
    }
}

/// Which keys: all but those that a part of it leaves out. A range of zeros is all keys. Bytes that
/// are not there (NULL) leave nothing out.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// Keys that start with these bytes.
    pub prefix: Slice,
    /// Keys from this one on.
    pub lower: Slice,
    /// Keys below this one.
    pub upper: Slice,
    /// Other than 0: without the key `lower` itself.
    pub lower_excluded: c_int,
    /// Other than 0: with the key `upper` itself.
    pub upper_included: c_int,
}

impl Range {
    /// All keys.
    pub(crate) const ALL: Self = Self {
        prefix: Slice::NONE,
        lower: Slice::NONE,
        upper: Slice::NONE,
        lower_excluded: 0,
        upper_included: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::border::code::ADAMANT_INVALID;
    use crate::border::value::{Content, Value};

    struct Other;
    impl Opaque for Other {
        type Content = u8;
        const KIND: u32 = 77;
        const NAME: &'static str = "a test";
    }

    #[test]
    fn handles_are_what_they_are_taken_for() {
        let mut handle: *mut Value = ptr::null_mut();
        // SAFETY: a place of our own.
        unsafe { Out::new(&mut handle) }.give(Content::copy(b"abc"));
        // SAFETY: a handle that was just made.
        let value = unsafe { In::new(handle.cast_const()) };
        assert_eq!(value.get().unwrap().bytes(), b"abc");
        // SAFETY: it starts with a number, as every handle does.
        let other = unsafe { In::new(handle.cast_const().cast::<Other>()) };
        assert_eq!(other.get().unwrap_err().code, ADAMANT_INVALID);
        // SAFETY: the same, and nothing is freed when it is refused.
        let other = unsafe { Taken::new(handle.cast::<Other>()) };
        assert_eq!(other.free().unwrap_err().code, ADAMANT_INVALID);
        // SAFETY: a handle that is not used any more.
        unsafe { Taken::new(handle) }.free().unwrap();
        // SAFETY: null is no handle.
        let null = unsafe { In::<Value>::new(ptr::null()) };
        assert!(null.get().unwrap_err().text.contains("NULL"));
    }

    #[test]
    fn lengths_that_no_memory_has_are_refused() {
        let byte = 7_u8;
        // SAFETY: refused before it is dereferenced.
        let long = unsafe { Slice::new(&byte, usize::MAX) };
        assert_eq!(long.bytes().unwrap_err().code, ADAMANT_INVALID);
        // SAFETY: refused before it is dereferenced.
        let null = unsafe { Slice::new(ptr::null(), 1) };
        assert_eq!(null.bytes().unwrap_err().code, ADAMANT_INVALID);
        // SAFETY: an empty slice is not dereferenced.
        let empty = unsafe { Slice::new(ptr::null(), 0) };
        assert!(empty.bytes().unwrap().is_empty() && empty.is_none());
    }
}
