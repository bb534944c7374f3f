//! Persistent savepoints on disks that crash, fill up and fail: each is there from when it was made
//! until it is deleted, and shows its commit, or says that it was given up.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant::{Directory, Error, Result, SavepointState, Store, go_back_in};
use adamant_scenarios::crashes::{Content, Mix, Setup, Step, Workload, assert_clean, verify_of};
use adamant_sim::tally::{seed, states_max};
use adamant_sim::{Call, Choice, Fault, Promise, SimDirectory, SimDisk, Tally};

/// Every third one is encrypted.
fn mix(number: u64) -> Mix {
    let setup = match number % 3 {
        0 => Setup::ENCRYPTED,
        1 => Setup::of(0),
        _ => Setup::default(),
    };
    Mix { seed: seed(number), large_one_in: 8, setup, ..Mix::default() }
}

fn root(disk: &SimDisk) -> Arc<dyn Directory> {
    Arc::new(SimDirectory::root(disk))
}

/// A savepoint that was made, or may have been.
#[derive(Clone)]
struct Known {
    name: &'static str,
    content: Content,
    /// Operations of the disk before it was being made, and after; none if that failed.
    made: (u64, Option<u64>),
    /// The same of its deletion, which may never have begun.
    deleted: Option<(u64, Option<u64>)>,
}

impl Known {
    /// Whether it may be there after the operations up to `point`, and whether it must.
    fn duty(&self, point: u64) -> (bool, bool) {
        let is_made = self.made.1.is_some_and(|end| end <= point);
        let may_be = self.made.0 < point
            && self.deleted.is_none_or(|(_, end)| end.is_none_or(|it| point < it));
        (may_be, is_made && self.deleted.is_none_or(|(begin, _)| point <= begin))
    }
}

/// A store with savepoints, step by step.
struct Run {
    workload: Workload,
    known: Vec<Known>,
}

/// What is done.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// So many commits.
    Commits(u64),
    /// A checkpoint, among others.
    Shrink,
    Reopen,
    Create(&'static str),
    Delete(&'static str),
}

use Act::{Commits, Create, Delete, Reopen, Shrink};

/// All that is done to savepoints, in an order that has copies of pages before, between and behind
/// them.
const ACTS: [Act; 17] = [
    Create("one"),
    Commits(6),
    Shrink,
    Create("two"),
    Commits(5),
    Reopen,
    Commits(4),
    Shrink,
    Create("three"),
    Commits(5),
    Shrink,
    Delete("two"),
    Commits(4),
    Reopen,
    Delete("three"),
    Commits(3),
    Shrink,
];

impl Run {
    fn begin(disk: &SimDisk, number: u64) -> Self {
        let mut workload = Workload::create(disk, mix(number)).unwrap();
        (0..30).for_each(|_| workload.step().unwrap());
        workload.reopen().unwrap();
        Self { workload, known: Vec::new() }
    }

    fn act(&mut self, act: Act) -> Result<()> {
        let now = || self.workload.disk.operation_count();
        match act {
            Commits(count) => (0..count).try_for_each(|_| self.workload.step()),
            Shrink => self.workload.take(&Step::Shrink),
            Reopen => self.workload.reopen(),
            Create(name) => {
                let (begun, content) = (now(), self.workload.last().clone());
                let made = self.workload.store().create_savepoint(name);
                let made_at = (begun, made.is_ok().then(now));
                self.known.push(Known { name, content, made: made_at, deleted: None });
                made
            }
            Delete(name) => {
                let begun = now();
                let deleted = self.workload.store().delete_savepoint(name);
                let at = (begun, deleted.is_ok().then(now));
                let known = self.known.iter_mut().find(|known| known.name == name);
                known.expect("it was made").deleted = Some(at);
                deleted.map(|is_deleted| assert!(is_deleted))
            }
        }
    }

    /// Does all up to the first error.
    fn run(&mut self) -> Result<()> {
        ACTS.into_iter().try_for_each(|act| self.act(act))
    }
}

/// Panics unless the savepoints are those that there must be after the operations up to `point`,
/// and each shows what it must. Returns how many are there, and how many were given up.
fn verify_savepoints(store: &Store, known: &[Known], point: u64, may_lose: bool) -> [u64; 2] {
    let found = store.savepoints().unwrap();
    let mut counts = [0; 2];
    for savepoint in known {
        let (Known { name, content, .. }, (may_be, must_be)) = (savepoint, savepoint.duty(point));
        let Some(one) = found.iter().find(|one| one.name == *name) else {
            assert!(!must_be, "savepoint {name} is gone");
            continue;
        };
        assert!(may_be, "savepoint {name} is there");
        if one.state == SavepointState::Lost && may_lose {
            let opened = store.open_savepoint(name);
            assert!(matches!(opened, Err(Error::SavepointLost { .. })), "{name}");
            counts[1] += 1;
            continue;
        }
        assert_eq!(one.state, SavepointState::Whole, "{name}");
        let opened = store.open_savepoint(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        content.verify(&opened);
        assert_clean(&opened);
        counts[0] += 1;
    }
    assert!(found.iter().all(|one| known.iter().any(|known| known.name == one.name)), "{found:?}");
    counts
}

/// Opens what is left, and goes on: the savepoints stay right.
fn verify(disk: &SimDisk, run: &Run, promise: Promise, point: u64, goes_on: bool) -> u64 {
    let (store, content) = verify_of(run.workload.mix.setup, disk, &run.workload.models, promise);
    let [found, _] = verify_savepoints(&store, &run.known, point, false);
    if goes_on {
        let keyspace = store.keyspace("new").unwrap();
        for number in 0..20_u8 {
            keyspace.put([number], vec![number; 3000]).unwrap();
        }
        for name in content.keyspaces.keys() {
            store.drop_keyspace(name).unwrap();
        }
        store.shrink().unwrap();
        assert_eq!(verify_savepoints(&store, &run.known, point, false)[0], found);
    }
    found
}

#[test]
fn a_crash_leaves_each_savepoint_at_its_commit() {
    let (mut tally, mut found) = (Tally::new(), 0);
    for number in 200..203 {
        let disk = SimDisk::new(seed(number));
        let mut run = Run::begin(&disk, number);
        run.workload.close().unwrap();
        disk.begin_history();
        run.workload.store = Some(run.workload.mix.setup.open(&disk).unwrap());
        let first = run.workload.models.len() as u64 - 1;
        run.run().unwrap();
        let (mut cursor, mut verified) = (disk.cursor(), BTreeSet::new());
        for point in cursor.point()..=disk.operation_count() {
            cursor.advance_to(point);
            // The three take turns.
            if cursor.is_covered() || point % 6 != number % 3 * 2 {
                continue;
            }
            tally.points += 1;
            let at_least =
                |promise: Promise| Promise { least: promise.least.max(first), ..promise };
            let promise = at_least(Promise::at_power_cut(&disk, point));
            let duties: Vec<_> = run.known.iter().map(|known| known.duty(point)).collect();
            for choice in cursor.choices(states_max(2), point) {
                let crashed = cursor.crash(&mut choice.clone()).without_history();
                let goes_on = point % 5 == 0;
                if !verified.insert((crashed.digest(), promise, duties.clone(), goes_on)) {
                    tally.repeat();
                    continue;
                }
                tally.state(&disk, point, &choice, || {
                    found += verify(&crashed, &run, promise, point, goes_on);
                });
            }
            if point % 4 == 0 {
                let killed = cursor.kill();
                let promise = at_least(Promise::at_death(&disk, point));
                tally.state(&disk, point, &"killed", || {
                    found += verify(&killed, &run, promise, point, point % 5 == 0);
                });
            }
        }
    }
    tally.print("savepoints");
    println!("{found} savepoints were read");
    assert!(found > 200, "{found}");
}

/// A crash at each step of a recovery, which keeps pages as checkpoints do.
#[test]
fn a_crash_in_recovery_leaves_each_savepoint_at_its_commit() {
    let (mut tally, mut found) = (Tally::new(), 0);
    for number in 203..205 {
        let disk = SimDisk::new(seed(number));
        let mut run = Run::begin(&disk, number);
        for act in [Create("one"), Commits(8), Shrink, Create("two"), Commits(8)] {
            run.act(act).unwrap();
        }
        run.workload.store().sync().unwrap();
        let (point, last) = (disk.operation_count(), run.workload.models.len() as u64 - 1);
        run.workload.store = None;
        for choice in [Choice::None, Choice::random(number)] {
            let crashed = disk.crash(point, &mut choice.clone());
            let promise = Promise::exactly(last);
            verify(&crashed, &run, promise, point, false);
            tally.cuts_within(&crashed, states_max(1), number, |again| {
                let again = again.without_history();
                found += verify(&again, &run, promise, point, false);
            });
        }
    }
    tally.print("savepoints, recovery");
    assert!(found > 200, "{found}");
}

#[test]
fn each_call_that_fails_leaves_each_savepoint_at_its_commit() {
    let (mut failed, mut states) = (0, 0);
    for number in [206, 208] {
        let disk = SimDisk::new(seed(number));
        let mut run = Run::begin(&disk, number);
        run.workload.close().unwrap();
        let copy = || disk.crash(disk.operation_count(), &mut Choice::All);
        let again = |disk: &SimDisk| {
            let mut again = Run::begin(&SimDisk::new(seed(number)).without_history(), number);
            again.workload.close().unwrap();
            again.workload.disk = disk.clone();
            again
        };
        let whole = copy();
        let mut plain = again(&whole);
        plain.workload.store = Some(plain.workload.mix.setup.open(&whole).unwrap());
        let counts = Call::ALL.map(|call| whole.call_count(call));
        plain.run().unwrap();
        for (call, before) in Call::ALL.into_iter().zip(counts) {
            let count = whole.call_count(call) - before;
            let step = (count as usize / 8).max(1);
            for at in (1..=count).step_by(step) {
                let disk = copy();
                let mut run = again(&disk);
                run.workload.store = Some(run.workload.mix.setup.open(&disk).unwrap());
                disk.fail_call(call, before + at, Fault::Device);
                let first = run.workload.models.len() as u64 - 1;
                let Err(_) = run.run() else { continue };
                failed += 1;
                disk.repair();
                let point = disk.operation_count();
                run.workload.store = None;
                let models = run.workload.models.len() as u64;
                let promise = Promise { most: models, ..Promise::exactly(first) };
                let killed = disk.kill(point);
                let cut = disk.crash(point, &mut Choice::random(at));
                verify(&killed, &run, promise, point, true);
                verify(&cut, &run, promise, point, true);
                states += 2;
            }
        }
    }
    println!("savepoints: {failed} calls failed, {states} states");
    assert!(failed > 20, "{failed}");
}

/// Goes back on a copy of a disk that has savepoints; what is there is either moment.
#[test]
fn a_crash_while_going_back_leaves_one_of_both() {
    let (mut tally, mut found) = (Tally::new(), [0; 2]);
    for number in 209..211 {
        let Prepared { run, disk, options } = prepared(number);
        let known = &run.known;
        for to in ["one", "two"] {
            let disk = disk();
            disk.begin_history();
            go_back_in(root(&disk), to, options()).unwrap();
            let old = run.workload.last();
            let new = &known.iter().find(|known| known.name == to).unwrap().content;
            let mut check = |disk: &SimDisk, is_done: bool| {
                let store = run.workload.mix.setup.open(disk).unwrap();
                let content = Content::of(&store);
                assert!(content == *new || !is_done && content == *old, "done: {is_done}");
                found[usize::from(content == *new)] += 1;
                assert_clean(&store);
                assert_eq!(verify_savepoints(&store, known, u64::MAX - 1, false), [3, 0]);
                // It goes on, and so do they.
                store.keyspace("new").unwrap().put("key", vec![7; 5000]).unwrap();
                store.shrink().unwrap();
                assert_eq!(verify_savepoints(&store, known, u64::MAX - 1, false), [3, 0]);
            };
            let done = disk.operation_count();
            check(&disk.crash(done, &mut Choice::None), true);
            let (mut cursor, mut verified) = (disk.cursor(), BTreeSet::new());
            for point in cursor.point()..=done {
                cursor.advance_to(point);
                if cursor.is_covered() {
                    continue;
                }
                tally.points += 1;
                for choice in cursor.choices(states_max(2), point) {
                    let crashed = cursor.crash(&mut choice.clone()).without_history();
                    if verified.insert((crashed.digest(), point == done)) {
                        tally.state(&disk, point, &choice, || check(&crashed, point == done));
                    } else {
                        tally.repeat();
                    }
                }
            }
        }
    }
    tally.print("going back");
    assert!(found.iter().all(|count| *count > 5), "{found:?}");
}

/// A closed store with three savepoints, copies of its disk, and its options.
struct Prepared<D, O> {
    run: Run,
    disk: D,
    options: O,
}

fn prepared(number: u64) -> Prepared<impl Fn() -> SimDisk, impl Fn() -> adamant::Options> {
    let disk = SimDisk::new(seed(number));
    let mut run = Run::begin(&disk, number);
    for act in ACTS.into_iter().take(11) {
        run.act(act).unwrap();
    }
    run.workload.close().unwrap();
    let setup = run.workload.mix.setup;
    let copy = move || disk.crash(disk.operation_count(), &mut Choice::All);
    Prepared { run, disk: copy, options: move || setup.options() }
}

#[test]
fn going_back_on_disks_that_fail_and_fill_up() {
    let mut failed = [0; 2];
    for number in 212..214 {
        let Prepared { run, disk, options } = prepared(number);
        let old = run.workload.last();
        let new = &run.known[0].content;
        let check = |disk: &SimDisk, is_done: bool| {
            let store = run.workload.mix.setup.open(disk).unwrap();
            let content = Content::of(&store);
            assert!(content == *new || !is_done && content == *old, "done: {is_done}");
            assert_clean(&store);
            assert_eq!(verify_savepoints(&store, &run.known, u64::MAX - 1, false), [3, 0]);
            // A power cut takes away nothing that is committed from then on.
            store.keyspace("later").unwrap().put("key", "1").unwrap();
            store.sync().unwrap();
            let cut = disk.crash(disk.operation_count(), &mut Choice::None);
            drop(store);
            let store = run.workload.mix.setup.open(&cut).unwrap();
            assert!(store.keyspace("later").unwrap().contains("key").unwrap());
        };
        let whole = disk();
        go_back_in(root(&whole), "one", options()).unwrap();
        for (index, fault) in [Fault::Device, Fault::Full].into_iter().enumerate() {
            for call in Call::ALL {
                let step = (whole.call_count(call) as usize / 10).max(1);
                for at in (1..=whole.call_count(call)).step_by(step) {
                    let disk = disk();
                    disk.fail_call(call, at, fault);
                    let done = go_back_in(root(&disk), "one", options()).is_ok();
                    failed[index] += u64::from(!done);
                    disk.repair();
                    check(&disk.crash(disk.operation_count(), &mut Choice::random(at)), done);
                    check(&disk, done);
                }
            }
        }
        // Then with space for part of it.
        let (before, after) = (disk().space_used_bytes(), whole.space_used_bytes());
        for space in (before..after + (1 << 20)).step_by(128 << 10) {
            let disk = disk();
            disk.set_space_bytes(Some(space));
            let done = go_back_in(root(&disk), "one", options());
            let is_full = done.as_ref().is_err_and(Error::is_out_of_space);
            assert!(done.is_ok() || is_full, "{done:?}");
            disk.set_space_bytes(None);
            check(&disk, done.is_ok());
        }
    }
    assert!(failed.iter().all(|count| *count > 8), "{failed:?}");
}

/// Without space for the pages that savepoints need the oldest are given up, and say so; the store
/// goes on, and space that comes back is used.
#[test]
fn a_full_disk_loses_savepoints_and_nothing_else() {
    let mut counts = [0; 2];
    for number in 214..217 {
        let disk = SimDisk::new(seed(number));
        let mut run = Run::begin(&disk, number);
        for act in [Create("one"), Commits(8), Shrink, Create("two"), Commits(4), Create("three")] {
            run.act(act).unwrap();
        }
        run.workload.close().unwrap();
        let used = disk.space_used_bytes();
        for pages in 0..16 {
            let disk = disk.crash(disk.operation_count(), &mut Choice::All);
            disk.set_space_bytes(Some(used + pages * 4096 * 7));
            let setup = run.workload.mix.setup;
            let Ok(store) = setup.open(&disk) else {
                // There is not even space for what each opening takes.
                continue;
            };
            let mut content = run.workload.last().clone();
            // Removals need no space; nor do checkpoints.
            let names: Vec<String> = content.keyspaces.keys().map(|it| it.to_string()).collect();
            for name in &names {
                match store.drop_keyspace(name) {
                    Ok(true) => drop(content.keyspaces.remove(name.as_str())),
                    Err(error) if error.is_out_of_space() => {}
                    other => panic!("{other:?}"),
                }
                store.shrink().unwrap();
                content.verify(&store);
            }
            let found = verify_savepoints(&store, &run.known, u64::MAX - 1, true);
            (0..2).for_each(|kind| counts[kind] += found[kind]);
            // After a power cut, too; there is space again.
            let end = disk.operation_count();
            drop(store);
            for choice in [Choice::None, Choice::random(pages)] {
                let cut = disk.crash(end, &mut choice.clone());
                cut.set_space_bytes(None);
                let store = setup.open(&cut).unwrap();
                content.verify(&store);
                assert_clean(&store);
                let again = verify_savepoints(&store, &run.known, u64::MAX - 1, true);
                assert_eq!(again, found, "{choice:?}");
            }
            disk.set_space_bytes(None);
            let store = setup.open(&disk).unwrap();
            for known in &run.known {
                assert!(store.delete_savepoint(known.name).unwrap());
            }
            let left = root(&disk).subdirectory("savepoints").unwrap().list().unwrap();
            assert!(left.is_empty(), "{left:?}");
            store.create_savepoint("four").unwrap();
            content.verify(&store.open_savepoint("four").unwrap());
        }
    }
    println!("savepoints on full disks: {} whole, {} lost", counts[0], counts[1]);
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}

/// Overwrites nearly all that a store has.
fn overwrite(store: &Store) -> Result<()> {
    for name in Content::of(store).keyspaces.keys() {
        store.drop_keyspace(name)?;
    }
    store.keyspace("new")?.put("key", vec![7; 9000])?;
    store.shrink().map(drop)
}

/// Another process goes on with a disk, and then the power is cut: what it only read looked
/// durable. Returns how many states that were.
fn go_on(run: &Run, point: u64, disk: &SimDisk, may_lose: bool) -> u64 {
    disk.set_space_bytes(None);
    let (setup, begun) = (run.workload.mix.setup, disk.operation_count());
    let store = setup.open(disk).unwrap();
    let opened = disk.operation_count();
    overwrite(&store).unwrap();
    verify_savepoints(&store, &run.known, point, may_lose);
    drop(store);
    let ends = [begun, opened, disk.operation_count()];
    let cuts =
        ends.into_iter().flat_map(|end| [Choice::None, Choice::random(end)].map(|it| (end, it)));
    for (end, mut choice) in cuts {
        let store = setup.open(&disk.crash(end, &mut choice)).unwrap();
        verify_savepoints(&store, &run.known, point, may_lose);
    }
    6
}

/// A call fails in the middle of a change. The same process goes on, if it can, or dies, at once or
/// in the middle of what it did then; the next one goes on; and then the power is cut.
#[test]
fn a_power_cut_behind_a_failure_leaves_each_savepoint_at_its_commit() {
    let (mut failed, mut states) = (0, 0);
    // The last one on a full disk: a savepoint is given up.
    let changes = [(Create("two"), false), (Delete("one"), false), (Shrink, false), (Shrink, true)];
    let runs = [220, 221].into_iter().flat_map(|number| changes.map(|change| (number, change)));
    for (number, (change, is_full)) in runs {
        for call in [Call::Rename, Call::Sync, Call::SyncDirectory, Call::Remove] {
            for at in 1.. {
                let disk = SimDisk::new(seed(number));
                let mut run = Run::begin(&disk, number);
                for act in [Create("one"), Commits(4), Shrink, Commits(4)] {
                    run.act(act).unwrap();
                }
                disk.begin_history();
                let at = disk.call_count(call) + at;
                disk.fail_call(call, at, Fault::Device);
                let begun = disk.operation_count();
                disk.set_space_bytes(is_full.then(|| disk.space_used_bytes()));
                let is_failed = run.act(change).is_err();
                let is_met = disk.call_count(call) >= at;
                disk.repair();
                disk.set_space_bytes(None);
                failed += u64::from(is_failed);
                let point = disk.operation_count();
                // It may die in the middle of what it does behind the failure; not where a
                // savepoint ends: see the limits in docs/decisions/0140-savepoints.md.
                let ends = is_full || matches!(change, Delete(_));
                let deaths = match is_failed && !ends {
                    true => point.saturating_sub(4).max(begun)..point + 1,
                    false => point..point,
                };
                let mut disks: Vec<_> = deaths.map(|point| (point, disk.kill(point))).collect();
                let store = run.workload.store.take().unwrap();
                // It cannot go on if the failure ended writing.
                let _ = overwrite(&store);
                drop(store);
                disks.push((point, disk));
                for (point, disk) in disks {
                    println!("{number}, {change:?}, {call:?} {at}, {is_failed}: {point}");
                    states += go_on(&run, point, &disk, is_full);
                }
                if !is_met {
                    break;
                }
            }
        }
    }
    println!("savepoints: {failed} calls failed, {states} states");
    assert!(failed > 20, "{failed}");
}

/// The death of a process in the middle of a change, then another one that goes on, then a power
/// cut: what the first had renamed and not synced looked durable to the second.
#[test]
fn a_power_cut_behind_a_death_leaves_each_savepoint_at_its_commit() {
    let (mut tally, mut found) = (Tally::new(), 0);
    for number in [217, 218] {
        let disk = SimDisk::new(seed(number));
        let mut run = Run::begin(&disk, number);
        run.workload.close().unwrap();
        disk.begin_history();
        run.workload.store = Some(run.workload.mix.setup.open(&disk).unwrap());
        for act in [Create("one"), Commits(3), Shrink, Create("two"), Commits(3), Shrink] {
            run.act(act).unwrap();
        }
        for act in [Delete("one"), Commits(2), Delete("two"), Commits(1), Create("three")] {
            run.act(act).unwrap();
        }
        let renames = (0..disk.operation_count())
            .filter(|point| disk.describe(*point).is_some_and(|it| it.contains("savepoint")));
        let points: Vec<u64> = renames.flat_map(|point| [point, point + 1]).collect();
        let mut cursor = disk.cursor();
        for point in points {
            if point < cursor.point() {
                continue;
            }
            cursor.advance_to(point);
            let killed = cursor.kill();
            tally.points += 1;
            tally.state(&disk, point, &"killed", || {
                let setup = run.workload.mix.setup;
                let store = setup.open(&killed).unwrap();
                let opened = killed.operation_count();
                let names = |store: &Store| {
                    let all = store.savepoints().unwrap().into_iter();
                    all.map(|one| one.name).collect::<Vec<_>>()
                };
                let before = names(&store);
                verify_savepoints(&store, &run.known, point, false);
                overwrite(&store).unwrap();
                verify_savepoints(&store, &run.known, point, false);
                let end = killed.operation_count();
                drop(store);
                for choice in [Choice::None, Choice::random(point), Choice::random(point + 1)] {
                    // Recovery overwrites what the log names, and nothing that was not kept.
                    for end in [opened, end] {
                        let cut = killed.crash(end, &mut choice.clone());
                        let store = setup.open(&cut).unwrap();
                        found += verify_savepoints(&store, &run.known, point, false)[0];
                        assert!(end == opened || names(&store) == before, "{choice:?}");
                    }
                }
            });
        }
    }
    tally.print("savepoints, power cuts behind deaths");
    assert!(found > 50, "{found}");
}
