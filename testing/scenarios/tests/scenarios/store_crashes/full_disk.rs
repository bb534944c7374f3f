//! The store on a disk that becomes full, at every possible point.

use adamant::{Durability, Engine, KeyspaceOptions, Store};
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Choice, Promise, SimDisk, Tally};

use adamant_scenarios::crashes::{
    Change, Content, Mix, Plan, Setup, Workload, assert_clean, verify_of,
};

use crate::store_crashes::ALL;

/// Bytes by which the space shrinks from one run to the next. Files grow in larger steps.
const STEP_BYTES: u64 = 128 << 10;

/// The outcomes of runs with too little space.
#[derive(Debug, Default)]
struct Outcomes {
    /// The store could not be created, or not be opened.
    closed: u64,
    /// A commit was refused.
    refused: u64,
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let outcomes = run_with(Setup::default(), STEP_BYTES);
    assert!(outcomes.closed > 3 && outcomes.refused > 10, "{outcomes:?}");
}

/// Their removes take room, which was reserved for them.
#[test]
fn a_full_disk_takes_removes_of_log_structured_trees() {
    let number = Engine::ALL.iter().position(|engine| *engine == Engine::Lsm);
    let outcomes = run_with(Setup { engine: number, packs: false }, 8 * STEP_BYTES);
    assert!(outcomes.closed > 1 && outcomes.refused > 5, "{outcomes:?}");
}

/// Each of many small keyspaces has a few hundred bytes for its next writes.
#[test]
fn small_keyspaces_on_a_full_disk_take_removes() {
    const KEYSPACES: usize = 60;
    let number = Engine::ALL.iter().position(|engine| *engine == Engine::Lsm);
    let setup = Setup { engine: number, packs: false };
    let disk = SimDisk::new(seed(23));
    let store = setup.open(&disk).unwrap();
    let options = || KeyspaceOptions::new().engine(Engine::Lsm);
    let open = |at: usize| store.keyspace_with(&format!("user {at}"), options()).unwrap();
    let users: Vec<_> = (0..KEYSPACES).map(open).collect();
    disk.set_space_bytes(Some(disk.space_used_bytes() + (2 << 20)));
    // As many entries as there is room for, in all keyspaces in turn.
    let filled = (0_u32..).find_map(|entry| {
        let key = format!("{entry:06}");
        let refused = users.iter().find_map(|user| user.put(&key, [7; 20]).err());
        refused.map(|error| (entry, error))
    });
    let (entries, error) = filled.unwrap();
    assert!(error.is_out_of_space() && entries >= 5, "after {entries} entries: {error}");
    for user in &users {
        for entry in 0..=entries {
            user.delete(format!("{entry:06}")).unwrap();
        }
    }
    assert!(users.iter().all(|user| user.is_empty().unwrap()));
    assert_clean(&store);
    drop((users, store));
    let store = setup.open(&disk).unwrap();
    assert!(
        (0..KEYSPACES)
            .all(|at| { store.open_keyspace(&format!("user {at}")).unwrap().is_empty().unwrap() })
    );
}

fn run_with(setup: Setup, step_bytes: u64) -> Outcomes {
    let mix = Mix {
        seed: seed(17),
        setup,
        steps: 90,
        large_one_in: 12,
        upkeep_one_in: 20,
        ..Mix::default()
    };
    let roomy = SimDisk::new(mix.seed);
    Workload::run(&roomy, mix);
    let (mut tally, mut outcomes) = (Tally::new(), Outcomes::default());
    let mut space_bytes = roomy.space_used_bytes();
    while space_bytes > 0 {
        space_bytes = space_bytes.saturating_sub(step_bytes);
        let disk = SimDisk::new(mix.seed);
        disk.set_space_bytes(Some(space_bytes));
        tally.points += 1;
        let mut models = vec![Content::default()];
        tally.state(&disk, 0, &format!("{space_bytes} bytes of space"), || {
            models = run_out_of_space(&disk, mix, &mut outcomes);
        });
        let point = disk.operation_count();
        let promise = Promise::at_power_cut(&disk, point);
        let choices = (0..states_max(1)).map(|number| Choice::random(space_bytes + number));
        for choice in choices {
            tally.state(&disk, point, &choice, || {
                verify_of(setup, &disk.crash(point, &mut choice.clone()), &models, promise);
            });
        }
    }
    println!("store, full disk: {outcomes:?}");
    tally.print("store, full disk");
    outcomes
}

/// Works until there is no space, frees some, works again. Returns the expected content by commit.
fn run_out_of_space(disk: &SimDisk, mix: Mix, outcomes: &mut Outcomes) -> Vec<Content> {
    let mut workload = match Workload::create(disk, mix) {
        Ok(workload) => workload,
        Err(error) => {
            assert!(error.is_out_of_space(), "{error:?}");
            outcomes.closed += 1;
            disk.set_space_bytes(None);
            Workload::create(disk, mix).unwrap()
        }
    };
    let failure = (0..mix.steps).find_map(|_| workload.step().err());
    if let Some(error) = failure {
        assert!(error.is_out_of_space() && !error.is_poisoned(), "{error:?}");
    }
    if workload.store.is_none() {
        outcomes.closed += 1;
        disk.set_space_bytes(None);
        let promise = Promise::at_death(disk, disk.operation_count());
        verify_of(mix.setup, disk, &workload.models, promise);
        return workload.models;
    }
    outcomes.refused += u64::from(workload.refused > 0);
    remove_some(&mut workload);
    let name = ["first", "second"].into_iter().find(|name| workload.has(name));
    if let Some(name) = name {
        workload.commit(&Plan::Drop(name), Durability::Sync).unwrap();
    }
    disk.set_space_bytes(None);
    for _ in 0..20 {
        workload.step().unwrap();
    }
    workload.last().verify(workload.store());
    assert_clean(workload.store());
    workload.models
}

/// Removes half of all entries, one by one and in batches, which needs no space.
fn remove_some(workload: &mut Workload) {
    let entries = workload.last().keyspaces.iter().flat_map(|(name, map)| {
        map.keys().step_by(2).map(|key| Change {
            name: name.clone(),
            key: key.to_vec(),
            value: None,
        })
    });
    let changes: Vec<Change> = entries.collect();
    let (single, batched) = changes.split_at(changes.len() / 4);
    for (number, change) in single.iter().enumerate() {
        workload.commit(&Plan::Single(change.clone()), ALL[number % 3]).unwrap();
    }
    for (number, changes) in batched.chunks(20).enumerate() {
        workload.commit(&Plan::Batch(changes.to_vec()), ALL[number % 3]).unwrap();
    }
    workload.last().verify(workload.store());
}

/// With more and more room beside a tree that is full of holes, or has none.
#[test]
fn compaction_on_a_full_disk_loses_nothing() {
    let mut outcomes = [0, 0];
    for (room, kept_one_in) in (0..24).map(|step| ((step / 2 * 256) << 10, 1 + step as u32 % 2 * 2))
    {
        let disk = SimDisk::new(seed(29));
        let store = Setup::default().open(&disk).unwrap();
        let tree = store.keyspace("tree").unwrap().with_durability(Durability::Deferred);
        let key = |number: u32| number.wrapping_mul(0x9e37_79b1).to_le_bytes();
        for number in 0..20_000 {
            tree.put(key(number), [number as u8; 60]).unwrap();
        }
        for number in (0..20_000).filter(|number| number % kept_one_in != 0) {
            tree.delete(key(number)).unwrap();
        }
        store.shrink().unwrap();
        disk.set_space_bytes(Some(disk.space_used_bytes() + room));
        let verify = |store: &Store| {
            let tree = store.open_keyspace("tree").unwrap();
            assert_eq!(tree.len().unwrap(), 20_000_u64.div_ceil(kept_one_in.into()));
            for number in (0..20_000).step_by(kept_one_in as usize) {
                assert_eq!(tree.get(key(number)).unwrap().unwrap(), [number as u8; 60]);
            }
            assert_clean(store);
        };
        match store.compact() {
            Ok(()) => outcomes[0] += 1,
            Err(error) => {
                assert!(error.is_out_of_space() && !error.is_poisoned(), "{room}: {error}");
                outcomes[1] += 1;
            }
        }
        verify(&store);
        drop((tree, store));
        let store = Setup::default().open(&disk).unwrap();
        verify(&store);
        disk.set_space_bytes(None);
        store.compact().unwrap();
        verify(&store);
    }
    println!("compacted, out of space: {outcomes:?}");
    assert!(outcomes[0] > 12 && outcomes[1] > 0, "{outcomes:?}");
}

/// Pages that compaction took for its next entries are there for everyone when there are no others.
#[test]
fn compaction_keeps_no_room_for_itself() {
    let room_for = |compacts: bool| {
        let disk = SimDisk::new(seed(31)).without_history();
        let store = Setup::default().open(&disk).unwrap();
        let tree = store.keyspace("tree").unwrap().with_durability(Durability::Deferred);
        let key = |number: u32| number.wrapping_mul(0x9e37_79b1).to_le_bytes();
        for number in 0..20_000 {
            tree.put(key(number), [7; 60]).unwrap();
        }
        for number in (0..20_000).filter(|number| number % 3 != 0) {
            tree.delete(key(number)).unwrap();
        }
        store.sync().unwrap();
        store.shrink().unwrap();
        disk.set_space_bytes(Some(disk.space_used_bytes() + (1 << 20)));
        if compacts {
            tree.compact().unwrap();
        }
        let refused = (0_u32..).find_map(|number| {
            let error = tree.put((1_000_000 + number).to_le_bytes(), [1; 60]).err()?;
            assert!(error.is_out_of_space(), "{error}");
            Some(number)
        });
        refused.unwrap()
    };
    let (compacted, scattered) = (room_for(true), room_for(false));
    println!("{compacted} entries fit, {scattered} without compaction");
    assert!(compacted >= scattered, "{compacted} entries fit, {scattered} without compaction");
}
