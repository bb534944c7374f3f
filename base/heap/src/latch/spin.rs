//! A spin lock that a plain store releases.
//!
//! Purpose: guards data that one thread mostly uses alone, such as its thread cache. Releasing a
//! mutex takes a second locked instruction, which looks for sleepers: some 5 ns, a twentieth of a
//! small commit. Here no thread sleeps: one that finds a lock taken tries another one, or yields
//! until it is free.
//! Invariants: only the holder touches the value.
//! Thread safety: any thread.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::MutexGuard;

use crate::sync::wait;

/// The lock, and the value that it guards.
#[derive(Debug, Default)]
pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `Taken` alone, of which there is one at a time; so sharing
// the lock sends the value from thread to thread, and no more.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Takes the lock, if it is free. Never waits.
    #[inline]
    pub(crate) fn try_take(&self) -> Option<Taken<'_, T>> {
        let is_free = !self.taken.load(Ordering::Relaxed)
            && self
                .taken
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        is_free.then(|| Taken(self, PhantomData))
    }

    /// Waits for the lock.
    pub(crate) fn take(&self) -> Taken<'_, T> {
        loop {
            if let Some(taken) = self.try_take() {
                return taken;
            }
            wait(|| !self.taken.load(Ordering::Relaxed));
        }
    }
}

/// The guard; dropping it releases the lock. Like the guard of a mutex it stays on its thread, and
/// can be shared if the value can.
#[derive(Debug)]
pub(crate) struct Taken<'s, T>(&'s SpinLock<T>, PhantomData<MutexGuard<'s, T>>);

impl<T> Deref for Taken<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: this is the only `Taken` of the lock, and it is borrowed.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Taken<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this is the only `Taken` of the lock, and it is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time() {
        let seat = SpinLock::<[u64; 2]>::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        let mut taken = seat.take();
                        taken[0] += 1;
                        assert_eq!(taken[0], taken[1] + 1);
                        taken[1] += 1;
                    }
                });
            }
        });
        let taken = seat.take();
        assert_eq!(*taken, [80_000; 2]);
        assert!(seat.try_take().is_none());
    }

    #[test]
    fn a_panic_lets_go() {
        let seat = SpinLock::<u8>::default();
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _taken = seat.take();
            panic!("while seated");
        }));
        assert!(panic.is_err() && seat.try_take().is_some());
    }
}
