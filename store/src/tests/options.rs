//! Tests of the options in the catalogue: entries that cannot be used, and power cuts around the
//! commit that records them.

use std::sync::Arc;

use adamant_heap::{Durability, MemoryDirectory};
use adamant_lsm::{Compression, Options as LsmOptions};
use adamant_medium::storage::Directory;
use adamant_sim::{Mark, SimDirectory, SimDisk, Tally};

use super::write_entry;
use crate::common::catalogue::hidden_name;
use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::error::Error;
use crate::layout::{STORE_FORMAT, STORE_FORMAT_MERGE, STORE_FORMAT_OPTIONS};
use crate::options::Options;
use crate::store::handle::Store;

fn lsm() -> KeyspaceOptions {
    KeyspaceOptions::new().engine(Engine::Lsm)
}

fn format_of(store: &Store) -> u32 {
    let view = store.shared.view().unwrap();
    store.shared.catalogue().format(&view).unwrap()
}

fn entry_of(store: &Store, name: &str) -> Vec<u8> {
    let entry = store.shared.catalogue().find(&store.shared.view().unwrap(), name);
    entry.unwrap().unwrap().to_bytes()
}

/// Versions before options pass over what is behind the types: they must not open such a store.
#[test]
fn the_head_has_a_higher_format_from_the_first_options_on() {
    let store = Store::in_memory().unwrap();
    store.keyspace_with("plain", lsm()).unwrap();
    assert_eq!((format_of(&store), entry_of(&store, "plain").len()), (STORE_FORMAT, 24));
    let levels = [Compression::None, Compression::Lz4];
    let options = lsm().compression(levels).block_bytes(8 << 10);
    store.keyspace_with("data", options).unwrap().typed::<String, u32>().unwrap();
    assert_eq!(format_of(&store), STORE_FORMAT_OPTIONS);
    let entry = entry_of(&store, "data");
    let options: &[u8] =
        b"\x01\0\x0e\0\0\0\x01\0\x01\0\x01\0\x01\0\x01\0\x01\0\x02\0\x04\0\0\x20\0\0";
    assert_eq!(&entry[45..], options, "docs/format/store.md");
    store.keyspace("later").unwrap();
    assert_eq!(format_of(&store), STORE_FORMAT_OPTIONS, "it is never lowered");
}

/// Versions that would take operands for damage refuse the store, whatever the engine: it may be
/// converted.
#[test]
fn a_merge_operator_raises_the_format_and_is_recorded_by_name() {
    for engine in [Engine::Lsm, Engine::Bplus] {
        let store = Store::in_memory().unwrap();
        let options = KeyspaceOptions::new().engine(engine);
        store.keyspace_with("main", options).unwrap();
        assert!(format_of(&store) < STORE_FORMAT_MERGE);
        store.keyspace_with("main", options.merge_operator("add")).unwrap();
        assert_eq!(format_of(&store), STORE_FORMAT_MERGE);
        assert_eq!(&entry_of(&store, "main")[24..], b"\x0a\0\x03\0add", "docs/format/store.md");
    }
}

#[test]
fn a_keyspace_with_options_of_a_later_version_is_refused_and_others_open() {
    let directory: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
    let open = || Store::open_directory(directory.clone(), Options::new().background(false));
    let store = open().unwrap();
    store.keyspace_with("main", lsm().block_bytes(512)).unwrap().put("key", "value").unwrap();
    store.keyspace_with("other", lsm().hash_index(true)).unwrap().put("key", "other").unwrap();
    let whole = entry_of(&store, "main");
    let option = |bytes: &[u8]| [&whole[..24], bytes].concat();
    let refused = [
        (option(&[99, 0, 1, 0, 9]), "an option with the tag 99", false),
        (option(&[8, 0, 1, 0, 4]), "a durability of keyspace \"main\"", true),
        (option(&[8, 0, 1, 0, 255]), "found 255", true),
        (option(&[8, 0, 2, 0, 1, 1]), "bytes of options", true),
        (option(&[2, 0, 4, 0, 0, 2, 0, 0, 255, 255, 0, 0]), "the tag 65535", false),
        (option(&[2, 0, 4, 0, 0, 0, 0, 0]), "bytes of options of keyspace \"main\"", true),
        (option(&[3, 0, 1, 0, 31]), "bytes of options", true),
        (option(&[4, 0, 1, 0, 2]), "bytes of options", true),
        (option(&[1, 0, 2, 0, 9, 9]), "bytes of options", true),
        (option(&[6, 0, 6, 0, 3, 0, 128, 0, 0, 0]), "bytes of options", true),
        (option(&[6, 0, 5, 0, 1, 0, 128, 0, 0]), "bytes of options", true),
        (option(&[7, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]), "bytes of options", true),
        (option(&[10, 0, 0, 0]), "bytes of options", true),
        (option(&[10, 0, 1, 0, 255]), "bytes of options", true),
    ];
    store.close().unwrap();
    for (bytes, expected, is_damage) in refused {
        let store = open().unwrap();
        write_entry(&store, "main", &bytes);
        store.close().unwrap();
        let store = open().unwrap();
        let error = store.open_keyspace("main").unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!((error.is_damaged(), error.is_unsupported()), (is_damage, !is_damage));
        let is_same = |error: Error| error.to_string().contains(expected);
        assert!(is_same(store.keyspace_with("main", lsm().block_bytes(512)).unwrap_err()));
        let other = store.open_keyspace("other").unwrap();
        assert_eq!(other.get("key").unwrap(), Some("other".into()));
        other.put("more", "1").unwrap();
        other.compact().unwrap();
        let findings = store.check().unwrap().findings;
        assert!(findings.iter().any(|finding| finding.what.contains(expected)), "{findings:?}");
        write_entry(&store, "main", &whole);
        store.close().unwrap();
        let store = open().unwrap();
        let main = store.open_keyspace("main").unwrap();
        assert_eq!(main.get("key").unwrap(), Some("value".into()), "nothing of it was removed");
        assert!(store.check().unwrap().is_clean());
        store.close().unwrap();
    }
}

/// A build without zstd must not take a keyspace that asks for it for damaged, nor remove its
/// files.
#[test]
fn a_keyspace_that_asks_for_zstd_is_refused_by_a_build_without_it() {
    let directory: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
    let open = || Store::open_directory(directory.clone(), Options::new().background(false));
    let store = open().unwrap();
    store.keyspace_with("main", lsm().compression(Compression::Lz4)).unwrap();
    let mut entry = entry_of(&store, "main");
    (28..42).step_by(2).for_each(|at| entry[at..at + 2].copy_from_slice(&[2, 3]));
    write_entry(&store, "main", &entry);
    store.close().unwrap();
    let store = open().unwrap();
    let opened = store.open_keyspace("main").map(drop);
    if Compression::zstd().is_built() {
        return opened.unwrap();
    }
    let error = opened.unwrap_err();
    assert!(error.to_string().contains("built without the feature zstd"), "{error}");
    assert!(!error.is_damaged());
    // It is no finding either.
    assert!(store.check().unwrap_err().to_string().contains("without the feature zstd"));
    store.close().unwrap();
    let target: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
    let source: Arc<dyn Directory> = directory;
    let repaired = crate::repair_into(&source, target, Options::new());
    assert!(repaired.unwrap_err().to_string().contains("without the feature zstd"));
}

/// A regression: a keyspace that was dropped, and kept for a snapshot until the process died, kept
/// a build without zstd from checking and repairing the store, under a name of 255 blanks.
#[test]
fn a_dropped_keyspace_that_asked_for_zstd_is_freed_by_any_build() {
    let directory: Arc<MemoryDirectory> = Arc::new(MemoryDirectory::new());
    let open = || Store::open_directory(directory.clone(), Options::new().background(false));
    let store = open().unwrap();
    let main = store.keyspace_with("main", lsm().compression(Compression::Lz4)).unwrap();
    main.put("key", "value").unwrap();
    main.compact().unwrap();
    let catalogue = store.shared.catalogue();
    let retired = store.shared.transaction(Durability::Sync, |transaction| {
        let entry = catalogue.find(transaction, "main")?.expect("it is there");
        catalogue.retire(transaction, "main", &entry)?;
        Ok::<u64, Error>(entry.head.get())
    });
    let name = hidden_name(retired.unwrap());
    let mut entry = entry_of(&store, &name);
    (28..42).step_by(2).for_each(|at| entry[at..at + 2].copy_from_slice(&[2, 3]));
    write_entry(&store, &name, &entry);
    store.close().unwrap();
    let tables = || directory.subdirectory("tables").unwrap().list().unwrap().len();
    assert_eq!(tables(), 1);
    let store = open().unwrap();
    assert!(store.check().unwrap().is_clean());
    assert!(store.shared.catalogue().list(&store.shared.view().unwrap()).unwrap().is_empty());
    assert_eq!(tables(), 0);
}

/// A regression: they were appended again by each call, and never found.
#[test]
fn options_are_not_recorded_behind_types_that_do_not_end_where_they_should() {
    let store = Store::in_memory().unwrap();
    store.keyspace_with("main", lsm()).unwrap().typed::<String, u32>().unwrap();
    let whole = entry_of(&store, "main");
    let cut = &whole[..whole.len() - 3];
    write_entry(&store, "main", cut);
    let main = store.keyspace_with("main", lsm()).unwrap();
    main.put("key", "value").unwrap();
    for _ in 0..2 {
        let error = store.keyspace_with("main", lsm().block_bytes(512)).unwrap_err();
        assert!(error.is_damaged() && error.to_string().contains("types"), "{error}");
        assert_eq!(entry_of(&store, "main"), cut);
    }
    assert_eq!(main.get("key").unwrap(), Some("value".into()));
}

/// After a power cut a keyspace has the options of before or of after the commit that changed them,
/// and all of its entries.
#[test]
fn a_power_cut_leaves_the_options_of_one_moment() {
    const BLOCKS: [u32; 4] = [4096, 512, 8192, 64];
    let disk = SimDisk::new(3);
    let open = |disk: &SimDisk| {
        let mut lsm = LsmOptions::default();
        lsm.memtable_bytes_max = 1 << 10;
        let options = Options::new().log_bytes_max(4 << 20).lsm(lsm).background(false);
        Store::open_directory(Arc::new(SimDirectory::root(disk)), options).unwrap()
    };
    let store = open(&disk);
    let data = store.keyspace_with("data", lsm()).unwrap();
    disk.begin_history();
    for (number, bytes) in BLOCKS.iter().enumerate().skip(1) {
        (0..20_u8).for_each(|key| data.put([key], [number as u8; 100]).unwrap());
        Mark::Begun.put(&disk, number as u64);
        let options = lsm().block_bytes(*bytes).compression([Compression::None, Compression::Lz4]);
        store.keyspace_with("data", options).unwrap();
        Mark::Durable.put(&disk, number as u64);
    }
    let mut tally = Tally::new();
    tally.power_cuts(&disk, 1, 4, |disk, promise| {
        let store = open(&disk);
        let data = store.open_keyspace("data").unwrap();
        let found = data.lsm().unwrap().options().unwrap();
        let number = BLOCKS.iter().position(|bytes| *bytes as usize == found.block_bytes);
        let number = number.expect("one of them") as u64;
        assert!((promise.least..=promise.most).contains(&number), "{number}: {promise:?}");
        let levels = [found.compression.level(0), found.compression.level(6)];
        let first = if number == 0 { Compression::Lz4 } else { Compression::None };
        assert_eq!(levels, [first, Compression::Lz4]);
        assert!(store.check().unwrap().is_clean());
        store.keyspace_with("data", lsm().block_bytes(999)).unwrap().compact().unwrap();
        assert!(data.iter().all(|entry| entry.unwrap().1.len() == 100));
    });
    tally.print("store, options");
}

/// On a full device the commit is made or refused, and nothing in between.
#[test]
fn a_full_disk_takes_options_or_leaves_them_as_they_were() {
    let disk = SimDisk::new(4);
    let open = || {
        let options = Options::new().log_bytes_max(4 << 20).background(false);
        Store::open_directory(Arc::new(SimDirectory::root(&disk)), options).unwrap()
    };
    let store = open();
    let data =
        store.keyspace_with("data", lsm()).map(|data| data.with_durability(Durability::Buffered));
    let data = data.unwrap();
    disk.set_space_bytes(Some(disk.space_used_bytes()));
    let mut number = 0_u32;
    while data.put(number.to_le_bytes(), [7; 1000]).is_ok() {
        number += 1;
    }
    for bytes in 100..200 {
        let before = data.lsm().unwrap().options().unwrap().block_bytes;
        match store.keyspace_with("data", lsm().block_bytes(bytes)) {
            Ok(_) => assert_eq!(data.lsm().unwrap().options().unwrap().block_bytes, bytes as usize),
            Err(error) => {
                assert!(error.is_out_of_space(), "{error}");
                assert_eq!(data.lsm().unwrap().options().unwrap().block_bytes, before);
            }
        }
    }
    let last = data.lsm().unwrap().options().unwrap().block_bytes;
    disk.set_space_bytes(None);
    drop((data, store));
    let store = open();
    let data = store.open_keyspace("data").unwrap();
    assert_eq!(data.lsm().unwrap().options().unwrap().block_bytes, last);
    assert_eq!(data.len().unwrap(), u64::from(number));
}
