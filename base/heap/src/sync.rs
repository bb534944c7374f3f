//! Locks and atomics of the code that loom checks, in one place so that loom can replace them.
//!
//! Purpose: `RUSTFLAGS="--cfg loom" cargo test -p adamant-heap --lib every_order` explores the
//! orders in which writers take the writer lock, and in which threads pass the image latch, shared
//! or exclusively, and pin what they see.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
#[cfg(not(loom))]
pub(crate) use std::thread::yield_now;

#[cfg(not(loom))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

#[cfg(loom)]
pub(crate) use loom::sync::MutexGuard;
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
#[cfg(loom)]
pub(crate) use loom::thread::yield_now;

#[cfg(loom)]
pub(crate) use stand_ins::{Condvar, Mutex};

/// Loom's locks under the names of the others: no thread panics while holding them.
#[cfg(loom)]
mod stand_ins {
    use super::MutexGuard;

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no panic")
        }

        pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }
    }

    #[derive(Debug, Default)]
    pub(crate) struct Condvar(loom::sync::Condvar);

    impl Condvar {
        pub(crate) fn notify_all(&self) {
            self.0.notify_all();
        }

        pub(crate) fn notify_one(&self) {
            self.0.notify_one();
        }

        pub(crate) fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
            self.0.wait(guard).expect("no panic")
        }
    }
}

/// Checks of a condition in a row, of about a microsecond.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 32 };

/// Checks for about a microsecond whether something has happened. For a thread that will sleep if
/// it takes longer: beside other programs that compute, a yield costs the rest of the thread's time
/// slice, 3 ms, and a sleep does not.
pub(crate) fn spin(has_happened: impl Fn() -> bool) -> bool {
    for _ in 0..LOOKS {
        if has_happened() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// As [`spin`], then yields to other threads. For a thread that no other would wake.
pub(crate) fn wait(has_happened: impl Fn() -> bool) {
    if !spin(has_happened) {
        yield_now();
    }
}

/// Sleeps until it is notified of a change; releases the lock meanwhile.
pub(crate) fn sleep<'m, T>(changed: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    #[cfg(loom)]
    let guard = changed.wait(guard);
    #[cfg(not(loom))]
    let guard = {
        let mut guard = guard;
        changed.wait(&mut guard);
        guard
    };
    guard
}

/// Sleeps until it is notified of a change, but not beyond `end`; returns whether `end` came first.
/// Under loom, which has no time, that is always true.
pub(crate) fn sleep_until<'m, T>(
    lock: &'m Mutex<T>,
    changed: &Condvar,
    guard: MutexGuard<'m, T>,
    end: std::time::Instant,
) -> (MutexGuard<'m, T>, bool) {
    #[cfg(loom)]
    let slept = {
        let _ = end;
        (nap(lock, changed, guard, std::time::Duration::ZERO), true)
    };
    #[cfg(not(loom))]
    let slept = {
        let _ = lock;
        let mut guard = guard;
        let is_late = changed.wait_until(&mut guard, end).timed_out();
        (guard, is_late)
    };
    slept
}

/// Whether a moment has come; under loom it never has.
pub(crate) fn is_over(end: std::time::Instant) -> bool {
    !cfg!(loom) && std::time::Instant::now() >= end
}

/// Sleeps until it is notified of a change, but not for long: under loom, which has no time, it
/// ends at once.
pub(crate) fn nap<'m, T>(
    lock: &'m Mutex<T>,
    changed: &Condvar,
    guard: MutexGuard<'m, T>,
    longest: std::time::Duration,
) -> MutexGuard<'m, T> {
    #[cfg(loom)]
    let guard = {
        let _ = (changed, longest);
        drop(guard);
        yield_now();
        lock.lock()
    };
    #[cfg(not(loom))]
    let guard = {
        let _ = lock;
        let mut guard = guard;
        changed.wait_for(&mut guard, longest);
        guard
    };
    guard
}

/// Between two accesses that are `SeqCst`: nothing, as they are in a total order. Loom treats them
/// only as acquire and release, but has such fences.
#[inline]
pub(crate) fn in_total_order() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}

/// Runs a model in every order in which its threads can meet, as memory may show it to them. Each
/// of `threads` and the calling thread, which is the last one, calls `work` with its number; then
/// `end` gets what they returned. Threads are preempted `preemptions_max` times at most: there are
/// too many orders of waiting for each other to explore all of them.
#[cfg(all(test, loom))]
pub(crate) fn explore<S: Send + Sync + 'static, T: 'static>(
    preemptions_max: usize,
    threads: usize,
    make: impl Fn() -> S + Send + Sync + 'static,
    work: impl Fn(&S, usize) -> T + Copy + Send + Sync + 'static,
    end: impl Fn(&S, &[T]) + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.check(move || {
        let shared = std::sync::Arc::new(make());
        let spawn = |number| {
            let shared = std::sync::Arc::clone(&shared);
            loom::thread::spawn(move || work(&shared, number))
        };
        let others: Vec<_> = (0..threads).map(spawn).collect();
        let last = work(&shared, threads);
        let mut done: Vec<T> =
            others.into_iter().map(|other| other.join().expect("no panic")).collect();
        done.push(last);
        end(&shared, &done);
    });
}
