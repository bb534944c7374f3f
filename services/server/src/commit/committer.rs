//! Group commit: one transaction and one commit for all waiting units.
//!
//! Purpose: group commit over connections, by their own tasks: see [`crate::serving::turn`]. The
//! holder of the commit lock takes all waiting units, runs them in one exclusive transaction and
//! commits it. If commits must be on the device, a thread syncs all that wait at once, while others
//! are made.
//! Invariants: a unit is answered when the commit with its changes is as durable as requested. If a
//! commit fails, none of its changes happened, and each unit is tried alone, so that one that asks
//! for too much fails without the others. A unit whose value had reserved room is not tried again,
//! because the value is gone then.
//! Thread safety: the queue is shared by all; one thread at a time holds the commit lock.

use std::collections::VecDeque;
use std::time::Duration;

use adamant::{Durability, Error, SyncPoint};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::commit::ending::Ending;
use crate::commit::execute::{self, Stop};
use crate::commit::unit::Unit;
use crate::commit::world::World;
use crate::state::data::Data;

/// Maximum units of a group.
const GROUP_UNITS_MAX: usize = 1024;
/// Approximate argument bytes of a group, unless one unit has more.
const GROUP_BYTES_MAX: usize = 16 << 20;
/// Maximum argument bytes of a group that a runtime thread commits without handing its tasks over:
/// with small values some thousand commands, of 3 us each. Handing the tasks to another thread took
/// a quarter of the throughput of pipelines of 16.
const SHORT_BYTES_MAX: usize = 512 << 10;

/// A unit, and the channel to its waiting client.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) unit: Unit,
    /// The step at which the group found it, and the reply bytes then.
    start: (usize, usize),
    done: oneshot::Sender<Unit>,
}

impl Job {
    /// Resets the unit to the state in which its group found it.
    pub(crate) fn rewind(&mut self) {
        let (next, replies) = self.start;
        self.unit.next = next;
        self.unit.is_aborted = false;
        self.unit.replies.truncate(replies);
    }

    /// Keeps the steps that were done.
    pub(crate) fn keep(&mut self) {
        self.start = (self.unit.next, self.unit.replies.len());
    }

    /// Answers it.
    pub(crate) fn finish(self) {
        // A client that has gone needs no answer.
        let _ = self.done.send(self.unit);
    }
}

/// Waiting units: at most one of each client.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    /// The commit lock.
    committing: Mutex<()>,
    /// Commits that must be on the device before they are answered.
    flushing: Mutex<Flushing>,
    committed: Condvar,
}

#[derive(Debug, Default)]
struct Flushing {
    groups: Vec<Committed>,
    is_ended: bool,
}

/// Units, and the sync point at which all of their commits are durable.
#[derive(Debug)]
struct Committed {
    jobs: Vec<Job>,
    by: SyncPoint,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    is_ended: bool,
}

impl Queue {
    /// Queues a unit. The receiver gets nothing if the server ends before.
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

    /// Number of waiting units.
    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().jobs.len()
    }

    /// Accepts no more units; those that wait are run.
    pub(crate) fn end(&self) {
        self.waiting.lock().is_ended = true;
        self.arrived.notify_all();
    }

    /// The commit lock, unless another task holds it.
    pub(crate) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.committing.try_lock()
    }

    /// Whether the waiting units take only a moment.
    pub(crate) fn is_short(&self) -> bool {
        let waiting = self.waiting.lock();
        let bytes: usize = waiting.jobs.iter().map(|job| job.unit.bytes).sum();
        bytes <= SHORT_BYTES_MAX && !waiting.jobs.iter().any(|job| job.unit.is_long)
    }

    /// Accepts no more commits to be synced; those that wait are synced.
    pub(crate) fn end_flushes(&self) {
        self.flushing.lock().is_ended = true;
        self.committed.notify_all();
    }

    /// Waits for commits to be synced; none at the end.
    fn wait_for_flush(&self) -> Vec<Committed> {
        let mut flushing = self.flushing.lock();
        while flushing.groups.is_empty() && !flushing.is_ended {
            self.committed.wait(&mut flushing);
        }
        std::mem::take(&mut flushing.groups)
    }

    /// Answers units whose changes are all committed: once they are on the device, if that is
    /// required.
    fn answer(&self, world: &World, jobs: Vec<Job>) {
        if jobs.is_empty() {
            return;
        }
        let point = match world.durability() {
            Durability::Sync => world.databases.store().sync_point().map(Some),
            Durability::Buffered | Durability::Deferred => Ok(None),
        };
        match point {
            Ok(None) => jobs.into_iter().for_each(Job::finish),
            Ok(Some(by)) => {
                self.flushing.lock().groups.push(Committed { jobs, by });
                self.committed.notify_one();
            }
            Err(error) => fail(jobs, &execute::words_of(&error)),
        }
    }

    /// Waits up to `longest` for a unit; false at the end.
    pub(crate) fn wait_for(&self, longest: Duration) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.jobs.is_empty() && !waiting.is_ended {
            self.arrived.wait_for(&mut waiting, longest);
        }
        !waiting.is_ended || !waiting.jobs.is_empty()
    }

    /// Takes waiting units, as far as they fit into one group.
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
        waiting.jobs.drain(..units).collect()
    }
}

/// Commits a group of waiting units, and those of it that must continue alone. To be called with
/// the commit lock.
pub(crate) fn run_waiting(world: &World, queue: &Queue, ending: &Ending) {
    let mut later = VecDeque::new();
    let done = run_group(world, ending, &mut later, &mut || queue.take(GROUP_BYTES_MAX));
    queue.answer(world, done);
    // Each alone: those that must be, and those of a group that failed.
    while let Some(Later { mut job, is_alone }) = later.pop_front() {
        if is_alone {
            execute::run_alone(world, &mut job.unit);
            // Its replies are sent whatever happens to the rest: everything that they report must
            // be on the device.
            if let Err(error) = sync(world) {
                ending.begin(Some(error.to_string()));
                fail(vec![job], &execute::words_of(&error));
                continue;
            }
            job.keep();
        }
        let mut jobs = vec![job];
        if !jobs[0].unit.is_done() {
            jobs = run_group(world, ending, &mut later, &mut || std::mem::take(&mut jobs));
        }
        queue.answer(world, jobs);
    }
}

/// Syncs all commits to the device, if that is required.
fn sync(world: &World) -> Result<(), Error> {
    match world.durability() {
        Durability::Sync => world.databases.store().sync(),
        Durability::Buffered | Durability::Deferred => Ok(()),
    }
}

/// The loop of the thread that syncs commits to the device, until the queue ends.
pub(crate) fn serve_flushes(queue: &Queue, ending: &Ending) {
    loop {
        let groups = queue.wait_for_flush();
        if groups.is_empty() {
            return;
        }
        // The first one waits; its sync usually includes the others.
        for Committed { jobs, by } in groups {
            match by.wait() {
                Ok(()) => jobs.into_iter().for_each(Job::finish),
                Err(error) => {
                    ending.begin(Some(error.to_string()));
                    fail(jobs, &execute::words_of(&error));
                }
            }
        }
    }
}

/// Answers units with an error, as if none of their steps was done.
pub(crate) fn fail(jobs: Vec<Job>, words: &str) {
    for mut job in jobs {
        job.rewind();
        execute::fail(&mut job.unit, words);
        job.finish();
    }
}

/// A unit that continues outside its group.
struct Later {
    job: Job,
    /// Whether its next step runs outside of all transactions.
    is_alone: bool,
}

/// Runs a group, which is taken when the write permit is there; returns the units to be answered.
fn run_group(
    world: &World,
    ending: &Ending,
    later: &mut VecDeque<Later>,
    take: &mut dyn FnMut() -> Vec<Job>,
) -> Vec<Job> {
    let mut jobs = Vec::new();
    let committed = {
        let _shared = world.emptying.read();
        commit(world, take, &mut jobs)
    };
    let mut done = Vec::with_capacity(jobs.len());
    match committed {
        Ok(stops) => {
            for (job, stop) in jobs.into_iter().zip(stops) {
                match stop {
                    Stop::Done | Stop::Enough => done.push(job),
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
                    done.push(job);
                }
            }
        }
    }
    done
}

/// Runs a group in one transaction, which begins with the write permit.
fn commit(
    world: &World,
    take: &mut dyn FnMut() -> Vec<Job>,
    jobs: &mut Vec<Job>,
) -> Result<Vec<Stop>, Error> {
    let store = world.databases.store();
    let turn = store.begin_exclusive();
    // Also without a write permit: the units are told why.
    *jobs = take();
    let mut transaction = turn?;
    // Commits that must be on the device are synced together with those of others.
    transaction.durability(Durability::Buffered);
    let mut data = Data::within(&world.databases, &world.watchers, &mut transaction);
    let stops = jobs
        .iter_mut()
        .map(|job| execute::run(world, &mut data, &mut job.unit))
        .collect::<Result<_, _>>()?;
    transaction.commit()?;
    Ok(stops)
}
