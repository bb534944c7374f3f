//! `cargo xtask mutants`: mutation testing with planted faults.
//!
//! Purpose: a passing test proves little unless it fails when the code is wrong. Each rule of the
//! design, each test of a checksum and each order of a rename can be left out by name, in a copy of
//! the sources (`copy.rs`) that the tables of `xtask/mutations` change. The simulator leaves out
//! calls that flush, fence and sync, one place in the source after the other; and some tests plant
//! faults of their own. This runs the tests that should notice, prints which did, and fails if a
//! fault was not noticed.
//! Invariants: a test counts only if it passes with nothing planted; a fault counts as noticed only
//! if the test reached it. The names in the tables equal those of the list.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::campaigns::copy::Copy;
use crate::campaigns::planted::{MISTAKES_OF_TESTS, Mutant, PLANTED, SITES, Suite, Test};
use crate::campaigns::programs::{Programs, Ran};
use crate::source::mutations::{self, Mutation};
use crate::source::workspace::Workspace;
use crate::testing::workers::side_by_side;

/// The line by which a process reports that it reached the fault.
const REACHED: &str = "planted: ";
/// Maximum characters of a test's output that are shown.
const SHOWN: usize = 110;

/// The selection.
struct Options {
    /// Only faults whose names have this prefix.
    prefix: String,
    /// One fault of each rule, and no calls: less than a minute.
    is_smoke: bool,
}

/// The verdict on a fault.
struct Verdict {
    name: String,
    noticed: bool,
    /// The test that noticed it, and the first line of its output; or the reason why none did.
    why: String,
}

/// Runs it, with the options `--smoke` and `--only PREFIX`. True if all were noticed.
pub(crate) fn run(options: &[&str]) -> Result<bool, String> {
    let options = match options {
        [] => Options { prefix: String::new(), is_smoke: false },
        ["--smoke"] => Options { prefix: String::new(), is_smoke: true },
        ["--only", prefix] => Options { prefix: (*prefix).into(), is_smoke: false },
        other => return Err(format!("expected --smoke or --only PREFIX, found {other:?}")),
    };
    let workspace = Workspace::load()?;
    let mutations = mutations::load(&workspace.root)?;
    verify_names(&mutations)?;
    let jobs = jobs(&options);
    let trial = Trial::new(&workspace, &mutations, &jobs)?;
    trial.run(jobs)?;
    Ok(trial.finish())
}

/// A job of one or more processes.
#[derive(Clone, Copy)]
enum Job {
    /// A test under the simulator, which leaves out one call after the other.
    LeaveOut(&'static Test),
    /// A fault to plant.
    Plant(&'static Mutant),
    /// A test that plants a fault by itself.
    Ask(&'static str, &'static Test),
}

impl Job {
    fn tests(&self) -> &'static [Test] {
        match self {
            Self::LeaveOut(test) | Self::Ask(_, test) => std::slice::from_ref(*test),
            Self::Plant(mutant) => mutant.tests,
        }
    }
}

/// All selected jobs, the longest first; each idle worker takes the next one.
fn jobs(options: &Options) -> Vec<Job> {
    let calls = SITES.iter().filter(|_| leaves_out_calls(options)).map(Job::LeaveOut);
    let planted = chosen(options).into_iter().map(Job::Plant);
    let asked = own_mistakes(options).map(|(name, test)| Job::Ask(name, test));
    calls.chain(planted).chain(asked).collect()
}

/// The selected faults of tests.
fn own_mistakes(options: &Options) -> impl Iterator<Item = &'static (&'static str, Test)> {
    let is_asked = |it: &&(&str, Test)| !options.is_smoke && it.0.starts_with(&options.prefix);
    MISTAKES_OF_TESTS.iter().filter(is_asked)
}

fn leaves_out_calls(options: &Options) -> bool {
    !options.is_smoke && "call".starts_with(&options.prefix)
}

/// The selected faults to plant.
fn chosen(options: &Options) -> Vec<&'static Mutant> {
    let mut rules = BTreeSet::new();
    let rule = |mutant: &Mutant| mutant.name.split('.').next().unwrap_or(mutant.name);
    let is_chosen = |mutant: &&Mutant| {
        mutant.name.starts_with(&options.prefix)
            && (!options.is_smoke || rules.insert(rule(mutant)))
    };
    PLANTED.iter().filter(is_chosen).collect()
}

/// The name of a call that was left out, whether it was noticed, and by which test or why not.
type Calls = BTreeMap<String, (bool, String)>;

/// Programs, tests that are known to pass, and verdicts.
struct Trial {
    copy: Copy,
    programs: Programs,
    sound: Mutex<BTreeSet<Test>>,
    verdicts: Mutex<Vec<Verdict>>,
    calls: Mutex<Calls>,
}

impl Trial {
    /// Builds only the programs with the tests of these faults: building takes most of the time.
    fn new(workspace: &Workspace, mutations: &[Mutation], jobs: &[Job]) -> Result<Self, String> {
        let suites = jobs.iter().flat_map(Job::tests).map(|test| test.suite).collect();
        let copy = Copy::make(workspace, mutations)?;
        let programs = Programs::build(workspace, &copy, &suites)?;
        let (sound, verdicts, calls) = Default::default();
        Ok(Self { copy, programs, sound, verdicts, calls })
    }

    /// Runs all jobs in parallel: nearly every test uses one processor.
    fn run(&self, jobs: Vec<Job>) -> Result<(), String> {
        side_by_side(jobs, |job| {
            match job {
                Job::LeaveOut(test) => self.leave_out_calls(test)?,
                Job::Plant(mutant) => self.add(self.plant(mutant)?),
                Job::Ask(name, test) => self.add(self.ask(name, test)?),
            }
            Ok(true)
        })?;
        for (name, (noticed, why)) in std::mem::take(&mut *locked(&self.calls)) {
            self.add(Verdict { name, noticed, why });
        }
        Ok(())
    }

    /// Whether a test passes with nothing planted: run once.
    fn is_sound(&self, test: &Test) -> Result<bool, String> {
        if locked(&self.sound).contains(test) {
            return Ok(true);
        }
        let ran = self.programs.run(test, None)?;
        if ran.has_passed {
            locked(&self.sound).insert(*test);
        }
        Ok(ran.has_passed)
    }

    /// Plants a fault and runs one test after the other.
    fn plant(&self, mutant: &Mutant) -> Result<Verdict, String> {
        let mut missed = Vec::new();
        for test in mutant.tests {
            if !self.is_sound(test)? {
                missed.push(format!("{} fails with nothing planted", name_of(test)));
                continue;
            }
            let ran = self.programs.run(test, Some(mutant.name))?;
            let line = format!("{REACHED}{}", mutant.name);
            let is_reached = ran.lines.contains(&line);
            if !ran.has_passed && is_reached {
                let (who, what, seconds) = (name_of(test), complaint(&ran), ran.time.as_secs_f64());
                let why = format!("{who}, {seconds:.1} s: {what}");
                return Ok(Verdict { name: mutant.name.into(), noticed: true, why });
            }
            let how = match (is_reached, ran.has_passed) {
                (false, true) => "never comes to it",
                (false, false) => "fails without coming to it",
                (true, _) => "passes",
            };
            missed.push(format!("{} {how}", name_of(test)));
        }
        let why = format!("NOT NOTICED: {}", missed.join(", "));
        Ok(Verdict { name: mutant.name.into(), noticed: false, why })
    }

    /// Runs a test that plants a fault itself and passes if that is noticed.
    fn ask(&self, name: &str, test: &Test) -> Result<Verdict, String> {
        let ran = self.programs.run(test, None)?;
        let what = if ran.has_passed { "the test says so".into() } else { complaint(&ran) };
        let why = format!("{}, {:.1} s: {what}", name_of(test), ran.time.as_secs_f64());
        Ok(Verdict { name: name.into(), noticed: ran.has_passed, why })
    }

    /// Has the simulator leave out calls that make something durable, one by one, and adopts its
    /// verdicts. A call in several suites is noticed if one of them does; a call that none notices
    /// is needless, and a test that passes anyway must justify that.
    fn leave_out_calls(&self, test: &Test) -> Result<(), String> {
        let ran = self.programs.run(test, None)?;
        let mut calls = locked(&self.calls);
        for (call, noticed) in ran.lines.iter().filter_map(|line| verdict_of(line)) {
            let (verb, place) = call.split_once(" at ").unwrap_or(("call", call));
            let name = format!("call.{}@{}", verb.replace(' ', "-"), self.copy.source_place(place));
            let why = match noticed {
                Some(said) => format!("{}: {said}", name_of(test)),
                None if ran.has_passed => format!("needless, {} says why", name_of(test)),
                None => format!("NOT NOTICED by {}", name_of(test)),
            };
            let is_fine = noticed.is_some() || ran.has_passed;
            let known = calls.entry(name).or_insert_with(|| (is_fine, why.clone()));
            if noticed.is_some() && (!known.0 || known.1.starts_with("needless")) {
                *known = (true, why);
            }
        }
        if !ran.has_passed {
            let why = format!("NOT NOTICED: {}", complaint(&ran));
            calls.insert(format!("calls.{}", name_of(test)), (false, why));
        }
        Ok(())
    }

    fn add(&self, verdict: Verdict) {
        println!("{}: {}", verdict.name, verdict.why);
        locked(&self.verdicts).push(verdict);
    }

    /// Prints the lines for the table of all proofs, and the sum. True if all were noticed.
    fn finish(self) -> bool {
        let verdicts = locked(&self.verdicts);
        for Verdict { name, noticed, .. } in &*verdicts {
            println!("proof\tmutants\t{name}\t1\t{}", u8::from(!noticed));
        }
        let unnoticed: Vec<&str> =
            verdicts.iter().filter(|it| !it.noticed).map(|it| &*it.name).collect();
        let (all, missed) = (verdicts.len(), unnoticed.len());
        println!("{all} mistakes planted, {} noticed", all - missed);
        if missed > 0 {
            println!("not noticed: {}", unnoticed.join(", "));
        }
        missed == 0
    }
}

/// The state is valid even after a panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name_of(test: &Test) -> String {
    let Suite { package, target } = test.suite;
    match target {
        "" => format!("{package} {}", test.name),
        _ => format!("{package}/{target} {}", test.name),
    }
}

/// The output of a failed test, in short.
fn complaint(ran: &Ran) -> String {
    if ran.is_endless {
        return "it did not end".into();
    }
    // Earlier panics are expected by the test, or were caught and reported.
    let at = ran.lines.iter().rposition(|line| line.contains(" panicked at "));
    let line = at.and_then(|at| ran.lines[at + 1..].iter().find(|line| !line.is_empty()));
    let line = line.or_else(|| ran.lines.iter().rev().find(|line| !line.is_empty()));
    line.map_or_else(|| "it died".into(), |line| line.trim().chars().take(SHOWN).collect())
}

/// The call and the output without it, from a line such as `fence at
/// base/heap/src/journal/handle.rs:10:3, 7 calls: commit 4 was recovered`.
fn verdict_of(line: &str) -> Option<(&str, Option<&str>)> {
    // The first line that a test prints follows libtest's own output.
    let begun = line.strip_prefix("test ").and_then(|line| line.split_once(" ... "));
    let (call, rest) = begun.map_or(line, |(_, said)| said).split_once(", ")?;
    let (count, said) = rest.split_once(" calls: ")?;
    let is_call = call.contains(" at ") && call.contains(".rs:");
    let is_count = count.bytes().all(|byte| byte.is_ascii_digit());
    (is_call && is_count).then_some((call, Some(said).filter(|said| *said != "NOT NOTICED")))
}

/// Verifies that the names of the mutations equal those of the list.
fn verify_names(mutations: &[Mutation]) -> Result<(), String> {
    let found: BTreeSet<&str> =
        mutations.iter().flat_map(|mutation| &mutation.names).map(String::as_str).collect();
    let listed: BTreeSet<&str> = PLANTED.iter().map(|mutant| mutant.name).collect();
    if listed.len() < PLANTED.len() {
        return Err("a mistake is listed twice in planted.rs".into());
    }
    let missing: Vec<_> = found.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&found).collect();
    if missing.is_empty() && gone.is_empty() {
        return Ok(());
    }
    Err(format!(
        "planted.rs lists no tests of {missing:?}, and xtask/mutations has no entry of {gone:?}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sources;

    #[test]
    fn reads_verdicts_of_the_simulator() {
        let line = "sync directory at base/heap/src/a.rs:10:3, 7 calls: commit 4, of 5 calls: gone";
        let said = Some("commit 4, of 5 calls: gone");
        assert_eq!(verdict_of(line), Some(("sync directory at base/heap/src/a.rs:10:3", said)));
        assert_eq!(
            verdict_of("fence at a.rs:1:2, 3 calls: NOT NOTICED").map(|it| it.1),
            Some(None)
        );
        let first = format!("test a::b ... {line}");
        assert_eq!(verdict_of(&first), verdict_of(line));
        assert_eq!(verdict_of("12 crash points, 3 calls: of what"), None);
    }

    #[test]
    fn mutations_fit_the_sources_and_have_tests() {
        let workspace = Workspace::load().unwrap();
        let mutations = mutations::load(&workspace.root).unwrap();
        verify_names(&mutations).unwrap();
        let problems = mutations::apply(&workspace.root, &mutations).err();
        assert!(problems.is_none(), "{}", problems.unwrap().join("\n"));
        let of_mistakes = PLANTED.iter().flat_map(|mutant| mutant.tests);
        let tests = of_mistakes.chain(SITES).chain(MISTAKES_OF_TESTS.iter().map(|(_, test)| test));
        let mut texts = BTreeMap::new();
        for test in tests {
            let text: &String = texts.entry(test.suite.package).or_insert_with(|| {
                let package = workspace.package(test.suite.package).unwrap();
                let files = sources::rust_files(&workspace.root.join(&package.folder)).unwrap();
                files.iter().map(|file| sources::read(file).unwrap()).collect()
            });
            let name = test.name.rsplit("::").next().unwrap_or(test.name);
            assert!(text.contains(&format!("fn {name}(")), "there is no {test:?}");
        }
    }

    #[test]
    fn a_complaint_is_the_first_line_of_the_last_panic() {
        let lines = ["planted: a", "thread 'a' panicked at src/a.rs:1:2:", "left", "right"];
        let lines = lines.map(str::to_owned).to_vec();
        let time = std::time::Duration::ZERO;
        let ran = Ran { has_passed: false, is_endless: false, lines, time };
        assert_eq!(complaint(&ran), "left");
    }
}
