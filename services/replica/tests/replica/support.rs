//! What the tests share: entries, and what they make.

use adamant_replica::{Change, Node, Request, Response, Types};
use openraft::storage::RaftStateMachine;
use openraft::{CommittedLeaderId, EntryPayload, LogId};

pub(crate) use crate::nodes::{Content, content_of, open, options, put};

pub(crate) type Entry = openraft::Entry<Types>;

pub(crate) const DATA: &str = "data";
pub(crate) const SUMS: &str = "sums";

pub(crate) fn log_id(term: u64, index: u64) -> LogId<u64> {
    LogId::new(CommittedLeaderId::new(term, 1), index)
}

pub(crate) fn entry_of(term: u64, index: u64, request: Request) -> Entry {
    Entry { log_id: log_id(term, index), payload: EntryPayload::Normal(request) }
}

/// An entry whose outcome depends on all before it: it puts and removes by its number, and makes a
/// sum of the one before, which it compares first. Done twice or in half, it would be seen.
pub(crate) fn entry(term: u64, index: u64) -> Entry {
    let sum = |index: u64| (0..=index).sum::<u64>().to_string().into_bytes();
    let expected = index.checked_sub(1).map(sum);
    let (start, end) = (key(index * 7 % 31), Some(key(index * 7 % 31 + 3)));
    let changes = [
        Change::Compare { keyspace: SUMS.into(), key: b"sum".into(), expected },
        put(SUMS, "sum", sum(index)),
        Change::DeleteRange { keyspace: DATA.into(), start, end },
        Change::Put { keyspace: DATA.into(), key: key(index % 37), value: value(index) },
    ];
    entry_of(term, index, Request::new(changes).unwrap())
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:03}").into_bytes()
}

fn value(index: u64) -> Vec<u8> {
    index.to_string().repeat(1 + (index % 50) as usize).into_bytes()
}

/// What the entries up to a number make of the keyspace `DATA`.
pub(crate) fn content_at(applied: Option<u64>) -> Content {
    let mut content = Content::new();
    for index in 0..applied.map_or(0, |applied| applied + 1) {
        let start = index * 7 % 31;
        (start..start + 3).for_each(|number| {
            content.remove(&key(number));
        });
        content.insert(key(index % 37), value(index));
    }
    content
}

/// The state is what its entries made; how far it is.
pub(crate) fn verify(node: &Node) -> Option<u64> {
    let state = node.state();
    let applied = state.applied_index();
    assert_eq!(content_of(&state, DATA), content_at(applied), "applied {applied:?}");
    applied
}

/// Applies entries of term 1, each of which must be done.
pub(crate) async fn apply(node: &Node, indexes: std::ops::Range<u64>) {
    let entries: Vec<_> = indexes.map(|index| entry(1, index)).collect();
    let responses = node.state_machine().apply(entries).await.unwrap();
    assert!(responses.iter().all(|response| *response == Response::Done), "{responses:?}");
}
