//! The log against a list: entries are appended, truncated and purged at random, and the node is
//! opened again. What was purged and not applied is not purged then: that is for openraft, which
//! asks for it before it installs a snapshot.

use std::ops::Bound;

use adamant_replica::Node;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::{LogId, RaftLogReader, Vote};

use crate::support::{Entry, entry, log_id, open};

const STEPS: u64 = 160;

#[derive(Default)]
struct Model {
    /// All entries there ever were and are not truncated, purged or not.
    entries: Vec<Entry>,
    purged: Option<LogId<u64>>,
    /// As far as it was applied before.
    purged_durably: Option<LogId<u64>>,
    /// The next entry to be applied.
    applied: u64,
    vote: Option<Vote<u64>>,
    committed: Option<LogId<u64>>,
    term: u64,
}

impl Model {
    fn first(&self) -> u64 {
        self.purged.map_or(0, |purged| purged.index + 1)
    }

    fn last(&self) -> Option<LogId<u64>> {
        self.entries.last().map(|entry| entry.log_id).max(self.purged)
    }
}

async fn step(random: &mut fastrand::Rng, model: &mut Model, node: &Node) {
    let mut log = node.log_store();
    let next = model.entries.len() as u64;
    match random.u8(..10) {
        0..5 => {
            let count = if random.u8(..8) == 0 { 1200 } else { random.u64(1..20) };
            let entries: Vec<_> = (next..next + count).map(|at| entry(model.term, at)).collect();
            log.blocking_append(entries.clone()).await.unwrap();
            model.entries.extend(entries);
        }
        5 => {
            model.term += 1;
            let vote = Vote::new(model.term, random.u64(..3));
            log.save_vote(&vote).await.unwrap();
            model.vote = Some(vote);
        }
        6 | 7 if next > model.first().max(model.applied) => {
            let index = random.u64(model.first().max(model.applied)..next);
            log.truncate(model.entries[index as usize].log_id).await.unwrap();
            model.entries.truncate(index as usize);
        }
        8 if next > model.first() => {
            let purged = model.entries[random.u64(model.first()..next) as usize].log_id;
            if random.bool() && purged.index >= model.applied {
                let entries =
                    model.entries[model.applied as usize..=purged.index as usize].to_vec();
                node.state_machine().apply(entries).await.unwrap();
                model.applied = purged.index + 1;
            }
            log.purge(purged).await.unwrap();
            // Again, and less, is nothing.
            log.purge(purged).await.unwrap();
            log.purge(log_id(0, 0)).await.unwrap();
            model.purged = Some(purged);
            if purged.index < model.applied {
                model.purged_durably = model.purged;
            }
        }
        _ => {
            model.committed = model.last();
            log.save_committed(model.committed).await.unwrap();
        }
    }
}

async fn compare(random: &mut fastrand::Rng, model: &Model, node: &Node, context: &str) {
    let mut log = node.log_store();
    let state = log.get_log_state().await.unwrap();
    assert_eq!(state.last_purged_log_id, model.purged, "{context}");
    assert_eq!(state.last_log_id, model.last(), "{context}");
    assert_eq!(log.read_vote().await.unwrap(), model.vote, "{context}");
    assert_eq!(log.read_committed().await.unwrap(), model.committed, "{context}");
    let (first, next) = (model.first(), model.entries.len() as u64);
    let start = random.u64(..=next);
    let end = random.u64(start..=next + 1);
    let range = (Bound::Included(start), Bound::Excluded(end));
    let from = start.max(first).min(next) as usize;
    let to = (end.max(first).min(next) as usize).max(from);
    let expected = &model.entries[from..to];
    assert_eq!(log.try_get_log_entries(range).await.unwrap(), expected, "{context}");
    let limited = log.limited_get_log_entries(start, end).await.unwrap();
    assert!(expected.starts_with(&limited) && limited.is_empty() == expected.is_empty());
}

#[tokio::test]
async fn the_log_is_a_list_whatever_is_done_to_it() {
    let seed = std::env::var("ADAMANT_REPLICA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_261_123);
    println!("ADAMANT_REPLICA_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node");
    let mut node = open(&path, 1);
    let mut model = Model::default();
    for number in 0..STEPS {
        let context = format!("seed {seed}, step {number}");
        step(&mut random, &mut model, &node).await;
        compare(&mut random, &model, &node, &context).await;
        match random.u8(..16) {
            0 => node.close().unwrap(),
            1 => {}
            _ => continue,
        }
        drop(node);
        node = open(&path, 1);
        model.purged = model.purged_durably;
        compare(&mut random, &model, &node, &format!("{context}, opened again")).await;
    }
}
