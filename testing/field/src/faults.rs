//! System calls that fail, file systems that are full, files that may not grow.
//!
//! Purpose: an agent runs as a process of its own while its Nth call of a kind fails, for N = 1, 2,
//! ... until it calls it less often. It must refuse or go on, never panic, hang or be wrong; and
//! the store that it leaves must hold all that was said to be durable, and only whole batches, when
//! the next process opens it.
//! Thread safety: one agent at a time, a child of this process, which ends with its value.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::agent::Said;
use crate::needs;
use crate::work::Ground;

/// Batches that an agent writes while calls fail.
const COMMITS: u64 = 24;
/// How long an agent may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The signal of a process that aborts, as one without memory does.
const ABORT: i32 = 6;
/// How a program ends that the dynamic loader could not load.
const NOT_LOADED: i32 = 127;
/// Where files are memory.
const MEMORY: &str = "/dev/shm";

/// Which call fails, how, and whether all after it do too.
struct Fault {
    call: &'static str,
    error: &'static str,
    is_lasting: bool,
}

const fn once(call: &'static str, error: &'static str) -> Fault {
    Fault { call, error, is_lasting: false }
}

const fn from_then_on(call: &'static str, error: &'static str) -> Fault {
    Fault { call, error, is_lasting: true }
}

/// All calls that change files.
const CHANGES: &str =
    "pwrite64,pwritev,fallocate,ftruncate,renameat,renameat2,unlinkat,mkdirat,mkdir";

const FAULTS: [Fault; 24] = [
    once("pwrite64", "EIO"),
    once("fdatasync", "EIO"),
    once("fsync", "EIO"),
    once("fallocate", "ENOSPC"),
    once("openat", "EMFILE"),
    once("ftruncate", "EIO"),
    once("renameat,renameat2,rename", "EIO"),
    once("pread64", "EIO"),
    once("mmap", "ENOMEM"),
    from_then_on(CHANGES, "EROFS"),
    from_then_on(CHANGES, "ENOSPC"),
    once("pwrite64", "ENOSPC"),
    once("pwrite64", "EINTR"),
    once("fdatasync", "EINTR"),
    once("fdatasync", "ENOSPC"),
    once("fallocate", "EIO"),
    once("fallocate", "EINTR"),
    once("openat", "EIO"),
    once("openat", "EINTR"),
    once("unlinkat", "EIO"),
    once("mkdirat,mkdir", "ENOSPC"),
    once("madvise", "ENOMEM"),
    once("mremap", "ENOMEM"),
    once("pread64", "EINTR"),
];

/// What to do.
pub(crate) struct Campaign {
    /// No fault begins after that.
    pub(crate) time: Duration,
    /// Of the batches.
    pub(crate) seed: u64,
    /// Whether N grows as the numbers of Fibonacci do, and not by one.
    pub(crate) is_short: bool,
}

/// What a campaign has done with one kind of fault.
struct Row {
    detail: String,
    tried: u64,
    losses: u64,
}

impl Row {
    fn new(detail: String) -> Self {
        Self { detail, tried: 0, losses: 0 }
    }

    fn count(&mut self, outcome: Result<(), String>, seed: u64) {
        self.tried += 1;
        if let Err(words) = outcome {
            self.losses += 1;
            println!("LOST, {}, seed {seed}: {words}", self.detail);
        }
    }

    fn print(&self) {
        println!("proof\tfaults\t{}\t{}\t{}", self.detail, self.tried, self.losses);
    }
}

/// Runs it. True if nothing was lost.
///
/// # Errors
/// In words: when it could not be run.
pub(crate) fn run(campaign: &Campaign) -> Result<bool, String> {
    let mut rows = limits(campaign)?;
    match needs::program("strace", "strace") {
        Ok(strace) => rows.extend(calls(&strace, campaign)?),
        Err(why) => println!("skipped: system calls that fail: {why}"),
    }
    rows.iter().filter(|row| row.tried > 0).for_each(Row::print);
    Ok(rows.iter().all(|row| row.losses == 0))
}

/// System calls that fail, each kind on files and on files that are memory.
fn calls(strace: &Path, campaign: &Campaign) -> Result<Vec<Row>, String> {
    let grounds = [Ground::Disk, Ground::Tmpfs];
    let mut open: Vec<(&Fault, Ground, Row)> = Vec::new();
    for ground in grounds.into_iter().filter(|it| folder(*it).is_ok()) {
        for fault in &FAULTS {
            let lasting = if fault.is_lasting { " from then on" } else { "" };
            let call = if fault.call == CHANGES { "all changes" } else { fault.call };
            let detail = format!("{call} {}{lasting}, {}", fault.error, ground.name());
            open.push((fault, ground, Row::new(detail)));
        }
    }
    let (start, mut rows) = (Instant::now(), Vec::new());
    let (mut number, mut before) = (1, 1);
    while !open.is_empty() && start.elapsed() < campaign.time {
        let mut next = Vec::new();
        for (fault, ground, mut row) in open {
            let is_time = start.elapsed() < campaign.time;
            let is_hit = is_time && fail(strace, fault, ground, number, campaign, &mut row)?;
            if is_hit {
                next.push((fault, ground, row));
            } else {
                rows.push(row);
            }
        }
        open = next;
        (number, before) = (number + if campaign.is_short { before } else { 1 }, number);
    }
    rows.extend(open.into_iter().map(|(_, _, row)| row));
    Ok(rows)
}

/// Lets the Nth call fail; whether there was an Nth.
fn fail(
    strace: &Path,
    fault: &Fault,
    ground: Ground,
    number: u64,
    campaign: &Campaign,
    row: &mut Row,
) -> Result<bool, String> {
    let folder = folder(ground)?;
    let trace = folder.path().join("trace");
    let lasting = if fault.is_lasting { "+" } else { "" };
    let Fault { call, error, .. } = fault;
    let mut command = Command::new(strace);
    // The tracer is the grandchild, so that killing our child ends what is traced. How that ended
    // must be told: it is how the end of the trace is known.
    command.args(["-D", "-f", "-q", "-e", &format!("trace={call}")]).arg("-o").arg(&trace);
    command.args(["-e", &format!("inject={call}:error={error}:when={number}{lasting}")]);
    command.arg(own()?);
    let may_abort = *error == "ENOMEM";
    let trial = Trial { folder: folder.path(), ground, seed: campaign.seed ^ number, may_abort };
    let outcome = trial.run(command);
    let is_hit = traced(&trace).contains("(INJECTED)");
    if is_hit || outcome.is_err() {
        let at = |words| format!("call {number}: {words}");
        row.count(outcome.and_then(|durable| trial.verify(durable)).map_err(at), trial.seed);
    }
    Ok(is_hit)
}

/// What strace wrote, which may end after what it traced does.
fn traced(path: &Path) -> String {
    let start = Instant::now();
    loop {
        let text = std::fs::read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_done = text.contains("+++ exited") || text.contains("+++ killed");
        if is_done || start.elapsed() > Duration::from_secs(5) {
            return text;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// File systems that are full, and files that may not grow.
fn limits(campaign: &Campaign) -> Result<Vec<Row>, String> {
    let mut random = Rng::with_seed(campaign.seed);
    let rounds = if campaign.is_short { 2 } else { 12 };
    let (mut files, mut disks) =
        (Row::new("files that may not grow".into()), Row::new("full tmpfs".into()));
    for _ in 0..rounds {
        let folder = folder(Ground::Disk)?;
        let seed = random.u64(..);
        let trial = Trial { folder: folder.path(), ground: Ground::Disk, seed, may_abort: false };
        let mut command = Command::new("/bin/sh");
        let blocks = random.u64(256..8 << 10);
        // Else the signal would end it, before any call fails.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        command.args(["-c", &script]).arg(own()?);
        let outcome = trial.run(command).and_then(|durable| trial.verify(durable));
        files.count(outcome.map_err(|words| format!("{blocks} blocks: {words}")), seed);
    }
    for round in 0..rounds {
        let folder = folder(Ground::Disk)?;
        let kib = random.u64(1 << 10..12 << 10);
        if !mount(&["-t", "tmpfs", "-o", &format!("size={kib}k"), "tmpfs"], folder.path()) {
            println!("skipped: a full tmpfs: mounting needs the privilege");
            break;
        }
        // Taken for files, and for the memory that they are, in turn.
        let ground = if round % 2 == 0 { Ground::Disk } else { Ground::Tmpfs };
        let seed = random.u64(..);
        let trial = Trial { folder: folder.path(), ground, seed, may_abort: false };
        let mut outcome = trial.run(Command::new(own()?));
        if !mount(&["-o", "remount,size=256m"], folder.path()) {
            outcome = Err("the tmpfs could not be made larger".to_owned());
        }
        let outcome = outcome.and_then(|durable| trial.verify(durable));
        disks.count(outcome.map_err(|words| format!("{kib} KiB: {words}")), seed);
        let unmounted = Command::new("umount").arg(folder.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            return Err(format!("could not unmount {}", folder.path().display()));
        }
    }
    Ok(vec![files, disks])
}

fn mount(options: &[&str], path: &Path) -> bool {
    let output = Command::new("mount").args(options).arg(path).output();
    output.is_ok_and(|output| output.status.success())
}

/// A store that an agent has to leave whole, whatever fails.
struct Trial<'a> {
    folder: &'a Path,
    ground: Ground,
    seed: u64,
    /// Whether it may abort, as processes without memory do.
    may_abort: bool,
}

impl Trial<'_> {
    /// Runs the agent by a command that takes its arguments; returns how many batches it said are
    /// durable.
    ///
    /// # Errors
    /// In words, when it panics, hangs, or says that the store is wrong.
    fn run(&self, command: Command) -> Result<u64, String> {
        let (status, said) = self.agent(command, 0, COMMITS)?;
        for said in &said {
            if let Said::Failed(words) = said {
                return Err(words.clone());
            }
        }
        let refused = said.iter().any(|said| matches!(said, Said::Refused(_)));
        let closed = said.contains(&Said::Closed);
        let aborted = self.may_abort && status.signal() == Some(ABORT);
        // Without memory it may not even begin, nor where the call was one of the loader's own.
        let unborn = said.is_empty() && (self.may_abort || status.code() == Some(NOT_LOADED));
        if !(closed || refused || aborted || unborn) {
            return Err(format!("the agent ended by {status}: {}", self.complaints()));
        }
        let durable = said.iter().filter_map(|said| match said {
            Said::Durable(number) => Some(*number),
            _ => None,
        });
        Ok(durable.max().unwrap_or(0))
    }

    /// Runs another agent, for which nothing fails.
    fn verify(&self, durable: u64) -> Result<(), String> {
        let (status, said) = self.agent(Command::new(own()?), durable, 3)?;
        if said.contains(&Said::Closed) && status.success() {
            return Ok(());
        }
        Err(format!("afterwards: {:?}, {status}: {}", said.last(), self.complaints()))
    }

    fn agent(
        &self,
        mut command: Command,
        durable: u64,
        commits: u64,
    ) -> Result<(ExitStatus, Vec<Said>), String> {
        let words = |error: std::io::Error| format!("could not run the agent: {error}");
        // Beside the folder, which may be full.
        let output = tempfile::NamedTempFile::new().map_err(words)?;
        let errors = File::create(self.errors()).map_err(words)?;
        command.arg("agent").arg(self.folder.join("store")).arg(self.ground.name());
        command.args([self.seed, durable, durable, commits].map(|number| number.to_string()));
        command.stdin(Stdio::null()).stderr(errors).stdout(output.reopen().map_err(words)?);
        let status = wait(command.spawn().map_err(words)?)?;
        let text = needs::read(output.path())?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok((status, text.split_inclusive('\n').filter_map(Said::parse).collect()))
    }

    /// Where an agent's complaints are: beside the folder, which may be full.
    fn errors(&self) -> PathBuf {
        self.folder.with_extension("errors")
    }

    fn complaints(&self) -> String {
        let text = std::fs::read(self.errors()).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        // Never written where no agent ran.
        let _ = std::fs::remove_file(self.errors());
    }
}

fn wait(mut child: Child) -> Result<ExitStatus, String> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match child.try_wait() {
            Ok(None) => std::thread::sleep(Duration::from_millis(2)),
            Ok(Some(status)) => return Ok(status),
            Err(error) => return Err(format!("could not wait for the agent: {error}")),
        }
    }
    // It may end at last, which is as well.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("the agent hangs for {PATIENCE:?}"))
}

fn own() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("where is this program? {error}"))
}

/// A folder for stores that are there.
fn folder(ground: Ground) -> Result<tempfile::TempDir, String> {
    let made = match ground {
        Ground::Disk => tempfile::tempdir(),
        Ground::Memory | Ground::Tmpfs => tempfile::tempdir_in(MEMORY),
    };
    made.map_err(|error| format!("no folder for {} stores: {error}", ground.name()))
}
