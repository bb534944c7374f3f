//! The simulated disk's fault model: the states that it may leave, and no others.

use std::collections::BTreeSet;
use std::sync::Arc;

use adamant_medium::address::region::Region;
use adamant_medium::error::Error;
use adamant_medium::storage::{Directory, File};
use adamant_sim::{Call, Choice, Fault, SimDirectory, SimDisk};

fn read(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
    let file = SimDirectory::root(disk).open(name).unwrap()?;
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

/// A disk with a file `data` of 4 KiB of 1s, durable.
fn disk_with_data() -> (SimDisk, SimDirectory, Arc<dyn File>) {
    let disk = SimDisk::new(0);
    let directory = SimDirectory::root(&disk);
    let file = directory.create("data").unwrap();
    file.write_at(&[1; 4096], 0).unwrap();
    file.sync().unwrap();
    directory.sync().unwrap();
    (disk, directory, file)
}

/// The file `data` after power cuts now: every possible state.
fn all_states(disk: &SimDisk) -> BTreeSet<Option<Vec<u8>>> {
    let mut cursor = disk.cursor();
    cursor.advance_to(disk.operation_count());
    let count = cursor.state_count();
    assert!(count <= 5000, "{count} states are too many to see all");
    let states = (0..count).map(|number| read(&cursor.crash(&mut Choice::Number(number)), "data"));
    states.collect()
}

#[test]
fn an_unsynced_write_may_vanish_and_a_synced_one_never_does() {
    let (disk, _directory, file) = disk_with_data();
    file.write_at(&[2; 512], 512).unwrap();
    let point = disk.operation_count();
    let old = vec![1; 4096];
    let new = [vec![1; 512], vec![2; 512], vec![1; 3072]].concat();
    assert_eq!(read(&disk.crash(point, &mut Choice::None), "data").unwrap(), old);
    assert_eq!(read(&disk.crash(point, &mut Choice::All), "data").unwrap(), new);
    assert_eq!(all_states(&disk), [Some(old), Some(new.clone())].into());
    file.sync().unwrap();
    assert_eq!(all_states(&disk), [Some(new)].into());
}

#[test]
fn a_torn_write_mixes_sectors() {
    let (disk, _directory, file) = disk_with_data();
    file.write_at(&[2; 1024], 256).unwrap();
    let states = all_states(&disk);
    assert_eq!(states.len(), 8, "three sectors, each old or new");
    let torn = [vec![1; 512], vec![2; 512], vec![1; 3072]].concat();
    assert!(states.contains(&Some(torn)));
    for state in states.iter().flatten() {
        for (sector, bytes) in state.chunks(512).enumerate() {
            let written = |byte: usize| (256..1280).contains(&(sector * 512 + byte));
            let new = bytes.iter().enumerate().all(|(at, &byte)| byte == 1 + u8::from(written(at)));
            assert!(
                new || bytes.iter().all(|&byte| byte == 1),
                "sector {sector} is torn in itself"
            );
        }
    }
}

#[test]
fn later_writes_may_survive_earlier_ones() {
    let (disk, _directory, file) = disk_with_data();
    file.write_at(&[2; 512], 0).unwrap();
    file.write_at(&[3; 512], 0).unwrap();
    file.write_at(&[4; 512], 512).unwrap();
    let firsts = |state: Option<Vec<u8>>| state.map(|bytes| (bytes[0], bytes[512])).unwrap();
    let found: BTreeSet<_> = all_states(&disk).into_iter().map(firsts).collect();
    assert_eq!(found, [(1, 1), (2, 1), (3, 1), (1, 4), (2, 4), (3, 4)].into());
}

#[test]
fn lengths_are_durable_after_a_sync_only() {
    let (disk, _directory, file) = disk_with_data();
    file.write_at(&[2; 512], 4096).unwrap();
    file.allocate(4096, 1024).unwrap();
    let lengths = |state: Option<Vec<u8>>| state.map(|bytes| bytes.len()).unwrap();
    let found: BTreeSet<_> = all_states(&disk).into_iter().map(lengths).collect();
    assert_eq!(found, [4096, 4608, 5120].into());
    file.sync().unwrap();
    assert_eq!(all_states(&disk).len(), 1);
}

#[test]
fn what_a_cut_removed_comes_back_only_if_the_cut_is_lost() {
    let (disk, _directory, file) = disk_with_data();
    file.set_len(0).unwrap();
    file.set_len(1024).unwrap();
    file.write_at(&[2; 512], 0).unwrap();
    let states = all_states(&disk);
    let expected: BTreeSet<_> = [
        Some(vec![1; 4096]),
        Some(vec![]),
        Some(vec![0; 1024]),
        Some([vec![2; 512], vec![0; 512]].concat()),
    ]
    .into();
    assert_eq!(states, expected);
}

#[test]
fn an_unsynced_rename_may_be_either() {
    let (disk, directory, file) = disk_with_data();
    let new = directory.create("data.new").unwrap();
    new.write_at(b"new", 0).unwrap();
    new.sync().unwrap();
    directory.sync().unwrap();
    directory.rename("data.new", "data").unwrap();
    let old = vec![1; 4096];
    assert_eq!(all_states(&disk), [Some(old.clone()), Some(b"new".to_vec())].into());
    let left = disk.crash(disk.operation_count(), &mut Choice::None);
    assert_eq!(read(&left, "data.new").unwrap(), b"new");
    file.read_at(&mut [0; 4096], 0).unwrap();
    directory.sync().unwrap();
    assert_eq!(all_states(&disk), [Some(b"new".to_vec())].into());
}

#[test]
fn names_are_durable_after_a_sync_of_the_directory_only() {
    let disk = SimDisk::new(0);
    let directory = SimDirectory::root(&disk);
    let file = directory.create("data").unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync().unwrap();
    assert_eq!(all_states(&disk), [None, Some(b"x".to_vec())].into());
    directory.sync().unwrap();
    directory.remove("data").unwrap();
    directory.create("other").unwrap();
    assert_eq!(all_states(&disk), [None, Some(b"x".to_vec())].into());
    let mut cursor = disk.cursor();
    cursor.advance_to(disk.operation_count());
    assert_eq!(cursor.state_count(), 4, "any subset of the changes is kept");
    directory.sync().unwrap();
    assert_eq!(all_states(&disk), [None].into());
}

#[test]
fn directories_within_are_names_too() {
    let disk = SimDisk::new(0);
    let directory = SimDirectory::root(&disk);
    let log = directory.subdirectory("log").unwrap();
    log.create("0001").unwrap();
    log.sync().unwrap();
    let lost = disk.crash(disk.operation_count(), &mut Choice::None);
    assert!(SimDirectory::root(&lost).list().unwrap().is_empty());
    directory.sync().unwrap();
    let kept = disk.crash(disk.operation_count(), &mut Choice::None);
    let log = SimDirectory::root(&kept).subdirectory("log").unwrap();
    assert_eq!(log.list().unwrap(), ["0001"]);
    assert_eq!(kept.operation_count(), 0, "opening a directory is no operation");
}

/// Both names change, or none; and a directory is removed file by file.
#[test]
fn an_exchange_of_names_is_one_step() {
    let disk = SimDisk::new(1);
    let root = SimDirectory::root(&disk);
    for name in ["one", "other"] {
        let directory = root.subdirectory(name).unwrap();
        directory.create(name).unwrap();
        directory.sync().unwrap();
    }
    root.sync().unwrap();
    disk.begin_history();
    root.exchange("one", "other").unwrap();
    let names = |disk: &SimDisk| {
        let root = SimDirectory::root(disk);
        ["one", "other"].map(|name| root.subdirectory(name).unwrap().list().unwrap())
    };
    let names_left = |disk: &SimDisk| -> BTreeSet<_> {
        let (end, mut cursor) = (disk.operation_count(), disk.cursor());
        cursor.advance_to(end);
        let left = cursor.choices(16, 1).into_iter();
        left.map(|mut choice| names(&cursor.crash(&mut choice))).collect()
    };
    let (before, after) = ([["one"], ["other"]], [["other"], ["one"]]);
    let as_names = |names: [[&str; 1]; 2]| names.map(|name| name.map(str::to_owned).to_vec());
    assert_eq!(names_left(&disk), [as_names(before), as_names(after)].into());
    root.sync().unwrap();
    assert_eq!(names_left(&disk), [as_names(after)].into());
    root.remove_all("one").unwrap();
    assert_eq!(root.list().unwrap(), ["other"]);
    drop(disk.without_exchange());
    assert!(root.exchange("one", "other").unwrap_err().is_unsupported());
}

#[test]
fn a_failed_sync_loses() {
    let (disk, _directory, file) = disk_with_data();
    file.write_at(&[2; 512], 0).unwrap();
    let number = disk.operation_count();
    disk.fail(number..number + 1);
    assert!(matches!(file.sync(), Err(Error::Io { operation: "sync", .. })));
    assert_eq!(disk.describe(number).unwrap(), "sync sim/data, failing");
    let mut seen = [0];
    file.read_at(&mut seen, 0).unwrap();
    assert_eq!(seen, [2], "it stays readable");
    file.write_at(&[3; 512], 512).unwrap();
    file.sync().unwrap();
    let left = read(&disk.crash(disk.operation_count(), &mut Choice::None), "data").unwrap();
    assert_eq!((left[0], left[512]), (1, 3), "a later sync does not write what looks clean");
    assert_eq!(all_states(&disk).len(), 2);
    file.write_at(&[4; 512], 0).unwrap();
    file.sync().unwrap();
    assert_eq!(all_states(&disk).len(), 1, "written again it is durable");
}

#[test]
fn calls_fail_by_their_number() {
    let (disk, directory, file) = disk_with_data();
    let operations = disk.operation_count();
    let mut seen = [0; 2];
    disk.fail_call(Call::Read, disk.call_count(Call::Read) + 2, Fault::Device);
    file.read_at(&mut seen, 0).unwrap();
    assert!(matches!(file.read_at(&mut seen, 0), Err(Error::Io { operation: "read", .. })));
    file.read_at(&mut seen, 0).unwrap();
    disk.fail_call(Call::List, 1, Fault::Device);
    assert!(directory.list().is_err());
    assert_eq!(disk.operation_count(), operations, "neither is an operation");
    disk.fail_call(Call::Write, disk.call_count(Call::Write) + 1, Fault::Full);
    assert!(file.write_at(&[2; 1024], 0).unwrap_err().is_out_of_space());
    assert_eq!(read(&disk, "data").unwrap()[511..513], [2, 1], "half of it is written");
    disk.fail_call(Call::Sync, disk.call_count(Call::Sync) + 1, Fault::Full);
    assert!(file.sync().unwrap_err().is_out_of_space());
    file.sync().unwrap();
    let left = read(&disk.crash(disk.operation_count(), &mut Choice::None), "data").unwrap();
    assert_eq!(left[0], 1, "what a failed sync should have written looks clean");
}

#[test]
fn a_failed_directory_sync_loses() {
    let (disk, directory, _file) = disk_with_data();
    directory.rename("data", "moved").unwrap();
    let number = disk.operation_count();
    disk.fail(number..number + 1);
    directory.sync().unwrap_err();
    directory.create("other").unwrap();
    directory.sync().unwrap();
    let left = disk.crash(disk.operation_count(), &mut Choice::None);
    assert_eq!(SimDirectory::root(&left).list().unwrap(), ["data", "other"]);
    let left = disk.crash(disk.operation_count(), &mut Choice::All);
    assert_eq!(SimDirectory::root(&left).list().unwrap(), ["moved", "other"]);
}

#[test]
fn any_operation_can_be_made_to_fail() {
    let (disk, directory, file) = disk_with_data();
    disk.fail(0..u64::MAX);
    assert!(file.write_at(&[2; 2048], 0).is_err());
    assert!(file.set_len(0).is_err());
    assert!(file.allocate(0, 10_000).is_err());
    assert!(file.sync().is_err());
    assert!(directory.create("other").is_err());
    assert!(directory.rename("data", "other").is_err());
    assert!(directory.remove("data").is_err());
    assert!(directory.subdirectory("log").is_err());
    assert!(directory.sync().is_err());
    disk.repair();
    assert_eq!(directory.list().unwrap(), ["data"]);
    let half = [vec![2; 1024], vec![1; 3072]].concat();
    assert_eq!(read(&disk, "data").unwrap(), half);
}

#[test]
fn space_runs_out_and_comes_back() {
    let (disk, directory, file) = disk_with_data();
    assert_eq!(disk.space_used_bytes(), 4096);
    disk.set_space_bytes(Some(3 * 4096));
    let other = directory.create("other").unwrap();
    other.allocate(0, 4096).unwrap();
    assert!(other.allocate(0, 3 * 4096).unwrap_err().is_out_of_space());
    assert_eq!(other.len().unwrap(), 4096);
    other.set_len(1 << 30).unwrap();
    assert_eq!(disk.space_used_bytes(), 2 * 4096, "holes take no space");
    assert!(file.write_at(&[2; 8192], 4096).unwrap_err().is_out_of_space());
    assert_eq!(file.len().unwrap(), 8192, "what had room was written");
    other.write_at(&[3; 4096], 0).unwrap();
    assert!(file.write_at(&[3; 1], 8192).unwrap_err().is_out_of_space());
    directory.remove("other").unwrap();
    file.write_at(&[3; 1], 8192).unwrap();
    disk.set_space_bytes(Some(0));
    file.write_at(&[4; 4096], 0).unwrap();
    file.set_len(0).unwrap();
    assert!(file.write_at(&[4; 1], 0).unwrap_err().is_out_of_space());
    disk.set_space_bytes(None);
    file.write_at(&[4; 1], 0).unwrap();
}

#[test]
fn a_killed_process_loses_nothing_until_the_power_fails() {
    let (disk, directory, file) = disk_with_data();
    let _lock = directory.lock("lock").unwrap();
    assert!(matches!(directory.lock("lock"), Err(Error::Locked { .. })));
    file.write_at(&[2; 512], 0).unwrap();
    let killed = disk.kill(disk.operation_count());
    assert_eq!(read(&killed, "data").unwrap()[0], 2);
    let directory = SimDirectory::root(&killed);
    let _lock = directory.lock("lock").unwrap();
    let file = directory.open("data").unwrap().unwrap();
    file.write_at(&[3; 512], 512).unwrap();
    let left = read(&killed.crash(killed.operation_count(), &mut Choice::None), "data").unwrap();
    assert_eq!((left[0], left[512]), (1, 1));
    file.sync().unwrap();
    let left = read(&killed.crash(killed.operation_count(), &mut Choice::None), "data").unwrap();
    assert_eq!((left[0], left[512]), (2, 3), "what the dead process wrote is synced as well");
}

/// A crash test verifies disks of one digest once.
#[test]
fn disks_have_the_same_digest_if_they_read_the_same() {
    let (disk, root, file) = disk_with_data();
    let within = root.subdirectory("within").unwrap();
    let mut known = vec![disk.digest()];
    let mut is_new = |disk: &SimDisk| {
        let digest = disk.digest();
        known.push(digest);
        !known[..known.len() - 1].contains(&digest)
    };
    file.write_at(&[9], 4095).unwrap();
    assert!(is_new(&disk), "a byte");
    file.set_len(8192).unwrap();
    assert!(is_new(&disk), "a length");
    file.allocate(4096, 4096).unwrap();
    assert!(is_new(&disk), "space");
    within.create("other").unwrap();
    assert!(is_new(&disk), "a name in a directory");
    within.rename("other", "another").unwrap();
    assert!(is_new(&disk), "another name");
    let one = root.digest("within");
    file.sync().unwrap();
    root.sync().unwrap();
    within.sync().unwrap();
    assert!(!is_new(&disk), "a sync changes nothing that is read");
    let left = [Choice::None, Choice::All, Choice::random(1)]
        .map(|mut choice| disk.crash(disk.operation_count(), &mut choice));
    assert!(left.iter().all(|left| !is_new(left)), "all of it was durable");
    file.write_at(&[8], 0).unwrap();
    assert!(is_new(&disk) && root.digest("within") == one, "of what is under a name alone");
    file.write_at(&[0], 8191).unwrap();
    assert!(!is_new(&disk), "zeros that were there");
}

#[test]
fn marks_lie_between_operations() {
    let (disk, _directory, file) = disk_with_data();
    let point = disk.operation_count();
    disk.mark(7);
    file.sync().unwrap();
    disk.mark(8);
    disk.mark(9);
    assert_eq!(disk.marks(point - 1), []);
    assert_eq!(disk.marks(point), [7]);
    assert_eq!(disk.marks(point + 1), [7, 8, 9]);
}

#[test]
fn an_image_is_private() {
    let (disk, _directory, file) = disk_with_data();
    let region = Region::reserve(1 << 20, 1 << 20).unwrap();
    // SAFETY: no reference into the region exists.
    unsafe { file.map_private(&region, 4096, 0, 4096) }.unwrap();
    // SAFETY: the page is within the region.
    let byte = unsafe { region.base().add(4096) };
    // SAFETY: the page is committed, and no reference into it exists.
    assert_eq!(unsafe { byte.read() }, 1);
    // SAFETY: as above.
    unsafe { byte.write(2) };
    assert_eq!(read(&disk, "data").unwrap(), vec![1; 4096]);
}

/// A scripted file workload at every crash point: all synced data is there, every sector holds a
/// version written to it since, and a cursor finds what a single crash finds.
#[test]
fn every_crash_point_of_a_random_workload() {
    const SECTORS: usize = 40;
    let (mut points, mut states) = (0, 0);
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = SimDisk::new(seed);
        let directory = SimDirectory::root(&disk);
        let file = directory.create("data").unwrap();
        file.write_at(&[0; SECTORS * 512], 0).unwrap();
        file.sync().unwrap();
        directory.sync().unwrap();
        let start = disk.operation_count();
        // By crash point: the values that each sector may have.
        let mut allowed = vec![vec![BTreeSet::from([0]); SECTORS]];
        for value in 1..60 {
            let mut next = allowed.last().unwrap().clone();
            if random.u8(..5) == 0 {
                file.sync().unwrap();
                let newest = |values: &BTreeSet<u8>| *values.last().unwrap();
                next.iter_mut().for_each(|values| *values = [newest(values)].into());
            } else {
                let first = random.usize(..SECTORS);
                let count = random.usize(1..=(SECTORS - first).min(12));
                file.write_at(&vec![value; count * 512], first as u64 * 512).unwrap();
                for values in &mut next[first..first + count] {
                    values.insert(value);
                }
            }
            allowed.push(next);
        }
        let mut cursor = disk.cursor();
        cursor.advance_to(start);
        for (point, allowed) in (start..).zip(&allowed) {
            cursor.advance_to(point);
            points += 1;
            for mut choice in cursor.choices(20, seed) {
                states += 1;
                let left = read(&cursor.crash(&mut choice.clone()), "data").unwrap();
                for (sector, values) in allowed.iter().enumerate() {
                    let bytes = &left[sector * 512..(sector + 1) * 512];
                    assert!(values.contains(&bytes[0]), "seed {seed}, point {point}, {choice:?}");
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]));
                }
                assert_eq!(left, read(&disk.crash(point, &mut choice), "data").unwrap());
            }
        }
        assert!(!cursor.advance(), "that was the whole history");
    }
    println!("{points} crash points, {states} states");
}

#[test]
fn a_store_through_memory_stops_anywhere() {
    // Cut where the seed says: over some seeds a death in its midst leaves any part of it.
    let mut cuts = BTreeSet::new();
    for seed in 0..40 {
        let disk = SimDisk::new(seed);
        let directory = SimDirectory::root(&disk);
        let file = directory.create("data").unwrap();
        file.write_at(&[1; 4096], 0).unwrap();
        file.sync().unwrap();
        directory.sync().unwrap();
        let point = disk.operation_count();
        file.write_mapped_at(&[2; 10], 600).unwrap();
        assert_eq!(read(&disk, "data").unwrap()[599..611], [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
        let after = read(&disk.kill(point + 1), "data").unwrap();
        cuts.insert(after.iter().filter(|byte| **byte == 2).count());
        // A power cut may take it back, and leaves nothing else in doubt.
        for state in all_states(&disk) {
            let left = state.unwrap();
            assert_eq!(left[..600], [1; 600]);
            assert_eq!(left[610..], [1; 3486]);
        }
        file.sync().unwrap();
        assert_eq!(all_states(&disk).len(), 1);
    }
    assert!(cuts.len() > 5, "{cuts:?}");
}

#[test]
#[should_panic(expected = "would be a signal")]
fn a_store_beyond_what_a_file_backs_is_a_defect() {
    let (_disk, _directory, file) = disk_with_data();
    let _ = file.write_mapped_at(&[2; 10], 4090);
}
