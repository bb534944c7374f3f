//! Content after closing, dropping and reopening.

use adamant::{Durability, Error, Options};

use crate::place::{Place, assert_whole, entries};

/// Everything is there after `close`, whatever the durability of its commit.
pub fn after_close(place: &dyn Place) {
    let mut expected = Vec::new();
    for round in 0..5_u8 {
        let store = place.open();
        let keyspace = place.keyspace(&store, "main");
        assert_eq!(entries(&keyspace), expected, "round {round}");
        assert_whole(&store);
        for (number, durability) in
            (0..).zip([Durability::Sync, Durability::Buffered, Durability::Deferred])
        {
            let (key, value) = (vec![round, number], vec![round; 5_000 * number as usize]);
            keyspace.with_durability(durability).insert(&key, &value).unwrap();
            expected.push((key, value));
        }
        store.close().unwrap();
    }
}

/// Dropping the last handle closes, too.
pub fn after_drop(place: &dyn Place) {
    for round in 0..4_u64 {
        let store = place.open();
        let keyspace = place.keyspace(&store, "main").with_durability(Durability::Deferred);
        assert_eq!(keyspace.len().unwrap(), round);
        drop(store);
        // The keyspace keeps the store open.
        keyspace.insert(round.to_le_bytes(), "").unwrap();
    }
}

/// `close` releases the store although other handles exist; they return an error.
pub fn handles_after_close(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "v").unwrap();
    let mut batch = store.batch();
    batch.put(&keyspace, "l", "w").unwrap();
    let mut iterator = keyspace.iter();
    let other = store.clone();
    store.close().unwrap();

    assert!(matches!(keyspace.get("k"), Err(Error::Closed)));
    assert!(matches!(keyspace.insert("k", "w"), Err(Error::Closed)));
    assert!(matches!(keyspace.len(), Err(Error::Closed)));
    assert!(matches!(batch.commit(), Err(Error::Closed)));
    assert!(matches!(iterator.next(), Some(Err(Error::Closed))));
    assert!(matches!(other.keyspace("main"), Err(Error::Closed)));
    assert!(matches!(other.sync(), Err(Error::Closed)));
    assert!(matches!(other.stats(), Err(Error::Closed)));
    assert!(matches!(other.check(), Err(Error::Closed)));

    let again = place.open();
    assert_eq!(place.keyspace(&again, "main").get("k").unwrap(), Some("v".into()));
    assert!(matches!(other.close(), Err(Error::Closed)));
}

/// Without `create`, a missing store is an error.
pub fn without_create(place: &dyn Place) {
    let error = place.open_with(Options::new().create(false)).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    place.open().close().unwrap();
    place.open_with(Options::new().create(false)).unwrap();
}

/// A second opener gets an error that names the holder, and the first continues.
pub fn second_opener(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    let error = place.open_with(Options::default()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let process = std::process::id().to_string();
    assert!(error.to_string().contains(&process), "{error} should name process {process}");
    keyspace.insert("k", "v").unwrap();
    store.close().unwrap();
    assert_eq!(place.keyspace(&place.open(), "main").get("k").unwrap(), Some("v".into()));
}

/// A small log is reused many times; without background threads the committing one does the work.
pub fn a_small_log(place: &dyn Place) {
    for background in [true, false] {
        let options = Options::new().log_bytes_max(4 << 20).background(background);
        let store = place.open_with(options).unwrap();
        let name = format!("background {background}");
        let keyspace = place.keyspace(&store, &name).with_durability(Durability::Buffered);
        for number in 0..400_u32 {
            keyspace.insert(number.to_le_bytes(), vec![number as u8; 50_000]).unwrap();
        }
        store.close().unwrap();
        let store = place.open();
        let keyspace = store.open_keyspace(&name).unwrap();
        assert_eq!(keyspace.len().unwrap(), 400);
        for number in 0..400_u32 {
            let is_right = keyspace.get_with(number.to_le_bytes(), |value| {
                value.len() == 50_000 && value.iter().all(|byte| *byte == number as u8)
            });
            assert_eq!(is_right.unwrap(), Some(true), "{name}, entry {number}");
        }
        assert_whole(&store);
        store.close().unwrap();
    }
}
