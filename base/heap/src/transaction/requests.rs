//! Posted requests: small commits that the holder of the writer lock does in a batch.
//!
//! Purpose: small commits of many threads. A thread that finds the writer lock taken posts its
//! request and keeps waiting for the lock, as any writer does; the holder of the lock takes the
//! posted requests along. Mostly the request is done before the thread's own turn in the queue
//! comes, and then it need not take the lock.
//! Invariants: a request is in one batch, once. Only the holder of the writer lock takes batches,
//! so they are taken one at a time and in the order of the tickets. A request has its outcome
//! before its ticket counts as done. If the thread that took a batch does not report success, each
//! request is told to go on alone.
//! Thread safety: any thread posts and asks. The lock is held while a request is posted, or for a
//! few instructions.

use std::mem;

use crate::error::Error;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The posted requests.
#[derive(Debug)]
pub(crate) struct Requests<B> {
    posted: Mutex<Posted<B>>,
    /// The last ticket that was given out.
    given: AtomicU64,
    /// The last ticket whose request has its outcome. Waiting threads poll it all the time.
    done: Apart<AtomicU64>,
    /// The record of the last batch.
    sequence: AtomicU64,
    /// Refusals not fetched yet. Spares `outcome` the lock.
    refusals: AtomicU64,
}

/// A value on two cache lines of its own, which processors fetch in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Apart<T>(T);

#[derive(Debug)]
struct Posted<B> {
    /// Boxed, so that taking it moves a pointer.
    batch: Box<B>,
    refused: Vec<(u64, Refusal)>,
}

/// Why a request was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It cannot be done.
    Wrong(Error),
    /// The batch that it was in failed; alone it may succeed.
    Alone,
}

/// A batch in progress. Dropping this tells each request that it is done, if it is, or else to go
/// on alone. Drop it while holding the writer lock under which it was taken.
#[derive(Debug)]
pub(crate) struct Taken<'r, B> {
    requests: &'r Requests<B>,
    first: u64,
    last: u64,
    /// The record that did all of it.
    done_by: Option<u64>,
}

impl<B> Requests<B> {
    /// No requests, with an empty batch to post to.
    pub(crate) fn new(batch: Box<B>) -> Self {
        Self {
            posted: Mutex::new(Posted { batch, refused: Vec::new() }),
            given: AtomicU64::new(0),
            done: Apart(AtomicU64::new(0)),
            sequence: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        }
    }

    /// Adds a request with its ticket to the batch that is taken next, if `add` says that there is
    /// room.
    pub(crate) fn post(&self, add: impl FnOnce(&mut B, u64) -> bool) -> Option<u64> {
        let mut posted = self.posted.lock();
        let ticket = self.given.load(Ordering::Relaxed) + 1;
        if !add(&mut posted.batch, ticket) {
            return None;
        }
        self.given.store(ticket, Ordering::Release);
        Some(ticket)
    }

    /// Whether requests wait, as far as is known now. Only the holder of the writer lock calls it.
    #[inline]
    pub(crate) fn are_waiting(&self) -> bool {
        self.given.load(Ordering::Acquire) != self.done.0.load(Ordering::Relaxed)
    }

    /// How many requests wait, or waited during the call. Loads `done` first: in the other order, a
    /// request that is posted and done in between would make it exceed `given`.
    pub(crate) fn waiting(&self) -> u64 {
        let done = self.done.0.load(Ordering::Acquire);
        self.given.load(Ordering::Acquire) - done
    }

    /// Takes what was posted, in exchange for an empty batch. Only the holder of the writer lock
    /// calls it.
    #[inline]
    pub(crate) fn take(&self, batch: &mut Box<B>) -> Option<Taken<'_, B>> {
        if !self.are_waiting() {
            return None;
        }
        let mut posted = self.posted.lock();
        mem::swap(&mut posted.batch, batch);
        let first = self.done.0.load(Ordering::Relaxed) + 1;
        let last = self.given.load(Ordering::Relaxed);
        Some(Taken { requests: self, first, last, done_by: None })
    }

    /// Whether a request has its outcome.
    #[inline]
    pub(crate) fn is_done(&self, ticket: u64) -> bool {
        self.done.0.load(Ordering::Acquire) >= ticket
    }

    /// The outcome of a request that is done: a record that it is in, or a later one.
    pub(crate) fn outcome(&self, ticket: u64) -> Result<u64, Refusal> {
        if self.refusals.load(Ordering::Relaxed) > 0 {
            let refused = &mut self.posted.lock().refused;
            if let Some(at) = refused.iter().position(|(of, _)| *of == ticket) {
                let (_, refusal) = refused.swap_remove(at);
                self.refusals.store(refused.len() as u64, Ordering::Relaxed);
                return Err(refusal);
            }
        }
        Ok(self.sequence.load(Ordering::Relaxed))
    }

    fn end(&self, last: u64, refused: impl Iterator<Item = (u64, Refusal)>) {
        let mut refused = refused.peekable();
        if refused.peek().is_some() {
            let all = &mut self.posted.lock().refused;
            all.extend(refused);
            self.refusals.store(all.len() as u64, Ordering::Relaxed);
        }
        // A thread that finds its ticket done sees what was stored above.
        self.done.0.store(last, Ordering::Release);
    }
}

impl<B> Taken<'_, B> {
    /// Ends the batch: that record did all requests, or they needed none, except the refused ones.
    pub(crate) fn finish(self, sequence: Option<u64>, refused: &mut Vec<(u64, Error)>) {
        if let Some(sequence) = sequence {
            self.requests.sequence.store(sequence, Ordering::Relaxed);
        }
        let refused = refused.drain(..).map(|(ticket, error)| (ticket, Refusal::Wrong(error)));
        self.requests.end(self.last, refused);
        mem::forget(self);
    }

    /// That record, or an earlier one, did all requests; dropping this tells each of them so.
    pub(crate) fn is_done_by(&mut self, sequence: u64) {
        self.done_by = Some(sequence);
    }
}

impl<B> Drop for Taken<'_, B> {
    fn drop(&mut self) {
        if let Some(sequence) = self.done_by {
            self.requests.sequence.store(sequence, Ordering::Relaxed);
            return self.requests.end(self.last, std::iter::empty());
        }
        let alone = (self.first..=self.last).map(|ticket| (ticket, Refusal::Alone));
        self.requests.end(self.last, alone);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn post(requests: &Requests<Vec<u32>>, request: u32) -> Option<u64> {
        requests.post(|batch, _| {
            batch.push(request);
            batch.len() <= 3
        })
    }

    #[test]
    fn each_request_is_in_one_batch_and_has_its_own_outcome() {
        let requests = Requests::new(Box::default());
        let mut batch = Box::default();
        assert!(!requests.are_waiting() && requests.take(&mut batch).is_none());
        let tickets = [5, 6, 7].map(|request| post(&requests, request).expect("there is room"));
        let taken = requests.take(&mut batch).expect("some wait");
        assert_eq!(*batch, [5, 6, 7]);
        let later = post(&requests, 8).expect("there is room");
        assert!(tickets.iter().all(|ticket| !requests.is_done(*ticket)));
        taken.finish(Some(40), &mut vec![(tickets[1], Error::ReadOnly)]);
        assert!(tickets.iter().all(|ticket| requests.is_done(*ticket)));
        assert!(!requests.is_done(later) && requests.are_waiting());
        let [first, second, third] = tickets.map(|ticket| requests.outcome(ticket));
        assert!(matches!((first, third), (Ok(40), Ok(40))));
        assert!(matches!(second, Err(Refusal::Wrong(Error::ReadOnly))));
        batch.clear();
        drop(requests.take(&mut batch).expect("one waits"));
        assert_eq!(*batch, [8]);
        assert!(requests.is_done(later) && !requests.are_waiting());
        assert!(matches!(requests.outcome(later), Err(Refusal::Alone)));
        assert_eq!(requests.refusals.into_inner(), 0);
    }

    #[test]
    fn a_full_batch_takes_no_more() {
        let requests = Requests::new(Box::default());
        assert!([1, 2, 3].iter().all(|request| post(&requests, *request).is_some()));
        assert!(post(&requests, 4).is_none());
        drop(requests.take(&mut Box::default()));
        assert!(post(&requests, 4).is_some());
    }
}

/// Every order in which threads can post, take the writer lock and do requests of others, as memory
/// may show it to them.
#[cfg(all(test, loom))]
mod every_order {
    use std::sync::Arc;

    use loom::cell::UnsafeCell;
    use loom::thread;

    use super::*;
    use crate::latch::writer_queue::WriterQueue;
    use crate::sync;

    /// How often each request was done: changed under the writer lock, read by the thread that
    /// asked when it is told that its request is done. Loom reports if it was not, or when all
    /// threads sleep.
    struct World {
        writer_queue: WriterQueue<()>,
        requests: Requests<Vec<usize>>,
        counts: [UnsafeCell<u32>; 3],
        /// The batch that fails, counted from 0.
        fails: Option<u32>,
        batches: UnsafeCell<u32>,
        /// Waits and answers as `Heap::transaction_combined` instead of as `Heap::publish`.
        serves: bool,
    }

    // SAFETY: the test checks that one thread at a time changes the cells.
    unsafe impl Sync for World {}
    // SAFETY: as above.
    unsafe impl Send for World {}

    impl World {
        /// As `Heap::combine`.
        fn combine(&self, own: Option<usize>) {
            let mut batch = Box::default();
            let taken = self.requests.take(&mut batch);
            // SAFETY: as above; loom checks it.
            let number = self.batches.with_mut(|batches| unsafe {
                *batches += 1;
                *batches - 1
            });
            if self.fails == Some(number) {
                batch.clear();
            }
            for request in batch.iter().copied().chain(own) {
                // SAFETY: as above.
                self.counts[request].with_mut(|count| unsafe { *count += 1 });
            }
            if let Some(mut taken) = taken.filter(|_| self.fails != Some(number)) {
                if self.serves {
                    taken.is_done_by(1);
                } else {
                    taken.finish(Some(1), &mut Vec::new());
                }
            }
        }

        /// As `Heap::act`, and as `Heap::transaction_combined`.
        fn act(&self, request: usize) {
            match self.writer_queue.try_wait() {
                Some(_permit) => self.combine(Some(request)),
                None => self.act_later(request),
            }
            // SAFETY: as above.
            let count = self.counts[request].with(|count| unsafe { *count });
            assert_eq!(count, 1, "it was said to be done");
        }

        fn act_later(&self, request: usize) {
            let ticket = self.requests.post(|batch, _| {
                batch.push(request);
                true
            });
            let ticket = ticket.expect("there is room");
            let is_done = || self.requests.is_done(ticket);
            let permit = match self.serves {
                true => {
                    self.writer_queue.wait_served(is_done, || self.requests.waiting() <= 1, true)
                }
                false => self.writer_queue.wait_unless(is_done),
            };
            if let Some(_permit) = permit
                && !is_done()
            {
                self.combine(None);
            }
            if self.requests.outcome(ticket).is_err() {
                let _permit = self.writer_queue.wait();
                self.combine(Some(request));
            }
        }
    }

    fn explore(fails: Option<u32>, serves: bool) {
        let make = move || World {
            writer_queue: WriterQueue::new(()),
            requests: Requests::new(Box::default()),
            counts: std::array::from_fn(|_| UnsafeCell::new(0)),
            fails,
            batches: UnsafeCell::new(0),
            serves,
        };
        sync::explore(2, 2, make, World::act, |world, _| {
            assert!(!world.requests.are_waiting(), "nothing is left");
        });
    }

    #[test]
    fn every_request_is_done_once_and_nobody_sleeps_for_ever() {
        explore(None, false);
        explore(None, true);
    }

    #[test]
    fn how_many_wait_is_told_while_others_are_done() {
        loom::model(|| {
            let requests = Arc::new(Requests::<u32>::new(Box::default()));
            let other = Arc::clone(&requests);
            let other = thread::spawn(move || {
                let post = || other.post(|_, _| true).expect("there is room");
                post();
                let taken = other.take(&mut Box::default());
                // Loom knows only the last read of a value that a thread then changes: it has to be
                // the read of the thread that asks.
                thread::yield_now();
                drop(taken);
                post();
                drop(other.take(&mut Box::default()));
            });
            thread::yield_now();
            assert!(requests.waiting() <= 2, "two are posted");
            other.join().expect("no panic");
        });
    }

    #[test]
    fn of_a_batch_that_fails_each_goes_on_alone() {
        for serves in [false, true] {
            explore(Some(0), serves);
            explore(Some(1), serves);
        }
    }
}
