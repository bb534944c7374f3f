//! Pools of the undo journal of earlier versions: every way of opening refuses them, in words that
//! say how to convert them; nothing in their directory changes.

use std::sync::Arc;

use adamant_heap::layout::INCOMPAT_UNDO_JOURNAL;
use adamant_heap::{Directory, Durability, Error, Heap, Options, Salvage, Write};
use adamant_wire::checksum::crc32c;

use crate::files::{Files, directory_of, files_of, new_directory};

/// A way to open the contents of a directory.
type Open = dyn Fn(&Arc<dyn Directory>) -> Result<(), Error>;

/// Offsets in a pool header: of the features that must be known, and of the checksum.
const INCOMPAT_AT: usize = 32;
const CHECKSUM_AT: usize = 56;

fn options() -> Options {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    options
}

/// A pool that says in its header that it has the undo journal, and the files beside it.
fn undo_pool() -> Files {
    let directory = new_directory();
    let (heap, _) = Heap::open(Arc::clone(&directory), options()).expect("creates");
    heap.transaction(Durability::Sync, |tx| tx.reserve_zeroed(100)).expect("commits");
    heap.close().expect("closes");
    let mut files = files_of(&directory);
    files.truncate(1);
    let pool = &mut files[0].2;
    pool[INCOMPAT_AT..][..8].copy_from_slice(&INCOMPAT_UNDO_JOURNAL.to_le_bytes());
    let checksum = crc32c(0, &pool[..CHECKSUM_AT]);
    pool[CHECKSUM_AT..][..4].copy_from_slice(&checksum.to_le_bytes());
    files.push(("log", "lanes".into(), b"ADAMLANE".to_vec()));
    files
}

#[test]
fn it_is_refused_with_the_way_to_convert_it() {
    let files = undo_pool();
    let open = |change: fn(&mut Options)| {
        move |directory: &Arc<dyn Directory>| {
            let mut options = options();
            change(&mut options);
            Heap::open(Arc::clone(directory), options).map(drop)
        }
    };
    let for_writing = open(|_| ());
    let for_reading = open(|options| options.read_only = true);
    let without_creating = open(|options| options.create = false);
    let verifying = open(|options| options.verify_first_touch = true);
    let for_repair = |directory: &Arc<dyn Directory>| Salvage::open(directory).map(drop);
    let ways: [(&str, &Open); 5] = [
        ("for writing", &for_writing),
        ("for reading", &for_reading),
        ("without creating", &without_creating),
        ("verifying pages", &verifying),
        ("for repair", &for_repair),
    ];
    for (way, open) in ways {
        let directory = directory_of(&files);
        let error = open(&directory).expect_err(way);
        let Error::Unsupported { file, what } = &error else { panic!("{way}: {error}") };
        assert_eq!(file.file_name(), Some("pool".as_ref()), "{way}");
        for words in
            ["redo log", "undo journal", "the version that made it", "`adamant export`", "import"]
        {
            assert!(what.contains(words), "{way}: {what}");
        }
        assert!(files_of(&directory) == files, "{way}: nothing is written");
    }
}
