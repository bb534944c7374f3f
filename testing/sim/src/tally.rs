//! The tally: tries the states that crashes leave, and counts them.
//!
//! Purpose: the loops over crash points and states that every crash test needs. When verifying a
//! state panics, the settings that reproduce the state are printed. About half of the states equal
//! one before, and are counted, but not verified again.
//!
//! Two environment variables are for manual runs: `ADAMANT_SIM_STATES` multiplies the number of
//! states tried at each crash point, and `ADAMANT_SIM_SEED` (default 0) selects other workloads.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::disk::SimDisk;
use crate::promise::Promise;

const STATES: &str = "ADAMANT_SIM_STATES";
const SEED: &str = "ADAMANT_SIM_SEED";

/// A number from an environment variable.
fn chosen(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// States to try at each crash point, where a test wants `count`.
pub fn states_max(count: u64) -> u64 {
    count * chosen(STATES, 1)
}

/// The seed of a test's workload: another one for each number.
pub fn seed(number: u64) -> u64 {
    number + 1000 * chosen(SEED, 0)
}

/// Counts of the tried states.
#[derive(Debug, Default)]
pub struct Tally {
    /// Crash points.
    pub points: u64,
    /// States of a disk.
    pub states: u64,
    /// Those of them that equal one which was verified before, by the same promise.
    pub repeated: u64,
}

impl Tally {
    /// Starts at zero.
    pub fn new() -> Tally {
        Tally::default()
    }

    /// Prints the counts of a test.
    pub fn print(&self, test: &str) {
        let Tally { points, states, repeated } = self;
        println!("{test}: {points} crash points, {states} states, {repeated} of them repeated");
    }

    /// Counts a state that need not be tried, because one like it was.
    pub fn repeat(&mut self) {
        self.states += 1;
        self.repeated += 1;
    }

    /// Counts a state, and prints which it was if trying it panics.
    pub fn state(&mut self, disk: &SimDisk, point: u64, how: &impl Debug, work: impl FnOnce()) {
        self.states += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            let before = point.checked_sub(1).and_then(|number| disk.describe(number));
            let after = disk.describe(point);
            eprintln!("{SEED}={}", chosen(SEED, 0));
            eprintln!("{disk:?}, crash point {point} between {before:?} and {after:?}, {how:?}");
            resume_unwind(panic);
        }
    }

    /// Power cuts at one of `step` crash points of a history, [`states_max`] of `count` states at
    /// each. `verify` gets the remaining disk and the promise.
    pub fn power_cuts(
        &mut self,
        disk: &SimDisk,
        step: usize,
        count: u64,
        mut verify: impl FnMut(SimDisk, Promise),
    ) {
        let mut cursor = disk.cursor();
        let (mut next, mut verified) = (cursor.point(), BTreeSet::new());
        for point in cursor.point()..=disk.operation_count() {
            cursor.advance_to(point);
            if point < next || cursor.is_covered() {
                continue;
            }
            next = point + step as u64;
            self.points += 1;
            let promise = Promise::at_power_cut(disk, point);
            let choices = cursor.choices(states_max(count), point);
            for choice in choices {
                let crashed = cursor.crash(&mut choice.clone());
                if verified.insert((crashed.digest(), promise)) {
                    self.state(disk, point, &choice, || verify(crashed, promise));
                } else {
                    self.repeat();
                }
            }
        }
    }

    /// Deaths of the process at one of `step` crash points of a history.
    pub fn deaths(
        &mut self,
        disk: &SimDisk,
        step: usize,
        mut verify: impl FnMut(SimDisk, Promise),
    ) {
        let mut cursor = disk.cursor();
        for point in (cursor.point()..=disk.operation_count()).step_by(step) {
            cursor.advance_to(point);
            self.points += 1;
            let promise = Promise::at_death(disk, point);
            self.state(disk, point, &"killed", || verify(cursor.kill(), promise));
        }
    }

    /// Power cuts at every operation of a recovery that has run on a disk, `count` states at each.
    pub fn cuts_within(
        &mut self,
        disk: &SimDisk,
        count: u64,
        seed: u64,
        mut verify: impl FnMut(SimDisk),
    ) {
        let (mut cursor, mut verified) = (disk.cursor(), BTreeSet::new());
        loop {
            if cursor.is_covered() && cursor.advance() {
                continue;
            }
            self.points += 1;
            for choice in cursor.choices(count, seed) {
                let crashed = cursor.crash(&mut choice.clone());
                if verified.insert(crashed.digest()) {
                    self.state(disk, cursor.point(), &choice, || verify(crashed));
                } else {
                    self.repeat();
                }
            }
            if !cursor.advance() {
                return;
            }
        }
    }

    /// Power cuts after a history in which operation `number` failed, [`states_max`] of `count`
    /// states; the death of the process; and power cuts in the recovery from that, `within` states
    /// at each operation, if any.
    pub fn after_fault(
        &mut self,
        disk: &SimDisk,
        number: u64,
        (count, within): (u64, u64),
        mut verify: impl FnMut(&SimDisk, Promise),
    ) {
        let mut cursor = disk.cursor();
        cursor.advance_to(disk.operation_count());
        let promise = Promise::at_power_cut(disk, cursor.point());
        let mut verified = BTreeSet::new();
        for choice in cursor.choices(states_max(count), number) {
            let crashed = cursor.crash(&mut choice.clone());
            if verified.insert(crashed.digest()) {
                self.state(disk, number, &choice, || verify(&crashed, promise));
            } else {
                self.repeat();
            }
        }
        let killed = cursor.kill();
        self.state(disk, number, &"killed", || {
            verify(&killed, Promise::at_death(disk, cursor.point()));
        });
        if within > 0 {
            self.cuts_within(&killed, within, number, |crashed| verify(&crashed, promise));
        }
    }
}
