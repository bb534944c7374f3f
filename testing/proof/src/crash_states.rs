//! Power cuts of whole stores: every engine and all together.
//!
//! Rounds of small random workloads; of each, states at crash points all along it, all there are
//! where they are few. What is recovered must be exactly a prefix of the commits that has every
//! durable one, in a store that a check finds nothing wrong in; and so must be what a power cut
//! leaves of the recovery.

use adamant_scenarios::crashes::{Mix, Setup, Step, Workload};
use adamant_sim::SimDisk;

use crate::attempt::attempt;
use crate::budget::Budget;
use crate::report::Report;
use crate::shrink::shrunk;
use crate::walk::{Failure, History, Tried, Walk};

const KIND: &str = "crash-states";
/// States of a round, about.
const ROUND_STATES: u64 = 1_000;

/// Goes through all setups again and again until the time is over.
pub(crate) fn run(budget: &Budget, seed: u64, report: &mut Report) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut setups = Setup::all();
    random.shuffle(&mut setups);
    let mut recoveries = 0;
    for (round, setup) in (0..).zip(setups.iter().cycle()) {
        if budget.is_over() || report.is_lost() {
            break;
        }
        let mix = mix(*setup, &mut random);
        let mut tried = Tried::default();
        let outcome = try_round(mix, &mut random, &mut tried, budget);
        report.add(KIND, setup.name(), tried.states);
        recoveries += tried.recoveries;
        if outcome.is_err() {
            println!("LOST in round {round} of seed {seed}, {}", setup.name());
            report.add_loss(KIND, setup.name());
        }
    }
    println!("{recoveries} of the crash states are of recoveries that crashed");
}

/// Some workload.
fn mix(setup: Setup, random: &mut fastrand::Rng) -> Mix {
    Mix {
        seed: random.u64(..),
        steps: random.u64(8..70),
        large_one_in: if random.u8(..10) == 0 { 15 } else { 0 },
        upkeep_one_in: random.u64(8..30),
        rare_one_in: random.u64(4..12),
        setup,
        ..Mix::default()
    }
}

/// One workload and its crashes. What fails is told, made as small as can be.
fn try_round(
    mix: Mix,
    random: &mut fastrand::Rng,
    tried: &mut Tried,
    budget: &Budget,
) -> Result<(), ()> {
    let disk = SimDisk::new(mix.seed);
    let mut walk = Walk { seed: random.u64(..), count: 2 << random.u32(..4), step: 1 };
    let mut steps = Vec::new();
    let models = attempt(|| {
        let mut workload = Workload::create(&disk, mix).unwrap();
        for _ in 0..mix.steps {
            steps.push(workload.next_step());
            workload.take(&steps[steps.len() - 1]).unwrap();
        }
        workload.last().verify(workload.store());
        workload.models
    });
    let outcome = models.map_err(|message| {
        let place = "while it runs".to_owned();
        Failure { place, message }
    });
    let outcome = outcome.and_then(|models| {
        walk.step = (disk.operation_count() * walk.count / ROUND_STATES).max(1);
        let history = History { setup: mix.setup, disk: &disk, models: &models };
        history.walk(walk, tried, || budget.is_over())
    });
    outcome.map_err(|failure| tell(mix, steps, walk, &failure))
}

fn tell(mix: Mix, steps: Vec<Step>, walk: Walk, failure: &Failure) {
    println!("{mix:?}, {walk:?}, {}: {}", failure.place, failure.message);
    match shrunk(mix, steps, walk) {
        None => println!("it does not fail again"),
        Some((steps, failure)) => {
            println!("{} steps are enough, {}: {}", steps.len(), failure.place, failure.message);
            steps.iter().for_each(|step| println!("  {}", shortened(&format!("{step:?}"))));
        }
    }
}

/// Long values are noise.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    text.chars().take(CHARS_MAX).collect()
}
