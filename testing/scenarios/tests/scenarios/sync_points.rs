//! Sync points, waited for apart from commits, on a disk that crashes: everything committed before
//! a point is there after every power cut after the wait, whatever was committed in between.

use adamant::{Durability, SyncPoint};
use adamant_scenarios::crashes::{Content, Setup, assert_clean};
use adamant_sim::tally::seed;
use adamant_sim::{Mark, SimDisk, Tally};

/// Deferred commits, and points some of which are waited for, out of order; returns the content by
/// commit.
fn run(setup: Setup, disk: &SimDisk, seed: u64) -> Vec<Content> {
    let mut random = fastrand::Rng::with_seed(seed);
    let store = setup.open(disk).unwrap();
    Mark::Begun.put(disk, 1);
    let keyspace = store.keyspace("all").unwrap();
    let mut models = vec![Content::default(), Content::of(&store)];
    Mark::Durable.put(disk, 1);
    let mut points: Vec<(SyncPoint, u64)> = Vec::new();
    let mut durable = 1;
    for number in 2..60_u64 {
        Mark::Begun.put(disk, number);
        let durability = if random.bool() { Durability::Buffered } else { Durability::Deferred };
        let key = [b'k', random.u8(0..12)];
        keyspace.with_durability(durability).insert(key, vec![7; random.usize(0..90)]).unwrap();
        models.push(Content::of(&store));
        if random.u8(0..3) == 0 {
            points.push((store.sync_point().unwrap(), number));
        }
        if !points.is_empty() && random.u8(0..6) == 0 {
            let (point, number) = points.swap_remove(random.usize(..points.len()));
            point.wait().unwrap();
            durable = durable.max(number);
            Mark::Durable.put(disk, durable);
        }
    }
    models
}

#[test]
fn what_was_committed_before_a_point_is_there() {
    let mut tally = Tally::new();
    for (number, setup) in Setup::all().into_iter().enumerate() {
        let seed = seed(number as u64);
        let disk = SimDisk::new(seed);
        let models = run(setup, &disk, seed);
        tally.power_cuts(&disk, 3, 2, |crashed, promise| {
            let store = setup.open(&crashed).unwrap();
            let may_be = &models[promise.least as usize..=promise.most as usize];
            assert!(may_be.contains(&Content::of(&store)), "{}: {promise:?}", setup.name());
            assert_clean(&store);
        });
    }
    tally.print("sync points");
}

#[test]
fn a_point_counts_as_a_wait_and_is_worth_nothing_when_the_store_is_closed() {
    let store = Setup::all()[0].open(&SimDisk::new(1)).unwrap();
    let keyspace = store.keyspace("all").unwrap().with_durability(Durability::Buffered);
    let before = store.stats().unwrap();
    for number in 0..5 {
        keyspace.insert([number], "v").unwrap();
    }
    let [first, second] = [(); 2].map(|()| store.sync_point().unwrap());
    first.wait().unwrap();
    let after = store.stats().unwrap();
    assert_eq!(after.commits.synced.count(), before.commits.synced.count() + 1);
    assert_eq!(after.commits.commits, before.commits.commits + 5);
    assert_eq!(after.heap.journal.syncs, before.heap.journal.syncs + 1);
    let late = store.sync_point().unwrap();
    second.wait().unwrap();
    // The device had it.
    assert_eq!(store.stats().unwrap().heap.journal.syncs, after.heap.journal.syncs);
    let other = store.clone();
    store.close().unwrap();
    assert!(matches!(late.wait(), Err(adamant::Error::Closed)));
    assert!(matches!(other.sync_point(), Err(adamant::Error::Closed)));
}
