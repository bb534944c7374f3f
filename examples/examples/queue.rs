//! A queue between two processes, which nobody polls: a producer writes jobs to a store, and a
//! consumer reads the store beside it, and is woken by its commits.
//!
//! `cargo run -p adamant-examples --example queue`

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adamant::{Change, Store};

/// Tells the producer, which is this program again, where the store is.
const VARIABLE: &str = "ADAMANT_QUEUE_STORE";
const JOBS: u32 = 20;
/// How long the consumer waits for a job, before it takes the producer for dead.
const PATIENCE: Duration = Duration::from_secs(60);

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Writes jobs, one every few milliseconds.
fn produce(path: &Path) -> Outcome<()> {
    let store = Store::open(path)?;
    let jobs = store.keyspace("jobs")?;
    for number in 0..JOBS {
        jobs.put(number.to_le_bytes(), format!("sweep room {number}"))?;
        std::thread::sleep(Duration::from_millis(3));
    }
    Ok(store.close()?)
}

/// Handles jobs until it has so many; each exactly once, whenever it is begun again: what a job
/// gives and the place in the feed are one commit of the consumer's own store.
fn consume(path: &Path, own: &Path, jobs_max: u32) -> Outcome<u32> {
    let own = Store::open(own)?;
    let (done, places) = (own.keyspace("done")?, own.keyspace("places")?);
    let place = places.get("jobs")?;
    let after = place.map_or(Ok(0), |place| place[..].try_into().map(u64::from_le_bytes))?;
    // The feed is a reader of its own, and outlives this handle.
    let mut changes = Store::open_beside(path)?.changes(after)?;
    let mut count = 0;
    while count < jobs_max {
        let commit = changes.next_within(PATIENCE)?.ok_or("no job came")?;
        let mut batch = own.batch();
        for change in &commit.changes {
            if let Change::Put { keyspace, key, value, .. } = change
                && &*keyspace.name == "jobs"
            {
                println!("commit {}: {}", commit.number, String::from_utf8_lossy(value));
                batch.put(&done, key, value)?;
                count += 1;
            }
        }
        batch.put(&places, "jobs", commit.number.to_le_bytes())?;
        batch.commit()?;
    }
    println!("{count} jobs are done, up to commit {}", changes.after());
    own.close()?;
    Ok(count)
}

fn main() -> Outcome<()> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return produce(&PathBuf::from(path));
    }
    let directory = tempfile::tempdir()?;
    let (path, own) = (directory.path().join("jobs.adamant"), directory.path().join("own.adamant"));
    let store = Store::open(&path)?;
    store.record_changes(Some(64 << 20))?;
    store.close()?;
    let mut producer = Command::new(std::env::current_exe()?)
        // For the test at the end of this file, which is the same program.
        .args(["runs", "--exact", "--nocapture"])
        .env(VARIABLE, &path)
        .spawn()?;
    // It is stopped once, and goes on where it was.
    assert_eq!(consume(&path, &own, JOBS / 2)?, JOBS / 2);
    assert_eq!(consume(&path, &own, JOBS - JOBS / 2)?, JOBS - JOBS / 2);
    assert!(producer.wait()?.success());
    let done = Store::open_read_only(&own)?.open_keyspace("done")?;
    assert_eq!(done.len()?, u64::from(JOBS));
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
