//! Multimaps as keyspaces of a kind of their own: which functions open them, what keeps the kind,
//! and what the feed of changes shows of them.

use std::collections::BTreeSet;

use adamant::{
    Change, Durability, Engine, Error, KeyspaceKind, KeyspaceOptions, Multimap, Options, Slice,
    Store, compact, repair, restore,
};

type Numbers = Multimap<String, u32>;

fn some_pairs() -> BTreeSet<(String, u32)> {
    (0..200).map(|number| (format!("key {}", number % 17), number)).collect()
}

fn numbers(store: &Store, name: &str) -> Numbers {
    store.open_multimap(name).unwrap().typed().unwrap()
}

fn assert_holds(store: &Store, name: &str, engine: Engine) {
    let infos = store.keyspaces().unwrap();
    let info = infos.iter().find(|info| info.name == name).expect("it is there");
    assert_eq!((info.kind, info.engine), (KeyspaceKind::Multimap, engine), "{name}");
    let types = info.types.as_ref().map(ToString::to_string);
    assert_eq!(types.as_deref(), Some("keys String, values u32"));
    let found: BTreeSet<_> = numbers(store, name).iter().map(Result::unwrap).collect();
    assert_eq!(found, some_pairs());
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn the_wrong_door_names_the_right_one() {
    let store = Store::in_memory().unwrap();
    store.keyspace("plain").unwrap();
    store.expiring("sessions").unwrap();
    store.multimap("tags").unwrap().insert("a", "1").unwrap();
    let refused = [
        store.keyspace("tags").map(drop),
        store.open_keyspace("tags").map(drop),
        store.keyspace_with("tags", KeyspaceOptions::new()).map(drop),
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        let kind = KeyspaceKind::Multimap;
        assert!(matches!(&error, Error::WrongKind { found, .. } if *found == kind), "{error:?}");
        assert!(error.to_string().contains("`Store::multimap`"), "{error}");
    }
    assert!(matches!(store.expiring("tags"), Err(Error::NotExpiring { .. })));
    assert!(matches!(store.create_keyspace("tags"), Err(Error::KeyspaceExists { .. })));
    for (name, words) in [
        ("plain", "`Store::keyspace`"),
        ("sessions", "`Store::expiring`"),
        ("sessions.deadlines", "deadlines"),
    ] {
        for refused in [store.multimap(name), store.open_multimap(name)] {
            let error = refused.unwrap_err();
            assert!(matches!(error, Error::WrongKind { .. }), "{error:?}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
    let unknown = store.open_multimap("none").map(drop);
    assert!(matches!(unknown, Err(Error::UnknownKeyspace { .. })));
    let options = KeyspaceOptions::new().engine(Engine::Critbit);
    assert!(matches!(store.multimap_with("tags", options), Err(Error::WrongEngine { .. })));
    assert_eq!(store.keyspaces().unwrap().len(), 4, "nothing was made");
}

#[test]
fn rows_are_only_looked_at() {
    let store = Store::in_memory().unwrap();
    let tags = store.multimap("tags").unwrap();
    tags.insert("a", "1").unwrap();
    let plain = store.keyspace("plain").unwrap();
    plain.put("k", "v").unwrap();
    for lent in [tags.untyped(), store.open_stored("tags").unwrap()] {
        assert_eq!(lent.get(b"a\0\x001").unwrap(), Some(Slice::default()));
        let refused = [
            lent.put("k", "").err(),
            lent.insert("k", "").err(),
            lent.remove("k").err(),
            lent.delete("k").err(),
            lent.clear().err(),
            lent.delete_range(..).err(),
            lent.retain(.., |_, _| false).err(),
            lent.load_sorted([("k", "")]).err(),
            lent.rename(b"a\0\x001", "k").err(),
            plain.move_to("k", &lent, "k").err(),
            lent.with_durability(Durability::Sync).put("k", "").err(),
            store.batch().put(&lent, "k", "").err(),
            store.begin().unwrap().put(&lent, "k", "").err(),
            store.exclusive(|tx| tx.put(&lent, "k", "")).err(),
            lent.retype::<Slice, Slice>().err(),
        ];
        for (number, refused) in refused.into_iter().enumerate() {
            assert!(matches!(refused, Some(Error::WrongKind { .. })), "{number}: {refused:?}");
        }
        // Types of a plain keyspace are not recorded for it.
        lent.typed::<Slice, ()>().unwrap();
    }
    assert_eq!(tags.iter().count(), 1);
    assert!(store.keyspaces().unwrap().iter().all(|info| info.types.is_none()));
}

#[test]
fn a_handle_of_bytes_does_not_write_what_has_other_types() {
    let store = Store::in_memory().unwrap();
    let first = store.multimap("map").unwrap().typed::<u32, u32>().unwrap();
    first.insert(&7, &8).unwrap();
    let bytes = store.multimap("map").unwrap();
    let mut batch = store.batch();
    let mut transaction = store.begin().unwrap();
    let refused = [
        bytes.insert("k", "v").err(),
        bytes.put("k", "v").err(),
        bytes.remove("k", "v").err(),
        bytes.delete("k", "v").err(),
        bytes.remove_all("k").err(),
        bytes.extend([("k", "v")]).err(),
        bytes.load_sorted([("k", "v")]).err(),
        bytes.put_into(&mut batch, "k", "v").err(),
        bytes.delete_from(&mut batch, "k", "v").err(),
        bytes.within(&mut transaction).insert("k", "v").err(),
        bytes.within(&mut transaction).put("k", "v").err(),
        bytes.within(&mut transaction).remove("k", "v").err(),
        bytes.within(&mut transaction).delete("k", "v").err(),
        bytes.within(&mut transaction).remove_all("k").err(),
        bytes.typed::<u32, i32>().err(),
    ];
    for (number, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Some(Error::WrongTypes { .. })), "{number}: {refused:?}");
    }
    assert_eq!(first.iter().map(Result::unwrap).collect::<Vec<_>>(), [(7, 8)]);
    // What held pairs before types were given is trusted, as a plain keyspace is.
    let old = store.multimap("old").unwrap();
    old.insert("k", "v").unwrap();
    let texts = old.typed::<String, String>().unwrap();
    assert_eq!(texts.first_value("k").unwrap(), Some("v".to_owned()));
    old.insert("k", "w").unwrap();
    // And bytes may be recorded, too.
    let named = store.multimap("named").unwrap().typed::<Slice, Vec<u8>>().unwrap();
    assert!(store.multimap("named").unwrap().insert("k", "v").unwrap());
    assert_eq!(named.len().unwrap(), 1);
    assert!(store.multimap("named").unwrap().typed::<String, String>().is_err());
}

#[test]
#[cfg_attr(adamant_encrypted, ignore = "damages the files as they are")]
fn the_kind_and_the_types_go_where_the_keyspace_goes() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let options = Options::new().durability(Durability::Buffered);
        let store = Store::open_with(at("store"), options.clone()).unwrap();
        let own = KeyspaceOptions::new().engine(engine);
        let map = store.multimap_with("map", own).unwrap().typed::<String, u32>().unwrap();
        map.extend(some_pairs()).unwrap();
        assert_holds(&store, "map", engine);

        store.rename_keyspace("map", "renamed").unwrap();
        assert_eq!(map.len().unwrap(), 200, "the handle follows");
        store.keyspace("plain").unwrap().put("k", "v").unwrap();
        store.swap_keyspaces("renamed", "plain").unwrap();
        assert_holds(&store, "plain", engine);
        assert_eq!(store.keyspace("renamed").unwrap().len().unwrap(), 1);
        for converted in [Engine::Redblack, Engine::Critbit, Engine::Btree, engine] {
            store.convert_keyspace("plain", converted).unwrap();
            assert_holds(&store, "plain", converted);
        }
        store.backup(at("backup")).unwrap();
        store.close().unwrap();

        let read = Store::open_read_only(at("store")).unwrap();
        assert_holds(&read, "plain", engine);
        assert!(read.multimap("new").is_err());
        drop(read);
        restore(at("backup"), at("restored")).unwrap();
        compact(at("store")).unwrap();
        for name in ["restored", "store"] {
            assert_holds(&Store::open(at(name)).unwrap(), "plain", engine);
        }
        // The head is lost, so repair makes a new store of what it finds there and in the log.
        let written = Store::open(at("restored")).unwrap();
        assert!(numbers(&written, "plain").remove("key 3", &3).unwrap());
        assert!(numbers(&written, "plain").insert("key 3", &3).unwrap());
        drop(written);
        let mut pool = std::fs::read(at("restored").join("pool")).unwrap();
        pool[20] ^= 1;
        std::fs::write(at("restored").join("pool"), pool).unwrap();
        let report = repair(at("restored")).unwrap();
        assert!(report.damaged_path.is_some(), "{report:?}");
        assert_holds(&Store::open(at("restored")).unwrap(), "plain", engine);

        let store = Store::open_with(at("store"), options).unwrap();
        let map = numbers(&store, "plain");
        assert!(store.drop_keyspace("plain").unwrap());
        assert!(matches!(map.insert("k", &1), Err(Error::KeyspaceDropped { .. })));
    }
}

#[test]
fn changes_are_pairs() {
    for engine in [Engine::Bplus, Engine::Lsm] {
        let store = Store::in_memory().unwrap();
        store.record_changes(Some(1 << 20)).unwrap();
        let own = KeyspaceOptions::new().engine(engine);
        let map = store.multimap_with("map", own).unwrap().typed::<String, u32>().unwrap();
        map.insert("a", &1).unwrap();
        map.insert("a", &1).unwrap();
        map.put("a", &2).unwrap();
        map.remove("a", &1).unwrap();
        map.put("a", &3).unwrap();
        map.remove_all("a").unwrap();
        map.remove_all("a").unwrap();
        map.clear().unwrap();
        map.put("b", &1).unwrap();
        map.clear().unwrap();
        let mut seen = Vec::new();
        let mut feed = store.changes(0).unwrap();
        while let Some(commit) = feed.try_next().unwrap() {
            for change in commit.changes {
                assert_eq!(change.keyspace().kind, KeyspaceKind::Multimap);
                seen.push(match &change {
                    Change::Put { key, value, .. } => {
                        assert!(value.is_empty());
                        format!("{:?}", map.pair_of(key).unwrap())
                    }
                    Change::Removed { key, .. } => format!("no {:?}", map.pair_of(key).unwrap()),
                    other => other.name().to_owned(),
                });
            }
        }
        let expected = [
            "created",
            r#"("a", 1)"#,
            r#"("a", 2)"#,
            r#"no ("a", 1)"#,
            r#"("a", 3)"#,
            r#"no ("a", 2)"#,
            r#"no ("a", 3)"#,
            r#"("b", 1)"#,
            "cleared",
        ];
        assert_eq!(seen, expected, "{engine}");
        assert!(map.pair_of(b"no end").is_err());
    }
}

#[test]
fn readers_in_other_processes_see_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let map = store.multimap("map").unwrap();
    map.extend([("a", "1"), ("a", "2"), ("b", "1")]).unwrap();
    let mut beside = Store::open_beside(&path).unwrap();
    let seen = beside.open_multimap("map").unwrap();
    assert_eq!((seen.count("a").unwrap(), seen.keys(..).count()), (2, 2));
    assert!(seen.insert("a", "3").is_err());
    map.remove_all("a").unwrap();
    beside.refresh().unwrap();
    let seen = beside.open_multimap("map").unwrap();
    assert_eq!((seen.count("a").unwrap(), seen.keys(..).count()), (0, 1));
}
