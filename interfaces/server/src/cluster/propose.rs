//! The thread that proposes entries, on the node that leads.
//!
//! Purpose: it takes all units that wait, runs them in one transaction on what is applied, and drops that. What they changed
//! goes into the log as one entry, under a condition: a number in the state machine, one more with each such entry,
//! is still what it was when they ran. When the entry is applied the replies are sent; while it is on its way, units wait
//! for the next one.
//! Invariants: replies were made from the very state that their entry is applied to. If another entry came between the units
//! run again. A unit of which it is not known whether it was done is answered so, and never run again.
//! What is over goes by an entry, too: no clock but that of the node that leads has a say in what is there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use adamant_replica::{Change, Request, Response};
use tokio::time::timeout;

use super::member::Member;
use crate::commit::committer::{Job, fail};
use crate::commit::execute::{self, Stop};
use crate::state::data::{self, Data, name_of};

/// How long is waited for units before what is over is looked for.
const PAUSE: Duration = Duration::from_millis(100);
/// Entries of a database that go at once because they are over.
const EXPIRED_MAX: usize = 500;
/// Bytes of arguments of a group, about, unless one unit has more: an entry has to get through between two heartbeats.
const GROUP_BYTES_MAX: usize = 1 << 20;
/// Bytes that a unit may change.
const CHANGED_BYTES_MAX: usize = 8 << 20;
/// How often units run again because another entry came between. Each time the state has gone on.
const ATTEMPTS_MAX: usize = 16;
/// Where the number of the last entry of this kind is.
const KEYSPACE: &str = "cluster";
const NUMBER: &[u8] = b"number";

/// What became of an entry.
enum Fate {
    Applied,
    /// Another one came between.
    Late,
    /// This node does not lead, and nothing was done.
    Moved,
    /// In the words of a reply.
    Failed(String),
}

/// What units have changed, and where each of them stopped.
struct Made {
    stops: Vec<Stop>,
    changes: Vec<data::Change>,
    /// The number that was found.
    number: Option<Vec<u8>>,
}

impl Member {
    /// What the proposing thread does until no units come any more.
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

    /// Runs units on what is applied; nothing of it stays.
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
                // Here alone: the others are told what to do. What is made again is counted again.
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
        // From here on nobody says that it is surely not done.
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
            // Also one that asks for another leader: that one's entry may have replaced this one in this node's log, and with
            // five nodes yet another one may have it, lead, and do it.
            Ok(Err(error)) => uncertain(&error.to_string()),
            Err(_) => uncertain("most nodes have not answered"),
        }
    }

    /// Answers units that are done; others go on.
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

/// Gives units back undone, for another node to do them.
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
