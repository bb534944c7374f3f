//! Orphans at opening: unlisted files of this store are removed, and their numbers are never
//! reused. Files that another store left here by mistake stay: one may be all that is left of that
//! store.

use std::sync::Arc;

use adamant_heap::{Directory, Durability};
use adamant_lsm::{
    Entry, EntryKind, Error, Identity, TableOptions, TableWriter, Version, file_name,
};
use adamant_medium::memory::MemoryDirectory;
use adamant_slice::Slice;

use crate::store::{Store, small_options};

/// A valid table of a store.
fn put_table(tables: &Arc<dyn Directory>, uuid: [u8; 16], number: u64) {
    let identity = Identity { uuid, number };
    let mut writer = TableWriter::create(tables, identity, TableOptions::default()).unwrap();
    let version = Version { sequence: 1, kind: EntryKind::Value, value: Slice::new(b"value") };
    writer.add(&Entry { key: Slice::new(b"key"), version }).unwrap();
    writer.finish().unwrap();
}

/// Makes a table of one more entry.
fn flush(store: &Store, key: &[u8]) {
    store
        .heap
        .transaction(Durability::Sync, |transaction| {
            store.tree.write(transaction, [(key, Some(&b"value"[..]))])
        })
        .unwrap();
    store.tree.rotate(&store.heap).unwrap();
    let seen = || Ok::<u64, Error>(store.context.sequences().visible());
    store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
}

#[test]
fn orphans_of_this_store_go_and_their_numbers_with_them() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, small_options()).unwrap();
    flush(&store, b"first");
    drop(store);
    let tables = directory.subdirectory("tables").unwrap();
    let own = tables.list().unwrap();
    assert_eq!(own.len(), 1);
    put_table(&tables, [7; 16], 90);
    put_table(&tables, [8; 16], 77);
    // A file that a crash kept from being finished has no name of its own yet.
    tables.create(&format!("{}.new", file_name(91))).unwrap();

    let store = Store::open(&directory, small_options()).unwrap();
    let mut expected = own;
    expected.push(file_name(77));
    expected.sort();
    assert_eq!(tables.list().unwrap(), expected, "those of this store go, others stay");
    flush(&store, b"second");
    expected.push(file_name(92));
    expected.sort();
    assert_eq!(tables.list().unwrap(), expected, "numbers go on behind all that were seen");
    for key in [&b"first"[..], b"second"] {
        let found = store.get(key, store.context.sequences().visible()).unwrap();
        assert_eq!(found.as_deref(), Some(&b"value"[..]));
    }

    // When all files are gone their numbers stay used: a file that a crash brings back must never
    // have the name of another.
    store
        .heap
        .transaction(Durability::Sync, |transaction| {
            store.tree.write(transaction, [(&b"first"[..], None), (&b"second"[..], None)])
        })
        .unwrap();
    store.tree.rotate(&store.heap).unwrap();
    let seen = || Ok::<u64, Error>(store.context.sequences().visible());
    store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
    store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
    assert_eq!(tables.list().unwrap(), [file_name(77)], "nothing is left of the tree");
    drop(store);
    let store = Store::open(&directory, small_options()).unwrap();
    flush(&store, b"third");
    let names = tables.list().unwrap();
    let given = (77..=93).filter(|number| names.contains(&file_name(*number)));
    assert_eq!(given.collect::<Vec<_>>(), [77], "{names:?}");
}
