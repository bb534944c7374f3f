//! Compaction filters: what they take is gone, also the older versions below it, and what a
//! snapshot sees stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use adamant::{
    CompactionFilter, Deadline, Durability, Engine, FilterVerdict, Keyspace, KeyspaceOptions,
    LsmOptions, Options, Store,
};
use adamant_medium::memory::MemoryDirectory;

fn small() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 4 << 10;
    lsm.table_bytes_max = 8 << 10;
    lsm.base_bytes_min = 16 << 10;
    lsm.blob_bytes_min = Some(200);
    Options::new().durability(Durability::Buffered).lsm(lsm).background(false)
}

/// Removes values that begin with `-`, and makes those that begin with `+` begin with `=`.
fn by_sign(_key: &[u8], value: &[u8]) -> FilterVerdict {
    match value {
        [b'-', ..] => FilterVerdict::Remove,
        [b'+', rest @ ..] => FilterVerdict::Change([b"=", rest].concat()),
        _ => FilterVerdict::Keep,
    }
}

fn open(options: Options) -> (Store, Keyspace) {
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options).unwrap();
    let kept = store.keyspace_with("kept", KeyspaceOptions::new().engine(Engine::Lsm)).unwrap();
    (store, kept)
}

fn text(keyspace: &Keyspace, key: &str) -> Option<String> {
    keyspace.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn what_a_filter_removes_uncovers_nothing_older() {
    let (store, kept) = open(small().compaction_filter("kept", by_sign));
    for key in ["a", "b", "c", "d"] {
        kept.put(key, "older").unwrap();
    }
    kept.compact().unwrap();
    kept.put("a", "-1").unwrap();
    kept.put("b", "+2").unwrap();
    kept.put("c", "3").unwrap();
    kept.compact().unwrap();
    assert_eq!(text(&kept, "a"), None);
    assert_eq!(text(&kept, "b").as_deref(), Some("=2"));
    assert_eq!(text(&kept, "c").as_deref(), Some("3"));
    assert_eq!(text(&kept, "d").as_deref(), Some("older"));
    assert_eq!(kept.len().unwrap(), 3);
    assert!(store.check().unwrap().findings.is_empty());
    // What is settled is asked about, too: the filter may have changed its mind.
    let stats = kept.lsm().unwrap().stats().unwrap();
    kept.compact().unwrap();
    assert!(kept.lsm().unwrap().stats().unwrap().compactions > stats.compactions);
}

/// Random work; after each compaction without a snapshot the filter has had its way, and before it
/// what it takes is there or not, and nothing older.
#[test]
fn filtered_work_agrees_with_a_model() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (store, kept) = open(small().compaction_filter("kept", by_sign));
        let mut model = std::collections::BTreeMap::<Vec<u8>, Vec<u8>>::new();
        let mut moments = Vec::new();
        for step in 0..600 {
            let of = format!("seed {seed}, step {step}");
            let key = format!("key {:02}", random.u8(0..60)).into_bytes();
            match random.u8(0..40) {
                0..4 => {
                    kept.delete(&key).unwrap();
                    model.remove(&key);
                }
                4 => {
                    kept.delete_range(key.clone()..).unwrap();
                    model.retain(|known, _| *known < key);
                }
                5 if moments.len() < 4 => {
                    let all = kept.iter().collect::<adamant::Result<Vec<_>>>().unwrap();
                    moments.push((store.snapshot().unwrap(), all));
                }
                6 => moments.clear(),
                7..9 => {
                    kept.compact().unwrap();
                    for (snapshot, all) in &moments {
                        let now = snapshot.iter(&kept).collect::<adamant::Result<Vec<_>>>();
                        assert!(now.unwrap() == *all, "{of}: a snapshot sees what it saw");
                    }
                    if moments.is_empty() {
                        model.retain(|_, value| value[0] != b'-');
                        let plus = model.values_mut().filter(|value| value[0] == b'+');
                        plus.for_each(|value| value[0] = b'=');
                        let found = kept.iter().map(|entry| {
                            entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()
                        });
                        assert!(found.eq(model.clone()), "{of}");
                    }
                }
                _ => {
                    let len = if random.u8(0..10) == 0 { 300 } else { random.usize(1..40) };
                    let mut value = vec![b'v'; len];
                    // Values in blob files are not asked about.
                    value[0] = if len < 200 { *random.choice(b"-+ ").unwrap() } else { b' ' };
                    kept.put(&key, &value).unwrap();
                    model.insert(key.clone(), value);
                }
            }
            let found = kept.get(&key).unwrap();
            let is_expected = match (found.as_deref(), model.get(&key)) {
                (None, None) => true,
                (None, Some(value)) => value[0] == b'-',
                (Some(found), Some(value)) => {
                    found[1..] == value[1..]
                        && (found[0] == value[0] || (found[0], value[0]) == (b'=', b'+'))
                }
                (Some(_), None) => false,
            };
            assert!(is_expected, "{of}: {key:?}");
        }
        assert!(store.check().unwrap().findings.is_empty(), "seed {seed}");
    }
}

/// A snapshot that is opened while a compaction runs sees the same before and after it.
#[test]
fn a_snapshot_that_is_opened_meanwhile_keeps_what_it_sees() {
    let (begun, wait_begun) = sync_channel::<()>(1);
    let (opened, wait_opened) = sync_channel::<()>(1);
    let (waits, wait_opened) =
        (Arc::new(AtomicBool::new(true)), std::sync::Mutex::new(wait_opened));
    let is_waiting = Arc::clone(&waits);
    let filter = move |key: &[u8], value: &[u8]| {
        if is_waiting.swap(false, Ordering::Relaxed) {
            begun.send(()).unwrap();
            wait_opened.lock().unwrap().recv().unwrap();
        }
        by_sign(key, value)
    };
    let (store, kept) = open(small().compaction_filter("kept", filter));
    // One commit, the newest: its number is that of the snapshot.
    let mut batch = store.batch();
    batch.put(&kept, "a", "-1").unwrap();
    batch.put(&kept, "b", "+2").unwrap();
    batch.commit().unwrap();
    let compacting = {
        let kept = kept.clone();
        thread::spawn(move || kept.compact().unwrap())
    };
    wait_begun.recv().unwrap();
    let snapshot = store.snapshot().unwrap();
    opened.send(()).unwrap();
    compacting.join().unwrap();
    for _ in 0..2 {
        assert_eq!(snapshot.get(&kept, "a").unwrap(), Some("-1".into()));
        assert_eq!(snapshot.get(&kept, "b").unwrap(), Some("+2".into()));
        assert_eq!(snapshot.len(&kept).unwrap(), 2);
        kept.compact().unwrap();
    }
    // Transactions that read what the filter would take do not see it change either.
    let mut transaction = store.begin().unwrap();
    assert_eq!(transaction.get(&kept, "a").unwrap(), Some("-1".into()));
    drop(snapshot);
    kept.compact().unwrap();
    assert_eq!(transaction.get(&kept, "a").unwrap(), Some("-1".into()));
    drop(transaction);
    // One or two go without the filter after the result that could not be used.
    (0..3).for_each(|_| kept.compact().unwrap());
    assert_eq!((text(&kept, "a"), text(&kept, "b").as_deref()), (None, Some("=2")));
}

#[test]
fn blobs_panics_and_merge_operators() {
    struct Blobs;
    impl CompactionFilter for Blobs {
        fn filter(&self, _key: &[u8], value: &[u8]) -> FilterVerdict {
            assert!(value != b"panics", "on purpose");
            if value.len() > 200 { FilterVerdict::Remove } else { FilterVerdict::Keep }
        }
        fn reads_blobs(&self) -> bool {
            true
        }
    }
    let (store, kept) = open(small().compaction_filter("kept", Blobs));
    kept.put("large", vec![1; 5_000]).unwrap();
    kept.put("small", "panics").unwrap();
    kept.compact().unwrap();
    kept.compact().unwrap();
    assert_eq!((kept.len().unwrap(), text(&kept, "small").as_deref()), (1, Some("panics")));
    let blobs = kept.lsm().unwrap().stats().unwrap().blobs;
    assert_eq!((blobs.values, blobs.files), (0, 0), "its file is gone");
    assert!(store.check().unwrap().findings.is_empty());

    let options = small().compaction_filter("kept", by_sign).compaction_filter("merged", by_sign);
    let store = Store::open_directory(Arc::new(MemoryDirectory::new()), options).unwrap();
    let merged = KeyspaceOptions::new().engine(Engine::Lsm).merge_operator("append");
    let merged = store.keyspace_with("merged", merged).unwrap();
    merged.put("key", "-").unwrap();
    merged.compact().unwrap();
    merged.merge("key", "1").unwrap();
    merged.compact().unwrap();
    assert_eq!(text(&merged, "key").as_deref(), Some("-1"));
    let compactions = || merged.lsm().unwrap().stats().unwrap().compactions;
    let before = compactions();
    merged.compact().unwrap();
    assert_eq!(compactions(), before, "what is settled is not written anew for a filter unasked");
}

/// Expired entries give their space back, and a later entry of the same key is not confused with
/// them.
#[test]
fn compactions_drop_expired_entries() {
    let now = Arc::new(AtomicU64::new(1_000));
    let clock = {
        let now = Arc::clone(&now);
        move || now.load(Ordering::Relaxed)
    };
    let (store, _) = open(small().drop_expired_by(clock.clone()));
    let options = KeyspaceOptions::new().engine(Engine::Lsm);
    let leases = store.expiring_with("leases", options).unwrap().with_clock(clock);
    for number in 0..1_000 {
        let end = Some(Deadline::from_millis(2_000 + number % 2 * 5_000));
        leases.put(format!("{number}"), vec![7; 50], end).unwrap();
    }
    leases.put("for ever", "1", None).unwrap();
    let (entries, deadlines) = leases.keyspaces();
    entries.compact().unwrap();
    assert_eq!((entries.len().unwrap(), leases.len().unwrap()), (1_001, 1_001));
    now.store(1_999, Ordering::Relaxed);
    entries.compact().unwrap();
    assert_eq!(entries.len().unwrap(), 1_001, "a moment before the first of them ends");
    let before = store.snapshot().unwrap();
    now.store(2_000, Ordering::Relaxed);
    entries.compact().unwrap();
    assert_eq!(entries.len().unwrap(), 1_001, "a snapshot sees them");
    let then = leases.with_clock(|| 1_000);
    assert_eq!(then.at(&before).len().unwrap(), 1_001, "by an earlier clock");
    drop(before);
    entries.compact().unwrap();
    assert_eq!((entries.len().unwrap(), leases.len().unwrap()), (501, 501));
    assert_eq!(deadlines.len().unwrap(), 1_000, "rows stay for remove_expired");
    leases.put("0", "again", Some(Deadline::from_millis(9_000))).unwrap();
    assert_eq!(leases.remove_expired(usize::MAX).unwrap(), 0, "their entries are gone");
    assert_eq!((leases.len().unwrap(), deadlines.len().unwrap()), (502, 501));
    assert_eq!(leases.get("0").unwrap(), Some("again".into()));
    assert!(store.check().unwrap().findings.is_empty());

    // Without the option they stay.
    let (store, _) = open(small());
    let leases = store.expiring_with("leases", options).unwrap();
    leases.put("1", "1", Some(Deadline::from_millis(1))).unwrap();
    leases.keyspaces().0.compact().unwrap();
    assert_eq!(leases.keyspaces().0.len().unwrap(), 1);
}

/// A filter sees what its user stored, and not what the library stored with it: deadlines, and rows
/// of multimaps.
#[test]
fn filters_change_nothing_that_the_library_stores_with_values() {
    let anything = |_: &[u8], _: &[u8]| FilterVerdict::Change(b"changed".to_vec());
    let options = small().compaction_filter("leases", by_sign).compaction_filter("words", anything);
    let (store, _) = open(options);
    let lsm = KeyspaceOptions::new().engine(Engine::Lsm);
    let leases = store.expiring_with("leases", lsm).unwrap();
    let end = Some(Deadline::from_millis(u64::MAX - 1));
    for (key, value, end) in [("a", "+1", end), ("b", "-2", end), ("c", "+", None), ("d", "", end)]
    {
        leases.put(key, value, end).unwrap();
    }
    leases.keyspaces().0.compact().unwrap();
    assert_eq!(leases.get_with_deadline("a").unwrap(), Some(("=1".into(), end)));
    assert_eq!(leases.get("b").unwrap(), None);
    assert_eq!(leases.get_with_deadline("c").unwrap(), Some(("=".into(), None)));
    assert_eq!(leases.get_with_deadline("d").unwrap(), Some(("".into(), end)));

    let words = store.multimap_with("words", lsm).unwrap();
    words.insert("a", "1").unwrap();
    words.untyped().compact().unwrap();
    let rows = words.untyped().iter().collect::<adamant::Result<Vec<_>>>().unwrap();
    assert!(rows.iter().all(|(_, value)| value.is_empty()), "{rows:?}");
    assert_eq!(words.iter().collect::<adamant::Result<Vec<_>>>().unwrap().len(), 1);
    assert!(store.check().unwrap().findings.is_empty());
}
