//! Readers beside a writer, whom they follow.

use std::time::{Duration, Instant};

use adamant_remote::{Error, Options, Store};

fn reader(url: &str) -> Store {
    Store::open_with(url, Options::new().read_only(true).poll_ms(20)).unwrap()
}

/// Asks again and again, for a long while.
fn comes<T: std::fmt::Debug>(
    what: impl Fn() -> adamant_remote::Result<T>,
    is_it: impl Fn(&T) -> bool,
) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let found = what().unwrap();
        if is_it(&found) {
            return;
        }
        assert!(Instant::now() < deadline, "the reader still sees {found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_reader_follows_its_writer_and_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("slatedb+file://{}", directory.path().display());
    assert!(matches!(Store::open_read_only(&url), Err(Error::Missing { .. })));
    let options = || Options::new().flush_ms(2);
    let writer = Store::open_with(&url, options()).unwrap();
    let towns = writer.keyspace("towns").unwrap();
    towns.put("Bern", "133,000").unwrap();

    let reader = reader(&url);
    let seen = reader.open_keyspace("towns").unwrap();
    assert_eq!(seen.get("Bern").unwrap(), Some("133,000".into()));
    towns.put("Bern", "134,000").unwrap();
    comes(|| seen.get("Bern"), |found| *found == Some("134,000".into()));
    writer.keyspace("rivers").unwrap().put("Aare", "288 km").unwrap();
    comes(|| reader.keyspaces(), |found| found.len() == 2);
    drop((writer, towns));

    let next = Store::open_with(&url, options()).unwrap();
    let towns = next.keyspace("towns").unwrap();
    for number in 0..500 {
        let mut batch = next.batch();
        batch.put(&towns, format!("{number:03}"), "a village").unwrap();
        if number == 499 {
            batch.delete(&towns, "Bern").unwrap();
        }
        batch.commit().unwrap();
    }
    comes(|| seen.contains("499"), |is_there| *is_there);
    assert_eq!(seen.len().unwrap(), 500);
    assert_eq!(seen.iter().next_back().unwrap().unwrap().0, *"499");
    assert_eq!(seen.range("100".."200").count(), 100);

    next.drop_keyspace("towns").unwrap();
    comes(|| reader.keyspaces(), |found| found.len() == 1);
    assert!(matches!(seen.get("499"), Err(Error::KeyspaceDropped { .. })));
    assert!(matches!(seen.iter().next(), Some(Err(Error::KeyspaceDropped { .. }))));
    assert!(matches!(reader.open_keyspace("towns"), Err(Error::UnknownKeyspace { .. })));
    reader.close().unwrap();
    next.close().unwrap();
}

#[test]
fn who_reads_only_changes_nothing_and_takes_no_place() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("slatedb+file://{}", directory.path().display());
    let writer = Store::open_with(&url, Options::new().flush_ms(2)).unwrap();
    writer.keyspace("towns").unwrap().put("Bern", "134,000").unwrap();
    let reader = reader(&url);
    let towns = reader.open_keyspace("towns").unwrap();
    assert!(matches!(towns.put("k", "v"), Err(Error::ReadOnly { .. })));
    assert!(matches!(towns.insert("k", "v"), Err(Error::ReadOnly { .. })));
    assert!(matches!(towns.remove("k"), Err(Error::ReadOnly { .. })));
    assert!(matches!(towns.clear(), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.batch().commit(), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.begin(), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.snapshot(), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.sync(), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.keyspace("new"), Err(Error::ReadOnly { .. })));
    assert!(matches!(reader.drop_keyspace("towns"), Err(Error::ReadOnly { .. })));
    writer.keyspace("towns").unwrap().put("Bern", "135,000").unwrap();
    writer.close().unwrap();
    reader.close().unwrap();
    assert!(matches!(towns.get("Bern"), Err(Error::Closed)));
}
