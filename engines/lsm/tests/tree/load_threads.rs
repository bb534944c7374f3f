//! Loads whose tables several threads write: what one of them meets is what the load meets, and
//! none leaves a file behind.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory};
use adamant_lsm::{Error, NEWEST, Options};
use adamant_sim::{Call, Fault, SimDirectory, SimDisk};

use crate::store::{Store, open_on, small_options};

const THREADS: usize = 4;

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Pairs of which some values go to blob files.
fn pairs() -> Pairs {
    let pair = |number: u8| (vec![b'k', number], vec![number; 2 * usize::from(number)]);
    (0..80).map(pair).collect()
}

fn in_memory() -> (Arc<dyn Directory>, Store) {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, small_options()).unwrap();
    (directory, store)
}

fn files(directory: &dyn Directory) -> Vec<String> {
    let names = ["tables", "blobs"].map(|shelf| directory.subdirectory(shelf).unwrap().list());
    names.into_iter().flat_map(Result::unwrap).collect()
}

/// Loads all pairs, which must be the whole content then.
fn load(store: &Store, pairs: &Pairs) {
    let load = store.tree.prepare_load(pairs, THREADS).unwrap().unwrap();
    store.heap.transaction(Durability::Sync, |tx| load.commit(tx)).unwrap();
    let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    assert!(store.scan(all, true, NEWEST, 100).unwrap() == *pairs);
    assert!(store.check().is_clean());
}

/// Where one thread ends and the next begins no writer of a table sees both keys.
#[test]
fn keys_that_do_not_ascend_are_refused_wherever_they_are() {
    let (directory, store) = in_memory();
    let pairs = pairs();
    for at in 1..pairs.len() {
        for threads in [1, 2, THREADS, 7, 80, 1000] {
            let mut same = pairs.clone();
            same[at].0 = same[at - 1].0.clone();
            let mut below = pairs.clone();
            below.swap(at, at - 1);
            for wrong in [same, below] {
                let refused = store.tree.prepare_load(&wrong, threads).map(drop);
                let is_refused = matches!(refused, Err(Error::NotAscending { .. }));
                assert!(is_refused, "pair {at}, {threads} threads: {refused:?}");
            }
        }
    }
    assert_eq!(files(&*directory), [""; 0]);
    load(&store, &pairs);
}

#[test]
fn one_thread_that_fails_fails_the_load_and_no_file_stays() {
    for call in [Call::Create, Call::Write, Call::Sync, Call::SyncDirectory, Call::Rename] {
        for fault in [Fault::Device, Fault::Full] {
            let mut failed = 0;
            for number in 1.. {
                let disk = SimDisk::new(7).without_history();
                let store = open_on(&disk).unwrap();
                disk.fail_call(call, disk.call_count(call) + number, fault);
                let Err(error) = store.tree.prepare_load(&pairs(), THREADS).map(drop) else {
                    break;
                };
                failed += 1;
                assert_eq!(error.is_out_of_space(), fault == Fault::Full, "{call:?} {number}");
                let left = files(&SimDirectory::root(&disk));
                assert_eq!(left, [""; 0], "{call:?} {number}");
                disk.repair();
                load(&store, &pairs());
            }
            // Each thread has a file at least; their names are synced once, by the caller.
            let least = if call == Call::SyncDirectory { 2 } else { THREADS };
            assert!(failed >= least, "{call:?}: {failed}");
        }
    }
}

/// A key whose bytes cannot be had.
struct Panicking(Vec<u8>, bool);

impl AsRef<[u8]> for Panicking {
    fn as_ref(&self) -> &[u8] {
        assert!(!self.1 || std::thread::current().name() != Some("adamant-load"), "as asked");
        &self.0
    }
}

#[test]
fn a_panic_in_one_thread_is_the_callers_and_no_file_stays() {
    let (directory, store) = in_memory();
    for at in [30, 50, 79] {
        let keys = pairs().into_iter().enumerate();
        let wrong: Vec<_> =
            keys.map(|(index, (key, value))| (Panicking(key, index == at), value)).collect();
        let load = AssertUnwindSafe(|| store.tree.prepare_load(&wrong, THREADS).map(drop));
        let panic = catch_unwind(load).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"as asked"));
        assert_eq!(files(&*directory), [""; 0]);
    }
    load(&store, &pairs());
}

#[test]
fn a_load_that_is_given_up_or_undone_leaves_no_file() {
    let (directory, store) = in_memory();
    drop(store.tree.prepare_load(&pairs(), THREADS).unwrap().unwrap());
    assert_eq!(files(&*directory), [""; 0]);
    let prepared = store.tree.prepare_load(&pairs(), THREADS).unwrap().unwrap();
    let undone = store.heap.transaction(Durability::Buffered, |tx| {
        prepared.commit(tx)?;
        Err::<(), Error>(Error::TransactionTooLarge)
    });
    assert!(undone.is_err() && store.get(b"k\x07", NEWEST).unwrap().is_none());
    store.context.delete_obsolete(&store.heap).unwrap();
    assert_eq!(files(&*directory), [""; 0]);
    load(&store, &pairs());
}

/// A regression: what four threads wrote of one load were small tables, so that merges wrote all of
/// it once more.
#[test]
fn tables_that_threads_share_are_large_enough_to_stay() {
    let (directory, mut options) = (MemoryDirectory::new(), Options::default());
    options.table_bytes_max = 64 << 10;
    let directory: Arc<dyn Directory> = Arc::new(directory);
    let store = Store::open(&directory, options).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..5_u8 {
        let mut pair = |number: u8| {
            let value: Vec<u8> = (0..150).map(|_| random.u8(..)).collect();
            (vec![round, number], value.repeat(2)[..256].to_vec())
        };
        let pairs: Pairs = (0..=255).map(&mut pair).collect();
        let load = store.tree.prepare_load(&pairs, THREADS).unwrap().unwrap();
        store.heap.transaction(Durability::Buffered, |tx| load.commit(tx)).unwrap();
    }
    assert_eq!(store.tree.levels()[6].len(), 5 * THREADS);
    assert!(!store.tree.has_work(), "{:?}", store.tree.stats());
}

/// A regression: the load panicked, as the system refuses a thread to a process that has many.
#[test]
#[cfg_attr(windows, ignore = "there a stack of any size is promised")]
fn where_the_system_has_no_more_threads_the_caller_writes_all() {
    const CHILD: &str = "ADAMANT_TEST_WITHOUT_THREADS";
    if std::env::var_os(CHILD).is_some() {
        assert!(std::thread::Builder::new().spawn(|| ()).is_err(), "expected no threads");
        return load(&in_memory().1, &pairs());
    }
    let name = "load_threads::where_the_system_has_no_more_threads_the_caller_writes_all";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", name, "--test-threads=1"]);
    // No thread gets a stack of so many bytes.
    child.env(CHILD, "1").env("RUST_MIN_STACK", (1_u64 << 60).to_string());
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}
