//! The medium fails once: each call of each kind, by number, of a workload over whole stores; and
//! the heap once: each block that it is asked for, by number, is refused for want of space.
//!
//! A workload runs untouched first, which counts its calls of each kind and its blocks; then once
//! for every one of them with that one failing: calls because of the device or for want of space,
//! half of a write done. All setups mixed, in an order that follows from the seed, so that also a
//! short run has some of everything.

use adamant_scenarios::crashes::{Mix, Setup, Step, Survived, Workload, assert_clean, verify_of};
use adamant_sim::{Call, Fault, Promise, SimDisk};
use adamant_wire::faults;

use crate::attempt::attempt;
use crate::budget::Budget;
use crate::report::Report;

const KIND: &str = "faults";
/// States of a power cut after the workload.
const CUTS: u64 = 2;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// A call of the medium, and why.
    Call(Call, Fault),
    /// The reservation of a block on the heap.
    Allocation,
}

impl Target {
    /// All of them.
    fn all() -> impl Iterator<Item = Target> {
        let faults = [Fault::Device, Fault::Full];
        let calls = Call::ALL.into_iter();
        let calls = calls.flat_map(move |call| faults.map(|fault| Target::Call(call, fault)));
        calls.chain([Target::Allocation])
    }

    /// As the table of all proofs has it.
    fn detail(self) -> String {
        match self {
            Target::Call(call, Fault::Device) => format!("{}: the device fails", call.name()),
            Target::Call(call, Fault::Full) => format!("{}: no space", call.name()),
            Target::Allocation => "heap allocations failed".to_owned(),
        }
    }

    /// Has the one of a number fail, of what is done from now on.
    fn plan(self, disk: &SimDisk, number: u64) {
        match self {
            Target::Call(call, fault) => disk.fail_call(call, number, fault),
            Target::Allocation => faults::plan_reservation(number),
        }
    }

    /// How many there were since the disk was new and nothing was planned.
    fn count(self, disk: &SimDisk) -> u64 {
        match self {
            Target::Call(call, _) => disk.call_count(call),
            Target::Allocation => faults::reservations(),
        }
    }
}

/// Something that fails, of the workload of a setup.
#[derive(Clone, Copy, Debug)]
struct Case {
    mix: Mix,
    target: Target,
    number: u64,
}

/// Goes through all calls and blocks until the time is over.
pub(crate) fn run(budget: &Budget, seed: u64, report: &mut Report) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut cases = Vec::new();
    for setup in Setup::all() {
        let (upkeep_one_in, rare_one_in) = (10, 4);
        let mix = Mix {
            seed: random.u64(..),
            steps: 24,
            upkeep_one_in,
            rare_one_in,
            setup,
            ..Mix::default()
        };
        match attempt(|| cases_of(mix)) {
            Ok(found) => cases.extend(found),
            Err(message) => {
                println!("LOST without a fault, {mix:?}: {message}");
                report.add_loss(KIND, "none");
            }
        }
    }
    random.shuffle(&mut cases);
    let mut tried = 0;
    for case in &cases {
        if budget.is_over() || report.is_lost() {
            break;
        }
        tried += 1;
        report.add(KIND, &case.target.detail(), 1);
        if let Err(message) = attempt(|| try_case(*case)) {
            println!("LOST by seed {seed}, {case:?}: {message}");
            report.add_loss(KIND, &case.target.detail());
        }
    }
    println!("{tried} of all {} faults of {} stores were tried", cases.len(), Setup::all().len());
}

/// All that can fail in a workload, which runs untouched.
fn cases_of(mix: Mix) -> Vec<Case> {
    let disk = SimDisk::new(mix.seed).without_history();
    faults::plan_reservation(0);
    Workload::run(&disk, mix);
    let of =
        |target: Target| (1..=target.count(&disk)).map(move |number| Case { mix, target, number });
    Target::all().flat_map(of).collect()
}

/// A workload in which something fails once.
struct Trial {
    target: Target,
    workload: Workload,
    /// What the one error said.
    failed: Option<String>,
}

impl Trial {
    /// Creates the store; once more, if that fails.
    fn new(target: Target, disk: &SimDisk, mix: Mix) -> Self {
        let (workload, failed) = match Workload::create(disk, mix) {
            Ok(workload) => (workload, None),
            Err(error) => (Workload::create(disk, mix).unwrap(), Some(error.to_string())),
        };
        Self { target, workload, failed }
    }

    /// Takes a step, and verifies the store if it fails.
    fn take(&mut self, step: &Step) {
        let Err(error) = self.workload.take(step) else { return };
        let earlier = self.failed.replace(error.to_string());
        assert!(earlier.is_none(), "{earlier:?}, and then again: {error}");
        let survived = self.workload.survive(&error);
        if self.target == Target::Allocation {
            // Nothing reached the medium, so there is nothing to be poisoned by; and the same again
            // succeeds.
            assert_ne!(survived, Survived::Poisoned, "{error}");
            assert!(error.is_out_of_space(), "{error}");
            self.workload.take(step).unwrap();
        }
    }
}

/// Runs the workload with the fault, and verifies the store and its disk then. Whether anybody was
/// told of it.
fn try_case(case: Case) -> bool {
    let (mix, setup) = (case.mix, case.mix.setup);
    let disk = SimDisk::new(mix.seed);
    faults::plan_reservation(0);
    case.target.plan(&disk, case.number);
    let mut trial = Trial::new(case.target, &disk, mix);
    for _ in 0..mix.steps {
        let step = trial.workload.next_step();
        trial.take(&step);
    }
    // A log that could not be brought to the pool has told nobody yet, if nobody has written since.
    trial.take(&Step::Reopen);
    let Trial { workload, failed, .. } = trial;
    // What verifies from here on reads, too, and is not to be disturbed.
    disk.repair();
    faults::plan_reservation(0);
    workload.last().verify(workload.store());
    assert_clean(workload.store());
    let mut cursor = disk.cursor();
    cursor.advance_to(disk.operation_count());
    let promise = Promise::at_power_cut(&disk, cursor.point());
    for mut choice in cursor.choices(CUTS, case.number) {
        let crashed = cursor.crash(&mut choice).without_history();
        drop(verify_of(setup, &crashed, &workload.models, promise));
    }
    failed.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a workload of which every single block is refused once.
    const STEPS: u64 = 8;

    /// All engines: no block is without its turn.
    #[test]
    fn each_block_that_is_refused_once_is_survived() {
        for setup in Setup::all() {
            let mix = Mix {
                seed: 11,
                steps: STEPS,
                upkeep_one_in: 10,
                rare_one_in: 4,
                setup,
                ..Mix::default()
            };
            let blocks = cases_of(mix).into_iter().filter(|it| it.target == Target::Allocation);
            let blocks: Vec<Case> = blocks.collect();
            assert!(blocks.len() as u64 > STEPS, "{}: {} blocks", setup.name(), blocks.len());
            let mut told = 0;
            for case in &blocks {
                println!("{}, block {} of seed {}", setup.name(), case.number, mix.seed);
                told += usize::from(try_case(*case));
            }
            // Work behind those who write is tried again without a word.
            assert!(told > blocks.len() / 2, "{}: {told} of {}", setup.name(), blocks.len());
        }
    }
}
