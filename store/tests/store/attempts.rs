//! Retries of transactions, and their last attempt.

use std::cell::Cell;
use std::time::{Duration, Instant};

use adamant::{Attempts, Error, Keyspace, Store};

fn stock() -> (Store, Keyspace) {
    let store = Store::in_memory().unwrap();
    let stock = store.keyspace("stock").unwrap();
    (store, stock)
}

/// Reads and writes a key that another commit changes meanwhile, if it can; returns the attempt.
fn lose(
    store: &Store,
    stock: &Keyspace,
    limits: Attempts,
    runs: &Cell<u32>,
) -> adamant::Result<u32> {
    store.transaction_with(limits, |tx| {
        runs.set(runs.get() + 1);
        assert_eq!(tx.attempt(), runs.get());
        tx.get(stock, "apples")?;
        let other = std::thread::scope(|scope| {
            let other = scope.spawn(|| match store.try_begin_exclusive()? {
                Some(mut exclusive) => {
                    exclusive.put(stock, "apples", "theirs")?;
                    exclusive.commit()
                }
                None => Ok(()),
            });
            other.join().expect("no panic")
        });
        other?;
        tx.put(stock, "apples", "mine")?;
        Ok(tx.attempt())
    })
}

#[test]
fn who_loses_time_and_again_takes_its_turn_first_and_wins() {
    let (store, stock) = stock();
    let runs = Cell::new(0);
    assert_eq!(lose(&store, &stock, Attempts::new(), &runs).unwrap(), 9);
    assert_eq!(stock.get("apples").unwrap(), Some("mine".into()));
    assert_eq!(store.stats().unwrap().commits.conflicts, 8);
    let runs = Cell::new(0);
    let soon = Attempts::new().exclusive_after(Some(0));
    assert_eq!(lose(&store, &stock, soon, &runs).unwrap(), 2, "0 counts as 1");
}

#[test]
fn attempts_end_with_the_conflict() {
    let (store, stock) = stock();
    let never = Attempts::new().exclusive_after(None);
    for (limits, expected) in [
        (never, 100),
        (never.attempts_max(0), 1),
        (never.attempts_max(3), 3),
        (Attempts::new().attempts_max(5), 5),
        (never.time_max(Some(Duration::ZERO)), 1),
    ] {
        let runs = Cell::new(0);
        let lost = lose(&store, &stock, limits, &runs).unwrap_err();
        assert!(lost.is_conflict());
        assert_eq!(runs.get(), expected, "{limits:?}");
        assert_eq!(stock.get("apples").unwrap(), Some("theirs".into()));
    }
}

#[test]
fn a_turn_that_does_not_come_in_time_is_not_waited_for() {
    let (store, stock) = stock();
    let only = store.begin_exclusive().unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert!(store.try_begin_exclusive().unwrap().is_none());
            let longest = Duration::from_millis(30);
            assert!(store.begin_exclusive_within(longest).unwrap().is_none());
            assert!(begun.elapsed() >= longest);
        });
    });
    assert!(matches!(store.try_begin_exclusive(), Err(Error::WithinExclusive)));
    drop(only);
    let mut only =
        store.begin_exclusive_within(Duration::from_secs(60)).unwrap().expect("it is free");
    only.put(&stock, "apples", "1").unwrap();
    only.commit().unwrap();
    assert!(store.try_begin_exclusive().unwrap().is_some());
}
