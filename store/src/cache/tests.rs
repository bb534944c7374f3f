//! Tests of caches: the bound after every call, on the medium and after power cuts; what is kept.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_heap::durability::Durability;
use adamant_medium::memory::MemoryDirectory;
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};

use super::Cache;
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::Error;
use crate::expiring::Deadline;
use crate::options::Options;
use crate::store::handle::Store;

/// Values and deadlines by key.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

const BOUND: u64 = 8_000;

fn options() -> Options {
    Options::new().sweep_expired(false).background(false).log_bytes_max(4 << 20)
}

fn in_memory() -> Store {
    Store::open_directory(Arc::new(MemoryDirectory::new()), options()).unwrap()
}

/// The entries that are stored, whether they have expired or not.
fn stored(cache: &Cache) -> Model {
    let entries = cache.expiring().with_clock(|| 0);
    let entries = entries.iter().map(Result::unwrap);
    let entry = |(key, value, ends): (adamant_slice::Slice, adamant_slice::Slice, Option<_>)| {
        (key.to_vec(), (value.to_vec(), ends.map(Deadline::millis)))
    };
    entries.map(entry).collect()
}

/// What they count for.
fn bytes_in(stored: &Model) -> u64 {
    stored.iter().map(|(key, (value, _))| (key.len() + value.len()) as u64 + 64).sum()
}

/// Any calls in any order, reopened in between: the bound holds after each, the policy knows what
/// is stored, and each entry has the value that was put last.
#[test]
fn the_bound_holds_after_every_call() {
    for (number, engine) in [Engine::Bplus, Engine::Lsm, Engine::Critbit].into_iter().enumerate() {
        let seed = seed(number as u64);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let directory: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
        let now = Arc::new(AtomicU64::new(4_000_000_000_000));
        let open = |bound| {
            let store = Store::open_directory(directory.clone(), options()).unwrap();
            let clock = Arc::clone(&now);
            let cache =
                store.cache_with("c", bound, KeyspaceOptions::new().engine(engine)).unwrap();
            (store, cache.with_clock(move || clock.load(Ordering::Relaxed)))
        };
        let (mut store, mut cache) = open(BOUND);
        let mut other = store.cache("c", BOUND).unwrap();
        let (mut last, mut bound, mut evictions) = (Model::new(), BOUND, 0);
        for step in 0..3_000 {
            let key = format!("key {}", random.u32(..60)).into_bytes();
            let at = now.load(Ordering::Relaxed);
            let handle = if random.bool() { &cache } else { &other };
            match random.u8(..40) {
                0..20 => {
                    let value = vec![step as u8; random.usize(..900)];
                    let ends = random.bool().then(|| at + random.u64(1..200));
                    handle.put(&key, &value, ends.map(Deadline::from_millis)).unwrap();
                    last.insert(key.clone(), (value.clone(), ends));
                    assert_eq!(cache.get(&key).unwrap().as_deref(), Some(&value[..]), "{step}");
                }
                20..32 => {
                    let found = cache.get(&key).unwrap();
                    let expected = last.get(&key).filter(|(_, e)| e.is_none_or(|e| e > at));
                    let is_as_put = |value: &[u8]| expected.is_some_and(|entry| entry.0 == value);
                    assert!(found.is_none_or(|value| is_as_put(&value)), "{step}");
                }
                32 => {
                    let was = cache.contains(&key).unwrap();
                    assert_eq!(cache.remove(&key).unwrap(), was);
                    last.remove(&key);
                }
                33 => {
                    handle.delete(&key).unwrap();
                    last.remove(&key);
                }
                34 => {
                    cache.remove_expired(random.usize(..30)).unwrap();
                }
                35 if step % 9 == 0 => {
                    handle.clear().unwrap();
                    last.clear();
                    assert_eq!(cache.bytes(), 0);
                }
                36 => {
                    let value = vec![7; bound as usize - key.len() - 63];
                    let before = stored(&cache);
                    let error = handle.put(&key, value, None).unwrap_err();
                    assert!(matches!(error, Error::ValueTooLong { .. }), "{error}");
                    assert_eq!(stored(&cache), before);
                }
                37 => {
                    bound = random.u64(3_000..2 * BOUND);
                    other = store.cache("c", bound).unwrap();
                    assert_eq!(cache.stats().bytes_max, bound, "one policy");
                }
                38 => {
                    let kept = stored(&cache);
                    evictions += cache.stats().evictions;
                    drop((cache, other));
                    store.close().unwrap();
                    (store, cache) = open(bound);
                    other = store.cache("c", bound).unwrap();
                    assert_eq!(stored(&cache), kept, "{step}: a restart keeps the entries");
                }
                _ => drop(now.fetch_add(random.u64(..50), Ordering::Relaxed)),
            }
            let found = stored(&cache);
            let stats = cache.stats();
            assert!(bytes_in(&found) <= bound, "{step}: {} of {bound}", bytes_in(&found));
            assert_eq!((stats.bytes, stats.entries), (bytes_in(&found), found.len() as u64));
            assert!(found.iter().all(|(key, entry)| last.get(key) == Some(entry)), "{step}");
        }
        assert!(evictions > 100, "{evictions}");
        assert!(store.check().unwrap().is_clean());
    }
}

/// Keys of a Zipf distribution with an exponent of 1, as caches see them.
fn zipf(keys: usize, len: usize, random: &mut fastrand::Rng) -> Vec<u32> {
    let mut sums = Vec::with_capacity(keys);
    let mut sum = 0.0;
    for rank in 1..=keys {
        sum += 1.0 / rank as f64;
        sums.push(sum);
    }
    let draw = |_| sums.partition_point(|least| *least < random.f64() * sum) as u32;
    (0..len).map(draw).collect()
}

/// The share of hits of plain policies, with room for so many entries.
fn hits_of(trace: &[u32], entries_max: usize, by_use: bool) -> f64 {
    let (mut queue, mut known, mut hits) = (VecDeque::new(), HashMap::new(), 0);
    for (number, key) in trace.iter().enumerate() {
        let is_hit = known.contains_key(key);
        hits += u32::from(is_hit);
        if !is_hit || by_use {
            known.insert(*key, number);
            queue.push_back((*key, number));
        }
        while known.len() > entries_max {
            let (oldest, number) = queue.pop_front().expect("what is known is queued");
            // An entry that was used since is queued again.
            if known.get(&oldest) == Some(&number) {
                known.remove(&oldest);
            }
        }
    }
    f64::from(hits) / trace.len() as f64
}

#[test]
fn more_is_found_than_in_a_queue_and_no_less_than_by_recent_use() {
    const ENTRIES: usize = 300;
    let mut random = fastrand::Rng::with_seed(seed(1));
    let trace = zipf(6_000, 40_000, &mut random);
    let store = in_memory();
    let cache = store.cache("c", ENTRIES as u64 * (4 + 100 + 64)).unwrap();
    for key in &trace {
        let key = key.to_le_bytes();
        cache.get_or_insert_with(key, None, || Ok::<_, Error>([7; 100])).unwrap();
    }
    let stats = cache.stats();
    assert_eq!(stats.hits + stats.misses, trace.len() as u64);
    assert_eq!(stats.entries + stats.evictions, stats.misses, "each miss was put");
    let share = stats.hits as f64 / trace.len() as f64;
    let (queue, use_) = (hits_of(&trace, ENTRIES, false), hits_of(&trace, ENTRIES, true));
    println!("hits: {share:.3}, FIFO {queue:.3}, LRU {use_:.3}");
    assert!(share >= queue && share >= use_ - 0.03, "{share}, {queue}, {use_}");
}

#[test]
fn handles_in_threads_share_the_bound() {
    let store = in_memory();
    let bound = 20_000;
    let cache = store.cache("c", bound).unwrap().with_durability(Durability::Buffered);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let cache = cache.clone();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..500 {
                    let key = random.u32(..200).to_le_bytes();
                    match random.u8(..4) {
                        0 => drop(cache.get(key).unwrap()),
                        1 => cache.delete(key).unwrap(),
                        _ => cache.put(key, vec![1; random.usize(..500)], None).unwrap(),
                    }
                }
            });
        }
    });
    let found = stored(&cache);
    assert!(bytes_in(&found) <= bound);
    assert_eq!((cache.bytes(), cache.stats().entries), (bytes_in(&found), found.len() as u64));
    // Not for a thread that others may wait for.
    let only = store.begin_exclusive().unwrap();
    assert!(matches!(cache.put("a", "1", None), Err(Error::WithinExclusive)));
    assert!(matches!(cache.clear(), Err(Error::WithinExclusive)));
    drop(only);
}

/// A sweep tells the policy what it removed after its commit: what was put again meanwhile counts.
#[test]
fn what_is_put_again_behind_a_sweep_counts() {
    let store = in_memory();
    let cache = store.cache("pages", BOUND).unwrap();
    cache.put("again", "1", None).unwrap();
    cache.put("gone", "2", None).unwrap();
    let policy = store.shared.open_cache_policy(cache.expiring().keyspaces().0.state.id).unwrap();
    let removed = [&b"again"[..], b"gone"].into_iter();
    policy.forget_removed(removed, |key| Ok(key == b"again")).unwrap();
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.bytes), (1, 64 + 5 + 1));
}

/// What the background sweep removes makes room at once.
#[test]
fn swept_entries_count_no_more() {
    let store = Store::in_memory().unwrap();
    let cache = store.cache("c", 100_000).unwrap();
    cache.put("stays", "1", None).unwrap();
    for number in 0..100_u32 {
        let soon = cache.after(std::time::Duration::from_millis(20));
        cache.put(number.to_le_bytes(), [0; 100], Some(soon)).unwrap();
    }
    let begun = std::time::Instant::now();
    while cache.stats().entries > 1 {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", cache.stats());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!((cache.bytes(), cache.stats().evictions), (5 + 1 + 64, 0));
    assert_eq!(bytes_in(&stored(&cache)), cache.bytes());
    // A policy belongs to a keyspace, and not to a name.
    store.drop_expiring("c").unwrap();
    assert!(matches!(cache.put("a", "1", None), Err(Error::KeyspaceDropped { .. })));
    let anew = store.cache("c", 100_000).unwrap();
    assert_eq!((anew.bytes(), anew.is_empty().unwrap()), (0, true));
}

/// After every power cut the cache has the entries of a promised commit, within its bound.
#[test]
fn a_power_cut_leaves_the_bound_and_the_entries_of_a_commit() {
    let mut tally = Tally::new();
    for (number, engine) in [Engine::Bplus, Engine::Lsm].into_iter().enumerate() {
        let seed = seed(number as u64);
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let open = |disk: &SimDisk| {
            Store::open_directory(Arc::new(SimDirectory::root(disk)), options()).unwrap()
        };
        let of_engine = || KeyspaceOptions::new().engine(engine);
        let store = open(&disk);
        let cache = store.cache_with("c", 3_000, of_engine()).unwrap();
        let mut models = vec![stored(&cache)];
        disk.begin_history();
        for commit in 1..40_u64 {
            Mark::Begun.put(&disk, commit);
            let key = random.u32(..30).to_le_bytes();
            let ends = random.bool().then(|| Deadline::from_millis(4_000_000_000_000 + commit));
            cache.put(key, vec![commit as u8; random.usize(..700)], ends).unwrap();
            Mark::Durable.put(&disk, commit);
            models.push(stored(&cache));
        }
        assert!(cache.stats().evictions > 20);
        drop((cache, store));
        tally.power_cuts(&disk, 2, 3, |disk, promise| {
            let store = open(&disk);
            assert!(store.check().unwrap().is_clean());
            let found = stored(&store.cache_with("c", u64::MAX, of_engine()).unwrap());
            assert!(bytes_in(&found) <= 3_000, "{}", bytes_in(&found));
            let may_be = &models[promise.least as usize..=promise.most as usize];
            assert!(may_be.contains(&found), "{promise:?}");
            let cache = store.cache_with("c", 3_000, of_engine()).unwrap();
            assert_eq!(stored(&cache), found, "all of it fits");
            cache.put("new", [0; 500], None).unwrap();
            assert!(bytes_in(&stored(&cache)) <= 3_000);
        });
    }
    tally.print("cache");
}

/// On a device that is full before the bound is reached, entries make room for others.
#[test]
fn a_full_disk_evicts() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        let disk = SimDisk::new(9);
        let open = || {
            let store =
                Store::open_directory(Arc::new(SimDirectory::root(&disk)), options()).unwrap();
            let cache =
                store.cache_with("c", u64::MAX, KeyspaceOptions::new().engine(engine)).unwrap();
            (store, cache.with_durability(Durability::Buffered))
        };
        let (store, cache) = open();
        disk.set_space_bytes(Some(disk.space_used_bytes() + (2 << 20)));
        for number in 0..6_000_u32 {
            let put = cache.put(number.to_le_bytes(), [number as u8; 1000], None);
            put.unwrap_or_else(|error| panic!("{engine:?}, {number}: {error}"));
            let found = cache.get(number.to_le_bytes()).unwrap();
            assert_eq!(found.as_deref(), Some(&[number as u8; 1000][..]));
        }
        let stats = cache.stats();
        assert!(stats.evictions > 0, "{stats:?}");
        println!("{engine:?}: {stats:?}");
        assert_eq!(stats.entries + stats.evictions, 6_000);
        let kept = stored(&cache);
        assert_eq!((bytes_in(&kept), kept.len() as u64), (stats.bytes, stats.entries));
        disk.set_space_bytes(None);
        drop((cache, store));
        let (store, cache) = open();
        assert_eq!(stored(&cache), kept);
        assert!(store.check().unwrap().is_clean());
    }
}
