//! Power cuts: a machine writes to a store, loses its power, boots, and finds what it was promised.
//!
//! Purpose: the same loop over a disk with a volatile cache (`disk`) and over persistent memory
//! that ext4 maps directly (`memory`). What was said to be durable before a cut must be there after
//! it, the rest must be whole batches in their order, and a check must find nothing.
//!
//! What it cannot show: the emulated memory has no caches, every store is in the host's file at
//! once. So the cuts of `memory` try what ext4 and `MAP_SYNC` keep of a file's extents and the
//! death of a system at any instruction; lines that were never flushed are the simulator's matter.
//! Thread safety: the disk is served by a thread of its own for as long as a machine runs.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::agent::{Orders, Said};
use crate::disk::Disk;
use crate::machine::{self, Machine, Medium, Parts};
use crate::nbd::{self, Power};
use crate::needs;
use crate::work::Ground;

/// Bytes of the disk.
const DISK_BYTES: u64 = 128 << 20;
/// How long a boot may take, emulated, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Batches that the last boot writes before it closes the store.
const LAST_COMMITS: u64 = 20;

/// How often it is looked whether the disk has gone off.
const LOOK: Duration = Duration::from_millis(2);
/// Writes and flushes between the moment that the clock chose and the one at which the disk goes
/// off.
const REQUESTS_MAX: u64 = 24;

/// What to do.
pub(crate) struct Campaign {
    /// On what.
    pub(crate) ground: Ground,
    /// How many cuts.
    pub(crate) cuts: u64,
    /// No cut begins after that.
    pub(crate) time: Duration,
    /// Of everything that chance decides.
    pub(crate) seed: u64,
    /// Whether the disk only says that it flushes: then this campaign has to fail.
    pub(crate) is_lying: bool,
}

/// The state of a campaign between boots.
struct Bench {
    parts: Parts,
    archive: PathBuf,
    socket: PathBuf,
    memory: PathBuf,
    disk: Option<Disk>,
}

impl Bench {
    fn new(parts: Parts, folder: &Path, campaign: &Campaign) -> Result<Self, String> {
        let archive = folder.join("archive");
        let words =
            |error: std::io::Error| format!("could not prepare {}: {error}", folder.display());
        std::fs::write(&archive, parts.archive()?).map_err(words)?;
        let memory = folder.join("memory");
        let disk = if campaign.ground == Ground::Disk {
            let image = folder.join("image");
            format(&parts.mkfs, &image, DISK_BYTES, 0)?;
            Some(Disk::new(needs::read(&image)?, campaign.seed, campaign.is_lying))
        } else {
            format(&parts.mkfs, &memory, machine::MEMORY_BYTES, machine::MEMORY_START)?;
            None
        };
        Ok(Self { parts, archive, socket: folder.join("socket"), memory, disk })
    }

    /// Boots a machine, lets `user` have it, and after that takes what the disk had not flushed.
    fn with_machine<T: Send>(
        &mut self,
        orders: &Orders,
        user: impl FnOnce(Machine, Option<&Power>) -> Result<T, String>,
    ) -> Result<T, String> {
        let Some(disk) = &mut self.disk else {
            let medium = Medium::Memory(&self.memory);
            return user(Machine::boot(&self.parts, &self.archive, &medium, orders)?, None);
        };
        // Of the boot before, if there was one.
        let _ = std::fs::remove_file(&self.socket);
        let listener = UnixListener::bind(&self.socket)
            .map_err(|error| format!("could not listen on {}: {error}", self.socket.display()))?;
        let (parts, archive, socket) = (&self.parts, &self.archive, &self.socket);
        let power = Power::new();
        let outcome = std::thread::scope(|scope| {
            let server = scope.spawn(|| nbd::serve(&listener, disk, &power));
            let booted = Machine::boot(parts, archive, &Medium::Disk(socket), orders);
            let outcome = booted.and_then(|machine| user(machine, Some(&power)));
            match server.join() {
                Ok(Ok(())) => outcome,
                Ok(Err(error)) => outcome.and_then(|_| Err(format!("the disk: {error}"))),
                Err(_) => Err("the disk's server panicked".to_owned()),
            }
        });
        disk.cut();
        outcome
    }
}

/// Makes a file with an ext4 file system from byte `start` on.
fn format(mkfs: &Path, file: &Path, bytes: u64, start: u64) -> Result<(), String> {
    let made = std::fs::File::create(file).and_then(|made| made.set_len(bytes));
    made.map_err(|error| format!("could not make {}: {error}", file.display()))?;
    let output = Command::new(mkfs)
        .args(["-q", "-F", "-b", "4096", "-E", &format!("offset={start},lazy_itable_init=0")])
        .arg(file)
        .arg(format!("{}k", (bytes - start) >> 10))
        .output()
        .map_err(|error| format!("could not run {}: {error}", mkfs.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("mkfs.ext4 failed: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Runs it. True if nothing was lost.
///
/// # Errors
/// In words: when it could not be run. What a machine did wrong is no error but a loss.
pub(crate) fn run(parts: Parts, campaign: &Campaign) -> Result<bool, String> {
    let Campaign { ground, cuts, time, seed, .. } = *campaign;
    let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
    let mut bench = Bench::new(parts, folder.path(), campaign)?;
    let mut random = Rng::with_seed(seed);
    let (start, mut durable, mut done) = (Instant::now(), 0, 0);
    let name = ground.name();
    println!("{cuts} power cuts, {name}; seed {seed}");
    let orders = |round, durable, commits| {
        let path = PathBuf::new();
        Orders { path, ground, seed, round, durable, commits }
    };
    let mut problem = None;
    while done < cuts && start.elapsed() < time && problem.is_none() {
        let told = orders(done, durable, None);
        match bench.with_machine(&told, |machine, power| cut(machine, power, durable, &mut random))
        {
            Ok(now) => {
                done += 1;
                println!("cut {done}: {now} batches durable, {} s", start.elapsed().as_secs());
                durable = now;
            }
            Err(words) => problem = Some(words),
        }
    }
    if problem.is_none() {
        let told = orders(cuts, durable, Some(LAST_COMMITS));
        problem = bench.with_machine(&told, |machine, _| finish(machine, durable)).err();
    }
    if let Some(disk) = &bench.disk {
        let lost = disk.lost;
        println!("sectors not flushed at cuts: {} kept, {} dropped", lost.kept, lost.dropped);
    }
    if let Some(words) = &problem {
        println!("LOST after {done} cuts, {name}, seed {seed}: {words}");
    } else {
        println!("{durable} batches durable, none lost, {} s", start.elapsed().as_secs());
    }
    let losses = u64::from(problem.is_some());
    println!("proof\tpower-cuts\tall engines, {name}\t{done}\t{losses}");
    Ok(problem.is_none())
}

/// Lets a machine verify and write, cuts its power at a random moment, which on a disk is a
/// request, and returns how many batches it said are durable.
fn cut(
    mut machine: Machine,
    power: Option<&Power>,
    durable: u64,
    random: &mut Rng,
) -> Result<u64, String> {
    let patience = Instant::now() + PATIENCE;
    let mut durable = durable;
    // One in four hits the recovery, or what comes before it.
    let is_early = random.u8(..4) == 0;
    loop {
        match machine.listen(patience)? {
            Some(Said::Opening) if is_early => break,
            Some(Said::Verified(_)) if durable == 0 => {}
            Some(Said::Verified(there)) => {
                durable = there;
                break;
            }
            // A store is seen to be written to before its first cut.
            Some(Said::Durable(number)) => {
                durable = number;
                break;
            }
            Some(_) => {}
            None => return Err(format!("nothing in {PATIENCE:?}:\n{}", machine.tail())),
        }
    }
    let milliseconds = random.u64(..if is_early { 600 } else { 4_000 });
    let moment = Instant::now() + Duration::from_millis(milliseconds);
    while let Some(said) = machine.listen(moment)? {
        durable = count(durable, &said);
    }
    if let Some(power) = power {
        power.go_after(random.u64(..REQUESTS_MAX));
        let patience = Instant::now() + PATIENCE;
        while !power.is_off() && Instant::now() < patience {
            if let Some(said) = machine.listen(Instant::now() + LOOK)? {
                durable = count(durable, &said);
            }
        }
    }
    let rest = machine.cut();
    let failed = rest.iter().find_map(|said| match said {
        Said::Failed(words) | Said::Refused(words) => Some(words.clone()),
        _ => None,
    });
    failed.map_or_else(|| Ok(rest.iter().fold(durable, count)), Err)
}

/// How many batches are durable, after one more thing that was said.
fn count(durable: u64, said: &Said) -> u64 {
    match *said {
        Said::Durable(number) | Said::Verified(number) => number.max(durable),
        _ => durable,
    }
}

/// The last boot: all is there, some more is written, the store is closed and the machine switched
/// off.
fn finish(mut machine: Machine, durable: u64) -> Result<(), String> {
    let patience = Instant::now() + PATIENCE;
    let mut verified = false;
    loop {
        match machine.listen(patience)? {
            Some(Said::Verified(there)) => verified = there >= durable,
            Some(Said::Closed) if verified => return machine.wait(PATIENCE),
            Some(Said::Closed) => return Err("it was closed without being verified".to_owned()),
            Some(_) => {}
            None => return Err(format!("nothing in {PATIENCE:?}:\n{}", machine.tail())),
        }
    }
}
