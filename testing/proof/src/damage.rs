//! Damage to whole stores: bits flipped, bytes zeroed or made noise, files cut, swapped,
//! duplicated, taken from another store or from an earlier moment.
//!
//! Each damaged store is opened in five ways, each on a copy of its own: opened and written to,
//! opened read only, checked, backed up, repaired. Whatever was done, each gives right data or says
//! what is wrong, soon, and panics never. Right is: of a store that was closed, all of its content;
//! of one whose process died, that of a commit with all acknowledged ones. Where its log is damaged
//! that may be an earlier one, since nothing tells of the last record that it was ever durable. Of
//! a repair that says what it lost each entry is in some commit. Pages are verified when first
//! touched, as an option of stores has it, or read by a filled image, which verifies them always.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adamant::{ImageKind, Store, repair_into};
use adamant_medium::storage::Directory;
use adamant_scenarios::crashes::{Content, Mix, Setup, Workload};
use adamant_sim::{Promise, SimDirectory, SimDisk};

use crate::attempt::attempt;
use crate::budget::Budget;
use crate::files::{Files, Place};
use crate::report::Report;

const KIND: &str = "damage";
/// The ways to open a store, as the counts name them.
const WAYS: [(&str, Way); 5] = [
    ("written", look_and_write),
    ("read only", look),
    ("checked", check),
    ("backed up", back_up),
    ("repaired", repair),
];
/// Damages of one store.
const ROUND: u64 = 20;
/// Of the twenty kinds of damage the one that takes files from an earlier moment, and the one that
/// takes them from another store.
const EARLIER: u8 = 18;
const OTHER: u8 = 19;
/// Longer than anything here takes, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a way to open came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// Right data.
    Right,
    /// It said what is wrong.
    Said,
}

/// Opens a store in some way; it is wrong if this panics.
type Way = fn(&Trial<'_>, &SimDisk) -> Answer;

/// A store, as it may be found: with what it may hold, and as it was before.
struct Subject {
    setup: Setup,
    disk: SimDisk,
    models: Vec<Content>,
    /// The last commit that has to be there.
    least: usize,
    is_closed: bool,
    earlier: SimDisk,
    other: SimDisk,
    /// What the other store held, after each of its commits.
    other_models: Vec<Content>,
}

/// Goes through all setups again and again until the time is over.
pub(crate) fn run(budget: &Budget, seed: u64, report: &mut Report) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut setups = Setup::all();
    random.shuffle(&mut setups);
    let mut answers = Answers::default();
    for setup in setups.iter().cycle() {
        if budget.is_over() || report.is_lost() {
            break;
        }
        let subject = match attempt(|| subject(*setup, &mut random)) {
            Ok(subject) => subject,
            Err(message) => {
                println!("LOST without damage by seed {seed}, {}: {message}", setup.name());
                report.add_loss(KIND, setup.name());
                continue;
            }
        };
        for _ in 0..ROUND {
            if budget.is_over() || report.is_lost() {
                break;
            }
            try_damage(&subject, &mut random, seed, report, &mut answers);
        }
    }
    answers.print();
}

fn subject(setup: Setup, random: &mut fastrand::Rng) -> Subject {
    let mix =
        |seed| Mix { seed, steps: 30, upkeep_one_in: 12, rare_one_in: 6, setup, ..Mix::default() };
    let other = SimDisk::new(random.u64(..));
    let other_models = Workload::run(&other, mix(random.u64(..)));
    let mix = mix(random.u64(..));
    let disk = SimDisk::new(mix.seed);
    let mut workload = Workload::create(&disk, mix).unwrap();
    let (steps, is_closed) = (random.u64(10..mix.steps), random.bool());
    (0..steps).for_each(|_| workload.step().unwrap());
    let earlier = disk.kill(disk.operation_count());
    (steps..mix.steps).for_each(|_| workload.step().unwrap());
    let end = disk.operation_count();
    let models = workload.models.clone();
    let end = if is_closed {
        workload.close().unwrap();
        disk.operation_count()
    } else {
        end
    };
    let kept = Promise::at_death(&disk, end).least as usize;
    let least = if is_closed { models.len() - 1 } else { kept };
    let (disk, other) = (disk.kill(end), other.kill(other.operation_count()));
    Subject { setup, disk, models, least, is_closed, earlier, other, other_models }
}

/// What each way came to, over all trials: right, said what is wrong, wrong.
#[derive(Default)]
struct Answers([[u64; 3]; WAYS.len()]);

impl Answers {
    fn print(&self) {
        for ((name, _), [right, said, wrong]) in WAYS.iter().zip(self.0) {
            println!("{name}: {right} right, {said} said what is wrong, {wrong} wrong in silence");
        }
    }
}

fn try_damage(
    subject: &Subject,
    random: &mut fastrand::Rng,
    seed: u64,
    report: &mut Report,
    answers: &mut Answers,
) {
    let disk = subject.disk.cursor().kill();
    let mut files = Files::of(&disk);
    let Damage { what, place, kind } = damage(&mut files, subject, random);
    let has_end = subject.is_closed || place != Place::Log;
    let least = if has_end { subject.least } else { 0 };
    let is_of_other = kind == OTHER && place == Place::Pool;
    let trial = Trial { subject, least, is_of_other, is_filled: random.bool() };
    for ((name, way), counts) in WAYS.iter().zip(&mut answers.0) {
        let copy = disk.kill(disk.operation_count()).without_history();
        let detail = format!("{place}, {name}");
        report.add(KIND, &detail, 1);
        let start = Instant::now();
        let outcome = attempt(|| way(&trial, &copy)).and_then(|answer| {
            if start.elapsed() < PATIENCE { Ok(answer) } else { Err("it took too long".into()) }
        });
        match outcome {
            Ok(Answer::Right) => counts[0] += 1,
            Ok(Answer::Said) => counts[1] += 1,
            Err(message) => {
                counts[2] += 1;
                let closed = if subject.is_closed { "closed" } else { "killed" };
                let setup = subject.setup.name();
                println!("LOST by seed {seed}, {setup} {closed}, {what}, {name}: {message}");
                report.add_loss(KIND, &detail);
            }
        }
    }
}

/// What was done to a store, to which of its files, and of which kind it is.
struct Damage {
    what: String,
    place: Place,
    kind: u8,
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
        OTHER.. => files.take_from(at, &Files::of(&subject.other), "another store"),
    };
    Damage { what: format!("{name}: {what}"), place, kind }
}

/// A damaged store.
struct Trial<'a> {
    subject: &'a Subject,
    /// The last commit that has to be there, if nothing else is said.
    least: usize,
    /// Whether it may be what is left of the other store: the pool is that one's.
    is_of_other: bool,
    /// Whether pages are verified because they are read, and not because an option says so.
    is_filled: bool,
}

impl Trial<'_> {
    fn open(&self, disk: &SimDisk, read_only: bool) -> adamant::Result<Store> {
        let setup = self.subject.setup;
        let options = setup.options().create(false);
        let options = match self.is_filled {
            true => options.image(ImageKind::Filled),
            false => options.image(ImageKind::default()).verify_first_touch(true),
        };
        let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(disk));
        let opened = Store::open_directory(root, options.read_only(read_only));
        if let Err(error) = &opened {
            assert!(!error.to_string().is_empty(), "an error that says nothing");
        }
        opened
    }

    /// What all of a store holds.
    ///
    /// # Panics
    /// If something is read that should not be there, or missing without an error.
    fn read(&self, store: &Store) -> Answer {
        let Ok(found) = Content::read(store) else { return Answer::Said };
        self.verify(&found);
        Answer::Right
    }

    fn verify(&self, found: &Content) {
        let models = &self.subject.models;
        if !models[self.least..].contains(found) {
            let commit = models.iter().rposition(|model| model == found);
            panic!("read without an error, and wrong: commit {commit:?} of {}", models.len() - 1);
        }
    }

    /// Whether each entry is one that was committed, whenever; all of them to one store.
    fn verify_saved(&self, found: &Content) {
        let Subject { models, other_models, .. } = self.subject;
        let Some((name, key)) = never_there(models, found) else { return };
        let is_other = self.is_of_other && never_there(other_models, found).is_none();
        assert!(is_other, "saved, and never there: {key:?} of {name:?}");
    }
}

/// An entry that no commit of these left behind: the name of its keyspace, and its key.
fn never_there<'a>(models: &[Content], found: &'a Content) -> Option<(&'a str, &'a [u8])> {
    let was_there = |key: &[u8], value: &[u8]| {
        let mut maps = models.iter().flat_map(|model| model.keyspaces.values());
        maps.any(|map| map.get(key).is_some_and(|found| found.as_ref() == value))
    };
    found.keyspaces.iter().find_map(|(name, map)| {
        let stranger = map.iter().find(|(key, value)| !was_there(key, value));
        stranger.map(|(key, _)| (name.as_str(), key.as_ref()))
    })
}

/// Opens the store, reads all of it, checks it and writes.
fn look_and_write(trial: &Trial<'_>, disk: &SimDisk) -> Answer {
    let Ok(store) = trial.open(disk, false) else { return Answer::Said };
    let mut is_said = trial.read(&store) == Answer::Said;
    is_said |= !store.check().is_ok_and(|report| report.is_clean());
    for info in store.keyspaces().unwrap_or_default() {
        let keyspace = store.open_keyspace(&info.name);
        let written = keyspace.and_then(|keyspace| keyspace.insert("key", "value"));
        is_said |= written.is_err();
    }
    if is_said | store.close().is_err() { Answer::Said } else { Answer::Right }
}

/// Reads all of it, and changes no file.
fn look(trial: &Trial<'_>, disk: &SimDisk) -> Answer {
    let Ok(store) = trial.open(disk, true) else { return Answer::Said };
    trial.read(&store)
}

/// Checks it. What a check finds nothing in holds what it should, all of it.
fn check(trial: &Trial<'_>, disk: &SimDisk) -> Answer {
    let Ok(store) = trial.open(disk, true) else { return Answer::Said };
    if !store.check().is_ok_and(|report| report.is_clean()) {
        return Answer::Said;
    }
    let answer = trial.read(&store);
    assert!(answer == Answer::Right, "a check found nothing, a read an error");
    answer
}

/// Makes a copy, which holds what it should, if there is one.
fn back_up(trial: &Trial<'_>, disk: &SimDisk) -> Answer {
    let Ok(store) = trial.open(disk, true) else { return Answer::Said };
    let copy = SimDisk::new(0);
    let root: Arc<dyn Directory> = Arc::new(SimDirectory::root(&copy));
    if store.backup_into(&root).is_err() {
        return Answer::Said;
    }
    drop(root);
    let copied = trial.open(&copy, true);
    match copied {
        Ok(copied) => trial.read(&copied),
        Err(error) => panic!("a copy that does not open: {error}"),
    }
}

/// Saves what is left. Without a word of what was lost that is all.
fn repair(trial: &Trial<'_>, disk: &SimDisk) -> Answer {
    let source: Arc<dyn Directory> = Arc::new(SimDirectory::root(disk));
    let saved = SimDisk::new(0);
    let target: Arc<dyn Directory> = Arc::new(SimDirectory::root(&saved));
    let options = trial.subject.setup.options();
    let Ok(report) = repair_into(&source, target, options) else { return Answer::Said };
    let losses: u64 = report.keyspaces.iter().map(|keyspace| keyspace.loss_count).sum();
    let store = match trial.open(&saved, false) {
        Ok(store) => store,
        Err(error) => panic!("a repaired store that does not open: {error}"),
    };
    let checked = store.check().expect("a repaired store is checked");
    assert!(checked.is_clean(), "a repaired store: {:?}", checked.findings);
    let found = Content::read(&store).expect("a repaired store is read");
    if report.findings.is_empty() && losses == 0 {
        trial.verify(&found);
        return Answer::Right;
    }
    trial.verify_saved(&found);
    Answer::Said
}
