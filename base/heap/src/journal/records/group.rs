//! The group commit: one waiting thread flushes the device for all.
//!
//! Purpose: a flush takes some 100 us whatever it covers, so commits that wait at once share one.
//! There is no thread for it: a thread that finds no leader leads, and includes all that was
//! appended by then.
//! Invariants: there is one leader at a time. A thread that led or waited with success finds its
//! record durable. A leader that fails, or panics, makes room for the next one, which first asks
//! whether any flush may follow (R1).
//! Thread safety: any thread; nothing is locked while the leader works.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, sleep};

/// Threads that wait for durable records, and the last durable record.
#[derive(Debug)]
pub(in crate::journal) struct Group<S> {
    durable: AtomicU64,
    state: Mutex<State<S>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State<S> {
    has_leader: bool,
    /// Memory for the leader's work, kept for the next one.
    spare: S,
}

/// Leadership; dropping it makes room for the next leader and wakes all waiters.
struct Leading<'g, S: Default> {
    group: &'g Group<S>,
    spare: S,
}

impl<S: Default> Drop for Leading<'_, S> {
    fn drop(&mut self) {
        let mut state = self.group.state.lock();
        state.spare = std::mem::take(&mut self.spare);
        state.has_leader = false;
        drop(state);
        self.group.changed.notify_all();
    }
}

impl<S: Default> Group<S> {
    /// Everything up to record `durable` is durable.
    pub(in crate::journal) fn new(durable: u64) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::default());
        Self { durable: AtomicU64::new(durable), state, changed }
    }

    /// The last record known durable.
    #[inline]
    pub(in crate::journal) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Waits until record `sequence`, which was appended before, is durable: until another thread
    /// has led, or else by leading. `lead` makes durable all that was appended, and returns the
    /// last record of that; `check` is called before a thread leads or waits.
    ///
    /// # Errors
    /// Those of `check` and `lead`.
    pub(in crate::journal) fn reach<E>(
        &self,
        sequence: u64,
        check: impl Fn() -> Result<(), E>,
        lead: impl FnOnce(&mut S) -> Result<u64, E>,
    ) -> Result<(), E> {
        if self.durable() >= sequence {
            return Ok(());
        }
        let mut state = self.state.lock();
        loop {
            if self.durable() >= sequence {
                return Ok(());
            }
            check()?;
            if !state.has_leader {
                break;
            }
            state = sleep(&self.changed, state);
        }
        state.has_leader = true;
        let spare = std::mem::take(&mut state.spare);
        drop(state);
        let mut leading = Leading { group: self, spare };
        let reached = lead(&mut leading.spare)?;
        // Before the others are woken, by dropping `leading`.
        self.note_durable(reached);
        Ok(())
    }

    /// Everything up to record `sequence` is durable, whichever thread made it so.
    #[inline]
    pub(in crate::journal) fn note_durable(&self, sequence: u64) {
        self.durable.fetch_max(sequence, Ordering::AcqRel);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_leader_that_panics_leaves_its_place() {
        let group = Group::<Vec<u8>>::new(0);
        let group = &group;
        let panicked = std::thread::scope(|scope| {
            let lead = |_: &mut Vec<u8>| -> Result<u64, ()> { panic!("while leading") };
            scope.spawn(move || group.reach(1, || Ok(()), lead)).join().is_err()
        });
        assert!(panicked);
        assert_eq!(group.reach(1, || Ok::<(), ()>(()), |_| Ok(1)), Ok(()));
        assert_eq!(group.durable(), 1);
    }

    #[test]
    fn who_waits_is_told_of_what_forbids_to_go_on() {
        let group = Group::<Vec<u8>>::new(5);
        assert_eq!(group.reach(5, || Err("poisoned"), |_| Ok(9)), Ok(()), "it is durable");
        assert_eq!(group.reach(6, || Err("poisoned"), |_| Ok(9)), Err("poisoned"));
        assert_eq!(group.reach(6, || Ok(()), |_| Err("no sync")), Err("no sync"));
        assert_eq!(group.durable(), 5);
    }
}

/// Every order in which threads can append, lead and wait, under the memory model.
#[cfg(all(test, loom))]
mod every_order {
    use loom::cell::UnsafeCell;

    use super::*;
    use crate::sync::{self, AtomicBool};

    /// A log whose flushes, counted in `device`, must not overlap; loom reports if they do.
    struct Log {
        group: Group<Vec<u8>>,
        last: AtomicU64,
        device: UnsafeCell<u64>,
        poisoned: AtomicBool,
        /// The flush that fails, counted from 0.
        fails: Option<u64>,
    }

    // SAFETY: the test verifies that one thread at a time has the device.
    unsafe impl Sync for Log {}
    // SAFETY: as above.
    unsafe impl Send for Log {}

    impl Log {
        /// Appends a record and waits until it is durable; whether it is.
        fn commit(&self) -> bool {
            let sequence = self.last.fetch_add(1, Ordering::AcqRel) + 1;
            let check = || match self.poisoned.load(Ordering::Acquire) {
                true => Err(()),
                false => Ok(()),
            };
            let reached = self.group.reach(sequence, check, |_| {
                let written = self.last.load(Ordering::Acquire);
                // SAFETY: as above; loom looks after it.
                let flushes = self.device.with_mut(|flushes| unsafe {
                    *flushes += 1;
                    *flushes
                });
                if self.fails == Some(flushes - 1) {
                    self.poisoned.store(true, Ordering::Release);
                    return Err(());
                }
                Ok(written)
            });
            assert!(
                reached.is_err() || self.group.durable() >= sequence,
                "it was said to be durable"
            );
            reached.is_ok()
        }
    }

    fn explore(fails: Option<u64>) {
        let make = move || Log {
            group: Group::new(0),
            last: AtomicU64::new(0),
            device: UnsafeCell::new(0),
            poisoned: AtomicBool::new(false),
            fails,
        };
        let commit = |log: &Log, _| u64::from(log.commit());
        sync::explore(2, 2, make, commit, move |log, durable| {
            let durable: u64 = durable.iter().sum();
            if fails.is_none() {
                assert_eq!((durable, log.group.durable()), (3, 3));
            } else {
                assert!(log.group.durable() >= durable);
            }
        });
    }

    #[test]
    fn all_that_wait_find_their_records_durable() {
        explore(None);
    }

    #[test]
    fn a_failed_flush_is_told_to_all_that_it_concerns() {
        explore(Some(0));
        explore(Some(1));
    }
}
