//! The atomics of this crate, in one place so that loom can replace them.
//!
//! Purpose: `RUSTFLAGS="--cfg loom" cargo test -p adamant-slice --test loom` explores every order
//! in which threads can clone and drop a slice.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, Ordering};
