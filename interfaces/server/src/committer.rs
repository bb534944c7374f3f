//! Committing threads: one transaction and one commit for all units that wait.
//!
//! Purpose: group commit over connections. A thread that has the turn to write takes all units that
//! wait by then, runs them in one exclusive transaction and commits it once. While it waits for the
//! device, the turn is free: the next thread takes what has come meanwhile.
//! Invariants: a unit is answered when the commit with its changes is as durable as asked. If a
//! commit fails, nothing of its units was done, and each of them is tried alone, so that one that asks
//! for too much fails without the others; but not one whose value had a place of its own, which is gone then.
//! Thread safety: the queue is shared by all; a thread has one turn at a time.

use std::collections::VecDeque;
use std::time::Duration;

use adamant::Error;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use crate::data::Data;
use crate::ending::Ending;
use crate::execute::{self, Stop};
use crate::unit::Unit;
use crate::world::World;

/// Units in a group.
const GROUP_UNITS_MAX: usize = 1024;
/// Bytes of arguments in a group, about, unless one unit has more.
const GROUP_BYTES_MAX: usize = 16 << 20;

/// A unit, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) unit: Unit,
    /// The step at which the group found it, and the bytes of replies then.
    start: (usize, usize),
    done: oneshot::Sender<Unit>,
}

impl Job {
    /// Makes the unit what it was when its group found it.
    pub(crate) fn rewind(&mut self) {
        let (next, replies) = self.start;
        self.unit.next = next;
        self.unit.is_aborted = false;
        self.unit.replies.truncate(replies);
    }

    /// What was done of it stays done.
    pub(crate) fn keep(&mut self) {
        self.start = (self.unit.next, self.unit.replies.len());
    }

    /// Answers it.
    pub(crate) fn finish(self) {
        // A client that has gone wants no answer.
        let _ = self.done.send(self.unit);
    }
}

/// Units that wait for their turn: at most one of each client.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_ended: bool,
}

impl Queue {
    /// Hands a unit in. Who waits gets nothing if the server ends before.
    pub(crate) fn push(&self, unit: Unit) -> oneshot::Receiver<Unit> {
        let (done, waits) = oneshot::channel();
        let start = (unit.next, unit.replies.len());
        let mut waiting = self.waiting.lock();
        if !waiting.is_ended {
            waiting.jobs.push_back(Job { unit, start, done });
            self.arrived.notify_one();
        }
        waits
    }

    /// Units that wait now.
    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().jobs.len()
    }

    /// No unit is taken in any more; those that are there are done.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_ended = true;
        self.arrived.notify_all();
    }

    /// Waits for a unit; false if there will be none.
    fn wait(&self) -> bool {
        let mut waiting = self.waiting.lock();
        while waiting.jobs.is_empty() {
            if waiting.is_ended {
                return false;
            }
            self.arrived.wait(&mut waiting);
        }
        true
    }

    /// Waits so long for a unit; false if there will be none.
    pub(crate) fn wait_for(&self, longest: Duration) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.jobs.is_empty() && !waiting.is_ended {
            self.arrived.wait_for(&mut waiting, longest);
        }
        !waiting.is_ended || !waiting.jobs.is_empty()
    }

    /// Takes what waits, as far as it fits into one group.
    pub(crate) fn take(&self, bytes_max: usize) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        let (mut units, mut bytes) = (0, 0);
        for job in &waiting.jobs {
            bytes += job.unit.bytes;
            if units == GROUP_UNITS_MAX || units > 0 && bytes > bytes_max {
                break;
            }
            units += 1;
        }
        let jobs = waiting.jobs.drain(..units).collect();
        if !waiting.jobs.is_empty() {
            self.arrived.notify_one();
        }
        jobs
    }
}

/// What a committing thread does until the queue ends.
pub(crate) fn serve(world: &World, queue: &Queue, ending: &Ending) {
    while queue.wait() {
        let mut later = VecDeque::new();
        run_group(world, ending, &mut later, || queue.take(GROUP_BYTES_MAX));
        // Each alone: what has to be, and what was in a group that failed.
        while let Some(mut job) = later.pop_front() {
            if job.is_alone {
                execute::run_alone(world, &mut job.job.unit);
                job.job.keep();
            }
            let job = job.job;
            if job.unit.is_done() {
                job.finish();
            } else {
                run_group(world, ending, &mut later, || vec![job]);
            }
        }
    }
}

/// A unit that goes on outside its group.
struct Later {
    job: Job,
    /// Whether its next step is outside of all transactions.
    is_alone: bool,
}

/// Runs a group, which is made when it is its turn; answers those units that are done.
fn run_group(
    world: &World,
    ending: &Ending,
    later: &mut VecDeque<Later>,
    take: impl FnOnce() -> Vec<Job>,
) {
    let mut jobs = Vec::new();
    let committed = {
        let _shared = world.emptying.read();
        commit(world, take, &mut jobs)
    };
    match committed {
        Ok(stops) => {
            for (job, stop) in jobs.into_iter().zip(stops) {
                match stop {
                    Stop::Done | Stop::Enough => job.finish(),
                    Stop::Alone => later.push_back(Later { job, is_alone: true }),
                }
            }
        }
        Err(error) => {
            if error.is_poisoned() {
                ending.begin(Some(error.to_string()));
            }
            let tries_again = jobs.len() > 1 && !error.is_poisoned();
            for mut job in jobs {
                job.rewind();
                if tries_again && !job.unit.is_spent() {
                    later.push_back(Later { job, is_alone: false });
                } else {
                    world.health.note(&error, job.unit.bytes);
                    execute::fail(&mut job.unit, &execute::words_of(&error));
                    job.finish();
                }
            }
        }
    }
}

/// Runs a group in one transaction, from the moment at which it has the turn to write.
fn commit(
    world: &World,
    take: impl FnOnce() -> Vec<Job>,
    jobs: &mut Vec<Job>,
) -> Result<Vec<Stop>, Error> {
    let store = world.databases.store();
    let turn = store.begin_exclusive();
    // Also without a turn: they are told why.
    *jobs = take();
    let mut transaction = turn?;
    transaction.durability(world.durability());
    let mut data = Data::within(&world.databases, &world.watchers, &mut transaction);
    let stops = jobs
        .iter_mut()
        .map(|job| execute::run(world, &mut data, &mut job.unit))
        .collect::<Result<_, _>>()?;
    transaction.commit()?;
    Ok(stops)
}
