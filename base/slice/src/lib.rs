//! A 24-byte immutable byte string.
//!
//! Up to 20 bytes live in the value itself. More live in a block with an 8-byte header that counts
//! its users, so clones and sub-slices share it; or they belong to another owner (a cache, a mapped
//! file, a `Vec<u8>`), which the slice keeps alive. The first 4 bytes are always in the value, so
//! most comparisons end without following a pointer.
//!
//! ```
//! use adamant_slice::Slice;
//!
//! let page = Slice::from(&b"a page that was read once and is handed out in pieces"[..]);
//! let piece = page.slice(7..41);
//! assert_eq!(piece, b"that was read once and is handed o");
//! assert_eq!(piece.as_ptr(), page[7..].as_ptr());
//! ```
//!
//! Without the default feature `std` the crate needs only `alloc`. The features `serde`, `bytes`
//! and `arbitrary` add the traits of those crates, and conversions to and from `bytes::Bytes`.

#![no_std]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod few;
mod sync;

mod shared;

mod repr;

mod slice;

mod convert;
mod lender;

mod builder;
#[cfg(feature = "std")]
mod io;
mod text;

#[cfg(feature = "arbitrary")]
mod with_arbitrary;
#[cfg(feature = "bytes")]
mod with_bytes;
#[cfg(feature = "serde")]
mod with_serde;

pub use builder::Builder;
pub use error::{Error, Result};
pub use lender::Lender;
pub use slice::{INLINE_BYTES_MAX, SLICE_BYTES_MAX, Slice};
pub use text::Text;
