//! The atomics of the order of entries, in one place so that loom can stand in for them.
//!
//! Purpose: `RUSTFLAGS="--cfg loom" cargo test -p adamant-heap --lib order::` explores every order in
//! which lanes can take numbers and others can look at them.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(super) use std::thread::yield_now;

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::thread::yield_now;
