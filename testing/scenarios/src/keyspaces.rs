//! The catalogue: creating, dropping and listing keyspaces.

use adamant::{Error, Slice};

use crate::place::{Place, assert_whole};

/// Create, open, list, drop; each error reports the state.
pub fn create_open_list_drop(place: &dyn Place) {
    let store = place.open();
    assert_eq!(store.keyspaces().unwrap(), []);
    let error = store.open_keyspace("towns").unwrap_err();
    assert!(matches!(&error, Error::UnknownKeyspace { name } if name == "towns"));
    assert!(error.to_string().contains("\"towns\""), "{error}");
    store.create_keyspace("towns").unwrap().insert("Bern", "1").unwrap();
    assert!(matches!(store.create_keyspace("towns"), Err(Error::KeyspaceExists { .. })));
    place.keyspace(&store, "a").insert("k", "v").unwrap();
    place.keyspace(&store, "a").insert("l", "v").unwrap();
    let listed: Vec<String> =
        store.keyspaces().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(listed, ["a", "towns"]);
    assert!(store.drop_keyspace("towns").unwrap());
    assert!(!store.drop_keyspace("towns").unwrap());
    assert_eq!(store.keyspaces().unwrap().len(), 1);
    assert_whole(&store);
}

/// Handles to a dropped keyspace return an error, also when another one has its name.
pub fn handles_to_a_dropped_keyspace(place: &dyn Place) {
    let store = place.open();
    let old = place.keyspace(&store, "main");
    old.insert("k", "old").unwrap();
    assert!(store.drop_keyspace("main").unwrap());
    for round in 0..2 {
        assert!(matches!(old.get("k"), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.get_with("k", |_| ()), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.contains("k"), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.len(), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.first(), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.insert("k", "v"), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.remove("k"), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.take("k"), Err(Error::KeyspaceDropped { .. })));
        assert!(matches!(old.iter().next(), Some(Err(Error::KeyspaceDropped { .. }))));
        if round == 0 {
            place.keyspace(&store, "main").insert("k", "new").unwrap();
        }
    }
    let new = place.keyspace(&store, "main");
    assert_eq!(new.get("k").unwrap(), Some(Slice::from("new")));
    assert_whole(&store);
}

/// 300 keyspaces, each with exactly its own entries.
pub fn many(place: &dyn Place) {
    let store = place.open();
    for number in 0..300 {
        let keyspace = place.keyspace(&store, &format!("keyspace {number}"));
        keyspace
            .with_durability(adamant::Durability::Deferred)
            .insert("n", format!("{number}"))
            .unwrap();
    }
    assert_eq!(store.keyspaces().unwrap().len(), 300);
    for number in 0..300 {
        let keyspace = store.open_keyspace(&format!("keyspace {number}")).unwrap();
        assert_eq!(keyspace.get("n").unwrap(), Some(format!("{number}").as_str().into()));
    }
    assert_whole(&store);
}
