//! The process that writes.

use std::cell::RefCell;
use std::env;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ::adamant::Store;

use crate::commands::beside::settings::{KEYSPACE, Settings, VALUE_BYTES, options};
use crate::harness::data::Data;
use crate::harness::error::{Result, ensure};

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "beside-child";

/// Time between two stamps.
const STAMP_REST: Duration = Duration::from_millis(2);

/// How it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Entries one after the other, without a pause.
    Full,
    /// The time, after a pause each.
    Stamps,
}

/// A process that writes a store. It is killed when this is dropped.
pub(super) struct Writer(RefCell<Child>);

impl Writer {
    pub(super) fn start(settings: &Settings, path: &Path, pace: Pace) -> Result<Self> {
        let numbers = [
            settings.seed,
            settings.entries,
            settings.row_time.as_millis() as u64,
            settings.stamps,
            settings.log_bytes_max,
            u64::from(pace == Pace::Stamps),
        ];
        let child = Command::new(env::current_exe()?)
            .arg(CHILD_COMMAND)
            .arg(path)
            .args(numbers.map(|number| number.to_string()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Self(RefCell::new(child)))
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> Result<bool> {
        Ok(self.0.borrow_mut().try_wait()?.is_some())
    }

    /// Waits for its end; returns the number of its commits.
    pub(super) fn finish(self) -> Result<u64> {
        let mut child = self.0.borrow_mut();
        let mut text = String::new();
        child.stdout.take().ok_or("the child has no output")?.read_to_string(&mut text)?;
        ensure(child.wait()?.success(), || "the child failed".into())?;
        Ok(text.trim().parse()?)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Fails only when it is gone already.
        let _ = self.0.borrow_mut().kill();
        let _ = self.0.borrow_mut().wait();
    }
}

/// Nanoseconds of the system's clock, which processes share.
pub(super) fn now_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The work of the child: writes a store, and prints the number of its commits.
///
/// # Errors
/// Those of the store; arguments that `Writer` did not pass.
pub fn child(words: &[String]) -> Result<()> {
    let (path, numbers) = words.split_first().ok_or("no path")?;
    let numbers =
        numbers.iter().map(|it| it.parse()).collect::<std::result::Result<Vec<_>, _>>()?;
    let &[seed, entries, millis, stamps, log_bytes_max, is_stamps] = &numbers[..] else {
        return Err("expected six numbers".into());
    };
    let settings = Settings { seed, entries, log_bytes_max, ..Settings::full(path.into()) };
    let store = Store::open_with(path, options(&settings))?;
    let keyspace = store.keyspace(KEYSPACE)?;
    let data = Data::new(seed, VALUE_BYTES);
    let mut commits = 0_u64;
    if is_stamps == 0 {
        let (start, time) = (Instant::now(), Duration::from_millis(millis));
        while !commits.is_multiple_of(64) || start.elapsed() < time {
            let index = commits.wrapping_mul(0x9E37_79B9) % entries;
            keyspace.put(data.key(index), data.value(index, commits))?;
            commits += 1;
        }
    } else {
        // Some more than are noticed, as one may be overwritten before.
        while commits < 10 * stamps {
            thread::sleep(STAMP_REST);
            keyspace.put("stamp", now_nanos().to_le_bytes())?;
            commits += 1;
        }
    }
    println!("{commits}");
    // Closing would be measured by its parent as a pause.
    std::process::exit(0)
}
