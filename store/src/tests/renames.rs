//! Crash and fault tests of renaming: backups, compacted and repaired stores, and the directories
//! of LSM trees.
//!
//! A new store gets its name whole and durable, or not at all; the store that had the name stays
//! whole under it until then; and what is committed under a name after the call is found under it,
//! whether the call reported a failure or not.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use adamant_heap::durability::Durability;
use adamant_lsm::Options as LsmOptions;
use adamant_medium::storage::Directory;
use adamant_sim::{Call, Choice, Fault, SimDirectory, SimDisk, Tally};
use adamant_slice::Slice;

use crate::care::compact::rebuild_beside;
use crate::care::repair::save;
use crate::care::unfinished::{ClosedState, Unfinished};
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::store::handle::Store;
use crate::store::replacement::{LOCK_NAME, settle_in};

/// The original store, and its backup.
const APP: &str = "app";
const COPY: &str = "copy";
/// A key that is written after the work.
const LATER: &str = "later";
/// Marks in a history: the work is done; `LATER` is being written; it is durable.
const DONE: u64 = 1;
const BEGUN: u64 = 2;
const DURABLE: u64 = 3;
/// States that are tried at each crash point.
const STATES: u64 = 6;
/// Calls that change names, or make something durable.
const CALLS: [Call; 5] =
    [Call::Create, Call::Rename, Call::Remove, Call::Sync, Call::SyncDirectory];

/// How often a thread commits while its store is closed.
const ROUNDS: u32 = 200;

/// Entries by keyspace.
type Content = BTreeMap<String, Vec<(Slice, Slice)>>;

/// An operation that gives a store a name, and that name.
struct Work {
    run: fn(&SimDisk) -> Result<()>,
    name: &'static str,
    /// The beginning of the first operation that changes names.
    begins: &'static str,
}

impl Work {
    /// The points of a disk's history from the first change of names to the end.
    fn points(&self, disk: &SimDisk) -> RangeInclusive<u64> {
        let is_first = |number: &u64| {
            disk.describe(*number).is_some_and(|operation| operation.starts_with(self.begins))
        };
        let end = disk.operation_count();
        let first = (disk.cursor().point()..end).find(is_first).expect("names that change");
        first..=end
    }
}

/// How a file system changes names.
#[derive(Clone, Copy, PartialEq)]
enum Names {
    /// Two in one step.
    Exchanged,
    /// One by one.
    Renamed,
    /// So, and none of a directory that is open.
    RenamedClosed,
}

impl Names {
    fn of(self, disk: SimDisk) -> SimDisk {
        match self {
            Self::Exchanged => disk,
            Self::Renamed => disk.without_exchange(),
            Self::RenamedClosed => disk.without_exchange().without_open_renames(),
        }
    }
}

const BACKUP: Work =
    Work { run: |disk| back_up(disk, false), name: COPY, begins: "rename copy.backing-up" };

/// From the first link on, since the source may lose nothing.
const BACKUP_LINKED: Work = Work { run: |disk| back_up(disk, true), name: COPY, begins: "link" };

const COMPACT: Work = Work {
    run: |disk| {
        let store = open(disk, APP)?;
        rebuild_beside(&store, root(disk), APP, options())?.replace(store)
    },
    name: APP,
    begins: "exchange app",
};

const COMPACT_BY_STEPS: Work = Work { begins: "rename app to app.being-replaced", ..COMPACT };

const REPAIR: Work = Work {
    run: |disk| {
        let source = root(disk).subdirectory(APP)?;
        save(&source, &root(disk), APP, options()).map(drop)
    },
    name: APP,
    begins: "rename app.repairing",
};

const REPAIR_BY_STEPS: Work = Work { begins: "rename app to", ..REPAIR };

fn back_up(disk: &SimDisk, links: bool) -> Result<()> {
    open(disk, APP)?.copy_in(root(disk), COPY, (".backing-up", links))
}

fn root(disk: &SimDisk) -> Arc<dyn Directory> {
    Arc::new(SimDirectory::root(disk))
}

/// All work within the calls, and tables of a few entries.
fn options() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 1 << 10;
    lsm.table_bytes_max = 2 << 10;
    lsm.blob_bytes_min = Some(200);
    Options::new().log_bytes_max(4 << 20).lsm(lsm).background(false)
}

fn open(disk: &SimDisk, name: &str) -> Result<Store> {
    Store::open_directory(root(disk).subdirectory(name)?, options())
}

fn fill(store: &Store) -> Result<()> {
    for (name, engine) in [("tree", Engine::Bplus), ("log", Engine::Lsm)] {
        let keyspace = store.keyspace_with(name, KeyspaceOptions::new().engine(engine))?;
        for number in 0..30_u8 {
            let len = if number % 10 == 0 { 300 } else { 60 };
            keyspace.insert([number], vec![number; len])?;
        }
    }
    store.sync()
}

/// A disk with a store on it, closed, and all of it durable.
fn disk_with_store() -> (SimDisk, Content) {
    let disk = SimDisk::new(5);
    let store = open(&disk, APP).unwrap();
    fill(&store).unwrap();
    let content = content_of(&store);
    store.close().unwrap();
    disk.begin_history();
    (disk, content)
}

fn content_of(store: &Store) -> Content {
    let entries = |name: String| {
        let keyspace = store.open_keyspace(&name).unwrap();
        let entries = keyspace.iter().map(|entry| entry.unwrap()).collect();
        (name, entries)
    };
    store.keyspaces().unwrap().into_iter().map(|info| entries(info.name)).collect()
}

fn is_there(disk: &SimDisk, name: &str) -> bool {
    root(disk).list().unwrap().iter().any(|known| known == name)
}

/// As opening the path of the store does.
fn settle(disk: &SimDisk) {
    settle_in(&*root(disk), APP, &|name| Ok(is_there(disk, name))).unwrap();
    assert!(is_there(disk, APP), "no store has the name");
}

/// Commits durably to the store with a name.
fn write_later(disk: &SimDisk, name: &str) {
    let store = open(disk, name).unwrap();
    disk.mark(BEGUN);
    store.open_keyspace("tree").unwrap().insert(LATER, "").unwrap();
    disk.mark(DURABLE);
}

/// Opens the store with a name, and panics unless it is intact and has the content, with the later
/// write if `mark` says that it must, or may, be there.
fn verify(disk: &SimDisk, name: &str, content: &Content, mark: u64) {
    assert!(is_there(disk, name), "{name} is gone");
    let store = open(disk, name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut found = content_of(&store);
    let tree = found.get_mut("tree").unwrap_or_else(|| panic!("{name} has no such keyspace"));
    let later = tree.iter().position(|(key, _)| key == LATER.as_bytes());
    later.map(|at| tree.remove(at));
    assert!(later.is_some() || mark < DURABLE, "{name}: what was committed under it is gone");
    assert!(later.is_none() || mark >= BEGUN, "{name}: what nobody has written");
    assert!(found == *content, "{name}: other content");
    assert!(store.check().unwrap().is_clean(), "{name}: a check finds something");
}

/// Power cuts from the first change of names to the end.
fn try_power_cuts(work: &Work, names: Names) {
    let (disk, content) = disk_with_store();
    let disk = names.of(disk);
    (work.run)(&disk).unwrap();
    disk.mark(DONE);
    write_later(&disk, work.name);
    let (mut cursor, mut tally, mut between) = (disk.cursor(), Tally::new(), 0);
    for point in work.points(&disk) {
        cursor.advance_to(point);
        if cursor.is_covered() {
            continue;
        }
        tally.points += 1;
        let mark = disk.marks(point).last().copied().unwrap_or(0);
        for choice in cursor.choices(STATES, point) {
            tally.state(&disk, point, &choice, || {
                let crashed = cursor.crash(&mut choice.clone()).without_history();
                between += u64::from(!is_there(&crashed, APP));
                settle(&crashed);
                if work.name != APP {
                    verify(&crashed, APP, &content, 0);
                }
                if work.name == APP || mark >= DONE || is_there(&crashed, work.name) {
                    verify(&crashed, work.name, &content, mark);
                }
            });
        }
    }
    tally.print(work.begins);
    assert!(tally.states > 30, "few states");
    assert_eq!(
        between > 0,
        names != Names::Exchanged,
        "{between} states where the name was nobody's"
    );
}

/// Each call of each kind fails once; then the work goes on, and the power is cut.
fn try_faults(work: &Work, names: Names) {
    let mut failed = 0;
    for call in CALLS {
        for number in 1.. {
            let (disk, content) = disk_with_store();
            let disk = names.of(disk);
            let before = disk.call_count(call);
            disk.fail_call(call, before + number, Fault::Device);
            let outcome = (work.run)(&disk);
            let was_met = disk.call_count(call) >= before + number;
            disk.repair();
            if !was_met {
                assert!(outcome.is_ok(), "{:?}, and nothing failed", outcome.err());
                break;
            }
            println!("{} {}, number {number}: {outcome:?}", work.begins, call.name());
            failed += u64::from(outcome.is_err());
            let is_done = outcome.is_ok();
            let is_left = is_there(&disk, "app.being-replaced");
            assert!(!is_left || work.begins != COMPACT_BY_STEPS.begins, "the old store is left");
            assert!(is_done || work.name == APP || !is_there(&disk, COPY), "a copy that failed");
            let name = if is_done { work.name } else { APP };
            settle(&disk);
            write_later(&disk, name);
            cut(&disk, |crashed| {
                verify(crashed, name, &content, DURABLE);
                if !is_done && is_there(crashed, COPY) {
                    verify(crashed, COPY, &content, 0);
                }
            });
            if !is_done {
                // The leftovers of the failure are in no later call's way.
                (work.run)(&disk).unwrap();
                cut(&disk, |crashed| {
                    verify(crashed, APP, &content, DURABLE);
                    verify(crashed, work.name, &content, DURABLE);
                });
            }
        }
    }
    assert!(failed > 5, "{failed} calls failed");
}

/// Power cuts at the end of a disk's history.
fn cut(disk: &SimDisk, verify: impl Fn(&SimDisk)) {
    let end = disk.operation_count();
    let random = (0..2).map(Choice::random);
    for mut choice in [Choice::None, Choice::All].into_iter().chain(random) {
        println!("then {choice:?}");
        let crashed = disk.crash(end, &mut choice).without_history();
        settle(&crashed);
        verify(&crashed);
    }
}

#[test]
fn a_backup_has_its_name_whole_or_not_at_all() {
    try_power_cuts(&BACKUP, Names::Exchanged);
}

#[test]
fn a_linked_backup_has_its_name_whole_or_not_at_all() {
    try_power_cuts(&BACKUP_LINKED, Names::Exchanged);
}

#[test]
fn a_store_made_smaller_takes_its_place_in_one_step() {
    try_power_cuts(&COMPACT, Names::Exchanged);
}

#[test]
fn a_store_made_smaller_takes_its_place_in_three_steps_where_there_is_no_other_way() {
    try_power_cuts(&COMPACT_BY_STEPS, Names::Renamed);
    try_power_cuts(&COMPACT_BY_STEPS, Names::RenamedClosed);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn a_repaired_store_takes_its_place_in_one_step() {
    try_power_cuts(&REPAIR, Names::Exchanged);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn a_repaired_store_takes_its_place_in_three_steps_where_there_is_no_other_way() {
    try_power_cuts(&REPAIR_BY_STEPS, Names::Renamed);
    try_power_cuts(&REPAIR_BY_STEPS, Names::RenamedClosed);
}

#[test]
fn a_backup_that_fails_says_so_and_leaves_no_name() {
    try_faults(&BACKUP, Names::Exchanged);
}

#[test]
fn a_linked_backup_that_fails_says_so_and_leaves_no_name() {
    try_faults(&BACKUP_LINKED, Names::Exchanged);
}

#[test]
fn a_store_that_could_not_be_made_smaller_is_as_it_was() {
    try_faults(&COMPACT, Names::Exchanged);
}

#[test]
fn a_store_that_could_not_be_made_smaller_by_steps_is_as_it_was() {
    try_faults(&COMPACT_BY_STEPS, Names::Renamed);
    try_faults(&COMPACT_BY_STEPS, Names::RenamedClosed);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn a_store_that_could_not_be_repaired_is_as_it_was() {
    try_faults(&REPAIR, Names::Exchanged);
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn a_store_that_could_not_be_repaired_by_steps_is_as_it_was() {
    try_faults(&REPAIR_BY_STEPS, Names::Renamed);
    try_faults(&REPAIR_BY_STEPS, Names::RenamedClosed);
}

/// Between the closing of a store and its renaming another process may have had it.
#[test]
fn a_store_that_another_process_changed_is_not_replaced() {
    let works: [fn(&Store); 2] = [
        |store| store.open_keyspace("tree").unwrap().put(LATER, "").unwrap(),
        |store| store.create_savepoint("later").unwrap(),
    ];
    for work in works {
        let (disk, _) = disk_with_store();
        let store = open(&disk, APP).unwrap();
        let state = ClosedState::of(store).unwrap();
        let at = || root(&disk).subdirectory(APP).unwrap();
        state.check(at()).unwrap();
        open(&disk, APP).unwrap().close().unwrap();
        state.check(at()).unwrap();
        let store = open(&disk, APP).unwrap();
        work(&store);
        store.close().unwrap();
        assert!(matches!(state.check(at()), Err(Error::Locked { .. })));
    }
}

/// What a store commits until it is closed is its own.
#[test]
fn a_store_that_commits_while_it_is_closed_was_changed_by_nobody_else() {
    let (disk, _) = disk_with_store();
    for round in 0..ROUNDS {
        let store = open(&disk, APP).unwrap();
        let tree = store.open_keyspace("tree").unwrap().with_durability(Durability::Buffered);
        let (begun, wait) = std::sync::mpsc::channel();
        let state = std::thread::scope(|scope| {
            scope.spawn(move || {
                // The same value again would be no commit.
                for number in 0_u64.. {
                    if tree.put(LATER, number.to_le_bytes()).is_err() {
                        break;
                    }
                    let _ = begun.send(());
                }
            });
            wait.recv().unwrap();
            ClosedState::of(store).unwrap()
        });
        let checked = state.check(root(&disk).subdirectory(APP).unwrap());
        checked.unwrap_or_else(|error| panic!("round {round}: {error}"));
    }
}

/// Where a store is not locked while it is renamed, another process may find it, taking it for
/// a leftover, and make its own under the name.
#[test]
fn what_another_process_makes_under_a_name_that_was_ours_stays() {
    let (disk, _) = disk_with_store();
    let disk = Names::RenamedClosed.of(disk);
    let ours = Unfinished::beside(root(&disk), APP, ".compacting").unwrap();
    let lock = ours.directory().unwrap().lock(LOCK_NAME).unwrap();
    drop(ours);
    assert!(is_there(&disk, "app.compacting"), "another process has its lock");
    drop(lock);
    drop(Unfinished::beside(root(&disk), APP, ".compacting").unwrap());
    assert!(!is_there(&disk, "app.compacting"));
}

/// Nothing is made that could not take its place.
#[test]
fn what_a_replacement_left_is_found_before_the_next_one_begins() {
    let (disk, _) = disk_with_store();
    root(&disk).subdirectory("app.being-replaced").unwrap();
    for names in [Names::Exchanged, Names::Renamed] {
        let disk = names.of(disk.clone());
        for work in [COMPACT, REPAIR] {
            assert!(matches!((work.run)(&disk), Err(Error::TargetExists { .. })));
        }
        assert!(!is_there(&disk, "app.compacting") && !is_there(&disk, "app.repairing"));
    }
}

/// The process ends at each step; another one commits to what it finds; then the power is cut.
fn try_kills(work: &Work, names: Names) {
    let (disk, content) = disk_with_store();
    let disk = names.of(disk);
    (work.run)(&disk).unwrap();
    let mut cursor = disk.cursor();
    for point in work.points(&disk) {
        println!("killed at {point}");
        cursor.advance_to(point);
        let killed = names.of(cursor.kill());
        settle(&killed);
        write_later(&killed, APP);
        cut(&killed, |crashed| verify(crashed, APP, &content, DURABLE));
    }
}

#[test]
fn what_is_committed_after_a_replacement_was_cut_short_is_kept() {
    try_kills(&COMPACT, Names::Exchanged);
    for names in [Names::Renamed, Names::RenamedClosed] {
        try_kills(&COMPACT_BY_STEPS, names);
    }
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn what_is_committed_after_a_repair_was_cut_short_is_kept() {
    try_kills(&REPAIR, Names::Exchanged);
    for names in [Names::Renamed, Names::RenamedClosed] {
        try_kills(&REPAIR_BY_STEPS, names);
    }
}

/// The directories of tables and blob files are made with the first LSM tree. If their names could
/// not be synced, the call fails; the next one writes the names again.
#[test]
fn directories_of_trees_are_durable_before_a_tree_is() {
    for number in 0.. {
        let disk = SimDisk::new(6);
        let mut store = open(&disk, APP).unwrap();
        root(&disk).sync().unwrap();
        let before = disk.call_count(Call::SyncDirectory);
        disk.fail_call(Call::SyncDirectory, before + number, Fault::Device);
        let outcome = fill(&store);
        let was_met = disk.call_count(Call::SyncDirectory) >= before + number;
        disk.repair();
        println!("sync {number} of a directory: {outcome:?}");
        if let Err(error) = outcome {
            if error.is_poisoned() {
                drop(store);
                store = open(&disk, APP).unwrap();
            }
            fill(&store).unwrap();
        }
        let content = content_of(&store);
        drop(store);
        cut(&disk, |crashed| verify(crashed, APP, &content, 0));
        if !was_met {
            break;
        }
    }
}
