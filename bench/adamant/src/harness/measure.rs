//! Measurement: clocks, threads, and the system's figures of this process.
//!
//! Purpose: the only place that takes times.
//! Thread safety: `on_threads` starts and joins its own threads.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::harness::error::Result;

/// A measured amount of work.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Operations done.
    pub operations: u64,
    /// From the start of all threads to the end of the last.
    pub seconds: f64,
    /// Processor time of this process.
    pub processors: Processors,
}

/// Processor time of all threads of a process, in seconds; the system counts it in steps of 10
/// milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Processors {
    /// In user mode.
    pub user_seconds: f64,
    /// In the kernel.
    pub system_seconds: f64,
}

impl Processors {
    /// The use of this process so far; zero if the system does not report it.
    pub fn now() -> Self {
        // Ticks of /proc are hundredths of a second on every architecture.
        const TICK_SECONDS: f64 = 0.01;
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The second field, the name in parentheses, may have spaces; utime and stime are the 14th
        // and the 15th.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let mut ticks = fields.split_whitespace().skip(11).map(|field| field.parse().unwrap_or(0));
        let mut seconds = || ticks.next().unwrap_or(0_u64) as f64 * TICK_SECONDS;
        Self { user_seconds: seconds(), system_seconds: seconds() }
    }

    /// The use since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            user_seconds: self.user_seconds - before.user_seconds,
            system_seconds: self.system_seconds - before.system_seconds,
        }
    }

    /// The sum of both.
    pub fn plus(self, other: Self) -> Self {
        Self {
            user_seconds: self.user_seconds + other.user_seconds,
            system_seconds: self.system_seconds + other.system_seconds,
        }
    }
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
}

/// A running clock.
#[derive(Debug)]
pub struct Stopwatch {
    before: Processors,
    start: Instant,
}

impl Stopwatch {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { before: Processors::now(), start: Instant::now() }
    }

    /// The measurement of `operations` since the start.
    pub fn measured(&self, operations: u64) -> Measured {
        let seconds = self.start.elapsed().as_secs_f64();
        Measured { operations, seconds, processors: Processors::now().since(self.before) }
    }
}

/// Runs `work` on several threads at once; each returns how many operations it did. Each thread
/// reads the clock itself: on a busy machine another one may notice a start or an end too late.
///
/// # Errors
/// The first that a thread returned.
pub fn on_threads(threads: usize, work: impl Fn(usize) -> Result<u64> + Sync) -> Result<Measured> {
    let ready = Barrier::new(threads);
    let before = Processors::now();
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
    Ok(Measured { operations, seconds, processors: Processors::now().since(before) })
}

/// Does `work` while `threads` other threads compute without a pause, as other programs would.
pub fn beside_computation<T>(threads: usize, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // Also when `work` panics: the scope waits for all threads.
        let result = catch_unwind(AssertUnwindSafe(work));
        is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Repeats `work` on every thread until the time is over, and tells `observe` the duration and the
/// thread of each. For operations that take so long that reading the clock costs nothing in
/// comparison.
///
/// # Errors
/// The first that `work` returned.
pub fn for_a_while(
    threads: usize,
    time: Duration,
    observe: &(dyn Fn(usize, Duration) + Sync),
    work: impl Fn(usize, u64) -> Result<()> + Sync,
) -> Result<Measured> {
    on_threads(threads, |thread| {
        let start = Instant::now();
        let mut last = start;
        let mut done = 0;
        while last - start < time {
            work(thread, done)?;
            done += 1;
            let now = Instant::now();
            observe(thread, now - last);
            last = now;
        }
        Ok(done)
    })
}

/// Operations between two reads of the clock, where an operation may take less than a read.
const CLOCK_OPERATIONS: u64 = 16;

/// Repeats `work` on every thread until the time is over, or at most `most` times there. For short
/// operations: the clock is read after every 16 of them.
///
/// # Errors
/// The first that `work` returned.
pub fn up_to(
    threads: usize,
    most: u64,
    time: Duration,
    work: impl Fn(usize, u64) -> Result<()> + Sync,
) -> Result<Measured> {
    on_threads(threads, |thread| {
        let start = Instant::now();
        let mut done = 0;
        while done < most && start.elapsed() < time {
            let end = most.min(done + CLOCK_OPERATIONS);
            for number in done..end {
                work(thread, number)?;
            }
            done = end;
        }
        Ok(done)
    })
}

/// The median of some figures; of an even number the higher one of the two in the middle.
///
/// # Panics
/// When there are none.
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Time in which an idle process uses no more than a tick of the processors.
const QUIET_TIME: Duration = Duration::from_millis(60);
/// Ticks that are no work: reading the clock of the processors takes some.
const QUIET_SECONDS: f64 = 0.011;

/// Waits until this process is idle in the background, for at most `time_max`; returns how long
/// that took.
pub fn wait_until_quiet(time_max: Duration) -> Duration {
    let start = Instant::now();
    loop {
        let (at, before) = (start.elapsed(), Processors::now());
        thread::sleep(QUIET_TIME);
        let used = Processors::now().since(before);
        if used.user_seconds + used.system_seconds < QUIET_SECONDS || at > time_max {
            return at;
        }
    }
}

/// Idle polls after which the background counts as done: merges wait for the disk now and then, and
/// work for idle times begins after a quarter of a second.
const QUIET_LOOKS: u32 = 8;
/// Maximum wait for that.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(300);

/// Waits until the background is done, for at most five minutes; returns how long it was busy.
pub fn settle() -> Duration {
    let start = Instant::now();
    let (mut busy, mut looks) = (Duration::ZERO, 0);
    while looks < QUIET_LOOKS && start.elapsed() < SETTLE_TIME_MAX {
        let before = start.elapsed();
        let waited = wait_until_quiet(SETTLE_TIME_MAX);
        if waited < Duration::from_millis(1) {
            looks += 1;
        } else {
            (busy, looks) = (before + waited, 0);
        }
    }
    busy
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
/// When the system does not report them.
pub fn written_bytes() -> Result<u64> {
    number_in("/proc/self/io", "write_bytes")
}

/// Bytes that this process has caused to be read from the disk so far, by any of its threads.
///
/// # Errors
/// When the system does not report them.
pub fn read_bytes() -> Result<u64> {
    number_in("/proc/self/io", "read_bytes")
}

/// Processor time of this thread so far, in seconds, in kernel and user mode. For work that never
/// waits this is the time that it takes on an idle machine.
pub fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Bytes of memory in use now.
///
/// # Errors
/// When the system does not report them.
pub fn memory_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "VmRSS")? * 1024)
}

/// Bytes of anonymous memory in use now.
///
/// # Errors
/// When the system does not report them.
pub fn memory_anonymous_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "RssAnon")? * 1024)
}

/// Bytes of anonymous memory in use now, exact to the page, including those on a swap device.
///
/// # Errors
/// When the system does not report them.
pub fn memory_private_bytes() -> Result<u64> {
    // The counters of `status` are kept for each thread and added up now and then.
    const FILE: &str = "/proc/self/smaps_rollup";
    Ok((number_in(FILE, "Anonymous")? + number_in(FILE, "Swap")?) * 1024)
}

/// Bytes of the page tables of this process.
///
/// # Errors
/// When the system does not report them.
pub fn memory_tables_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "VmPTE")? * 1024)
}

/// Peak bytes of memory in use since the process began.
///
/// # Errors
/// When the system does not report them.
pub fn memory_peak_bytes() -> Result<u64> {
    Ok(number_in("/proc/self/status", "VmHWM")? * 1024)
}

/// Resets the peak to the current use, so that a later peak is of what came in between.
///
/// # Errors
/// When the system does not allow it.
pub fn memory_peak_reset() -> Result<()> {
    // 5: the peak only, according to the documentation of the kernel's /proc.
    Ok(fs::write("/proc/self/clear_refs", "5")?)
}

/// Bytes of files on the disk: all under `path`, or the file itself. Holes take none.
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
