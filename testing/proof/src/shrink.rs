//! Making a workload that fails smaller: steps are left out for as long as something still fails.
//!
//! Delta debugging (A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input",
//! 2002): pieces of the list are left out, and smaller pieces when no large one can be.

use adamant_scenarios::crashes::{Mix, Step, Workload};
use adamant_sim::SimDisk;

use crate::attempt::{attempt, in_silence};
use crate::budget::Budget;
use crate::walk::{Failure, History, Tried, Walk};

/// Seconds that shrinking takes at most.
const SECONDS: u64 = 90;

/// The smallest workload found that still fails, and how it does.
pub(crate) fn shrunk(mix: Mix, steps: Vec<Step>, walk: Walk) -> Option<(Vec<Step>, Failure)> {
    in_silence(|| {
        let budget = Budget::new(SECONDS);
        let mut failure = failure_of(mix, &steps, walk, &budget)?;
        let (mut steps, mut piece) = (steps, usize::MAX);
        while piece > 0 && !budget.is_over() {
            piece = (piece / 2).min(steps.len().div_ceil(2));
            let mut at = 0;
            while at < steps.len() && piece > 0 {
                let end = (at + piece).min(steps.len());
                let fewer = [&steps[..at], &steps[end..]].concat();
                match failure_of(mix, &fewer, walk, &budget) {
                    Some(other) => (steps, failure) = (fewer, other),
                    None => at = end,
                }
            }
            if piece == 1 {
                break;
            }
        }
        Some((steps, failure))
    })
}

/// Takes the steps, those that still fit, and tries the crashes; what fails first.
fn failure_of(mix: Mix, steps: &[Step], walk: Walk, budget: &Budget) -> Option<Failure> {
    if budget.is_over() {
        return None;
    }
    let disk = SimDisk::new(mix.seed);
    let workload = attempt(|| taken(&disk, mix, steps));
    let models = match workload {
        Ok(workload) => workload.models,
        Err(message) => return Some(Failure { place: "while it runs".to_owned(), message }),
    };
    let history = History { setup: mix.setup, disk: &disk, models: &models };
    let exact = history.walk(walk, &mut Tried::default(), || budget.is_over());
    let every = Walk { step: 1, ..walk };
    let tried =
        exact.and_then(|()| history.walk(every, &mut Tried::default(), || budget.is_over()));
    tried.err()
}

/// A workload after these steps, without those that make no sense where others are missing.
fn taken(disk: &SimDisk, mix: Mix, steps: &[Step]) -> Workload {
    let mut workload = Workload::create(disk, mix).unwrap();
    for step in steps {
        if !matches!(step, Step::Commit(plan, _) if !plan.fits(workload.last())) {
            workload.take(step).unwrap();
        }
    }
    workload.last().verify(workload.store());
    workload
}
