//! Closures that run under the store's lock.

use adamant::{Error, Slice};

use crate::place::Place;

/// A closure that reads holds the store's lock. If it writes to the same store, that write would
/// wait for the closure that waits for it. So it gets an error, and everything else continues; the
/// closure may use another store.
pub fn using_the_store_within_get_with_is_an_error(place: &dyn Place) {
    let store = place.open();
    let keyspace = place.keyspace(&store, "main");
    keyspace.insert("k", "v").unwrap();
    let other = adamant::Store::in_memory().unwrap();
    let elsewhere = other.keyspace("main").unwrap();

    let within = keyspace.get_with("k", |_| {
        assert!(matches!(keyspace.insert("k", "w"), Err(Error::Reentrant)));
        assert!(matches!(keyspace.remove("k"), Err(Error::Reentrant)));
        assert!(matches!(store.drop_keyspace("main"), Err(Error::Reentrant)));
        assert!(matches!(store.create_keyspace("second"), Err(Error::Reentrant)));
        assert!(matches!(store.clone().close(), Err(Error::Reentrant)));
        let mut batch = store.batch();
        batch.put(&keyspace, "k", "w").unwrap();
        assert!(matches!(batch.commit(), Err(Error::Reentrant)));
        elsewhere.insert("k", "w").unwrap()
    });
    assert_eq!(within.unwrap(), Some(false));
    assert_eq!(keyspace.get("k").unwrap(), Some(Slice::from("v")));
    assert!(keyspace.insert("k", "w").unwrap());
}
