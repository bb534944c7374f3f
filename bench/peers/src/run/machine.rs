//! The machine: what it is, and how busy others kept it.
//!
//! No name of a host and no path is told.

use std::fs;
use std::path::Path;
use std::thread;

use adamant_bench::harness::error::Result;
use serde_json::{Value, json};

/// What it is, in words.
///
/// # Errors
/// When the system does not say.
pub fn describe(path: &Path) -> Result<Value> {
    let cpu = value_after("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let memory_kib: u64 = value_after("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(json!({
        "cpu": cpu,
        "cores": thread::available_parallelism()?.get(),
        "memory_gib": memory_kib as f64 / f64::from(1 << 20),
        // Without what a distribution or a host adds to the version.
        "kernel": kernel.trim().split('-').next(),
        "disk": disk(path).unwrap_or_else(|| "unknown".to_owned()),
    }))
}

/// What stands after `name :` in a file of the system.
fn value_after(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(rest.trim_start().strip_prefix(':')?.trim().to_owned())
}

/// File system and kind of disk below a path.
fn disk(path: &Path) -> Option<String> {
    let path = fs::canonicalize(path).ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let (device, _, kind) = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            Some((words.next()?, words.next()?, words.next()?))
        })
        .filter(|(_, at, _)| path.starts_with(at))
        .max_by_key(|(_, at, _)| at.len())?;
    let name = device.rsplit('/').next().unwrap_or_default();
    let bus = match name {
        name if name.starts_with("vd") => "a virtual disk",
        name if name.starts_with("nvme") => "an NVMe disk",
        name if name.starts_with("sd") => "a SCSI or SATA disk",
        _ => return Some(kind.to_owned()),
    };
    let rotational = fs::read_to_string(format!("/sys/block/{name}/queue/rotational"));
    let turning = match rotational.as_deref().map(str::trim) {
        Ok("1") => ", said to be rotating",
        Ok("0") => ", not rotating",
        _ => "",
    };
    Some(format!("{kind} on {bus}{turning}"))
}

/// Processor time so far, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    /// Of all processors, whatever they did.
    total: u64,
    /// Of all processors, doing something.
    busy: u64,
    /// Taken away by the host of a virtual machine.
    stolen: u64,
    /// Of this process and its children that have ended.
    own: u64,
}

impl Ticks {
    /// Reads them.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().ok_or("/proc/stat is empty")?;
        let all: Vec<u64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
        let [user, nice, system, idle, iowait, irq, softirq, stolen, ..] = all[..] else {
            return Err(format!("/proc/stat: expected 8 numbers, found: {line}").into());
        };
        let busy = user + nice + system + irq + softirq;
        let total = busy + idle + iowait + stolen;
        let stat = fs::read_to_string("/proc/self/stat")?;
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        // utime, stime, cutime, cstime: fields 14 to 17, counted from the process number.
        let own = fields.split_whitespace().skip(11).take(4).flat_map(str::parse::<u64>).sum();
        Ok(Self { total, busy, stolen, own })
    }

    /// Percent of all processors that others used since `before`, and that the host took away.
    pub fn others_since(&self, before: &Self) -> (f64, f64) {
        let total = (self.total - before.total).max(1) as f64;
        let own = self.own - before.own;
        let others = (self.busy - before.busy).saturating_sub(own);
        let stolen = self.stolen - before.stolen;
        (100.0 * others as f64 / total, 100.0 * stolen as f64 / total)
    }
}

/// The load average of the last minute.
///
/// # Errors
/// When the system does not say.
pub fn load_average() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    let word = text.split_whitespace().next().ok_or("/proc/loadavg is empty")?;
    Ok(word.parse()?)
}
