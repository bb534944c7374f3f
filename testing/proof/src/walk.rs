//! Power cuts along the history of one workload, and during the recoveries from them.

use adamant_scenarios::crashes::{Content, Setup, verify_going_on, verify_of};
use adamant_sim::{Choice, Cursor, Promise, SimDisk};

use crate::attempt::attempt;

/// Of so many states one is recovered under power cuts, one is gone on with, and at one point in so
/// many the process dies instead.
const RECOVERED_ONE_IN: u64 = 10;
const GONE_ON_ONE_IN: u64 = 24;
const KILLED_ONE_IN: u64 = 8;
/// Crash points within one recovery, and crashed recoveries within one another.
const RECOVERY_POINTS: usize = 3;
const RECOVERIES_MAX: u32 = 3;

/// Which states of a history are tried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) seed: u64,
    /// States at a crash point; all that there are if they are no more.
    pub(crate) count: u64,
    /// From one crash point to the next.
    pub(crate) step: u64,
}

/// States tried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tried {
    pub(crate) states: u64,
    /// Those of them that a power cut left during a recovery.
    pub(crate) recoveries: u64,
}

/// A state that was not as promised: where, how it came about, and what was said of it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) place: String,
    pub(crate) message: String,
}

/// A history to verify.
pub(crate) struct History<'a> {
    pub(crate) setup: Setup,
    pub(crate) disk: &'a SimDisk,
    /// Content by commit.
    pub(crate) models: &'a [Content],
}

impl History<'_> {
    /// Tries states until one is wrong, or `is_over`.
    pub(crate) fn walk(
        &self,
        walk: Walk,
        tried: &mut Tried,
        is_over: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        let mut random = fastrand::Rng::with_seed(walk.seed);
        let mut cursor = self.disk.cursor();
        let mut next = cursor.point() + random.u64(..walk.step);
        for point in cursor.point()..=self.disk.operation_count() {
            cursor.advance_to(point);
            if point < next || cursor.is_covered() {
                continue;
            }
            next = point + walk.step;
            if is_over() {
                break;
            }
            self.try_point(&cursor, walk, &mut random, tried)?;
        }
        Ok(())
    }

    fn try_point(
        &self,
        cursor: &Cursor,
        walk: Walk,
        random: &mut fastrand::Rng,
        tried: &mut Tried,
    ) -> Result<(), Failure> {
        let point = cursor.point();
        // A recovery that is crashed is cut off its power: that takes from a killed process what
        // only a power cut may.
        let cut = Promise::at_power_cut(self.disk, point);
        for choice in cursor.choices(walk.count, walk.seed) {
            let crashed = cursor.crash(&mut choice.clone());
            self.try_state(crashed, (cut, cut), random, tried, &|| format!("{choice:?}"))
                .map_err(|failure| self.at(point, failure))?;
        }
        if one_in(random, KILLED_ONE_IN) {
            let death = Promise::at_death(self.disk, point);
            self.try_state(cursor.kill(), (death, cut), random, tried, &|| "killed".to_owned())
                .map_err(|failure| self.at(point, failure))?;
        }
        Ok(())
    }

    fn at(&self, point: u64, failure: Failure) -> Failure {
        let before = point.checked_sub(1).and_then(|number| self.disk.describe(number));
        let after = self.disk.describe(point);
        let place = format!("crash point {point} between {before:?} and {after:?}: ");
        Failure { place: place + &failure.place, ..failure }
    }

    /// Recovers one state, goes on with it, or has its recovery crash: what each has to keep.
    fn try_state(
        &self,
        disk: SimDisk,
        (promise, cut): (Promise, Promise),
        random: &mut fastrand::Rng,
        tried: &mut Tried,
        how: &dyn Fn() -> String,
    ) -> Result<(), Failure> {
        tried.states += 1;
        let fail = |message| Failure { place: how(), message };
        let (goes_on, crashes) = (one_in(random, GONE_ON_ONE_IN), one_in(random, RECOVERED_ONE_IN));
        // What is only looked at needs no history, without which memory costs much less.
        let disk = if goes_on || crashes { disk } else { disk.without_history() };
        let begin = disk.operation_count();
        let (store, found) =
            attempt(|| verify_of(self.setup, &disk, self.models, promise)).map_err(fail)?;
        if goes_on {
            return attempt(|| verify_going_on(self.setup, &disk, store, &found)).map_err(fail);
        }
        drop(store);
        if crashes {
            self.crash_recovery(&disk, begin, cut, random, tried, RECOVERIES_MAX)
                .map_err(|failure| Failure { place: how() + &failure.place, ..failure })?;
        }
        Ok(())
    }

    /// Power cuts during the recovery that has run on a disk, and during the recoveries from those.
    fn crash_recovery(
        &self,
        disk: &SimDisk,
        begin: u64,
        promise: Promise,
        random: &mut fastrand::Rng,
        tried: &mut Tried,
        depth: u32,
    ) -> Result<(), Failure> {
        let end = disk.operation_count();
        let mut points: Vec<u64> = (0..RECOVERY_POINTS).map(|_| random.u64(begin..=end)).collect();
        points.sort_unstable();
        let mut cursor = disk.cursor();
        for point in points {
            cursor.advance_to(point);
            let seed = random.u64(..);
            let mut choice = if random.bool() { Choice::random(seed) } else { Choice::torn(seed) };
            let deeper = depth > 1 && random.bool();
            let crashed = cursor.crash(&mut choice);
            let crashed = if deeper { crashed } else { crashed.without_history() };
            (tried.states, tried.recoveries) = (tried.states + 1, tried.recoveries + 1);
            let place = format!(", recovery crashed at {point} by seed {seed}");
            let fail = |message| Failure { place: place.clone(), message };
            let verified = attempt(|| verify_of(self.setup, &crashed, self.models, promise));
            drop(verified.map_err(fail)?);
            if deeper {
                self.crash_recovery(&crashed, 0, promise, random, tried, depth - 1).map_err(
                    |failure| Failure { place: place.clone() + &failure.place, ..failure },
                )?;
            }
        }
        Ok(())
    }
}

fn one_in(random: &mut fastrand::Rng, count: u64) -> bool {
    random.u64(..count) == 0
}
