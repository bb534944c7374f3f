//! Dynamically typed pointers: pointers that carry the type of their target.

use core::fmt;

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Error, Result};
use crate::objects::persistent::Persistent;
use crate::ptr::Ptr;

/// A pointer to an object of any persistent type, for collections of mixed ones: 16 bytes, the
/// heap offset and the id of the type.
///
/// ```
/// use adamant_heap::{AnyPtr, Error, Ptr};
///
/// let number: Ptr<u64> = Ptr::new(8192);
/// let any = AnyPtr::from(number);
/// assert!(any.is::<u64>() && !any.is::<i64>());
/// assert_eq!(any.downcast::<u64>()?, number);
/// assert!(any.downcast::<i64>().is_err());
/// # Ok::<(), Error>(())
/// ```
#[derive(
    Clone, Copy, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned,
)]
#[repr(C)]
pub struct AnyPtr {
    offset: U64,
    id: U64,
}

impl AnyPtr {
    /// The pointer to nothing, of no type.
    pub const NULL: Self = Self { offset: U64::new(0), id: U64::new(0) };

    /// The heap offset.
    pub const fn offset(self) -> u64 {
        self.offset.get()
    }

    /// The id of the type: [`Layout::id`](crate::Layout::id); 0 for the null pointer.
    pub const fn id(self) -> u64 {
        self.id.get()
    }

    /// Whether it points to nothing.
    pub const fn is_null(self) -> bool {
        self.offset() == 0
    }

    /// Whether it points to a `T`, of that very version.
    pub const fn is<T: Persistent>(self) -> bool {
        self.id() == T::STORED.id()
    }

    /// The pointer to a `T`.
    ///
    /// # Errors
    /// `Error::WrongLayout` when it points to something else.
    pub fn downcast<T: Persistent>(self) -> Result<Ptr<T>> {
        if self.is::<T>() {
            return Ok(Ptr::new(self.offset()));
        }
        Err(Error::WrongLayout {
            place: format!("pointer to heap offset {:#x}", self.offset()),
            expected: format!("{} (id {:#x})", T::STORED, T::STORED.id()),
            found: format!("a type with the id {:#x}", self.id()),
            advice: "ask `is` for each type that it may be before the cast",
        })
    }
}

impl<T: Persistent> From<Ptr<T>> for AnyPtr {
    /// The null pointer becomes [`AnyPtr::NULL`], which is of no type.
    fn from(ptr: Ptr<T>) -> Self {
        if ptr.is_null() {
            return Self::NULL;
        }
        Self { offset: U64::new(ptr.offset()), id: U64::new(T::STORED.id()) }
    }
}

impl fmt::Debug for AnyPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyPtr({:#x}, type {:#x})", self.offset(), self.id())
    }
}

impl Persistent for AnyPtr {
    const NAME: &'static str = "adamant.any";
    const VERSION: u32 = 1;
}
