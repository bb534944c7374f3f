//! A simulation from its start to the verdict.

use std::rc::Rc;
use std::time::Duration;

use turmoil::Sim;

use crate::client;
use crate::cluster::{Cluster, Up};
use crate::fault::{Fault, LATENCY_MAX};
use crate::host::{self, DONE, VALUES};
use crate::nodes::content_of;
use crate::record::Action;
use crate::wire::host_of;

/// All hosts go on by that, one after the other.
const TICK_MILLIS: u64 = 2;
/// For anything to happen, in simulated time.
const PATIENCE_MILLIS: u64 = 120_000;

pub(crate) struct Run {
    sim: Sim<'static>,
    pub(crate) cluster: Rc<Cluster>,
    pub(crate) random: fastrand::Rng,
    clients: usize,
}

/// A number that a variable gives, or another one.
fn number(variable: &str, other: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(other)
}

/// Rounds of a test: few, or as many as are asked for.
pub(crate) fn rounds(few: u64) -> u64 {
    number("ADAMANT_CLUSTER_ROUNDS", few)
}

/// The seed of a test, or the one that is given.
pub(crate) fn seed(other: u64) -> u64 {
    number("ADAMANT_REPLICA_SEED", other)
}

impl Run {
    /// So many nodes, all of them members.
    pub(crate) fn start(nodes: u64, seed: u64) -> Self {
        println!("{nodes} nodes, seed {seed}");
        let mut sim = turmoil::Builder::new()
            .rng_seed(seed)
            .enable_random_order()
            .simulation_duration(Duration::MAX)
            .tick_duration(Duration::from_millis(TICK_MILLIS))
            .min_message_latency(Duration::from_millis(1))
            .max_message_latency(LATENCY_MAX)
            // Connections that come at once when they were held back.
            .tcp_capacity(4096)
            .build();
        let cluster = Rc::new(Cluster::new(nodes, seed));
        for node in cluster.all() {
            let shared = Rc::clone(&cluster);
            sim.host(host_of(node), move || host::serve(Rc::clone(&shared), node));
        }
        Self { sim, cluster, random: fastrand::Rng::with_seed(seed), clients: 0 }
    }

    /// A client, which asks one node or all of them.
    pub(crate) fn client(&mut self, own: Option<u64>) {
        let client = client::serve(Rc::clone(&self.cluster), self.random.fork(), own);
        self.sim.client(format!("client-{}", self.clients), client);
        self.clients += 1;
    }

    /// A client that asks a node for one thing.
    pub(crate) fn ask(&mut self, node: u64, action: Action) {
        let client = client::ask(Rc::clone(&self.cluster), node, action);
        self.sim.client(format!("client-{}", self.clients), client);
        self.clients += 1;
    }

    /// Lets two nodes reach one another again.
    pub(crate) fn repair(&self, node: u64, other: u64) {
        self.sim.repair(host_of(node), host_of(other));
    }

    /// True if all clients have ended.
    fn step(&mut self) -> bool {
        let stepped = self.sim.step();
        if let Some(cause) = self.cluster.failure() {
            panic!("{cause}\n{}", self.cluster.describe());
        }
        stepped.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Lets simulated time pass.
    pub(crate) fn pass(&mut self, millis: u64) {
        for _ in 0..millis / TICK_MILLIS {
            self.step();
        }
    }

    /// Goes on until something is so.
    pub(crate) fn until(&mut self, what: &str, is_so: impl Fn(&Cluster) -> bool) {
        for _ in 0..PATIENCE_MILLIS / TICK_MILLIS {
            if is_so(&self.cluster) {
                return;
            }
            self.step();
        }
        panic!("not within {PATIENCE_MILLIS} simulated ms: {what}\n{}", self.cluster.describe());
    }

    /// Goes on until so many writes more are acknowledged.
    pub(crate) fn until_written(&mut self, count: u64) {
        let target = self.cluster.record.acknowledged() + count;
        self.until("writes", |cluster| cluster.record.acknowledged() >= target);
    }

    pub(crate) fn begin(&mut self, fault: &Fault) {
        fault.begin(&mut self.sim, &self.cluster);
    }

    pub(crate) fn end(&mut self, fault: &Fault) {
        fault.end(&mut self.sim, &self.cluster);
    }

    /// Without any fault, the cluster goes on, all nodes get the same, and that is what clients
    /// saw.
    pub(crate) fn finish(mut self) {
        self.until_written(10);
        self.cluster.record.end();
        while !self.step() {}
        self.until("all have the same", Cluster::agrees);
        let contents = self.cluster.with(|nodes| {
            let content = |keyspace| {
                let of = |up: &Up| content_of(&up.node.state(), keyspace);
                nodes.values().map(of).collect::<Vec<_>>()
            };
            [content(VALUES), content(DONE)]
        });
        for content in &contents {
            assert!(
                content.iter().all(|of_node| *of_node == content[0]),
                "nodes differ: {content:?}"
            );
        }
        self.cluster.record.verify(&contents[0][0], &contents[1][0]);
        let (elapsed, installed) = (self.sim.elapsed(), self.cluster.installed());
        println!("{elapsed:?} simulated, {installed} snapshots of other nodes");
    }
}
