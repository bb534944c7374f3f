//! What is done to nodes, and to the links between some of them and the others. Clients reach all
//! nodes that are up.

use std::collections::BTreeSet;
use std::time::Duration;

use turmoil::Sim;

use crate::cluster::Cluster;
use crate::wire::host_of;

/// How long a message takes at most, and how long on a link that is slow: longer than a leader
/// waits for an answer.
pub(crate) const LATENCY_MAX: Duration = Duration::from_millis(12);
const LATE: Duration = Duration::from_millis(400);
/// Of messages that are lost, and with each all that is on its way between the two.
const LOSS_RATE: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing gets through.
    Cut,
    /// The others get nothing of these.
    Mute,
    /// These get nothing of the others.
    Deaf,
    /// All is held back, and delivered at last.
    Hold,
    Late,
    Loss,
    /// These nodes crash, and start again from their disks.
    Crash,
}

pub(crate) const KINDS: [Kind; 7] =
    [Kind::Cut, Kind::Mute, Kind::Deaf, Kind::Hold, Kind::Late, Kind::Loss, Kind::Crash];

#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) nodes: BTreeSet<u64>,
}

impl Fault {
    pub(crate) fn new(kind: Kind, nodes: impl IntoIterator<Item = u64>) -> Self {
        Self { kind, nodes: nodes.into_iter().collect() }
    }

    fn others(&self, cluster: &Cluster) -> BTreeSet<u64> {
        cluster.all().filter(|node| !self.nodes.contains(node)).collect()
    }

    /// From these nodes to the others.
    fn links(&self, cluster: &Cluster) -> Vec<(String, String)> {
        let others = self.others(cluster);
        let from = |&node| others.iter().map(move |&other| (host_of(node), host_of(other)));
        self.nodes.iter().flat_map(from).collect()
    }

    pub(crate) fn begin(&self, sim: &mut Sim<'_>, cluster: &Cluster) {
        for (from, to) in self.links(cluster) {
            match self.kind {
                Kind::Cut => sim.partition(from, to),
                Kind::Mute => sim.partition_oneway(from, to),
                Kind::Deaf => sim.partition_oneway(to, from),
                Kind::Hold => sim.hold(from, to),
                Kind::Late => sim.set_link_max_message_latency(from, to, LATE),
                Kind::Loss => sim.set_link_fail_rate(from, to, LOSS_RATE),
                Kind::Crash => {}
            }
        }
        match self.kind {
            // Whoever has no answers of most nodes is not to acknowledge anything.
            Kind::Cut | Kind::Mute | Kind::Deaf | Kind::Hold => {
                let sides = [self.nodes.clone(), self.others(cluster)];
                let few = |side: &BTreeSet<u64>| (side.len() as u64) < cluster.majority();
                sides.into_iter().filter(few).for_each(|side| cluster.record.cut(side));
            }
            Kind::Late | Kind::Loss => {}
            Kind::Crash => {
                for &node in &self.nodes {
                    cluster.down(node);
                    sim.crash(host_of(node));
                }
            }
        }
    }

    pub(crate) fn end(&self, sim: &mut Sim<'_>, cluster: &Cluster) {
        for (from, to) in self.links(cluster) {
            match self.kind {
                Kind::Cut => sim.repair(from, to),
                Kind::Mute => sim.repair_oneway(from, to),
                Kind::Deaf => sim.repair_oneway(to, from),
                Kind::Hold => sim.release(from, to),
                Kind::Late => sim.set_link_max_message_latency(from, to, LATENCY_MAX),
                Kind::Loss => {
                    sim.set_link_fail_rate(from.clone(), to.clone(), 0.0);
                    sim.repair(from, to);
                }
                Kind::Crash => {}
            }
        }
        match self.kind {
            Kind::Crash => self.nodes.iter().for_each(|&node| sim.bounce(host_of(node))),
            _ => cluster.record.uncut(),
        }
    }
}
