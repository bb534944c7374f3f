//! No-op changes on a disk that loses power: an operation with `Sync` that finds nothing to do has
//! reported what it found, so that survives, whatever the durability of the commit that wrote it.

use adamant::{Deadline, Durability, Engine, Error, Keyspace, KeyspaceOptions, Store};
use adamant_scenarios::crashes::{Setup, open};
use adamant_sim::{Choice, SimDisk};

/// The object of operations: a store with keyspaces that each hold an entry under "there".
struct World {
    store: Store,
    all: Keyspace,
    other: Keyspace,
    ending: adamant::Expiring,
}

impl World {
    fn open(disk: &SimDisk, engine: Engine) -> Self {
        let store = open(disk).unwrap();
        let options = || KeyspaceOptions::new().engine(engine);
        let all = store.keyspace_with("all", options()).unwrap();
        let other = store.keyspace_with("other", options()).unwrap();
        let ending = store.expiring_with("ending", options()).unwrap().with_clock(|| 1000);
        all.insert("there", "1").unwrap();
        ending.insert("there", "1", Some(end())).unwrap();
        Self { store, all, other, ending }
    }
}

impl World {
    /// The expiring keyspace at a time when no entry is left.
    fn ended(&self) -> adamant::Expiring {
        self.ending.with_clock(|| 2000)
    }
}

fn end() -> Deadline {
    Deadline::from_millis(2000)
}

type Operation = fn(&World) -> adamant::Result<()>;

/// Each public way to change something, where there is nothing to change.
const OPERATIONS: &[(&str, Operation)] = &[
    ("remove", |w| w.all.remove("absent").map(|_| ())),
    ("delete", |w| w.all.delete("absent")),
    ("take", |w| w.all.take("absent").map(|_| ())),
    ("insert_unique", |w| w.all.insert_unique("there", "2").map(|_| ())),
    ("compare_and_swap", |w| w.all.compare_and_swap("there", Some("2"), Some("3")).map(|_| ())),
    ("fetch_update", |w| w.all.fetch_update("absent", |_| None::<&str>).map(|_| ())),
    ("update_fetch", |w| w.all.update_fetch("absent", |_| None::<&str>).map(|_| ())),
    ("delete_range", |w| w.all.delete_range("x".."y")),
    ("delete_range of no range", |w| w.all.delete_range("y".."x")),
    ("pop_first", |w| w.other.pop_first().map(|_| ())),
    ("pop_last", |w| w.other.pop_last().map(|_| ())),
    ("retain", |w| w.all.retain(.., |_, _| true).map(|_| ())),
    ("extract_if", |w| w.all.extract_if("x".."y", |_, _| true).map(|_| ())),
    ("clear", |w| w.other.clear()),
    ("rename", |w| w.all.rename("absent", "new").map(|_| ())),
    ("rename to itself", |w| w.all.rename("there", "there").map(|_| ())),
    ("move_to", |w| w.all.move_to("absent", &w.other, "new").map(|_| ())),
    ("swap", |w| w.all.swap("there", &w.all, "absent").map(|_| ())),
    ("move_range", |w| w.all.move_range("x".."y", &w.other).map(|_| ())),
    ("move_range of no range", |w| w.all.move_range("y".."x", &w.other).map(|_| ())),
    ("extend", |w| w.all.extend(Vec::<(&str, &str)>::new()).map(|_| ())),
    ("load_sorted", |w| w.all.load_sorted(Vec::<(&str, &str)>::new()).map(|_| ())),
    ("settle", |w| w.all.settle()),
    ("batch of nothing", |w| w.store.batch().commit()),
    ("batch that removes nothing", |w| {
        let mut batch = w.store.batch();
        batch.delete(&w.all, "absent")?;
        batch.rename(&w.all, "absent", "new")?;
        batch.commit()
    }),
    ("transaction of nothing", |w| w.store.begin()?.commit()),
    ("transaction that reads", |w| {
        w.store.transaction(|tx| tx.get(&w.all, "late").map(|found| assert!(found.is_some())))
    }),
    ("transaction that takes nothing", |w| {
        w.store.transaction(|tx| tx.take(&w.all, "absent").map(|_| ()))
    }),
    ("transaction that pops nothing", |w| {
        w.store.transaction(|tx| tx.pop_first(&w.other).map(|_| ()))
    }),
    ("transaction that removes nothing", |w| w.store.transaction(|tx| tx.delete(&w.all, "absent"))),
    ("transaction undone to its savepoint", |w| {
        let mut transaction = w.store.begin()?;
        transaction.set_savepoint();
        transaction.put(&w.all, "new", "1")?;
        assert!(transaction.undo_savepoint());
        transaction.commit()
    }),
    ("exclusive that reads", |w| w.store.exclusive(|tx| tx.get(&w.all, "late").map(|_| ()))),
    ("exclusive of nothing", |w| w.store.begin_exclusive()?.commit()),
    ("typed remove", |w| w.all.typed::<String, String>()?.remove("absent").map(|_| ())),
    ("typed take in a transaction", |w| {
        let all = w.all.typed::<String, String>()?;
        w.store.transaction(|tx| all.within(tx).take("absent").map(|_| ()))
    }),
    ("expiring remove", |w| w.ending.remove("absent").map(|_| ())),
    ("expiring delete", |w| w.ending.delete("absent")),
    ("expiring take", |w| w.ending.take("absent").map(|_| ())),
    ("expiring set_deadline of nothing", |w| w.ending.set_deadline("absent", None).map(|_| ())),
    ("expiring set_deadline to the same", |w| {
        w.ending.set_deadline("there", Some(end())).map(|_| ())
    }),
    ("expiring remove_expired", |w| w.ending.remove_expired(10).map(|_| ())),
    ("expiring pop_first", |w| w.ended().pop_first().map(|_| ())),
    ("expiring retain", |w| w.ending.retain(.., |_, _, _| true).map(|_| ())),
    ("expiring settle", |w| w.ending.settle()),
    ("expiring in a transaction", |w| {
        w.store.transaction(|tx| w.ending.within(tx).remove("absent").map(|_| ()))
    }),
    ("drop_keyspace", |w| w.store.drop_keyspace("absent").map(|_| ())),
    ("drop_expiring", |w| w.store.drop_expiring("absent").map(|_| ())),
    ("convert_keyspace", |w| w.store.convert_keyspace("all", w.all.engine()).map(|_| ())),
    ("sync", |w| w.store.sync()),
    ("snapshot_durable", |w| w.store.snapshot_durable().map(drop)),
];

/// Whether a deferred commit survives a power cut after an operation, in each state of the disk.
fn survives(engine: Engine, operation: Option<Operation>) -> bool {
    let disk = SimDisk::new(7);
    let world = World::open(&disk, engine);
    world.all.with_durability(Durability::Deferred).insert("late", "1").unwrap();
    if let Some(operation) = operation {
        operation(&world).unwrap();
    }
    let mut cursor = disk.cursor();
    cursor.advance_to(disk.operation_count());
    cursor.choices(4, 1).into_iter().all(|mut choice: Choice| {
        let crashed = open(&cursor.crash(&mut choice)).unwrap();
        crashed.open_keyspace("all").unwrap().contains("late").unwrap()
    })
}

#[test]
fn what_a_sync_operation_found_survives_though_it_changed_nothing() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        assert!(!survives(engine, None), "what is tested would be there anyway");
        let lost = OPERATIONS.iter().filter(|(_, operation)| !survives(engine, Some(*operation)));
        let lost: Vec<_> = lost.map(|(name, _)| name).collect();
        assert!(lost.is_empty(), "{engine}: did not wait: {lost:?}");
    }
}

#[test]
fn who_asks_for_less_waits_for_less() {
    for durability in [Durability::Buffered, Durability::Deferred] {
        let disk = SimDisk::new(7);
        let world = World::open(&disk, Engine::Bplus);
        world.all.with_durability(Durability::Deferred).insert("late", "1").unwrap();
        let before = world.store.stats().unwrap().heap.journal.syncs;
        let mut transaction = world.store.begin().unwrap();
        transaction.durability(durability);
        transaction.commit().unwrap();
        assert_eq!(world.store.stats().unwrap().heap.journal.syncs, before);
        let killed = open(&disk.kill(disk.operation_count())).unwrap();
        let is_there = killed.open_keyspace("all").unwrap().contains("late").unwrap();
        assert_eq!(is_there, durability == Durability::Buffered, "{durability:?}");
    }
}

#[test]
fn what_was_closed_or_is_read_only_has_nothing_to_wait_for() {
    let disk = SimDisk::new(7);
    let world = World::open(&disk, Engine::Bplus);
    let open = world.store.begin().unwrap();
    world.all.with_durability(Durability::Deferred).insert("late", "1").unwrap();
    world.store.clone().close().unwrap();
    open.commit().unwrap();
    assert!(matches!(world.store.begin(), Err(Error::Closed)));
    drop(world);
    let options = Setup::default().options().read_only(true);
    let directory = std::sync::Arc::new(adamant_sim::SimDirectory::root(&disk));
    let store = Store::open_directory(directory, options).unwrap();
    let all = store.open_keyspace("all").unwrap();
    let found = store.transaction(|tx| tx.get(&all, "there")).unwrap();
    assert_eq!(found, Some("1".into()));
}
