//! The proposer: the thread on the leader that proposes log entries.
//!
//! Purpose: it takes all waiting units, runs them in one transaction on the applied state, and
//! rolls that back. Their changes go into the log as one entry, under a condition: a number in the
//! state machine, which each such entry increments, is still what it was when they ran. When the
//! entry is applied the replies are sent; while it is on its way, units wait for the next one.
//! Invariants: replies were made from exactly the state that their entry is applied to. If another
//! entry came between, the units run again. A unit whose outcome is unknown gets an answer that
//! says so, and never runs again. Expired entries are removed by a log entry, too: only the
//! leader's clock decides what is there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use adamant_replica::{Change, Request, Response};
use tokio::time::timeout;

use super::member::Member;
use crate::commit::committer::{Job, fail};
use crate::commit::execute::{self, Stop};
use crate::state::data::{self, Data, name_of};

/// How long to wait for units before looking for expired entries.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of expired entries of a database that are removed at once.
const EXPIRED_MAX: usize = 500;
/// Approximate argument bytes of a group, unless one unit has more: an entry must get through
/// between two heartbeats.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// Maximum bytes that a unit may change.
const CHANGED_BYTES_MAX: usize = 8 << 20;
/// Maximum number of runs of a unit that other entries overtake. The state advances each time.
const ATTEMPTS_MAX: usize = 16;
/// Keyspace and key of the number of the last entry of this kind.
const KEYSPACE: &str = "cluster";
const NUMBER: &[u8] = b"number";

/// The outcome of an entry.
enum Fate {
    Applied,
    /// Another entry came between.
    Late,
    /// This node does not lead, and nothing was done.
    Moved,
    /// In the words of a reply.
    Failed(String),
}

/// The changes of units, and where each of them stopped.
struct Made {
    stops: Vec<Stop>,
    changes: Vec<data::Change>,
    /// The number that was found.
    number: Option<Vec<u8>>,
}

impl Member {
    /// The loop of the proposing thread, until the queue ends.
    pub(crate) fn propose_all(&self) {
        let mut expired = Instant::now();
        while self.queue.wait_for(PAUSE) {
            if let Some(cause) = self.failure() {
                self.ending.begin(Some(cause));
            }
            let expires = expired.elapsed() >= PAUSE;
            let mut groups = VecDeque::from([(self.queue.take(GROUP_BYTES_MAX), expires)]);
            if expires {
                expired = Instant::now();
            }
            while let Some((jobs, expires)) = groups.pop_front() {
                self.run_group(jobs, expires, &mut groups);
            }
        }
    }

    /// Runs units and answers them, or puts them into groups of their own.
    fn run_group(
        &self,
        mut jobs: Vec<Job>,
        expires: bool,
        groups: &mut VecDeque<(Vec<Job>, bool)>,
    ) {
        for _ in 0..ATTEMPTS_MAX {
            if !self.leads() {
                return refuse(jobs);
            }
            let made = self.make(&mut jobs, expires);
            let (stops, fate) = match made {
                Ok(made) if jobs.is_empty() && made.changes.is_empty() => return,
                Ok(made) => (made.stops, self.propose(made.changes, made.number)),
                Err(error) => (Vec::new(), Fate::Failed(execute::words_of(&error))),
            };
            match fate {
                Fate::Applied => return self.finish(jobs, stops, groups),
                Fate::Late => jobs.iter_mut().for_each(Job::rewind),
                Fate::Moved => return refuse(jobs),
                // One of them may ask for too much.
                Fate::Failed(words) if jobs.len() > 1 && !words.starts_with("UNCERTAIN") => {
                    jobs.iter_mut().for_each(Job::rewind);
                    groups.extend(jobs.into_iter().map(|job| (vec![job], false)));
                    return;
                }
                Fate::Failed(words) => return fail(jobs, &words),
            }
        }
        fail(jobs, "TRYAGAIN others wrote all the time; nothing was done");
    }

    /// Runs units on the applied state; their changes are rolled back.
    fn make(&self, jobs: &mut [Job], expires: bool) -> adamant::Result<Made> {
        let data = Data::committed(&self.world.databases, &self.world.watchers);
        let store = data.store().clone();
        let mut transaction = store.begin()?;
        let number = match store.open_keyspace(KEYSPACE) {
            Err(adamant::Error::UnknownKeyspace { .. }) => None,
            keyspace => transaction.get(&keyspace?, NUMBER)?.map(|number| number.to_vec()),
        };
        let mut changes = Vec::new();
        let mut data = data.recorded(&mut transaction, &mut changes);
        if expires {
            for database in 0..data.databases() {
                // Only here: other nodes are told what to do. A repeated run counts again.
                let gone = data.expire(database, EXPIRED_MAX)?;
                self.world.tallies.expired.fetch_add(gone, Ordering::Relaxed);
            }
        }
        let stops = jobs
            .iter_mut()
            .map(|job| execute::run(&self.world, &mut data, &mut job.unit))
            .collect::<Result<_, _>>()?;
        Ok(Made { stops, changes, number })
    }

    fn propose(&self, changes: Vec<data::Change>, number: Option<Vec<u8>>) -> Fate {
        let bytes: usize = changes.iter().map(bytes_of).sum();
        if bytes > CHANGED_BYTES_MAX {
            return Fate::Failed(format!(
                "ERR {bytes} bytes would change at once, {CHANGED_BYTES_MAX} at most in a cluster; \
                 nothing was done"
            ));
        }
        let next = number
            .as_deref()
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, |bytes| u64::from_le_bytes(bytes).wrapping_add(1));
        let (keyspace, key) = (KEYSPACE.to_owned(), NUMBER.to_vec());
        let value = next.to_le_bytes().to_vec();
        let mut all = vec![
            Change::Compare { keyspace: keyspace.clone(), key: key.clone(), expected: number },
            Change::Put { keyspace, key, value },
        ];
        all.extend(changes.into_iter().map(replicated));
        let request = match Request::new(all) {
            Ok(request) => request,
            Err(refusal) => return Fate::Failed(format!("ERR {refusal}")),
        };
        // From here on the entry may be applied.
        if !self.leads() {
            return Fate::Moved;
        }
        let written = self
            .runtime
            .block_on(async { timeout(self.patience, self.raft.client_write(request)).await });
        match written {
            Ok(Ok(written)) => match written.data {
                Response::Done => Fate::Applied,
                Response::Different { .. } => Fate::Late,
                Response::Refused(refusal) => Fate::Failed(format!("ERR {refusal}")),
            },
            // Also an error that names another leader: its entry may have replaced this one in this
            // node's log, while with five nodes yet another one may have it, lead, and apply it.
            Ok(Err(error)) => uncertain(&error.to_string()),
            Err(_) => uncertain("most nodes have not answered"),
        }
    }

    /// Answers units that are done; others continue.
    fn finish(&self, jobs: Vec<Job>, stops: Vec<Stop>, groups: &mut VecDeque<(Vec<Job>, bool)>) {
        for (mut job, stop) in jobs.into_iter().zip(stops) {
            if stop == Stop::Alone {
                execute::run_alone(&self.world, &mut job.unit);
                job.keep();
                if !job.unit.is_done() {
                    groups.push_back((vec![job], false));
                    continue;
                }
            }
            job.finish();
        }
    }
}

/// Returns units undone, so that another node can run them.
fn refuse(jobs: Vec<Job>) {
    for mut job in jobs {
        job.rewind();
        job.unit.is_refused = true;
        job.finish();
    }
}

fn uncertain(cause: &str) -> Fate {
    Fate::Failed(format!("UNCERTAIN it is not known whether this was done: {cause}"))
}

fn bytes_of(change: &data::Change) -> usize {
    match change {
        data::Change::Put { key, value, .. } => key.len() + value.len(),
        data::Change::Remove { key, .. } => key.len(),
        data::Change::Clear { .. } | data::Change::Expire { .. } => 0,
    }
}

fn replicated(change: data::Change) -> Change {
    match change {
        data::Change::Put { database, key, value, deadline } => Change::PutEnding {
            keyspace: name_of(database),
            key,
            value,
            deadline: deadline.map(|deadline| deadline.millis()),
        },
        data::Change::Remove { database, key } => {
            Change::DeleteEnding { keyspace: name_of(database), key }
        }
        data::Change::Clear { database } => Change::ClearEnding { keyspace: name_of(database) },
        data::Change::Expire { database, now, entries_max } => {
            Change::Expire { keyspace: name_of(database), now, entries_max: entries_max as u64 }
        }
    }
}
