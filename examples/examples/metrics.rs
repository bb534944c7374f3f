//! Metrics that many threads write and nobody reads first: counters, summaries and sets, by merge
//! operators, in a keyspace of the engine `lsm` each.
//!
//! `cargo run -p adamant-examples --example metrics`

use std::sync::Arc;
use std::thread;

use adamant::typed::TypedKeyspace;
use adamant::{
    Durability, Engine, Keyspace, KeyspaceOptions, MergeError, MergeOperator, Options, Store,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const THREADS: u64 = 4;
const REQUESTS: u64 = 500;
const PAGES: [&str; 3] = ["home", "prices", "about"];

/// The count, the sum and the greatest of times, as three numbers of 8 bytes.
struct Times;

fn numbers(bytes: &[u8]) -> Result<[u64; 3], MergeError> {
    let (words, rest) = bytes.as_chunks();
    let words: Option<[[u8; 8]; 3]> = words.try_into().ok().filter(|_| rest.is_empty());
    let found = || MergeError::new(format!("expected 24 bytes, found {}", bytes.len()));
    words.map(|words| words.map(u64::from_le_bytes)).ok_or_else(found)
}

fn bytes(numbers: [u64; 3]) -> Vec<u8> {
    numbers.map(u64::to_le_bytes).as_flattened().to_vec()
}

impl MergeOperator for Times {
    fn merge(
        &self,
        _key: &[u8],
        older: &[u8],
        newer: &[u8],
        merged: &mut Vec<u8>,
    ) -> Result<(), MergeError> {
        let ([count, sum, most], [more, plus, other]) = (numbers(older)?, numbers(newer)?);
        merged.extend(bytes([count + more, sum + plus, most.max(other)]));
        Ok(())
    }

    fn check(&self, _key: &[u8], operand: &[u8]) -> Result<(), MergeError> {
        numbers(operand).map(|_| ())
    }
}

/// The keyspaces of the metrics.
#[derive(Clone)]
struct Metrics {
    store: Store,
    requests: TypedKeyspace<String, u64>,
    times: Keyspace,
    /// Bits of the hours in which a page was asked for.
    hours: TypedKeyspace<String, u64>,
}

impl Metrics {
    fn open(store: Store) -> Outcome<Self> {
        let merged = |name: &str, operator: &str| {
            let options = KeyspaceOptions::new().engine(Engine::Lsm).merge_operator(operator);
            store.keyspace_with(name, options)
        };
        let requests = merged("requests", "add")?.typed()?;
        let (times, hours) = (merged("times", "times")?, merged("hours", "or")?.typed()?);
        Ok(Self { store, requests, times, hours })
    }

    /// One request: three merges, one commit, no read.
    fn note(&self, page: &str, microseconds: u64, hour: u64) -> Outcome<()> {
        let mut batch = self.store.batch();
        batch.durability(Durability::Buffered);
        self.requests.merge_into(&mut batch, page, &1)?;
        batch.merge(&self.times, page, bytes([1, microseconds, microseconds]))?;
        self.hours.merge_into(&mut batch, page, &(1 << hour))?;
        Ok(batch.commit()?)
    }
}

fn run(store: Store) -> Outcome<()> {
    let metrics = Metrics::open(store)?;
    let serve = |thread: u64| {
        let metrics = metrics.clone();
        thread::spawn(move || {
            for number in 0..REQUESTS {
                let page = PAGES[(number % 3) as usize];
                metrics
                    .note(page, thread * 1000 + number, number % 24)
                    .map_err(|e| e.to_string())?;
            }
            Ok::<(), String>(())
        })
    };
    let threads: Vec<_> = (0..THREADS).map(serve).collect();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")??;
    }
    let mut all = 0;
    for entry in metrics.requests.iter() {
        let (page, requests) = entry?;
        let [count, sum, most] = numbers(&metrics.times.get(&page)?.unwrap_or_default())?;
        let hours = metrics.hours.get(&page)?.unwrap_or_default().count_ones();
        println!(
            "{page}: {requests} requests in {hours} hours, {} us, at most {most}",
            sum / count
        );
        assert_eq!(count, requests);
        all += requests;
    }
    assert_eq!(all, THREADS * REQUESTS);
    Ok(())
}

fn main() -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let options = Options::new().merge_operator("times", Arc::new(Times));
    run(Store::open_with(directory.path().join("metrics.adamant"), options)?)
}

#[test]
fn no_request_is_lost() -> Outcome<()> {
    main()
}
