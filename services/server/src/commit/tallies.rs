//! Counters of commands and keys, for INFO.
//!
//! Thread safety: any thread counts and reads; the figures of one command are not a consistent
//! snapshot.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::commands::{ALL, Command};

/// Of one command.
#[derive(Debug, Default)]
struct Tally {
    calls: AtomicU64,
    nanos: AtomicU64,
    /// Refused before it ran.
    rejected: AtomicU64,
    /// Run, and answered by an error.
    failed: AtomicU64,
}

/// Counters of all commands, and of the keys that they looked up.
#[derive(Debug)]
pub(crate) struct Tallies {
    commands: Box<[Tally]>,
    /// Lookups by reading commands of present and of absent keys.
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    /// Expired entries that were removed.
    pub(crate) expired: AtomicU64,
}

impl Default for Tallies {
    fn default() -> Self {
        Self {
            commands: ALL.iter().map(|_| Tally::default()).collect(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            expired: AtomicU64::new(0),
        }
    }
}

impl Tallies {
    fn of(&self, command: &'static Command) -> &Tally {
        // All commands are in that table.
        let distance = std::ptr::from_ref(command).addr() - ALL.as_ptr().addr();
        &self.commands[distance / size_of::<Command>()]
    }

    /// Counts a run of a command.
    pub(crate) fn ran(&self, command: &'static Command, time: Duration, has_failed: bool) {
        let tally = self.of(command);
        tally.calls.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        tally.nanos.fetch_add(nanos, Ordering::Relaxed);
        if has_failed {
            tally.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a command that was refused before it ran.
    pub(crate) fn rejected(&self, command: &'static Command) {
        self.of(command).rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts lookups of a command that reads.
    pub(crate) fn looked(&self, hits: u64, misses: u64) {
        self.hits.fetch_add(hits, Ordering::Relaxed);
        self.misses.fetch_add(misses, Ordering::Relaxed);
    }

    /// Resets all counters to 0.
    pub(crate) fn reset(&self) {
        let own = [&self.hits, &self.misses, &self.expired];
        let of_commands =
            self.commands.iter().flat_map(|it| [&it.calls, &it.nanos, &it.rejected, &it.failed]);
        own.into_iter().chain(of_commands).for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    /// A line for each command that was used.
    pub(crate) fn lines(&self, text: &mut String) -> std::fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (command, tally) in ALL.iter().zip(&self.commands) {
            let (calls, micros) = (count(&tally.calls), count(&tally.nanos) / 1000);
            let (rejected, failed) = (count(&tally.rejected), count(&tally.failed));
            if calls + rejected > 0 {
                let each = count(&tally.nanos) as f64 / 1000.0 / calls.max(1) as f64;
                write!(
                    text,
                    "cmdstat_{}:calls={calls},usec={micros},usec_per_call={each:.2},\
                     rejected_calls={rejected},failed_calls={failed}\r\n",
                    command.name
                )?;
            }
        }
        Ok(())
    }
}
