//! Events and figures of a store.
//!
//! A file of its own: the listener serves the whole process, and hears the threads of the store.

use std::fmt::{Debug, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use adamant::{Durability, Options, Store};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// All events heard, one line each.
static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("adamant::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        struct Line(String);
        impl Visit for Line {
            fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
                write!(self.0, " {field}={value:?}").expect("a string takes anything");
            }
        }
        let metadata = event.metadata();
        let mut line = Line(format!("{} {}", metadata.level(), metadata.target()));
        event.record(&mut line);
        HEARD.lock().expect("no panic holds it").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

fn heard(start: &str, part: &str) -> usize {
    let heard = HEARD.lock().expect("no panic holds it");
    heard.iter().filter(|line| line.starts_with(start) && line.contains(part)).count()
}

#[test]
fn what_a_store_does_is_told_and_counted() {
    tracing::subscriber::set_global_default(Listener).expect("the first listener");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("store");
    let store = Store::open_with(&path, Options::new().background(false)).expect("a store");
    assert_eq!(heard("INFO adamant::store", "message=opened"), 1);

    let keyspace = store.keyspace("words").expect("a keyspace");
    let before = store.stats().expect("figures").commits;
    for number in 0..5_u32 {
        keyspace.insert(number.to_le_bytes(), "synced").expect("a put");
    }
    let buffered = keyspace.with_durability(Durability::Buffered);
    for number in 0..160_u32 {
        buffered.insert(number.to_le_bytes(), "buffered").expect("a put");
    }
    let after = store.stats().expect("figures").commits;
    assert_eq!(after.commits - before.commits, 165);
    assert_eq!(after.synced.count() - before.synced.count(), 5);
    assert_eq!(after.unsynced.count() - before.unsynced.count(), 10, "one in 16");
    assert!(after.synced.max() >= after.synced.percentile(50.0));
    assert!(after.synced.percentile(50.0) > Duration::ZERO);
    assert!(after.synced.mean() <= after.synced.max());
    assert!(heard("TRACE adamant::commit", "durability=Sync") >= 5);
    assert!(heard("TRACE adamant::commit", "durability=Buffered") >= 160);
    assert!(heard("TRACE adamant::log", "log synced") >= 5);

    let mut one = store.begin().expect("a transaction");
    let mut other = store.begin().expect("a transaction");
    for transaction in [&mut one, &mut other] {
        transaction.get(&keyspace, "missing").expect("a get");
        transaction.put(&keyspace, "missing", "no more").expect("a put");
    }
    one.commit().expect("nobody was there");
    assert!(other.commit().expect_err("somebody was there").is_conflict());
    let last = store.stats().expect("figures").commits;
    assert_eq!((last.conflicts, last.commits - after.commits), (1, 1));
    assert_eq!(last.snapshots - after.snapshots, 2);
    assert_eq!(heard("DEBUG adamant::transaction", "keyspace=\"words\""), 1);
    assert_eq!(heard("TRACE adamant::snapshot", "snapshot opened"), 2);
    assert_eq!(heard("TRACE adamant::snapshot", "snapshot closed"), 2);

    store.close().expect("a close");
    assert_eq!(heard("DEBUG adamant::checkpoint", "checkpoint made"), 1);
    assert_eq!(heard("INFO adamant::store", "message=closed"), 1);
    assert_eq!(heard("ERROR", ""), 0);
}
