//! Loading more than is sorted in memory at once.

use std::collections::BTreeMap;

use adamant::{Durability, Store};

/// 80 MiB in random order: two runs that are sorted and loaded one after the other; some entries of
/// the second replace entries of the first.
#[test]
fn what_does_not_fit_into_the_buffer_is_loaded_in_several_runs() {
    let store = Store::in_memory().unwrap();
    let keyspace = store.keyspace("main").unwrap().with_durability(Durability::Deferred);
    let mut random = fastrand::Rng::with_seed(4);
    let mut model = BTreeMap::new();
    let entries = (0..320_u32).map(|number| {
        let key = random.u32(0..250).swap_bytes().to_le_bytes();
        model.insert(key, number);
        let mut value = vec![number as u8; 256 << 10];
        value[..4].copy_from_slice(&number.to_le_bytes());
        (key, value)
    });
    let loaded = keyspace.extend(entries).unwrap();
    assert_eq!(loaded.entries, 320);
    assert_eq!(loaded.replaced, 320 - model.len() as u64);
    assert_eq!(keyspace.len().unwrap(), model.len() as u64);
    for ((key, number), found) in model.iter().zip(keyspace.iter()) {
        let (found, value) = found.unwrap();
        assert_eq!((&found[..], &value[..4]), (&key[..], &number.to_le_bytes()[..]));
        assert!(value.len() == 256 << 10 && value[4..].iter().all(|it| *it == *number as u8));
    }
    assert!(store.check().unwrap().is_clean());
}
