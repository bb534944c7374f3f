//! The medium fails once: each call of each kind, by number, of a workload over whole stores.
//!
//! A workload runs untouched first, which counts its calls of each kind; then once for every one of them
//! with that call failing, because of the device or for want of space, half of a write done. All setups
//! mixed, in an order that follows from the seed, so that also a short run has some of everything.

use adamant_scenarios::crashes::{Mix, Setup, Workload, assert_clean, judge_of};
use adamant_sim::{Call, Fault, Promise, SimDisk};

use crate::attempt::attempt;
use crate::budget::Budget;
use crate::report::Report;

const KIND: &str = "faults";
const FAULTS: [(Fault, &str); 2] = [(Fault::Device, "the device fails"), (Fault::Full, "no space")];
/// One of so many stores of the undo journal keeps a history: that takes most of the time.
const UNDO_HISTORY_ONE_IN: u64 = 8;
/// States of a power cut after the workload.
const CUTS: u64 = 2;

/// A call that fails, of the workload of a setup.
#[derive(Clone, Copy, Debug)]
struct Case {
    mix: Mix,
    call: Call,
    number: u64,
    /// In [`FAULTS`].
    fault: usize,
}

/// Goes through all calls until the time is over.
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
        let disk = SimDisk::new(mix.seed).without_history();
        if let Err(message) = attempt(|| Workload::run(&disk, mix)) {
            println!("LOST without a fault, {mix:?}: {message}");
            report.add_loss(KIND, "none");
            continue;
        }
        for call in Call::ALL {
            let numbers = 1..=disk.call_count(call);
            let of = |number| (0..FAULTS.len()).map(move |fault| Case { mix, call, number, fault });
            cases.extend(numbers.flat_map(of));
        }
    }
    random.shuffle(&mut cases);
    let mut tried = 0;
    for case in &cases {
        if budget.is_over() || report.is_lost() {
            break;
        }
        tried += 1;
        let detail = format!("{}: {}", case.call.name(), FAULTS[case.fault].1);
        report.add(KIND, &detail, 1);
        if let Err(message) = attempt(|| try_case(*case, &mut random)) {
            println!("LOST by seed {seed}, {case:?}: {message}");
            report.add_loss(KIND, &detail);
        }
    }
    println!("{tried} of all {} faults of {} stores were tried", cases.len(), Setup::all().len());
}

/// Runs the workload with the fault, and judges the store and its disk then.
fn try_case(case: Case, random: &mut fastrand::Rng) {
    let (mix, setup) = (case.mix, case.mix.setup);
    let disk = SimDisk::new(mix.seed);
    let has_history = !setup.is_undo || random.u64(..UNDO_HISTORY_ONE_IN) == 0;
    let disk = if has_history { disk } else { disk.without_history() };
    disk.fail_call(case.call, case.number, FAULTS[case.fault].0);
    let (mut failed, mut workload) = match Workload::create(&disk, mix) {
        Ok(workload) => (None, workload),
        Err(error) => (Some(error.to_string()), Workload::create(&disk, mix).unwrap()),
    };
    for _ in 0..mix.steps {
        let step = workload.next_step();
        if let Err(error) = workload.take(&step) {
            let earlier = failed.replace(error.to_string());
            assert!(earlier.is_none(), "{earlier:?}, and then again: {error}");
            workload.survive(&error);
        }
    }
    // A log that could not be brought to the pool has told nobody yet, if nobody has written since.
    if let Err(error) = workload.reopen() {
        let earlier = failed.replace(error.to_string());
        assert!(earlier.is_none(), "{earlier:?}, and then again: {error}");
        workload.survive(&error);
    }
    // What judges from here on reads, too, and is not to be disturbed.
    disk.repair();
    workload.last().verify(workload.store());
    assert_clean(workload.store());
    if has_history {
        let mut cursor = disk.cursor();
        cursor.advance_to(disk.operation_count());
        let promise = Promise::at_power_cut(&disk, cursor.point());
        for mut choice in cursor.choices(CUTS, case.number) {
            let crashed = cursor.crash(&mut choice).without_history();
            drop(judge_of(setup, &crashed, &workload.models, promise));
        }
    }
}
