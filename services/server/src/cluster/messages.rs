//! Messages between nodes, and client units on their way to the leader.
//!
//! Invariants: what comes from another node is checked like what comes from a client: commands,
//! numbers of arguments, and databases must exist.

use std::sync::Arc;

use adamant_replica::Types;
use bytes::Bytes;
use openraft::error::{InstallSnapshotError, RaftError};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::{Deserialize, Serialize};

use crate::commands::{self, Work};
use crate::commit::unit::{Action, Request, Step, Unit};
use crate::commit::world::World;
use crate::protocol::reply::Version;
use crate::protocol::request::Arguments;
use crate::state::watch::{Print, Seen, Watched};

/// A request of one node to another.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
    /// Run a unit that writes.
    Run(Carried),
    /// Up to which entry must a read wait to see everything acknowledged?
    ReadIndex,
    /// The asking node wants to be a member, or wants another node there to be one.
    Join {
        node: u64,
        address: String,
    },
    /// A node is to be removed from the members.
    Leave {
        node: u64,
    },
}

/// The response.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Append(Result<AppendEntriesResponse<u64>, RaftError<u64>>),
    Vote(Result<VoteResponse<u64>, RaftError<u64>>),
    Snapshot(Result<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>>),
    Ran(Ran),
    ReadIndex(u64),
    Done,
    /// Nothing was done: the node does not lead.
    Moved,
    /// Nothing was done: the node does not lead, but the one at this address does.
    LedFrom(String),
    /// Nothing was done, for this reason, in the words of a reply.
    Refused(String),
}

/// The remaining steps of a unit.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Carried {
    steps: Vec<CarriedStep>,
    /// The watched keys, without duplicates: steps refer to them by number.
    watched: Vec<Vec<CarriedSeen>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CarriedStep {
    action: CarriedAction,
    is_three: bool,
    is_silent: bool,
}

#[derive(Debug, Serialize, Deserialize)]
enum CarriedAction {
    Ready(Bytes),
    Run { name: String, database: usize, arguments: Arguments },
    Exec { parts: Vec<CarriedAction>, watched: usize },
    Watch { database: usize, keys: Arguments, watched: usize },
}

#[derive(Debug, Serialize, Deserialize)]
struct CarriedSeen {
    database: usize,
    key: Bytes,
    /// Bytes, hash, and deadline.
    found: Option<(u64, u128, Option<u64>)>,
}

/// The outcome of steps.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ran {
    /// Number of completed steps.
    steps: usize,
    replies: Bytes,
    is_aborted: bool,
    watched: Vec<Vec<CarriedSeen>>,
}

impl Carried {
    /// The next steps of a unit, and the keys that they watch.
    pub(super) fn of(unit: &Unit) -> (Self, Vec<Arc<Watched>>) {
        let mut watched = Vec::new();
        let steps = unit.steps[unit.next..]
            .iter()
            .filter_map(|step| {
                let action = carry(&step.action, &mut watched)?;
                let is_three = step.version == Version::Three;
                Some(CarriedStep { action, is_three, is_silent: step.is_silent })
            })
            .collect();
        let seen = watched.iter().map(|watched| carry_seen(watched)).collect();
        (Self { steps, watched: seen }, watched)
    }

    /// A unit of these steps, and the keys that they watch.
    ///
    /// # Errors
    /// The words of a reply.
    pub(super) fn into_unit(self, world: &World) -> Result<(Unit, Vec<Arc<Watched>>), String> {
        let watched: Vec<_> = self
            .watched
            .into_iter()
            .map(|seen| {
                let watched = Watched::new(&world.watchers);
                seen.into_iter().for_each(|seen| watched.see(seen.into()));
                watched
            })
            .collect();
        let mut unit = Unit::default();
        for CarriedStep { action, is_three, is_silent } in self.steps {
            let action = arrive(action, &watched, world)?;
            let version = if is_three { Version::Three } else { Version::Two };
            unit.push(Step { action, version, is_silent }, false);
        }
        Ok((unit, watched))
    }
}

impl Ran {
    /// The outcome of a unit that had arrived.
    pub(super) fn of(mut unit: Unit, watched: &[Arc<Watched>]) -> Self {
        Self {
            steps: unit.next,
            replies: unit.replies.take().into(),
            is_aborted: unit.is_aborted,
            watched: watched.iter().map(|watched| carry_seen(watched)).collect(),
        }
    }

    /// Records the outcome in a unit.
    pub(super) fn note(self, unit: &mut Unit, watched: &[Arc<Watched>]) {
        unit.next = (unit.next + self.steps).min(unit.steps.len());
        unit.replies.raw(&self.replies);
        unit.is_aborted = self.is_aborted;
        for (watched, seen) in watched.iter().zip(self.watched) {
            seen.into_iter().for_each(|seen| watched.see(seen.into()));
        }
    }
}

impl From<CarriedSeen> for Seen {
    fn from(CarriedSeen { database, key, found }: CarriedSeen) -> Self {
        let found = found.map(|(bytes, hash, deadline)| Print { bytes, hash, deadline });
        Self { database, key, found }
    }
}

fn carry_seen(watched: &Watched) -> Vec<CarriedSeen> {
    let carry = |Seen { database, key, found }| {
        let found = found.map(|Print { bytes, hash, deadline }| (bytes, hash, deadline));
        CarriedSeen { database, key, found }
    };
    watched.seen().into_iter().map(carry).collect()
}

/// The number of a watched set; added if it is new.
fn number_of(watched: &Arc<Watched>, all: &mut Vec<Arc<Watched>>) -> usize {
    all.iter().position(|other| Arc::ptr_eq(other, watched)).unwrap_or_else(|| {
        all.push(Arc::clone(watched));
        all.len() - 1
    })
}

/// `None`: the action is not for other nodes.
fn carry(action: &Action, all: &mut Vec<Arc<Watched>>) -> Option<CarriedAction> {
    Some(match action {
        Action::Ready(bytes) => CarriedAction::Ready(Bytes::copy_from_slice(bytes)),
        Action::Run(Request { command, database, arguments, .. }) => CarriedAction::Run {
            name: command.name.into(),
            database: *database,
            arguments: arguments.clone(),
        },
        Action::Exec { parts, watched } => CarriedAction::Exec {
            parts: parts.iter().filter_map(|part| carry(part, all)).collect(),
            watched: number_of(watched, all),
        },
        Action::Watch { database, keys, watched } => CarriedAction::Watch {
            database: *database,
            keys: keys.clone(),
            watched: number_of(watched, all),
        },
        Action::Administer(_) => return None,
    })
}

fn arrive(
    action: CarriedAction,
    watched: &[Arc<Watched>],
    world: &World,
) -> Result<Action, String> {
    let watched_of = |number: usize| {
        let found = watched.get(number).cloned();
        found.ok_or_else(|| "ERR a node has sent a unit that is not whole".to_owned())
    };
    let check = |database: usize| match database < world.databases.len() {
        true => Ok(database),
        false => Err(format!(
            "ERR the node that leads has {} databases; start all nodes with as many (--databases)",
            world.databases.len()
        )),
    };
    Ok(match action {
        CarriedAction::Ready(bytes) => Action::Ready(bytes.into()),
        CarriedAction::Run { name, database, arguments } => {
            let known = commands::find(name.as_bytes()).filter(|command| {
                matches!(command.work, Work::Data(_)) && command.takes(arguments.len())
            });
            let Some(command) = known else {
                return Err(format!(
                    "ERR the node that leads does not know '{name}' with so many arguments; let \
                     all nodes run the same version"
                ));
            };
            Action::Run(Request { command, database: check(database)?, arguments, room: None })
        }
        CarriedAction::Exec { parts, watched: number } => {
            let parts = parts.into_iter().map(|part| match part {
                CarriedAction::Ready(_) | CarriedAction::Run { .. } => arrive(part, watched, world),
                _ => Err("ERR a node has sent a transaction that is none".to_owned()),
            });
            Action::Exec { parts: parts.collect::<Result<_, _>>()?, watched: watched_of(number)? }
        }
        CarriedAction::Watch { database, keys, watched } => {
            Action::Watch { database: check(database)?, keys, watched: watched_of(watched)? }
        }
    })
}
