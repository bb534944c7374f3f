//! `adamant demo`: a store at work, and its recovery after a kill, in some seconds.
//!
//! Purpose: imports the records that ship with the command, reads and scans them, then lets a child
//! process commit, kills it, opens the store again, and compares the contents with what the child
//! had acknowledged.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use adamant::{Keyspace, Store};
use adamant_cli::record::Record;
use serde_json::json;

use crate::cmd::demo_child;
use crate::failure::{Code, Failure, Result};
use crate::figures::{per_second, thousands};
use crate::opening::Stores;
use crate::output::Output;

/// The child is killed after so many acknowledged commits, ...
const ACKNOWLEDGED_MAX: u64 = 500;
/// ... or after this time, on a device that is slow to sync.
const CHILD_TIME_MAX: Duration = Duration::from_secs(2);
/// The prefix to scan.
const PREFIX: &str = "python3-";

/// A line of the closing table.
struct Row {
    what: &'static str,
    count: u64,
    time: Duration,
    remark: String,
}

/// Runs the demo.
pub(crate) fn run(stores: &Stores, output: &Output) -> Result<()> {
    let folder = Folder::create()?;
    let path = folder.path.join("packages.adamant");
    output.talk(&format!("A store in {}, gone when this ends.", path.display()));
    let records = demo_child::sample()?;
    let store = stores.created(&path)?;
    let packages = store.keyspace("packages")?;
    let mut rows = vec![
        import(&store, &packages, &records)?,
        read_all(&packages, &records)?,
        scan(&packages, &records)?,
    ];
    store.close()?;
    output.talk("A child process commits one record after the other, each durable; it is killed.");
    let (acknowledged, row) = kill_child(&path, stores)?;
    rows.push(row);
    rows.extend(recover(&path, stores, &records, acknowledged)?);
    print(&rows, output)
}

fn import(store: &Store, packages: &Keyspace, records: &[Record]) -> Result<Row> {
    let start = Instant::now();
    for chunk in records.chunks(100) {
        let mut batch = store.batch();
        for (key, value) in chunk {
            batch.put(packages, key, value)?;
        }
        batch.commit()?;
    }
    let commits = records.len().div_ceil(100);
    Ok(Row {
        what: "import",
        count: records.len() as u64,
        time: start.elapsed(),
        remark: format!("records in {commits} durable commits"),
    })
}

fn read_all(packages: &Keyspace, records: &[Record]) -> Result<Row> {
    let start = Instant::now();
    for (key, value) in records {
        let found = packages.get_with(key, |found| found == &value[..])?;
        if found != Some(true) {
            return Err(wrong(format!("{:?} was not read back", String::from_utf8_lossy(key))));
        }
    }
    Ok(Row {
        what: "point reads",
        count: records.len() as u64,
        time: start.elapsed(),
        remark: "values, all as imported".into(),
    })
}

fn scan(packages: &Keyspace, records: &[Record]) -> Result<Row> {
    let start = Instant::now();
    let mut count = 0;
    let mut last: Option<adamant::Slice> = None;
    for entry in packages.prefix(PREFIX) {
        let (key, _) = entry?;
        if last.is_some_and(|last| last.as_ref() as &[u8] >= key.as_ref() as &[u8]) {
            return Err(wrong("a scan was out of order".into()));
        }
        last = Some(key);
        count += 1;
    }
    let time = start.elapsed();
    let expected = records.iter().filter(|(key, _)| key.starts_with(PREFIX.as_bytes())).count();
    if count != expected as u64 {
        return Err(wrong(format!("a scan found {count} entries, expected {expected}")));
    }
    Ok(Row { what: "prefix scan", count, time, remark: format!("packages named {PREFIX}*") })
}

/// Lets a child commit, kills it in the middle, and counts what it had acknowledged.
fn kill_child(path: &Path, stores: &Stores) -> Result<(u64, Row)> {
    let failed = |error| Failure::file(Path::new("the child process"), &error);
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = stores.command(&program);
    command.arg("demo-child").arg(path).stdout(Stdio::piped());
    let mut child = Killed(stores.start(&mut command).map_err(failed)?);
    let start = Instant::now();
    let mut acknowledged = 0;
    let mut time = Duration::ZERO;
    if let Some(stdout) = child.0.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let number: u64 = line.map_err(failed)?.parse().map_err(|_| {
                Failure::new(Code::Other, "the child process printed something else than numbers")
            })?;
            acknowledged = number + 1;
            time = start.elapsed();
            // SIGKILL; what is still in the pipe was acknowledged too and is read to its end.
            if acknowledged >= ACKNOWLEDGED_MAX || time >= CHILD_TIME_MAX {
                child.0.kill().map_err(failed)?;
            }
        }
    }
    let status = child.0.wait().map_err(failed)?;
    if status.code().is_some() {
        return Err(Failure::new(
            Code::Other,
            format!("the child process ended by itself: {status}"),
        ));
    }
    let remark = "durable commits acknowledged before SIGKILL".into();
    Ok((acknowledged, Row { what: "killed child", count: acknowledged, time, remark }))
}

/// Opens the store after the kill and compares.
fn recover(
    path: &Path,
    stores: &Stores,
    records: &[Record],
    acknowledged: u64,
) -> Result<[Row; 2]> {
    let start = Instant::now();
    let store = stores.existing(path)?;
    let opened = start.elapsed();
    let imported = store.open_keyspace(demo_child::KEYSPACE)?;
    let mut count = 0;
    for entry in imported.iter() {
        let (key, value) = entry?;
        let (expected_key, expected_value) = demo_child::change(records, count);
        if key.as_ref() != &expected_key[..] || value.as_ref() != &expected_value[..] {
            return Err(wrong(format!("commit {count} is not what the child committed")));
        }
        count += 1;
    }
    // One commit may have been durable but not yet acknowledged when the kill came.
    if count < acknowledged || count > acknowledged + 1 {
        return Err(wrong(format!("{count} commits are there, {acknowledged} were acknowledged")));
    }
    let start = Instant::now();
    let packages = store.open_keyspace("packages")?;
    read_all(&packages, records)?;
    let report = store.check()?;
    if let Some(finding) = report.findings.first() {
        return Err(wrong(finding.to_string()));
    }
    let checked = start.elapsed();
    let entries = store.stats()?.entries;
    store.close()?;
    let beyond = count - acknowledged;
    let remark = format!("commits there, none lost, {beyond} more than acknowledged");
    Ok([
        Row { what: "recovered", count, time: opened, remark },
        Row {
            what: "checked",
            count: entries,
            time: checked,
            remark: "entries, nothing wrong".into(),
        },
    ])
}

fn print(rows: &[Row], output: &Output) -> Result<()> {
    if !output.is_json() {
        output.line(&format!("{:<12}  {:>6}  {:>9}  {:>11}", "", "count", "ms", "per second"))?;
    }
    for Row { what, count, time, remark } in rows {
        let rate = per_second(*count, *time);
        let ms = time.as_secs_f64() * 1e3;
        if output.is_json() {
            let object = json!({
                "what": what, "count": count, "ms": ms, "per_second": rate, "remark": remark,
            });
            output.line(&object.to_string())?;
        } else {
            let (count, rate) = (thousands(*count), thousands(rate));
            output.line(&format!("{what:<12}  {count:>6}  {ms:>9.2}  {rate:>11}  {remark}"))?;
        }
    }
    Ok(())
}

fn wrong(what: String) -> Failure {
    Failure::new(Code::Damaged, what)
}

/// A child process, killed on drop.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only if it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A temporary folder, removed on drop.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn create() -> Result<Self> {
        let name = format!("adamant-demo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| Failure::file(&path, &error))?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It does no harm if it stays: it is a temporary folder.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
