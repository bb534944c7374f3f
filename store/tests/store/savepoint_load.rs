//! Persistent savepoints between the commits of several threads, with all background work: each is
//! one moment of all keyspaces, behind every commit that had returned before it was being made.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use adamant::{Durability, Engine, Keyspace, KeyspaceOptions, LsmOptions, Options, Store};

const ENGINES: [Engine; 2] = [Engine::Bplus, Engine::Lsm];
const THREADS: usize = 3;
const SLOTS: u64 = 300;

fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 64 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.level0_tables_max = 3;
    lsm.blob_bytes_min = Some(1000);
    Options::new().durability(Durability::Buffered).lsm(lsm).log_bytes_max(4 << 20)
}

/// A savepoint: its name, and for each thread the first and last commit that it may end with.
type Made = (String, [(u64, u64); THREADS]);

/// Commit `number` of a thread: the same to both keyspaces.
fn commit(store: &Store, keyspaces: &[Keyspace; 2], thread: usize, number: u64) {
    let mut batch = store.batch();
    for keyspace in keyspaces {
        let mut value = number.to_le_bytes().to_vec();
        batch.put(keyspace, format!("last {thread}"), &value).unwrap();
        value.resize(8 + (number % 7 * 300) as usize, number as u8);
        batch.put(keyspace, format!("{thread}, {:04}", number % SLOTS), value).unwrap();
    }
    if thread > 0 {
        batch.durability(Durability::Deferred);
    }
    batch.commit().unwrap();
}

fn number_at(keyspace: &Keyspace, key: &str) -> Option<u64> {
    let value = keyspace.get(key).unwrap()?;
    Some(u64::from_le_bytes(value[..8].try_into().unwrap()))
}

fn verify(store: &Store, made: &[Made]) {
    for (name, bounds) in made {
        let one = store.open_savepoint(name).unwrap();
        let keyspaces = ENGINES.map(|engine| one.open_keyspace(engine.name()).unwrap());
        for (thread, (low, high)) in bounds.iter().enumerate() {
            let ends = keyspaces.each_ref().map(|it| number_at(it, &format!("last {thread}")));
            let end = ends[0].unwrap_or(0);
            assert!(ends[0] == ends[1] && (*low..=*high).contains(&end), "{name}: {ends:?}");
            for back in 0..SLOTS {
                let expected = end.checked_sub(back).filter(|number| *number > 0);
                let slot = (end + SLOTS - back) % SLOTS;
                for keyspace in &keyspaces {
                    let found = number_at(keyspace, &format!("{thread}, {slot:04}"));
                    assert_eq!(found, expected, "{name}, thread {thread}, {back} before {end}");
                }
            }
        }
        assert!(one.check().unwrap().is_clean(), "{name}");
    }
}

/// Ends the threads, also where a check fails: nobody would.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn each_is_a_moment_between_commits() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open_with(&path, options()).unwrap();
    let keyspaces = ENGINES.map(|engine| {
        let own = KeyspaceOptions::new().engine(engine);
        store.keyspace_with(engine.name(), own).unwrap()
    });
    let [begun, done]: [[AtomicU64; THREADS]; 2] = Default::default();
    let (is_over, mut made) = (AtomicBool::new(false), Vec::<Made>::new());
    std::thread::scope(|scope| {
        let _over = Over(&is_over);
        for thread in 0..THREADS {
            let (store, keyspaces, begun, done) = (&store, &keyspaces, &begun, &done);
            let is_over = &is_over;
            scope.spawn(move || {
                for number in (1..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    begun[thread].store(number, Ordering::SeqCst);
                    commit(store, keyspaces, thread, number);
                    done[thread].store(number, Ordering::SeqCst);
                }
            });
        }
        for round in 0..8 {
            std::thread::sleep(Duration::from_millis(60));
            let low = done.each_ref().map(|it| it.load(Ordering::SeqCst));
            let name = format!("{round}");
            store.create_savepoint(&name).unwrap();
            let high = begun.each_ref().map(|it| it.load(Ordering::SeqCst));
            made.push((name, std::array::from_fn(|thread| (low[thread], high[thread]))));
            if round % 3 == 2 {
                let (name, _) = made.remove(made.len() / 2);
                assert!(store.delete_savepoint(&name).unwrap());
                verify(&store, &made[..1]);
            }
        }
    });
    verify(&store, &made);
    store.close().unwrap();
    // Back, one by one, and forward again.
    for (name, _) in made.iter().rev().chain(&made) {
        adamant::go_back_with(&path, name, options()).unwrap();
        let store = Store::open_with(&path, options()).unwrap();
        verify(&store, &made);
        assert!(store.check().unwrap().is_clean());
        store.close().unwrap();
    }
}
