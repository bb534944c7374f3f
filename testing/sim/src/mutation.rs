//! Mutation testing of durability: leaves out flushes, fences and syncs, call by call, to see
//! whether crash tests notice.
//!
//! Purpose: a *suite* runs a workload on an empty disk, crashes it and panics on a wrong state. It
//! runs once unchanged, then once for each site that it reached, with that site disabled.

use std::any::Any;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::available_parallelism;

use parking_lot::Mutex;

use crate::disk::SimDisk;
use crate::site::Site;

/// The outcome of a suite without one site.
#[derive(Debug)]
pub struct Verdict {
    /// The site that did nothing.
    pub site: Site,
    /// How often the whole suite reaches it.
    pub calls: u64,
    /// The message of the suite's panic; `None`: it did not notice.
    pub noticed: Option<String>,
}

/// Runs a suite with each of its sites disabled, those that `is_tried` accepts: in parallel, as
/// many as there are processors, each on a disk of its own.
///
/// # Panics
/// If the suite panics with none disabled.
pub fn verdicts(
    seed: u64,
    is_tried: impl Fn(&Site) -> bool,
    suite: impl Fn(&SimDisk) + Sync,
) -> Vec<Verdict> {
    let sound = SimDisk::new(seed);
    suite(&sound);
    let mut tried = sound.sites();
    tried.retain(|(site, _)| is_tried(site));
    let verdict = |(site, calls): (Site, u64)| {
        let disk = SimDisk::new(seed);
        disk.disable(Some(site));
        let run = catch_unwind(AssertUnwindSafe(|| suite(&disk)));
        Verdict { site, calls, noticed: run.err().map(|panic| first_line(panic.as_ref())) }
    };
    let (count, next, verdicts) = (tried.len(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&tried) = tried.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = verdict(tried);
            verdicts.lock().push(verdict);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, NonZero::get).min(count) {
            scope.spawn(work);
        }
    });
    let mut verdicts = verdicts.into_inner();
    verdicts.sort_by_key(|verdict: &Verdict| verdict.site);
    verdicts
}

/// Prints the verdicts, one a line.
///
/// # Panics
/// If the suite did not notice a site's absence, and `is_needless` does not allow that.
pub fn verify(verdicts: &[Verdict], is_needless: impl Fn(&Site) -> bool) {
    let mut unnoticed = Vec::new();
    for Verdict { site, calls, noticed } in verdicts {
        println!("{site}, {calls} calls: {}", noticed.as_deref().unwrap_or("NOT NOTICED"));
        if noticed.is_none() && !is_needless(site) {
            unnoticed.push(site.to_string());
        }
    }
    let noticed = verdicts.iter().filter(|verdict| verdict.noticed.is_some()).count();
    println!("{} sites left out one by one, {noticed} noticed", verdicts.len());
    assert!(unnoticed.is_empty(), "not needed, or not tested: {unnoticed:#?}");
}

/// The message of a panic, in short.
fn first_line(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let line = text.lines().next().unwrap_or(text);
    line.chars().take(100).collect()
}
