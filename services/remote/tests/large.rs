//! Values as large as they may be, and one that is larger.

use adamant_remote::{Error, Options, Store, VALUE_BYTES_MAX};

#[test]
fn the_largest_value_is_written_and_read() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("slatedb+file://{}", directory.path().display());
    // Smaller than the value, as anything may be.
    let open = || Store::open_with(&url, Options::new().memtable_bytes_max(1 << 20)).unwrap();
    let store = open();
    let keyspace = store.keyspace("main").unwrap();
    let mut value = vec![7; VALUE_BYTES_MAX as usize + 1];
    let refused = keyspace.put("large", &value).unwrap_err();
    assert!(matches!(refused, Error::ValueTooLong { .. }), "{refused}");
    value.pop();
    value[12_345_678] = 8;
    keyspace.put("large", &value).unwrap();
    keyspace.put("small", "v").unwrap();
    // No comparison that would print them.
    let is_it = |keyspace: &adamant_remote::Keyspace| {
        keyspace.get("large").unwrap().is_some_and(|found| found[..] == value[..])
    };
    assert!(is_it(&keyspace));
    drop(keyspace);
    store.close().unwrap();
    let store = open();
    let keyspace = store.open_keyspace("main").unwrap();
    assert!(is_it(&keyspace) && keyspace.len().unwrap() == 2);
    store.close().unwrap();
}
