//! The locks and atomics of what loom looks into, in one place so that it can stand in for them.
//!
//! Purpose: `RUSTFLAGS="--cfg loom" cargo test -p adamant-heap --lib every_order` explores the orders in
//! which lanes take numbers and threads go through the gate of the image.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(not(loom))]
pub(crate) use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::{RwLockReadGuard, RwLockWriteGuard};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;

/// Loom's lock as the other one is called: nobody panics while having it.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

#[cfg(loom)]
impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect("no panic")
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect("no panic")
    }

    pub(crate) fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.0.try_write().ok()
    }
}

/// Between two accesses that are `SeqCst`: nothing, as they are. Loom knows of them only that they
/// acquire and release, but has such fences.
#[inline]
pub(crate) fn in_total_order() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
