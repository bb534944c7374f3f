//! Admission of client units: where a node runs them.
//!
//! Purpose: a unit that writes goes to the leader, which may be this node. A unit that reads waits
//! until this node has applied what was acknowledged, unless the client does not ask for that.
//! While there is no leader both wait, for a bounded time.

use std::ops::ControlFlow;

use openraft::RaftMetrics;
use tokio::time::{Instant, timeout_at};

use super::address::Address;
use super::member::Member;
use super::messages::{Answer, Ask, Carried};
use super::peers::CallError;
use super::reads::Told;
use crate::commit::execute;
use crate::commit::unit::{Action, Needs, Unit};

const NO_LEADER: &str = "CLUSTERDOWN no node leads, or most nodes do not answer; nothing was done";

impl Member {
    /// Runs a unit where it belongs (`Break`), or admits it here (`Continue`). `None`: the server
    /// ends.
    pub(crate) async fn admit(&self, mut unit: Unit) -> Option<ControlFlow<Unit, Unit>> {
        if let [step] = &unit.steps[..]
            && let Action::Administer(words) = &step.action
        {
            let words = words.clone();
            unit.replies.version = step.version;
            self.administer(&words, &mut unit.replies).await;
            unit.next = 1;
            return Some(ControlFlow::Break(unit));
        }
        if unit.changes() {
            return self.carry(unit).await.map(ControlFlow::Break);
        }
        if unit.needs != Needs::Nothing && unit.is_fresh && !self.catch_up().await {
            execute::fail(&mut unit, NO_LEADER);
            return Some(ControlFlow::Break(unit));
        }
        if unit.needs == Needs::Turn {
            // Watched keys are read like any others.
            unit.needs = Needs::Look;
        }
        Some(ControlFlow::Continue(unit))
    }

    /// Has the leader run a unit.
    async fn carry(&self, mut unit: Unit) -> Option<Unit> {
        let deadline = self.deadline();
        loop {
            match self.leader() {
                Some((id, _)) if id == self.id => {
                    unit = self.queue.push(unit).await.ok()?;
                    if !std::mem::take(&mut unit.is_refused) {
                        return Some(unit);
                    }
                }
                Some((id, address)) if self.send(id, &address, &mut unit).await => {
                    return Some(unit);
                }
                Some(_) | None => {}
            }
            if !self.waits(deadline).await {
                execute::fail(&mut unit, NO_LEADER);
                return Some(unit);
            }
        }
    }

    /// Sends a unit to a node; false if nothing was done.
    async fn send(&self, id: u64, address: &Address, unit: &mut Unit) -> bool {
        let (carried, watched) = Carried::of(unit);
        // As long as the other node may take, plus the round trip.
        let deadline = self.deadline() + self.patience;
        let ask = Ask::Run(carried);
        match timeout_at(deadline, self.peers.call(id, address, &ask)).await {
            Ok(Ok(Answer::Ran(ran))) => ran.note(unit, &watched),
            Ok(Ok(Answer::Refused(words))) => execute::fail(unit, &words),
            Ok(Ok(_)) => return false,
            Ok(Err(CallError::Unreached(error)))
                if error.kind() == std::io::ErrorKind::InvalidInput =>
            {
                execute::fail(unit, &format!("ERR {error}; nothing was done"));
            }
            Ok(Err(CallError::Unreached(_))) => return false,
            Ok(Err(CallError::Lost(error))) => uncertain(unit, &error.to_string()),
            Err(_) => uncertain(unit, "it has taken too long"),
        }
        true
    }

    /// Waits until everything acknowledged before is applied here; false if the index cannot be
    /// found out.
    async fn catch_up(&self) -> bool {
        let deadline = self.deadline();
        loop {
            if let Ok(Told::Index(index)) = timeout_at(deadline, self.reads.index()).await
                && self.applied(index, deadline).await
            {
                return true;
            }
            if !self.waits(deadline).await {
                return false;
            }
        }
    }

    /// Waits until an entry is applied here; false if that takes too long.
    async fn applied(&self, index: u64, deadline: Instant) -> bool {
        let is_applied = |metrics: &RaftMetrics<u64, openraft::BasicNode>| {
            metrics.last_applied.is_some_and(|applied| applied.index >= index)
        };
        let mut metrics = self.raft.metrics();
        let waits = timeout_at(deadline, metrics.wait_for(is_applied)).await;
        matches!(waits, Ok(Ok(_)))
    }

    /// The index up to which all acknowledged entries lie.
    pub(super) async fn ask_index(&self) -> Told {
        let asking = async {
            match self.leader() {
                Some((id, _)) if id == self.id => match self.raft.get_read_log_id().await {
                    Ok((read, _)) => Told::Index(read.map_or(0, |read| read.index)),
                    Err(_) => Told::Nothing,
                },
                Some((id, address)) => match self.peers.call(id, &address, &Ask::ReadIndex).await {
                    Ok(Answer::ReadIndex(index)) => Told::Index(index),
                    _ => Told::Nothing,
                },
                None => Told::Nothing,
            }
        };
        timeout_at(self.deadline(), asking).await.unwrap_or(Told::Nothing)
    }
}

fn uncertain(unit: &mut Unit, cause: &str) {
    let words = format!(
        "UNCERTAIN it is not known whether this was done: the node that leads has not answered: \
         {cause}"
    );
    execute::fail(unit, &words);
}
