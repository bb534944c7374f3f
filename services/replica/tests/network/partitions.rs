//! Partitions with a known outcome.

use std::collections::BTreeSet;

use crate::cluster::Cluster;
use crate::fault::{Fault, Kind};
use crate::host::DONE;
use crate::record::Action;
use crate::run::Run;

/// Each node has clients of its own, and two more go where they are sent.
fn with_clients(nodes: u64, seed: u64) -> Run {
    let mut run = Run::start(nodes, seed);
    for node in run.cluster.all() {
        run.client(Some(node));
    }
    (0..2).for_each(|_| run.client(None));
    run.until_written(10);
    run
}

#[test]
fn a_leader_that_is_cut_off_acknowledges_nothing_while_the_others_go_on() {
    let mut run = with_clients(3, 3);
    for kind in [Kind::Cut, Kind::Mute, Kind::Hold] {
        let first = run.cluster.leader().unwrap();
        let fault = Fault::new(kind, [first]);
        run.begin(&fault);
        run.until("another one leads", |cluster| cluster.leader().is_some_and(|it| it != first));
        let asked = run.cluster.record.unacknowledged();
        run.until_written(20);
        run.until("it is asked", |cluster| cluster.record.unacknowledged() > asked + 2);
        run.end(&fault);
        run.until_written(20);
    }
    run.finish();
}

/// A leader that hears nobody, and is heard, keeps all from electing another one.
#[test]
fn a_leader_that_hears_nobody_acknowledges_nothing() {
    let mut run = with_clients(3, 4);
    let deaf = Fault::new(Kind::Deaf, [run.cluster.leader().unwrap()]);
    run.begin(&deaf);
    run.pass(5000);
    run.end(&deaf);
    run.finish();
}

fn last_entry(cluster: &Cluster, node: u64) -> Option<u64> {
    cluster.with(|nodes| nodes[&node].raft.metrics().borrow().last_log_index)
}

/// A leader that finds its entry replaced by another leader's tells its client to go to that one.
/// The entry is not gone by that: another node may have it, and lead at last.
#[test]
fn a_write_that_its_leader_has_lost_may_still_be_done() {
    let mut run = Run::start(5, 5);
    run.cluster.disk_wait.set(0);
    run.until("all have the same", Cluster::agrees);
    let first = run.cluster.leader().unwrap();
    let mut others: BTreeSet<u64> = run.cluster.all().filter(|&node| node != first).collect();
    let heir = others.pop_first().unwrap();

    // The write gets to one other node.
    let cut = Fault::new(Kind::Cut, [first, heir]);
    run.begin(&cut);
    let before = last_entry(&run.cluster, first);
    let id = run.cluster.record.next_id();
    run.ask(first, Action::Write { key: 0, value: 1, id });
    run.until("the heir has it", |cluster| last_entry(cluster, heir) > before);
    run.begin(&Fault::new(Kind::Cut, [heir]));

    // Another leader has its first entry from the first one alone.
    run.until("a second one leads", |cluster| cluster.leader().is_some_and(|it| it != first));
    let second = run.cluster.leader().unwrap();
    run.begin(&Fault::new(Kind::Cut, [second]));
    run.repair(first, second);
    run.until("the client is told", |cluster| cluster.record.is_told(id));
    others.remove(&second);
    assert!(others.iter().all(|&node| last_entry(&run.cluster, node) == before));

    // Without these two the heir leads, and does it.
    let crash = Fault::new(Kind::Crash, [first, second]);
    run.begin(&crash);
    run.end(&Fault::new(Kind::Cut, [heir]));
    run.until("the heir leads", |cluster| cluster.leader() == Some(heir));
    let is_done = |cluster: &Cluster| {
        cluster.with(|nodes| nodes[&heir].node.state().get(DONE, id.to_string()).unwrap().is_some())
    };
    run.until("it is done", is_done);
    run.end(&crash);
    run.end(&Fault::new(Kind::Cut, [first, second]));
    (0..2).for_each(|_| run.client(None));
    run.finish();
}
