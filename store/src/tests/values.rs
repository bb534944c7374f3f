//! Tests of stored values: their bytes, and those that do not decode.

use std::ops::ControlFlow;

use adamant_heap::Durability;
use adamant_lsm::Compression;

use crate::common::keyspace_options::KeyspaceOptions;
use crate::engine::tree::Engine;
use crate::keyspace::handle::Keyspace;
use crate::layout::STORE_FORMAT_VALUES;
use crate::store::handle::Store;
use crate::value_compression::ValueCompression;

const TEXT: &str = "text text text text text text text text text text text";

fn packed(store: &Store, name: &str, engine: Engine) -> Keyspace {
    let values = ValueCompression::from(Compression::Lz4).with_bytes_min(20);
    let options = KeyspaceOptions::new().engine(engine).value_compression(values);
    store.keyspace_with(name, options).unwrap()
}

/// The bytes that a tree holds under a key.
fn stored(keyspace: &Keyspace, key: &str) -> Vec<u8> {
    let (map, view) = (keyspace.map().unwrap(), keyspace.shared.view().unwrap());
    map.tree().unwrap().tree().find(&view, key.as_bytes()).unwrap().unwrap().to_vec()
}

fn store_bytes(keyspace: &Keyspace, key: &str, bytes: &[u8]) {
    let map = keyspace.map().unwrap();
    let written = keyspace.shared.transaction(Durability::Sync, |transaction| {
        map.tree().unwrap().tree().insert(transaction, key.as_bytes(), bytes)
    });
    written.unwrap();
}

#[test]
fn values_and_options_are_stored_as_the_format_says() {
    let store = Store::in_memory().unwrap();
    let main = packed(&store, "main", Engine::Bplus);
    main.put("short", "text").unwrap();
    main.put("empty", "").unwrap();
    main.put("long", TEXT).unwrap();
    assert_eq!(stored(&main, "short"), b"text\0");
    assert_eq!(stored(&main, "empty"), b"\0");
    let long = stored(&main, "long");
    assert_eq!((long[0] as usize, long[long.len() - 1]), (TEXT.len(), 1), "docs/format/store.md");
    let view = store.shared.view().unwrap();
    let catalogue = store.shared.catalogue();
    let entry = catalogue.find(&view, "main").unwrap().unwrap().to_bytes();
    assert_eq!(&entry[24..], b"\x06\0\x06\0\x01\0\x14\0\0\0", "docs/format/store.md");
    assert_eq!(catalogue.format(&view).unwrap(), STORE_FORMAT_VALUES);
    drop(view);
    // Plain keyspaces have nothing of it.
    let plain = store.keyspace("plain").unwrap();
    plain.put("short", "text").unwrap();
    assert_eq!(stored(&plain, "short"), b"text");
    // Entries move as they are stored where that can be decoded.
    let other = packed(&store, "other", Engine::Critbit);
    main.move_to("long", &other, "long").unwrap();
    assert_eq!(stored(&other, "long"), long);
    other.move_to("long", &plain, "long").unwrap();
    assert_eq!(stored(&plain, "long"), TEXT.as_bytes());
}

/// Every way to read such a value says where it is; it can be replaced, and the others be read.
#[test]
fn a_value_that_does_not_decode_is_damage_with_its_place() {
    for engine in [Engine::Bplus, Engine::Btree, Engine::Critbit, Engine::Redblack] {
        let store = Store::in_memory().unwrap();
        let main = packed(&store, "main", engine);
        main.put("before", TEXT).unwrap();
        main.put("later", TEXT).unwrap();
        let other = store.keyspace("other").unwrap();
        let mut torn = stored(&main, "later");
        torn.remove(2);
        for bytes in [&b""[..], b"\x01", b"text\x09", b"\xff\xff\xff\xff\x0ftext\x01", &torn] {
            store_bytes(&main, "k\u{e4}y", bytes);
            let error = |found: crate::Error| {
                let words = found.to_string();
                assert!(found.is_damaged(), "{words}");
                assert!(words.contains("keyspace \"main\" under key k\\xc3\\xa4y"), "{words}");
            };
            error(main.get("k\u{e4}y").unwrap_err());
            error(main.get_with("k\u{e4}y", |_| ()).unwrap_err());
            error(main.take("k\u{e4}y").unwrap_err());
            error(main.move_to("k\u{e4}y", &other, "key").unwrap_err());
            error(main.compare_and_swap("k\u{e4}y", None::<&str>, Some("x")).unwrap_err());
            error(main.iter().find_map(Result::err).unwrap());
            error(main.iter().entries().find_map(Result::err).unwrap());
            let none = |_: &[u8], _: &[u8]| ControlFlow::<()>::Continue(());
            error(main.iter().lend(none).unwrap_err());
            error(store.compress_values("main", Compression::None, None).unwrap_err());
            error(store.convert_keyspace("main", Engine::Lsm).unwrap_err());
            assert_eq!(main.iter().keys().count(), 3);
            assert_eq!(main.get("later").unwrap(), Some(TEXT.into()));
            assert!(other.is_empty().unwrap());
            let snapshot = store.snapshot().unwrap();
            error(snapshot.get(&main, "k\u{e4}y").unwrap_err());
            error(main.put("k\u{e4}y", "new").unwrap_err());
            drop(snapshot);
            main.put("k\u{e4}y", "new").unwrap();
            assert_eq!(main.get("k\u{e4}y").unwrap(), Some("new".into()));
            assert!(store.check().unwrap().is_clean());
        }
    }
}
