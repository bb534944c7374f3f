//! Clocks, threads, and what the system says about this process.
//!
//! Purpose: the one way in which time is taken.
//! Thread safety: `on_threads` starts and joins its own threads.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Result;

/// What was done and how long it took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Operations done.
    pub operations: u64,
    /// From the start of all threads to the end of the last.
    pub seconds: f64,
    /// Time of processors in this process, outside the kernel, of all its threads; in steps of 10
    /// milliseconds.
    pub user_seconds: f64,
}

impl Measured {
    /// Thousands of operations in a second.
    pub fn thousand_per_second(&self) -> f64 {
        self.operations as f64 / self.seconds / 1e3
    }

    /// Milliseconds for everything.
    pub fn milliseconds(&self) -> f64 {
        self.seconds * 1e3
    }

    /// Nanoseconds of processors for an operation, outside the kernel.
    pub fn user_nanoseconds(&self) -> f64 {
        self.user_seconds * 1e9 / self.operations.max(1) as f64
    }
}

/// A clock that was started.
#[derive(Debug)]
pub struct Stopwatch {
    user_before: f64,
    start: Instant,
}

impl Stopwatch {
    /// Starts it.
    pub fn start() -> Self {
        Self { user_before: user_seconds(), start: Instant::now() }
    }

    /// `operations` were done since.
    pub fn measured(&self, operations: u64) -> Measured {
        let seconds = self.start.elapsed().as_secs_f64();
        Measured { operations, seconds, user_seconds: user_seconds() - self.user_before }
    }
}

/// Runs `work` on so many threads at once, which say how many operations they did. Each thread
/// reads the clock itself: on a busy machine another one may notice a start or an end too late.
///
/// # Errors
/// The first that a thread returned.
pub fn on_threads(threads: usize, work: impl Fn(usize) -> Result<u64> + Sync) -> Result<Measured> {
    let ready = Barrier::new(threads);
    let user_before = user_seconds();
    let timed = |thread| {
        ready.wait();
        let start = Instant::now();
        let operations = work(thread)?;
        Ok((start, Instant::now(), operations))
    };
    let results: Vec<Result<(Instant, Instant, u64)>> = thread::scope(|scope| {
        let timed = &timed;
        let running: Vec<_> =
            (0..threads).map(|thread| scope.spawn(move || timed(thread))).collect();
        let joined = running.into_iter().map(thread::ScopedJoinHandle::join);
        joined.map(|result| result.map_err(|_| "a measuring thread panicked")?).collect()
    });
    let mut operations = 0;
    let mut span: Option<(Instant, Instant)> = None;
    for result in results {
        let (start, end, count) = result?;
        operations += count;
        span = Some(span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
    }
    let seconds = span.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
    Ok(Measured { operations, seconds, user_seconds: user_seconds() - user_before })
}

/// Repeats `work` on every thread until the time is over. For operations that take so long that
/// reading the clock costs nothing in comparison.
///
/// # Errors
/// The first that `work` returned.
pub fn for_a_while(
    threads: usize,
    time: Duration,
    work: impl Fn(usize, u64) -> Result<()> + Sync,
) -> Result<Measured> {
    on_threads(threads, |thread| {
        let start = Instant::now();
        let mut done = 0;
        while start.elapsed() < time {
            work(thread, done)?;
            done += 1;
        }
        Ok(done)
    })
}

/// Times `work` on this thread.
///
/// # Errors
/// That of `work`.
pub fn once<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Measured)> {
    let watch = Stopwatch::start();
    let result = work()?;
    Ok((result, watch.measured(1)))
}

/// The number after `name` in a file of `/proc`, such as `VmHWM` in `/proc/self/status`.
fn number_in(file: &str, name: &str) -> Result<u64> {
    let text = fs::read_to_string(file)?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let word = line.and_then(|line| line.split_whitespace().next());
    Ok(word.ok_or_else(|| format!("{file} has no {name}"))?.parse()?)
}

/// Bytes that this process has caused to be written to the disk so far, by any of its threads.
///
/// # Errors
/// When the system does not say.
pub fn written_bytes() -> Result<u64> {
    number_in("/proc/self/io", "write_bytes")
}

/// Time of processors that this process has spent outside the kernel so far, in seconds; in steps
/// of 10 milliseconds. 0 where the system does not say.
pub fn user_seconds() -> f64 {
    // Ticks of /proc are hundredths of a second on every architecture.
    const TICK_SECONDS: f64 = 0.01;
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the name in parentheses, may have spaces; utime is the 14th.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks: u64 =
        fields.split_whitespace().nth(11).and_then(|field| field.parse().ok()).unwrap_or(0);
    ticks as f64 * TICK_SECONDS
}

/// Bytes of memory in use now.
///
/// # Errors
/// When the system does not say.
pub fn memory_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "VmRSS")? * 1024)
}

/// Bytes of memory in use now that are no part of a file.
///
/// # Errors
/// When the system does not say.
pub fn memory_anonymous_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "RssAnon")? * 1024)
}

/// Most bytes of memory that were in use at once since the process began.
///
/// # Errors
/// When the system does not say.
pub fn memory_peak_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "VmHWM")? * 1024)
}

/// Bytes that files take on the disk: all under `path`, or the file that it is. Holes take none.
///
/// # Errors
/// When it cannot be read.
pub fn disk_bytes(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::symlink_metadata(path)?;
    let mut bytes = if metadata.is_dir() { 0 } else { metadata.blocks() * 512 };
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            bytes += disk_bytes(&entry?.path())?;
        }
    }
    Ok(bytes)
}
