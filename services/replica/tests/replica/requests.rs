//! What requests do to keyspaces, and what they answer.

use adamant_replica::{Change, Node, Request, Response};
use openraft::EntryPayload;
use openraft::storage::RaftStateMachine;

use crate::support::{Entry, content_of, entry_of, log_id, open, put};

async fn apply(node: &Node, index: u64, changes: impl Into<Vec<Change>>) -> Response {
    let entry = entry_of(1, index, Request::new(changes.into()).unwrap());
    node.state_machine().apply([entry]).await.unwrap().remove(0)
}

fn compare(key: &str, expected: Option<&str>) -> Change {
    let expected = expected.map(|value| value.as_bytes().to_vec());
    Change::Compare { keyspace: "a".into(), key: key.into(), expected }
}

fn delete(key: &str) -> Change {
    Change::Delete { keyspace: "a".into(), key: key.into() }
}

fn delete_range(start: &str, end: Option<&str>) -> Change {
    let end = end.map(|end| end.as_bytes().to_vec());
    Change::DeleteRange { keyspace: "a".into(), start: start.into(), end }
}

fn keys(node: &Node) -> String {
    let content = content_of(&node.state(), "a");
    String::from_utf8(content.into_keys().collect::<Vec<_>>().concat()).unwrap()
}

#[tokio::test]
async fn changes_of_a_request_take_effect_in_their_order_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(&folder.path().join("node"), 1);
    let done = Response::Done;
    // Of a keyspace that is not there.
    assert_eq!(
        apply(&node, 0, [compare("k", None), delete("k"), delete_range("", None)]).await,
        done
    );
    let missing = Response::Different { change: 0, found: None };
    assert_eq!(apply(&node, 1, [compare("k", Some("1"))]).await, missing);
    assert!(node.state().keyspaces().unwrap().is_empty());

    let all: Vec<_> = ["a", "b", "c", "d", "e", "f"].iter().map(|key| put("a", key, "1")).collect();
    assert_eq!(apply(&node, 2, all).await, done);
    assert_eq!(apply(&node, 3, [delete_range("b", Some("d")), delete("f")]).await, done);
    assert_eq!(keys(&node), "ade");
    // What a request has changed it sees.
    let changes = [put("a", "c", "2"), compare("c", Some("2")), delete_range("d", None)];
    assert_eq!(apply(&node, 4, changes).await, done);
    assert_eq!(keys(&node), "ac");
    // And none of it is left if a later one of its comparisons fails.
    let changes = [put("a", "x", "1"), delete_range("", None), compare("c", Some("2"))];
    let undone = Response::Different { change: 2, found: None };
    assert_eq!(apply(&node, 5, changes).await, undone);
    assert_eq!(keys(&node), "ac");
    let found = Response::Different { change: 0, found: Some(b"2".to_vec()) };
    assert_eq!(apply(&node, 6, [compare("c", Some("3")), delete("c")]).await, found);
    assert_eq!(apply(&node, 7, [delete_range("b", Some("a"))]).await, done);
    assert_eq!(keys(&node), "ac");
    assert_eq!(node.state().applied_index(), Some(7));
}

#[tokio::test]
async fn a_run_of_entries_is_one_commit_in_which_each_sees_those_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(&folder.path().join("node"), 1);
    let request = |changes: &[Change]| Request::new(changes.to_vec()).unwrap();
    let entries = [
        entry_of(1, 0, request(&[put("a", "k", "1")])),
        Entry { log_id: log_id(1, 1), payload: EntryPayload::Blank },
        entry_of(1, 2, request(&[compare("k", Some("1")), put("a", "k", "2")])),
        entry_of(1, 3, request(&[compare("k", Some("1")), put("a", "k", "3")])),
    ];
    let before = node.state().keyspaces().unwrap().len();
    let responses = node.state_machine().apply(entries).await.unwrap();
    let different = Response::Different { change: 0, found: Some(b"2".to_vec()) };
    assert_eq!(responses, [Response::Done, Response::Done, Response::Done, different]);
    assert_eq!(node.state().get("a", "k").unwrap(), Some("2".into()));
    assert_eq!(node.state().keyspaces().unwrap().len(), before + 1);
}

/// What another node's mistake, or another version, might send: all nodes refuse it, and go on.
#[tokio::test]
async fn what_cannot_be_applied_is_refused_and_harms_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(&folder.path().join("node"), 1);
    let too_long = "k".repeat(adamant::KEY_BYTES_MAX + 1);
    let bad = [put("\0replica", "applied", "9"), put("a", &too_long, "1"), put("", "k", "no name")];
    for (index, change) in (0..).zip(bad) {
        assert!(Request::new([change.clone()]).is_err());
        // As it would come from the network.
        let good = put("a", "k", "1");
        let sent = postcard::to_stdvec(&vec![good, change]).unwrap();
        let request: Request = postcard::from_bytes(&sent).unwrap();
        let responses = node.state_machine().apply([entry_of(1, index, request)]).await.unwrap();
        assert!(matches!(&responses[0], Response::Refused(refusal) if refusal.change == 1));
        assert_eq!(node.state().applied_index(), Some(index));
    }
    assert!(node.state().keyspaces().unwrap().is_empty(), "nothing of them was done");
    assert_eq!(node.state().get("\0replica", "applied").unwrap(), None);
}

#[tokio::test]
async fn what_was_applied_is_not_applied_again() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(&folder.path().join("node"), 1);
    apply(&node, 3, [put("a", "k", "1")]).await;
    let again = entry_of(1, 3, Request::new([put("a", "k", "2")]).unwrap());
    let error = node.state_machine().apply([again]).await.unwrap_err();
    assert!(error.to_string().contains("in order"), "{error}");
    assert_eq!(node.state().get("a", "k").unwrap(), Some("1".into()));
}

fn put_ending(keyspace: &str, key: &str, deadline: Option<u64>) -> Change {
    let (key, value) = (key.into(), b"value".to_vec());
    Change::PutEnding { keyspace: keyspace.into(), key, value, deadline }
}

/// The keys of entries that end, over or not, and how many deadlines there are.
fn ending(node: &Node, keyspace: &str) -> (String, u64) {
    let keyspace = node.state().store().expiring(keyspace).unwrap().with_clock(|| 0);
    let keys = keyspace.iter().map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>();
    (String::from_utf8(keys.concat()).unwrap(), keyspace.keyspaces().1.len().unwrap())
}

#[tokio::test]
async fn entries_end_by_the_moment_of_a_request_and_by_no_clock() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(&folder.path().join("node"), 1);
    let all = [("a", Some(1_000)), ("b", Some(2_000)), ("c", None), ("d", Some(u64::MAX / 2))];
    let all = all.map(|(key, deadline)| put_ending("e", key, deadline));
    assert_eq!(apply(&node, 0, all).await, Response::Done);
    // All nodes' clocks say that two of them are over, and it makes no difference.
    assert_eq!(ending(&node, "e"), ("abcd".into(), 3));
    let expire = |now| Change::Expire { keyspace: "e".into(), now, entries_max: 10 };
    assert_eq!(apply(&node, 1, [expire(999)]).await, Response::Done);
    assert_eq!(ending(&node, "e"), ("abcd".into(), 3));
    assert_eq!(apply(&node, 2, [expire(1_000)]).await, Response::Done);
    assert_eq!(ending(&node, "e"), ("bcd".into(), 2));
    // One that is over by all clocks is replaced, or removed, as any other.
    let delete = Change::DeleteEnding { keyspace: "e".into(), key: b"b".to_vec() };
    assert_eq!(apply(&node, 3, [delete, put_ending("e", "d", None)]).await, Response::Done);
    assert_eq!(ending(&node, "e"), ("cd".into(), 0));
    let clear = Change::ClearEnding { keyspace: "e".into() };
    assert_eq!(apply(&node, 4, [put_ending("e", "x", Some(7)), clear]).await, Response::Done);
    assert_eq!(ending(&node, "e"), (String::new(), 0));
}

/// Whether entries are applied one by one or in one run, which each node decides for itself, they
/// do the same.
#[tokio::test]
async fn what_is_put_first_decides_the_kind_of_a_keyspace_however_entries_are_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let delete_ending = Change::DeleteEnding { keyspace: "a".into(), key: b"k".to_vec() };
    let requests = [
        vec![delete("k"), put("b", "k", "1")],
        vec![delete_ending, put("b", "l", "1")],
        vec![compare("k", Some("1")), put_ending("a", "never", None)],
        vec![put("a", "k", "1"), put("b", "never", "1")],
        vec![put_ending("a", "k", None), put("b", "m", "1")],
        vec![delete("k"), delete_range("", None), put("b", "n", "1")],
        vec![put_ending("b", "k", None)],
    ];
    let entry = |(index, changes): (u64, &Vec<Change>)| {
        entry_of(1, index, Request::new(changes.clone()).unwrap())
    };
    let entries: Vec<Entry> = (0..).zip(&requests).map(entry).collect();
    let mut seen = Vec::new();
    for run in [1, 2, entries.len()] {
        let path = folder.path().join(format!("node-{run}"));
        let mut responses = Vec::new();
        for entries in entries.chunks(run) {
            // What is known of keyspaces is what is on the disk.
            let node = open(&path, 1);
            responses.extend(node.state_machine().apply(entries.to_vec()).await.unwrap());
            node.close().unwrap();
        }
        let node = open(&path, 1);
        let content = content_of(&node.state(), "b");
        assert_eq!(ending(&node, "a").0, "k");
        assert_eq!(content.into_keys().collect::<Vec<_>>().concat(), b"klmn");
        assert!(matches!(responses[3], Response::Refused(_)), "{responses:?}");
        assert!(matches!(responses[6], Response::Refused(_)), "{responses:?}");
        seen.push(responses);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}
