//! Objects instead of bytes: what a view can read and a transaction can create and change.
//!
//! Purpose: S3 and S4. [`TypedRead`] and [`TypedWrite`] stand on [`Read`] and [`Write`], so that
//! code written against them runs under a view and in a transaction.
//! Invariants: every dereference checks that a block starts there and is large enough. A
//! reference belongs to the view or transaction that gave it; there is one `&mut` at a time.
//!
//! Examples that compile, beside ones that the compiler refuses. One object may be written at a
//! time:
//!
//! ```
//! # use adamant_heap::{Ptr, Result, Transaction, TypedWrite};
//! fn pay(tx: &mut Transaction, payer: Ptr<u64>, payee: Ptr<u64>) -> Result<()> {
//!     *tx.get_mut(payer)? -= 1;
//!     *tx.get_mut(payee)? += 1;
//!     Ok(())
//! }
//! ```
//! ```compile_fail,E0499
//! # use adamant_heap::{Ptr, Result, Transaction, TypedWrite};
//! fn pay(tx: &mut Transaction, payer: Ptr<u64>, payee: Ptr<u64>) -> Result<()> {
//!     let (from, to) = (tx.get_mut(payer)?, tx.get_mut(payee)?);
//!     *from -= 1;
//!     *to += 1;
//!     Ok(())
//! }
//! ```
//!
//! No object may be read while another is written, as they may be the same:
//!
//! ```compile_fail,E0502
//! # use adamant_heap::{Ptr, Result, Transaction, TypedRead, TypedWrite};
//! fn pay(tx: &mut Transaction, payer: Ptr<u64>, payee: Ptr<u64>) -> Result<()> {
//!     let (before, target) = (tx.get(payer)?, tx.get_mut(payee)?);
//!     *target += before;
//!     Ok(())
//! }
//! ```
//!
//! A reference lives as long as its transaction or view; a pointer may leave:
//!
//! ```
//! # use adamant_heap::{Durability, Error, Heap, Ptr, TypedRead, TypedWrite};
//! fn create(heap: &Heap) -> Result<Ptr<u64>, Error> {
//!     heap.transaction(Durability::Sync, |tx| tx.create(7_u64))
//! }
//! fn read(heap: &Heap, ptr: Ptr<u64>) -> Result<u64, Error> {
//!     Ok(*heap.view()?.get(ptr)?)
//! }
//! ```
//! ```compile_fail
//! # use adamant_heap::{Durability, Error, Heap, Ptr, TypedRead, TypedWrite};
//! fn read(heap: &Heap, ptr: Ptr<u64>) -> Result<&u64, Error> {
//!     heap.transaction(Durability::Sync, |tx| tx.get(ptr))
//! }
//! ```
//! ```compile_fail,E0515
//! # use adamant_heap::{Durability, Error, Heap, Ptr, TypedRead, TypedWrite};
//! fn read(heap: &Heap, ptr: Ptr<u64>) -> Result<&u64, Error> {
//!     heap.view()?.get(ptr)
//! }
//! ```
//! ```compile_fail,E0505
//! # use adamant_heap::{Error, Heap, Ptr, TypedRead};
//! fn read(heap: &Heap, ptr: Ptr<u64>) -> Result<u64, Error> {
//!     let view = heap.view()?;
//!     let number = view.get(ptr)?;
//!     drop(view);
//!     Ok(*number)
//! }
//! ```
//!
//! A view cannot write:
//!
//! ```compile_fail,E0599
//! # use adamant_heap::{Error, Heap, Ptr, TypedRead, TypedWrite};
//! fn write(heap: &Heap, ptr: Ptr<u64>) -> Result<(), Error> {
//!     *heap.view()?.get_mut(ptr)? = 1;
//!     Ok(())
//! }
//! ```
//!
//! Only persistent types can be created and read, and these have no padding, no invalid bits and
//! no addresses:
//!
//! ```
//! # use adamant_heap::Persistent;
//! # use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
//! #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
//! #[repr(C)]
//! struct Sample { time: u64, value: u32, flags: u32 }
//! # impl Persistent for Sample { const NAME: &'static str = "sample"; const VERSION: u32 = 1; }
//! ```
//! ```compile_fail,E0277
//! # use adamant_heap::Persistent;
//! # use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
//! #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
//! #[repr(C)]
//! struct Sample { time: u64, value: u32 }
//! # impl Persistent for Sample { const NAME: &'static str = "sample"; const VERSION: u32 = 1; }
//! ```
//! ```compile_fail,E0277
//! # use adamant_heap::Persistent;
//! # use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
//! #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
//! #[repr(C)]
//! struct Sample { time: u64, value: Box<u64> }
//! # impl Persistent for Sample { const NAME: &'static str = "sample"; const VERSION: u32 = 1; }
//! ```
//! ```compile_fail,E0277
//! # use adamant_heap::{Ptr, Result, Transaction, TypedWrite};
//! fn create(tx: &mut Transaction) -> Result<Ptr<String>> {
//!     tx.create(String::new())
//! }
//! ```
//! ```compile_fail,E0277
//! # use adamant_heap::{Ptr, Result, TypedRead, View};
//! fn read<'v>(view: &'v View, ptr: Ptr<&'static str>) -> Result<&'v &'static str> {
//!     view.get(ptr)
//! }
//! ```
//! ```compile_fail,E0080
//! # use adamant_heap::{Layout, Persistent};
//! # use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
//! #[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
//! #[repr(C, align(64))]
//! struct Line([u8; 64]);
//! # impl Persistent for Line { const NAME: &'static str = "line"; const VERSION: u32 = 1; }
//! const LINE: Layout = Line::STORED; // as each use of it in a heap does
//! ```
//!
//! A transaction stays on its thread:
//!
//! ```compile_fail,E0277
//! # use adamant_heap::{Durability, Error, Heap, Ptr, TypedWrite};
//! fn create(heap: &Heap) -> Result<Ptr<u64>, Error> {
//!     heap.transaction(Durability::Sync, |tx| {
//!         std::thread::scope(|scope| scope.spawn(|| tx.create(7_u64)).join().unwrap())
//!     })
//! }
//! ```

use zerocopy::{FromBytes, IntoBytes};

use crate::error::{Error, Result};
use crate::objects::access::{Read, Write};
use crate::objects::any_ptr::AnyPtr;
use crate::objects::array::{Array, Bytes, Text};
use crate::objects::persistent::Persistent;
use crate::ptr::Ptr;

const NULL_FOLLOWED: Error =
    Error::Misuse { what: "a null pointer was followed; ask `is_null` before" };
const NULL_DESTROYED: Error =
    Error::Misuse { what: "a null pointer was destroyed; ask `is_null` before" };

/// Reading objects.
pub trait TypedRead: Read {
    /// The object at `ptr`. O(1).
    ///
    /// # Errors
    /// `Error::InvalidPointer` unless a block starts there that holds a `T`; `Error::Misuse` for
    /// the null pointer.
    #[inline]
    fn get<T: Persistent>(&self, ptr: Ptr<T>) -> Result<&T> {
        // Refuses, at compile time, types that cannot be in a block.
        let _layout = const { T::STORED };
        if ptr.is_null() {
            return Err(NULL_FOLLOWED);
        }
        self.read(ptr)
    }

    /// All values of an array. O(1).
    ///
    /// # Errors
    /// As [`TypedRead::get`], also when the block is shorter than the array.
    fn array<T: Persistent>(&self, array: Array<T>) -> Result<&[T]> {
        if array.is_empty() {
            return Ok(&[]);
        }
        let block = self.block(array.offset())?;
        let bytes = array.len().checked_mul(T::STORED.bytes());
        let values = bytes
            .and_then(|bytes| block.get(..usize::try_from(bytes).ok()?))
            .and_then(|bytes| <[T]>::ref_from_bytes(bytes).ok());
        values.ok_or(Error::InvalidPointer {
            offset: array.offset(),
            what: "is too short for its array",
        })
    }

    /// The value of an array at an index.
    ///
    /// # Errors
    /// As [`TypedRead::array`]; `Error::Misuse` when there is no such value.
    fn element<T: Persistent>(&self, array: Array<T>, index: u64) -> Result<&T> {
        let values = self.array(array)?;
        usize::try_from(index).ok().and_then(|index| values.get(index)).ok_or(BEYOND_ARRAY)
    }

    /// The bytes of a block: exactly as many as were stored.
    fn bytes(&self, bytes: Bytes) -> Result<&[u8]> {
        self.array(bytes.0)
    }

    /// A text. O(its length), as it is checked to be UTF-8.
    ///
    /// # Errors
    /// As [`TypedRead::array`]; `Error::InvalidPointer` when it is no UTF-8.
    fn text(&self, text: Text) -> Result<&str> {
        let bytes = self.array(text.0)?;
        let no_text = |_| Error::InvalidPointer { offset: text.0.offset(), what: "is no UTF-8" };
        std::str::from_utf8(bytes).map_err(no_text)
    }
}

const BEYOND_ARRAY: Error = Error::Misuse {
    what: "an element beyond the end of its array was asked for; ask `len` before",
};

impl<R: Read + ?Sized> TypedRead for R {}

/// Creating, changing and destroying objects: what only a transaction can do.
///
/// ```
/// use std::sync::Arc;
/// use adamant_heap::{Durability, Error, Heap, MemoryDirectory, Options, TypedRead, TypedWrite};
///
/// let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), Options::default())?;
/// let (number, primes, name) = heap.transaction(Durability::Sync, |tx| {
///     let number = tx.create(41_u64)?;
///     *tx.get_mut(number)? += 1;
///     let primes = tx.create_array(&[2_u32, 3, 5, 8])?;
///     *tx.element_mut(primes, 3)? = 7;
///     let name = tx.create_text("prime numbers")?;
///     Ok::<_, Error>((number, primes, name))
/// })?;
/// let view = heap.view()?;
/// assert_eq!(*view.get(number)?, 42);
/// assert_eq!(view.array(primes)?, [2, 3, 5, 7]);
/// assert_eq!(view.text(name)?, "prime numbers");
/// # Ok::<(), Error>(())
/// ```
pub trait TypedWrite: Write {
    /// Stores a value in a block of its own.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn create<T: Persistent>(&mut self, value: T) -> Result<Ptr<T>> {
        let block = self.reserve(T::STORED.bytes())?;
        self.write(block, 0, size_of::<T>())?.copy_from_slice(value.as_bytes());
        Ok(Ptr::new(block))
    }

    /// Stores copies of values in a block.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn create_array<T: Persistent>(&mut self, values: &[T]) -> Result<Array<T>> {
        // Refuses, at compile time, types that cannot be in a block.
        let _layout = const { T::STORED };
        if values.is_empty() {
            return Ok(Array::EMPTY);
        }
        let block = self.reserve(size_of_val(values) as u64)?;
        self.write(block, 0, size_of_val(values))?.copy_from_slice(values.as_bytes());
        Ok(Array::new(block, values.len() as u64))
    }

    /// Stores `len` values in a block, one after the other, without a copy of all of them in
    /// between.
    ///
    /// # Errors
    /// As [`Write::reserve`]; `Error::TooLarge` when no heap could hold them.
    fn create_array_with<T: Persistent>(
        &mut self,
        len: u64,
        mut make: impl FnMut(u64) -> T,
    ) -> Result<Array<T>> {
        if len == 0 {
            return Ok(Array::EMPTY);
        }
        let bytes = len.saturating_mul(T::STORED.bytes());
        let block = self.reserve(bytes)?;
        let target = self.write(block, 0, bytes as usize)?;
        for (index, target) in (0..).zip(target.chunks_exact_mut(size_of::<T>())) {
            target.copy_from_slice(make(index).as_bytes());
        }
        Ok(Array::new(block, len))
    }

    /// Stores bytes in a block.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn create_bytes(&mut self, bytes: &[u8]) -> Result<Bytes> {
        Ok(Bytes(self.create_array(bytes)?))
    }

    /// Stores text in a block.
    ///
    /// # Errors
    /// As [`Write::reserve`].
    fn create_text(&mut self, text: &str) -> Result<Text> {
        Ok(Text(self.create_array(text.as_bytes())?))
    }

    /// The object at `ptr`, for writing. All of its bytes go into the record: split a large object
    /// of which little changes.
    ///
    /// # Errors
    /// As [`TypedRead::get`].
    #[inline]
    fn get_mut<T: Persistent>(&mut self, ptr: Ptr<T>) -> Result<&mut T> {
        // Refuses, at compile time, types that cannot be in a block.
        let _layout = const { T::STORED };
        if ptr.is_null() {
            return Err(NULL_FOLLOWED);
        }
        self.write_as(ptr)
    }

    /// All values of an array, for writing. All of them go into the record.
    ///
    /// # Errors
    /// As [`TypedRead::array`].
    fn array_mut<T: Persistent>(&mut self, array: Array<T>) -> Result<&mut [T]> {
        // Refuses, at compile time, types that cannot be in a block.
        let _layout = const { T::STORED };
        if array.is_empty() {
            return Ok(&mut []);
        }
        write_elements(self, array, 0, array.len())
    }

    /// The value of an array at an index, for writing. Only this value goes into the record.
    ///
    /// # Errors
    /// As [`TypedRead::element`].
    fn element_mut<T: Persistent>(&mut self, array: Array<T>, index: u64) -> Result<&mut T> {
        if index >= array.len() {
            return Err(BEYOND_ARRAY);
        }
        write_elements(self, array, index, 1)?.first_mut().ok_or(BEYOND_ARRAY)
    }

    /// Frees the block of an object, an array, bytes or a text at the commit. Does not destroy what
    /// it owns. Does nothing for an empty array, which has no block.
    ///
    /// # Errors
    /// `Error::InvalidPointer` when no allocated block starts there, so also when it was destroyed
    /// before; `Error::Misuse` for the null pointer.
    fn destroy(&mut self, handle: impl Handle) -> Result<()> {
        match handle.block()? {
            Some(block) => self.free(block),
            None => Ok(()),
        }
    }
}

impl<W: Write + ?Sized> TypedWrite for W {}

fn write_elements<T: Persistent, W: Write + ?Sized>(
    writer: &mut W,
    array: Array<T>,
    first: u64,
    count: u64,
) -> Result<&mut [T]> {
    let short =
        || Error::InvalidPointer { offset: array.offset(), what: "is too short for its array" };
    let bytes =
        |count: u64| count.checked_mul(T::STORED.bytes()).and_then(|b| usize::try_from(b).ok());
    let (at, len) = (bytes(first).ok_or_else(short)?, bytes(count).ok_or_else(short)?);
    let target = writer.write(array.offset(), at, len)?;
    <[T]>::mut_from_bytes(target).map_err(|_| short())
}

/// A handle that owns at most one block.
pub trait Handle {
    /// The heap offset of the block, if there is one.
    ///
    /// # Errors
    /// `Error::Misuse` for the null pointer.
    fn block(&self) -> Result<Option<u64>>;
}

impl<T: Persistent> Handle for Ptr<T> {
    fn block(&self) -> Result<Option<u64>> {
        if self.is_null() { Err(NULL_DESTROYED) } else { Ok(Some(self.offset())) }
    }
}

impl Handle for AnyPtr {
    fn block(&self) -> Result<Option<u64>> {
        if self.is_null() { Err(NULL_DESTROYED) } else { Ok(Some(self.offset())) }
    }
}

impl<T: Persistent> Handle for Array<T> {
    fn block(&self) -> Result<Option<u64>> {
        Ok((!self.is_empty()).then(|| self.offset()))
    }
}

impl Handle for Bytes {
    fn block(&self) -> Result<Option<u64>> {
        self.0.block()
    }
}

impl Handle for Text {
    fn block(&self) -> Result<Option<u64>> {
        self.0.block()
    }
}
