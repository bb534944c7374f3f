//! Damage to whole stores: bits flipped, bytes zeroed or made noise, files cut, swapped, duplicated, taken
//! from another store or from an earlier moment.
//!
//! Whatever is done, opening, reading, checking and writing give right data or an error, soon, and panic never.
//! Right is: of a store that was closed, all of its content; of one whose process died, that of some commit,
//! since what was never durable may end there. Pages are verified when first touched, as an option of stores
//! has it. The pool of the undo journal has no checksums, so of that one only errors or numbers are promised.
//! A pool is a whole store by itself when it was closed: one of an earlier moment, put back, is the store of then where
//! the log tells nothing of what came later, because that was taken to the pool and its file begins a generation that has
//! no record yet: a crash leaves such a header, too, so it proves nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant::Store;
use adamant_medium::storage::Directory;
use adamant_scenarios::crashes::{Content, Mix, Setup, Workload};
use adamant_sim::{SimDirectory, SimDisk};

use crate::attempt::attempt;
use crate::budget::Budget;
use crate::files::{Files, Place};
use crate::report::Report;

const KIND: &str = "damage";
/// Damages of one store.
const ROUND: u64 = 200;
/// Of the twenty kinds of damage the one that takes files from an earlier moment.
const EARLIER: u8 = 18;
/// Longer than anything here takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store, as it may be found: with what it may hold, and as it was before.
struct Subject {
    setup: Setup,
    disk: SimDisk,
    models: Vec<Content>,
    is_closed: bool,
    earlier: SimDisk,
    /// The number of the last commit of then.
    earlier_commit: usize,
    other: SimDisk,
}

/// Goes through all setups again and again until the time is over.
pub(crate) fn run(budget: &Budget, seed: u64, report: &mut Report) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut setups = Setup::all();
    random.shuffle(&mut setups);
    let mut refused = 0;
    for setup in setups.iter().cycle() {
        if budget.is_over() || report.is_lost() {
            break;
        }
        let subject = match attempt(|| subject(*setup, &mut random)) {
            Ok(subject) => subject,
            Err(message) => {
                println!("LOST without damage by seed {seed}, {}: {message}", setup.name());
                report.add_loss(KIND, &setup.name());
                continue;
            }
        };
        for _ in 0..ROUND {
            if budget.is_over() || report.is_lost() {
                break;
            }
            try_damage(&subject, &mut random, seed, report, &mut refused);
        }
    }
    println!("{refused} damages were answered with an error, the others by right data");
}

fn subject(setup: Setup, random: &mut fastrand::Rng) -> Subject {
    let mix =
        |seed| Mix { seed, steps: 30, upkeep_one_in: 12, rare_one_in: 6, setup, ..Mix::default() };
    let other = SimDisk::new(random.u64(..));
    Workload::run(&other, mix(random.u64(..)));
    let mix = mix(random.u64(..));
    let disk = SimDisk::new(mix.seed);
    let mut workload = Workload::create(&disk, mix).unwrap();
    let (steps, is_closed) = (random.u64(10..mix.steps), random.bool());
    (0..steps).for_each(|_| workload.step().unwrap());
    let earlier = disk.kill(disk.operation_count());
    let earlier_commit = workload.models.len() - 1;
    (steps..mix.steps).for_each(|_| workload.step().unwrap());
    let end = disk.operation_count();
    let models = workload.models.clone();
    let end = if is_closed {
        workload.close().unwrap();
        disk.operation_count()
    } else {
        end
    };
    let (disk, other) = (disk.kill(end), other.kill(other.operation_count()));
    Subject { setup, disk, models, is_closed, earlier, earlier_commit, other }
}

fn try_damage(
    subject: &Subject,
    random: &mut fastrand::Rng,
    seed: u64,
    report: &mut Report,
    refused: &mut u64,
) {
    let disk = subject.disk.cursor().kill().without_history();
    let mut files = Files::of(&disk);
    let Damage { what, place, is_earlier } = damage(&mut files, subject, random);
    let detail = format!("{place} {}", if subject.setup.is_undo { "undo" } else { "redo" });
    report.add(KIND, &detail, 1);
    let start = Instant::now();
    let is_trusted = !(subject.setup.is_undo && place == Place::Pool);
    let earlier_commit = (is_earlier && place == Place::Pool).then_some(subject.earlier_commit);
    let outcome = attempt(|| look(subject, &disk, is_trusted, earlier_commit));
    let outcome = outcome.and_then(|is_refused| {
        *refused += u64::from(is_refused);
        if start.elapsed() < PATIENCE { Ok(()) } else { Err("it took too long".to_owned()) }
    });
    if let Err(message) = outcome {
        let closed = if subject.is_closed { "closed" } else { "killed" };
        println!("LOST by seed {seed}, {} {closed}, {what}: {message}", subject.setup.name());
        report.add_loss(KIND, &detail);
    }
}

/// What was done to a store, and to which of its files; whether they are what they were before.
struct Damage {
    what: String,
    place: Place,
    is_earlier: bool,
}

/// Does some damage.
fn damage(files: &mut Files, subject: &Subject, random: &mut fastrand::Rng) -> Damage {
    let at = files.some(random);
    let place = files.place(at);
    let name = files.name(at);
    let kind = random.u8(..20);
    let what = match kind {
        0..=7 => files.flip(at, random),
        8..=10 => files.overwrite(at, random, |_, piece| piece.fill(0)),
        11..=13 => files.overwrite(at, random, |random, piece| random.fill(piece)),
        14 | 15 => files.cut(at, random),
        16 => files.swap(at, random),
        17 => files.duplicate(at, random),
        EARLIER => files.take_from(at, &Files::of(&subject.earlier), "an earlier moment"),
        _ => files.take_from(at, &Files::of(&subject.other), "another store"),
    };
    Damage { what: format!("{name}: {what}"), place, is_earlier: kind == EARLIER }
}

/// Opens the store, reads all of it, checks it and writes. True if any of it was refused. `earlier_commit`: the last one
/// of the moment that the pool is of, if it is not of the last moment.
///
/// # Panics
/// If something is read that should not be there, or missing without an error.
fn look(
    subject: &Subject,
    disk: &SimDisk,
    is_trusted: bool,
    earlier_commit: Option<usize>,
) -> bool {
    let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(disk));
    let options = subject.setup.options().verify_first_touch(true).create(false);
    let store = match Store::open_directory(root, options) {
        Ok(store) => store,
        Err(error) => {
            assert!(!error.to_string().is_empty(), "an error that says nothing");
            return true;
        }
    };
    let found = Content::read(&store).ok();
    let mut is_refused = found.is_none();
    if let Some(found) = found
        && is_trusted
    {
        let models = &subject.models;
        let allowed = if subject.is_closed { &models[models.len() - 1..] } else { &models[..] };
        let is_of_then = earlier_commit.is_some_and(|commit| models[commit] == found);
        assert!(allowed.contains(&found) || is_of_then, "read without an error, and wrong");
    }
    is_refused |= !store.check().is_ok_and(|report| report.is_clean());
    for info in store.keyspaces().unwrap_or_default() {
        let keyspace = store.open_keyspace(&info.name);
        let written = keyspace.and_then(|keyspace| keyspace.insert("key", "value"));
        is_refused |= written.is_err();
    }
    is_refused | store.close().is_err()
}
