//! Clients: they look at any node, and write to the one that leads.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use crate::cluster::Cluster;
use crate::record::{Action, Outcome};
use crate::wire::{CallError, Message, Reply, Wire};

/// For a reply.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Works until it is over. With a node of its own it asks no other one.
pub(crate) async fn serve(
    cluster: Rc<Cluster>,
    mut random: fastrand::Rng,
    own: Option<u64>,
) -> turmoil::Result {
    let record = &cluster.record;
    let wire = Wire::default();
    let nodes: Vec<u64> = cluster.all().collect();
    let mut leader = nodes[0];
    while !record.is_over() {
        sleep(Duration::from_millis(random.u64(10..90))).await;
        let action = record.action(&mut random);
        let any = nodes[random.usize(..nodes.len())];
        let node = own.unwrap_or(if action.is_read() { any } else { leader });
        let start = record.now();
        let called = timeout(PATIENCE, wire.call(node, &Message::Act(action))).await;
        let outcome = called.map_or(Ok(Outcome::Unknown), outcome_of)?;
        record.note(node, action, start, outcome);
        match outcome {
            Outcome::Undone { leader: Some(other) } if random.u8(..8) > 0 => leader = other,
            Outcome::Undone { .. } | Outcome::Unknown => leader = any,
            _ => {}
        }
    }
    Ok(())
}

/// Asks for one thing, with all patience.
pub(crate) async fn ask(cluster: Rc<Cluster>, node: u64, action: Action) -> turmoil::Result {
    let start = cluster.record.now();
    let outcome = outcome_of(Wire::default().call(node, &Message::Act(action)).await)?;
    cluster.record.note(node, action, start, outcome);
    Ok(())
}

fn outcome_of(called: Result<Reply, CallError>) -> Result<Outcome, String> {
    match called {
        Ok(Reply::Acted(outcome)) => Ok(outcome),
        Ok(other) => Err(format!("an action was answered {other:?}")),
        Err(CallError::Unreached(_)) => Ok(Outcome::Undone { leader: None }),
        Err(CallError::Lost(_)) => Ok(Outcome::Unknown),
    }
}
