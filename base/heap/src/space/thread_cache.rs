//! Thread caches: per-thread shards for reservations beside the writer.
//!
//! Purpose: give each thread a shard behind an uncontended lock, so that reservations scale with
//! the threads. A thread takes the cache that its number selects or, if that one is taken, the next
//! free one.
//! Thread safety: any thread. Lock order: thread caches before the arena (`state.rs`).

use std::sync::Arc;

use crate::latch::spin::{SpinLock, Taken};
use crate::space::reservation::{Holder, Shares};
use crate::space::shard::Shard;
use crate::sync::wait;

/// Thread caches of a heap. More threads than that share them.
const THREAD_CACHES: usize = 32;

/// The shard and shares that one thread at a time works with.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    pub(crate) shard: Shard,
    /// `None` once the heap is closed.
    pub(crate) shares: Option<Shares>,
}

/// Two cache lines, which processors fetch in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

/// All thread caches of a heap.
#[derive(Debug)]
pub(crate) struct ThreadCaches(Box<[Padded<SpinLock<ThreadCache>>]>);

impl ThreadCaches {
    /// Thread caches whose reservations keep alive what `holder` returns.
    pub(crate) fn new(holder: impl Fn() -> Arc<Holder>) -> Self {
        let thread_cache =
            || ThreadCache { shard: Shard::new(true), shares: Some(Shares::new(holder())) };
        Self((0..THREAD_CACHES).map(|_| Padded(SpinLock::new(thread_cache()))).collect())
    }

    /// A thread cache for the thread with that number.
    #[inline]
    pub(crate) fn enter(&self, thread: usize) -> Taken<'_, ThreadCache> {
        match self.0[thread % THREAD_CACHES].0.try_take() {
            Some(thread_cache) => thread_cache,
            None => self.sit_anywhere(thread),
        }
    }

    #[cold]
    fn sit_anywhere(&self, thread: usize) -> Taken<'_, ThreadCache> {
        loop {
            let mut others =
                (1..=THREAD_CACHES).map(|step| &self.0[(thread + step) % THREAD_CACHES].0);
            if let Some(thread_cache) = others.find_map(SpinLock::try_take) {
                return thread_cache;
            }
            wait(|| false);
        }
    }

    /// All thread caches, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Taken<'_, ThreadCache>> {
        self.0.iter().map(|thread_cache| thread_cache.0.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_desk_is_one_threads_and_others_are_given_when_it_is_taken() {
        let thread_cache =
            |_| Padded(SpinLock::new(ThreadCache { shard: Shard::new(true), shares: None }));
        let thread_caches = ThreadCaches((0..THREAD_CACHES).map(thread_cache).collect());
        let address =
            |thread_cache: Taken<'_, ThreadCache>| std::ptr::from_ref(&*thread_cache).addr();
        let all: Vec<usize> = thread_caches.all().map(address).collect();
        assert_eq!(address(thread_caches.enter(7 + THREAD_CACHES)), all[7]);
        let taken: Vec<_> = (0..THREAD_CACHES).map(|_| thread_caches.enter(7)).collect();
        let mut places: Vec<usize> =
            taken.iter().map(|thread_cache| std::ptr::from_ref(&**thread_cache).addr()).collect();
        assert_eq!(places[0], all[7]);
        places.sort_unstable();
        assert_eq!(places, all);
    }
}
