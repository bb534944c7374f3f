//! Cluster membership: nodes that join and leave, on request of nodes and by ADAMANT.CLUSTER.
//!
//! Invariants: a number belongs to one directory, for as long as its node is a member: a node that
//! comes with another directory has lost its promises, and is refused. A node becomes a voter only
//! when it has caught up.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;

use adamant_replica::Types;
use bytes::Bytes;
use openraft::error::{ChangeMembershipError, ClientWriteError, RaftError};
use openraft::raft::ClientWriteResponse;
use openraft::{BasicNode, ChangeMembers};
use tokio::time::{Instant, timeout};

use super::address::Address;
use super::member::Member;
use super::messages::{Answer, Ask};
use crate::commit::standing::{Peer, Standing};
use crate::protocol::number::integer;
use crate::protocol::reply::Replies;
use crate::state::call::{NO_INTEGER, SYNTAX, is_word, unknown_sub};

/// How long a node may take to catch up.
const CATCH_UP_WAIT: Duration = Duration::from_secs(3600);
/// How long to wait for another membership change.
const TURN_WAIT: Duration = Duration::from_secs(60);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

type Changed = Result<ClientWriteResponse<Types>, RaftError<u64, ClientWriteError<u64, BasicNode>>>;

/// The role of a node among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Voter,
    Learner,
    None,
}

impl Member {
    /// Executes ADAMANT.CLUSTER.
    pub(super) async fn administer(&self, words: &[Bytes], reply: &mut Replies) {
        let sub = &words[1];
        let number = |word: &Bytes| integer(word).and_then(|number| u64::try_from(number).ok());
        let ask = match &words[2..] {
            [] if is_word(sub, "STATUS") => return reply.text(&self.status()),
            [node, place] if is_word(sub, "JOIN") => {
                let Some(node) = number(node) else { return reply.error(NO_INTEGER) };
                match self.find(node, &String::from_utf8_lossy(place)).await {
                    Ok(address) => Ask::Join { node, address: address.to_string() },
                    Err(words) => return reply.error(&words),
                }
            }
            [node] if is_word(sub, "LEAVE") => {
                let Some(node) = number(node) else { return reply.error(NO_INTEGER) };
                Ask::Leave { node }
            }
            _ if ["STATUS", "JOIN", "LEAVE"].iter().any(|known| is_word(sub, known)) => {
                return reply.error(SYNTAX);
            }
            _ => return reply.error(&unknown_sub("ADAMANT.CLUSTER", sub)),
        };
        match self.ask_leader(ask).await {
            Ok(()) => reply.ok(),
            Err(words) => reply.error(&words),
        }
    }

    /// The address of the node that is reached at `place`.
    async fn find(&self, node: u64, place: &str) -> Result<Address, String> {
        let found = self.peers.identify(place).await;
        let found = found.map_err(|error| format!("ERR no node answers at {place}: {error}"))?;
        if found.node != node {
            return Err(format!("ERR at {place} is node {}, not {node}", found.node));
        }
        Ok(Address { place: place.into(), directory_id: found.directory_id })
    }

    /// Asks the leader, which may be this node, for a membership change.
    async fn ask_leader(&self, ask: Ask) -> Result<(), String> {
        let deadline = self.deadline();
        loop {
            let answer = match self.leader() {
                Some((id, _)) if id == self.id => Some(match &ask {
                    Ask::Join { node, address } => self.join_here(*node, address).await,
                    Ask::Leave { node } => self.leave_here(*node).await,
                    _ => Answer::Moved,
                }),
                Some((id, address)) => self.peers.call(id, &address, &ask).await.ok(),
                None => None,
            };
            match answer {
                Some(Answer::Done) => return Ok(()),
                Some(Answer::Refused(words)) => return Err(words),
                _ if !self.waits(deadline).await => {
                    return Err("CLUSTERDOWN no node leads, or it does not answer".into());
                }
                _ => {}
            }
        }
    }

    /// Asks the node at `place` to admit this node as a member, until it is one.
    ///
    /// # Errors
    /// In words: it was refused.
    pub(super) async fn join(&self, place: &str) -> Result<(), String> {
        let mut asked = place.to_owned();
        let ask = Ask::Join { node: self.id, address: self.address.to_string() };
        while self.role(self.id) != Role::Voter && !self.ending.has_begun() {
            match self.peers.call_place(&asked, &ask).await {
                Ok(Answer::Refused(words)) => return Err(words),
                Ok(Answer::Done) => return Ok(()),
                Ok(Answer::LedFrom(other)) => asked = other,
                _ => asked = place.to_owned(),
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Makes a node a member, and a voter once it has caught up.
    pub(super) async fn join_here(&self, node: u64, address: &str) -> Answer {
        let known = self.nodes().get(&node).map(|known| known.addr.clone());
        match (self.role(node), known) {
            (Role::Voter, Some(known)) if known == address => return Answer::Done,
            (Role::Voter | Role::Learner, Some(known)) if known != address => {
                return Answer::Refused(format!(
                    "ERR node {node} is at {known}, and {address} is another place or directory; let \
                     it leave first (ADAMANT.CLUSTER LEAVE {node}), and join under a new number if \
                     it has lost anything"
                ));
            }
            _ => {}
        }
        let learner = BasicNode::new(address);
        let added = self.change(|| {
            let waits = self.raft.add_learner(node, learner.clone(), true);
            async move { timeout(CATCH_UP_WAIT, waits).await.ok() }
        });
        match added.await {
            Answer::Done => {}
            other => return other,
        }
        self.change(|| async {
            let voters = ChangeMembers::AddVoterIds(BTreeSet::from([node]));
            Some(self.raft.change_membership(voters, true).await)
        })
        .await
    }

    /// Removes a node from the members.
    pub(super) async fn leave_here(&self, node: u64) -> Answer {
        match self.role(node) {
            Role::None => Answer::Refused(format!("ERR node {node} is no member")),
            Role::Voter => {
                self.change(|| async {
                    let voters = ChangeMembers::RemoveVoters(BTreeSet::from([node]));
                    Some(self.raft.change_membership(voters, false).await)
                })
                .await
            }
            Role::Learner => {
                self.change(|| async {
                    let nodes = ChangeMembers::RemoveNodes(BTreeSet::from([node]));
                    Some(self.raft.change_membership(nodes, false).await)
                })
                .await
            }
        }
    }

    /// Changes the members after any other change.
    async fn change<F>(&self, change: impl Fn() -> F) -> Answer
    where
        F: Future<Output = Option<Changed>>,
    {
        let deadline = Instant::now() + TURN_WAIT;
        loop {
            let error = match change().await {
                Some(Ok(_)) => return Answer::Done,
                None => return Answer::Refused("ERR the node has not caught up".into()),
                Some(Err(RaftError::APIError(error))) => error,
                Some(Err(error)) => return Answer::Refused(format!("ERR {error}")),
            };
            match error {
                ClientWriteError::ForwardToLeader(_) => return Answer::Moved,
                ClientWriteError::ChangeMembershipError(ChangeMembershipError::InProgress(_))
                    if Instant::now() < deadline =>
                {
                    tokio::time::sleep(PAUSE).await;
                }
                error @ ClientWriteError::ChangeMembershipError(_) => {
                    return Answer::Refused(format!("ERR {error}"));
                }
            }
        }
    }

    fn nodes(&self) -> BTreeMap<u64, BasicNode> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let nodes = metrics.membership_config.membership().nodes();
        nodes.map(|(id, node)| (*id, node.clone())).collect()
    }

    fn role(&self, node: u64) -> Role {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow();
        let membership = metrics.membership_config.membership();
        if membership.voter_ids().any(|voter| voter == node) {
            Role::Voter
        } else if membership.get_node(&node).is_some() {
            Role::Learner
        } else {
            Role::None
        }
    }

    /// The status of the cluster, as far as this node knows.
    pub(crate) fn standing(&self) -> Standing {
        let metrics = self.raft.metrics().borrow().clone();
        let index = |log_id: Option<openraft::LogId<u64>>| log_id.map(|log_id| log_id.index);
        let membership = metrics.membership_config.membership();
        let voters: BTreeSet<u64> = membership.voter_ids().collect();
        let members = membership.nodes().map(|(&node, BasicNode { addr })| Peer {
            node,
            place: place_of(addr),
            is_voter: voters.contains(&node),
        });
        let members: Vec<Peer> = members.collect();
        // A node that is no longer a member may lead for a moment, and has no address.
        let leader = metrics.current_leader.map(|id| {
            let place = membership.get_node(&id).map(|node| place_of(&node.addr));
            (id, place.unwrap_or_default())
        });
        Standing {
            node: self.id,
            state: format!("{:?}", metrics.state),
            leader,
            term: metrics.current_term,
            last_entry: metrics.last_log_index,
            applied: index(metrics.last_applied),
            snapshot: index(metrics.snapshot),
            purged: index(metrics.purged),
            members,
        }
    }

    /// The status of the cluster, a line for each figure.
    fn status(&self) -> String {
        let standing = self.standing();
        let number =
            |number: Option<u64>| number.map_or_else(|| "none".to_owned(), |it| it.to_string());
        let leader = number(standing.leader.as_ref().map(|(leader, _)| *leader));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "node:{}\r\nstate:{}\r\nleader:{leader}\r\nterm:{}\r\nlast_entry:{}\r\napplied:{}\r\n\
             snapshot:{}\r\npurged:{}\r\n",
            standing.node,
            standing.state,
            standing.term,
            number(standing.last_entry),
            number(standing.applied),
            number(standing.snapshot),
            number(standing.purged),
        );
        for peer in &standing.members {
            let _ = write!(text, "member:{} {} {}\r\n", peer.node, peer.place, peer.role());
        }
        text
    }
}

/// Where a node is reached; an invalid address unchanged.
fn place_of(address: &str) -> String {
    address.parse().map_or_else(|_| address.to_owned(), |address: Address| address.place)
}
