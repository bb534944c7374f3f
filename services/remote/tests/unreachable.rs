//! Objects that cannot be reached, or that have no room, for a while: calls wait for them, but not
//! for ever; what returned is there, and what failed leaves nothing behind but a commit that took
//! place as a whole or not at all.

#[path = "common/watched.rs"]
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use adamant_remote::object_store::{Error as ObjectError, Result as ObjectResult};
use adamant_remote::{Error, Options, Store};

use watched::{Watch, Watched};

/// How objects answer.
const WELL: u8 = 0;
const NO_ROOM: u8 = 1;
const BROKEN: u8 = 2;
const SILENT: u8 = 3;

#[derive(Default)]
struct Outage(AtomicU8);

impl Outage {
    fn set(&self, how: u8) {
        self.0.store(how, Ordering::SeqCst);
    }
}

impl Watch for Outage {
    async fn before(&self, is_change: bool) -> ObjectResult<()> {
        let how = self.0.load(Ordering::SeqCst);
        let failed =
            |what: &'static str| ObjectError::Generic { store: "outage", source: what.into() };
        match how {
            NO_ROOM if is_change => Err(failed("no space left on device")),
            BROKEN => Err(failed("connection refused")),
            SILENT => {
                while self.0.load(Ordering::SeqCst) == SILENT {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

const OUTAGES: [(&str, u8); 3] = [("no room", NO_ROOM), ("broken", BROKEN), ("silent", SILENT)];

fn options(wait_ms_max: u64) -> Options {
    Options::new().flush_ms(2).wait_ms_max(wait_ms_max)
}

fn open(objects: &Watched<Outage>, wait_ms_max: u64) -> adamant_remote::Result<Store> {
    Store::open_objects(Arc::new(objects.clone()), "store", options(wait_ms_max))
}

#[test]
fn calls_wait_until_objects_are_back() {
    for (name, how) in OUTAGES {
        let objects = Watched::new(Outage::default());
        let store = open(&objects, 120_000).unwrap();
        let keyspace = store.keyspace("main").unwrap();
        keyspace.put("before", "v").unwrap();
        objects.watch.set(how);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| keyspace.put("meanwhile", "v"));
            std::thread::sleep(Duration::from_millis(300));
            assert!(!waiting.is_finished(), "{name}: it returned before it was in the objects");
            objects.watch.set(WELL);
            waiting.join().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
        });
        keyspace.put("after", "v").unwrap();
        store.close().unwrap();
        let again = open(&objects, 120_000).unwrap();
        assert_eq!(again.open_keyspace("main").unwrap().len().unwrap(), 3, "{name}");
    }
}

/// Something that changes a store, and whether it is there.
type Change = (&'static str, fn(&Store) -> adamant_remote::Result<()>, fn(&Store) -> bool);

fn has(store: &Store, key: &str) -> bool {
    store.open_keyspace("main").unwrap().get(key).unwrap().is_some()
}

const CHANGES: [Change; 4] = [
    ("put", |store| store.open_keyspace("main")?.put("late", "v"), |store| has(store, "late")),
    (
        "batch",
        |store| {
            let (keyspace, mut batch) = (store.open_keyspace("main")?, store.batch());
            batch.put(&keyspace, "late", "v")?;
            batch.put(&keyspace, "later", "v")?;
            batch.commit()
        },
        |store| {
            assert_eq!(has(store, "late"), has(store, "later"), "half of a batch");
            has(store, "late")
        },
    ),
    (
        "create a keyspace",
        |store| store.create_keyspace("late").map(drop),
        |store| store.keyspaces().unwrap().len() == 2,
    ),
    (
        "transaction",
        |store| {
            let keyspace = store.open_keyspace("main")?;
            store.transaction(|tx| tx.put(&keyspace, "late", "v"))
        },
        |store| has(store, "late"),
    ),
];

/// Nobody knows whether it took place: so the handle is of no use any more, and says so. What had
/// returned before is there.
#[test]
fn a_change_that_waits_too_long_is_in_doubt() {
    for (name, how) in OUTAGES {
        for (change, make, is_there) in CHANGES {
            let context = format!("{change}, {name}");
            let objects = Watched::new(Outage::default());
            let store = open(&objects, 400).unwrap();
            store.keyspace("main").unwrap().put("before", "v").unwrap();
            objects.watch.set(how);
            let begin = Instant::now();
            let error = make(&store).unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }), "{context}: {error}");
            assert!(begin.elapsed() < Duration::from_secs(30), "{context}");
            let refused = store.keyspaces().unwrap_err();
            assert!(refused.to_string().contains("earlier change"), "{context}: {refused}");
            let refused = make(&store).unwrap_err();
            assert!(matches!(refused, Error::Unavailable { .. }), "{context}: {refused}");
            // It says that it failed, or that it closed, but comes back.
            let _ = store.close();
            assert!(begin.elapsed() < Duration::from_secs(60), "{context}");
            objects.watch.set(WELL);

            let again = open(&objects, 120_000).unwrap();
            assert!(has(&again, "before"), "{context}: lost");
            let took_place = is_there(&again);
            again.open_keyspace("main").unwrap().put("after", "v").unwrap();
            again.close().unwrap();
            let again = open(&objects, 120_000).unwrap();
            assert_eq!(is_there(&again), took_place, "{context}: it came or went later");
            assert!(has(&again, "before") && has(&again, "after"), "{context}");
        }
    }
}

/// Reading leaves nothing in doubt: the same handle goes on when the objects are back.
#[test]
fn reading_fails_and_goes_on() {
    for (name, how) in OUTAGES.into_iter().filter(|(_, how)| *how != NO_ROOM) {
        let objects = Watched::new(Outage::default());
        let store = open(&objects, 120_000).unwrap();
        store.keyspace("main").unwrap().put("k", "v").unwrap();
        store.close().unwrap();

        objects.watch.set(how);
        let begin = Instant::now();
        let error = open(&objects, 400).err();
        assert!(matches!(error, Some(Error::Unavailable { .. })), "{name}: {error:?}");
        objects.watch.set(WELL);
        let reader = open_reader(&objects).unwrap();
        objects.watch.set(how);
        let error = reader.open_keyspace("main").err();
        assert!(
            error.as_ref().is_none_or(|error| matches!(error, Error::Unavailable { .. })),
            "{name}: {error:?}"
        );
        assert!(begin.elapsed() < Duration::from_secs(30), "{name}");
        objects.watch.set(WELL);
        let keyspace = reader.open_keyspace("main").unwrap();
        assert_eq!(keyspace.get("k").unwrap(), Some("v".into()), "{name}");
    }
}

fn open_reader(objects: &Watched<Outage>) -> adamant_remote::Result<Store> {
    Store::open_objects(Arc::new(objects.clone()), "store", options(400).read_only(true))
}
