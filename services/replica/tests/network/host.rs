//! A node as a host: it answers other nodes and clients, from its start on what its directory has.

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use adamant_replica::{Change, Request, Response};
use openraft::Raft;
use tokio::task::JoinSet;
use tokio::time::timeout;
use turmoil::net::{TcpListener, TcpStream};

use crate::cluster::{Cluster, Up};
use crate::disk::SlowLog;
use crate::link::{self, Network};
use crate::nodes::{open, put};
use crate::record::{Action, Outcome, key_of, number_of};
use crate::wire::{Message, PORT, Reply, Wire, receive, send};

/// Values of keys, and the numbers of writes that were done.
pub(crate) const VALUES: &str = "values";
pub(crate) const DONE: &str = "done";

/// For another node to answer, or this one to apply what it has.
const WAIT: Duration = Duration::from_millis(600);
/// How often a key is counted up when others came between.
const ATTEMPTS: usize = 4;

struct Host {
    id: u64,
    wire: Wire,
    up: Up,
}

/// What a host does until it crashes.
pub(crate) async fn serve(cluster: Rc<Cluster>, id: u64) -> turmoil::Result {
    let node = open(&cluster.path(id), id);
    let wire = Wire::default();
    let log = SlowLog::new(node.log_store(), &cluster);
    let network = Network(wire.clone());
    let raft = Raft::new(id, cluster.config(), network, log, node.state_machine()).await?;
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    if id == 1 && !raft.is_initialized().await? {
        raft.initialize(cluster.members()).await?;
    }
    let up = Up { node, raft };
    cluster.up(id, up.clone());
    let host = Rc::new(Host { id, wire, up });
    let mut conversations = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                conversations.spawn_local(Rc::clone(&host).converse(accepted?.0));
            }
            // One may end; a panic is a failure of the test.
            Some(ended) = conversations.join_next() => drop(ended?),
        }
    }
}

impl Host {
    async fn converse(self: Rc<Self>, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let reply = match receive(&mut stream).await? {
                Message::Raft(ask) => Reply::Raft(Box::new(link::answer(&self.up.raft, ask).await)),
                Message::ReadIndex => Reply::ReadIndex(self.read_index().await),
                Message::Act(action) => Reply::Acted(self.act(action).await),
            };
            send(&mut stream, &reply).await?;
        }
    }

    fn leader(&self) -> Option<u64> {
        self.up.raft.metrics().borrow().current_leader
    }

    fn value(&self, key: usize) -> Option<i64> {
        let value = self.up.node.state().get(VALUES, key_of(key)).unwrap();
        value.map(|value| number_of(&value))
    }

    async fn act(&self, action: Action) -> Outcome {
        match action {
            Action::Read { key } => self.read(key).await,
            _ if self.leader() != Some(self.id) => Outcome::Undone { leader: self.leader() },
            Action::Write { key, value, id } => match self.write(key, None, value, id).await {
                Some(Response::Done) => Outcome::Written,
                Some(other) => panic!("a write was answered {other:?}"),
                None => Outcome::Unknown,
            },
            Action::Add { key, id } => self.add(key, id).await,
        }
    }

    async fn add(&self, key: usize, id: u64) -> Outcome {
        for _ in 0..ATTEMPTS {
            let found = self.value(key);
            let sum = found.unwrap_or(0) + 1;
            match self.write(key, Some(found), sum, id).await {
                Some(Response::Done) => return Outcome::Sum(sum),
                Some(Response::Different { .. }) => {}
                Some(other) => panic!("a sum was answered {other:?}"),
                None => return Outcome::Unknown,
            }
        }
        Outcome::Undone { leader: None }
    }

    /// Sets a key, if it has what was found there. `None`: it is not known whether it was done.
    async fn write(
        &self,
        key: usize,
        found: Option<Option<i64>>,
        value: i64,
        id: u64,
    ) -> Option<Response> {
        let compare = found.map(|found| Change::Compare {
            keyspace: VALUES.into(),
            key: key_of(key),
            expected: found.map(|found| found.to_string().into_bytes()),
        });
        let value = value.to_string();
        let puts = [
            Change::Put { keyspace: VALUES.into(), key: key_of(key), value: value.clone().into() },
            put(DONE, &id.to_string(), value),
        ];
        let request = Request::new(compare.into_iter().chain(puts)).unwrap();
        // openraft says "ask the one that leads" also when another leader's entry has replaced this
        // one, which may still be done: see `a_write_that_its_leader_has_lost_may_still_be_done`.
        Some(self.up.raft.client_write(request).await.ok()?.data)
    }

    /// A look at all that was acknowledged before it came.
    async fn read(&self, key: usize) -> Outcome {
        let leader = self.leader();
        let undone = Outcome::Undone { leader };
        let index = match leader {
            Some(leader) if leader == self.id => self.read_index().await,
            Some(leader) => {
                match timeout(WAIT, self.wire.call(leader, &Message::ReadIndex)).await {
                    Ok(Ok(Reply::ReadIndex(index))) => index,
                    _ => None,
                }
            }
            None => None,
        };
        let Some(index) = index else { return undone };
        let wait = self.up.raft.wait(Some(WAIT));
        match wait.applied_index_at_least(Some(index), "a look").await {
            Ok(_) => Outcome::Read(self.value(key)),
            Err(_) => undone,
        }
    }

    /// The entry that a look has to wait for, if most nodes say that this one leads.
    async fn read_index(&self) -> Option<u64> {
        let (index, _) = timeout(WAIT, self.up.raft.get_read_log_id()).await.ok()?.ok()?;
        index.map(|log_id| log_id.index)
    }
}
