//! Files written by store instructions: the same bytes as by calls, no store to a hole, syncs only
//! after a call changed something.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use adamant_medium::address::persist::Flushing;
use adamant_medium::error::Error;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_medium::system::direct::DirectDirectory;
use adamant_medium::system::os::OsDirectory;
use adamant_sim::{Call, Hooked};

const PAGE: u64 = 4096;
/// As `direct.rs` has it.
const PIECE: u64 = 64 << 20;

fn direct(directory: Arc<dyn Directory>) -> Arc<dyn Directory> {
    DirectDirectory::over(directory, Flushing::Volatile, "file").expect("memory")
}

/// A directory in memory, and one of tmpfs if there is one.
fn each(test: impl Fn(Arc<dyn Directory>)) {
    test(Arc::new(MemoryDirectory::new()));
    if let Ok(place) = tempfile::tempdir_in("/dev/shm") {
        test(Arc::new(OsDirectory::open(place.path()).expect("exists")));
    }
}

#[test]
fn files_hold_what_files_hold() {
    let number = AtomicU64::new(0);
    each(|directory| {
        let seed = number.fetch_add(1, Ordering::Relaxed);
        let (written, model) = (direct(directory), MemoryDirectory::new());
        let (file, like) = (written.create("file").unwrap(), model.create("file").unwrap());
        let mut random = fastrand::Rng::with_seed(seed);
        for step in 0..600 {
            let (offset, len) = (random.u64(..20 * PAGE), random.u64(1..3 * PAGE));
            let pages = (offset / PAGE * PAGE, len.next_multiple_of(PAGE));
            let data: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            for file in [&file, &like] {
                match step % 10 {
                    0 => file.allocate(offset, len).unwrap(),
                    1 => file.punch(pages.0, pages.1).unwrap(),
                    2 => file.set_len(offset).unwrap(),
                    3 => file.write_mapped_at(&data, offset).unwrap(),
                    4 => file.prepare_stores(pages.0, pages.1),
                    5 => file.sync().unwrap(),
                    _ => file.write_at(&data, offset).unwrap(),
                }
            }
            let bytes = like.len().unwrap();
            assert_eq!(file.len().unwrap(), bytes, "seed {seed}, step {step}");
            let (mut found, mut expected) = (vec![0; bytes as usize], vec![0; bytes as usize]);
            file.read_at(&mut found, 0).unwrap();
            like.read_at(&mut expected, 0).unwrap();
            assert!(found == expected, "seed {seed}, step {step}");
        }
        let counts = written.stores().expect("written by stores").counts();
        assert!(counts.fences > 100, "{counts:?}");
    });
}

#[test]
fn a_write_takes_one_fence_over_pieces_too() {
    each(|directory| {
        let directory = direct(directory);
        let file = directory.create("file").unwrap();
        file.set_len(PIECE + PAGE).unwrap();
        let fences = || directory.stores().unwrap().counts().fences;
        let before = fences();
        file.write_at(&[7; 3000], PIECE - 1000).unwrap();
        file.write_at(&[8; 10], 5).unwrap();
        assert_eq!(fences() - before, 2);
        let mut found = [0; 3000];
        file.read_at(&mut found, PIECE - 1000).unwrap();
        assert_eq!(found, [7; 3000]);
    });
}

#[test]
fn a_directory_that_was_closed_is_written_no_more() {
    if let Ok(place) = tempfile::tempdir_in("/dev/shm") {
        let directory = direct(Arc::new(OsDirectory::open(place.path()).unwrap()));
        let file = directory.create("file").unwrap();
        file.allocate(0, PAGE).unwrap();
        file.write_at(b"open", 0).unwrap();
        directory.close();
        let error = file.write_at(b"closed", 0).expect_err("its directory was closed");
        assert!(error.to_string().contains("closed"), "{error}");
        assert_eq!(&std::fs::read(place.path().join("file")).unwrap()[..6], b"open\0\0");
    }
}

#[test]
fn what_is_no_memory_stays_as_it_is() {
    let memory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let same = DirectDirectory::over(Arc::clone(&memory), Flushing::Auto, "file").unwrap();
    assert!(same.stores().is_none(), "memory has to be asked for");
    // The sources lie on a disk; a checkout on tmpfs or on DAX tests nothing here.
    let place = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let disk: Arc<dyn Directory> = Arc::new(OsDirectory::open(place.path()).unwrap());
    let is_memory = disk.persist(Flushing::Volatile, "file").unwrap().is_some();
    assert_eq!(direct(disk).stores().is_some(), is_memory);
}

/// A directory in memory that counts syncs of files, and maps or backs no more when told so.
fn odd(maps: bool, backs: bool) -> (Hooked, Arc<AtomicU64>) {
    let directory = MemoryDirectory::new();
    directory.create("file").unwrap().set_len(8 * PAGE).unwrap();
    let syncs = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&syncs);
    let hooked = Hooked::new(directory, move |call, path| {
        let refused = |kind: ErrorKind| Err(Error::io("refuse", path, None, 0, kind.into()));
        match call {
            Call::Allocate if !backs => refused(ErrorKind::StorageFull),
            Call::MapShared if !maps => refused(ErrorKind::Unsupported),
            _ => {
                count.fetch_add(u64::from(call == Call::Sync), Ordering::Relaxed);
                Ok(())
            }
        }
    });
    (hooked, syncs)
}

#[test]
fn only_what_calls_have_changed_is_synced() {
    // For each write: whether it is a store, and so needs no sync.
    for (maps, backs) in [(true, true), (false, true), (true, false)] {
        let (odd, syncs) = odd(maps, backs);
        let directory = direct(Arc::new(odd));
        let file = directory.open("file").unwrap().unwrap();
        let syncs = || syncs.load(Ordering::Relaxed);
        file.sync().unwrap();
        assert_eq!(syncs(), 1, "whoever had it before may have left something");
        file.sync().unwrap();
        assert_eq!(syncs(), 1);
        // Space is allocated once.
        file.write_at(&[1; 100], 50).unwrap();
        file.sync().unwrap();
        assert_eq!(syncs(), 2);
        file.write_at(&[2; 100], 90).unwrap();
        file.sync().unwrap();
        assert_eq!(syncs(), if maps && backs { 2 } else { 3 }, "{maps}, {backs}");
        let mut found = [0; 190];
        file.read_at(&mut found, 0).unwrap();
        assert_eq!((found[49], found[50], found[89], found[90], found[189]), (0, 1, 1, 2, 2));
        let syncs_before = syncs();
        file.punch(0, PAGE).unwrap();
        file.sync().unwrap();
        file.write_at(&[3; 10], 0).unwrap();
        file.sync().unwrap();
        assert_eq!(syncs() - syncs_before, 2, "a hole, and then space for it");
    }
}
