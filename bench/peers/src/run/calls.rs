//! System calls of durable puts, other single puts, and a load.
//!
//! Purpose: what an engine asks of the system, and whether it syncs where it says so: a disk that
//! answers fast hides a sync that is missing, a count does not.
//! A child does the workloads under `strace`, which slows it down: nothing here is timed. It looks
//! up names that do not exist, so that the trace shows where a workload begins and ends.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use adamant_bench::harness::engine::{Durability, Engine};
use adamant_bench::harness::error::Result;
use adamant_bench::harness::measure::on_threads;
use adamant_bench::workload::load::put_in_batches;
use adamant_bench::workload::session::Session;

/// What the names looked up begin with.
pub(crate) const MARK: &str = "adamant-peers-calls";
/// Threads of the row with several.
const THREADS: u64 = 8;

/// How much is done under the trace.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    /// Entries loaded.
    pub entries: u64,
    /// Puts that wait for the disk.
    pub synced_puts: u64,
    /// Puts that do not.
    pub puts: u64,
}

/// Whether processes can be traced here.
pub fn can_trace() -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null", "true"]).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Words before those of a command whose calls go to the file `trace`, of all its threads and
/// children, without the contents of buffers.
pub(crate) fn tracer(trace: &Path) -> Vec<OsString> {
    let words = ["strace", "-f", "-qq", "-s", "0", "-e", "signal=none", "-o"];
    words.iter().map(OsString::from).chain([trace.into()]).collect()
}

/// Does the workloads, between marks. Rows: `put.sync.{1t,8t}`, `put.{buffered,deferred}.1t` where
/// the engine has such, and `load.batch1000.deferred` with its sync and the close.
///
/// # Errors
/// The engine's.
pub fn workloads<E: Engine>(session: &mut Session<'_, E>, amount: Amount) -> Result<()> {
    mark("begin", "load.batch1000.deferred", amount.entries);
    put_in_batches(session, 0..amount.entries, 0)?;
    session.engine().sync()?;
    session.close()?.close()?;
    mark("end", "load.batch1000.deferred", amount.entries);
    session.set_next(amount.entries);
    let setup = session.setup(Durability::Deferred);
    session.resume(E::open(&session.directory, setup)?, setup.durability);
    for &durability in E::DURABILITIES {
        let count = match durability {
            Durability::Sync => amount.synced_puts,
            Durability::Buffered | Durability::Deferred => amount.puts,
        };
        session.reopen(durability)?;
        let put = || {
            let index = session.take_index();
            session.engine().put(&session.data.key(index), session.data.value(index, 0))
        };
        // A log's first use may create or extend a file: that is no single put's cost.
        for _ in 0..count / 10 {
            put()?;
        }
        let row = format!("put.{}.1t", durability.name());
        mark("begin", &row, count);
        for _ in 0..count {
            put()?;
        }
        mark("end", &row, count);
        if durability == Durability::Sync {
            mark("begin", "put.sync.8t", THREADS * count);
            on_threads(THREADS as usize, |_| (0..count).try_for_each(|_| put()).map(|()| count))?;
            mark("end", "put.sync.8t", THREADS * count);
        }
    }
    session.verify("traced puts", false)
}

/// Leaves a line in the trace: a look at a name that does not exist.
fn mark(what: &str, row: &str, operations: u64) {
    // It fails, as it should: only the call counts.
    let _ = fs::metadata(format!("{MARK}:{what}:{row}:{operations}"));
}
