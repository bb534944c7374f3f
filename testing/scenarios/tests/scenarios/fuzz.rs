//! The short form of the fuzz targets: their corpora, and random bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use adamant_scenarios::fuzz::log::Logs;
use adamant_scenarios::fuzz::store::Stores;
use adamant_scenarios::fuzz::{blob, encrypted, operations};
use fastrand::Rng;

/// The corpus of a target.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&directory).expect("every target has a corpus");
    let mut programs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let entry = entry.expect("a directory that can be read");
            let bytes = std::fs::read(entry.path()).expect("a file that can be read");
            (entry.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect();
    programs.sort();
    assert!(!programs.is_empty(), "{}", directory.display());
    programs
}

/// Runs all programs of a corpus, `count` random variations of them, and as many purely random
/// ones. Returns for how many `run` was true, and how many there were.
fn try_all(target: &str, count: u64, run: impl Fn(&[u8]) -> bool) -> (u64, u64) {
    let corpus = corpus(target);
    let attempt = |name: &str, program: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| run(program)))
            .unwrap_or_else(|_| panic!("{target}, {name}: {program:?}"))
    };
    let kept = corpus.iter().filter(|(name, program)| attempt(name, program)).count() as u64;
    let made = (0..2 * count).filter(|&seed| {
        let mut random = Rng::with_seed(seed);
        let mut program = if seed % 2 == 0 {
            corpus[random.usize(..corpus.len())].1.clone()
        } else {
            vec![0; random.usize(1..80)]
        };
        for _ in 0..random.usize(1..6) {
            mutate(&mut program, seed % 2 == 1, &mut random);
        }
        attempt(&format!("seed {seed}"), &program)
    });
    (kept + made.count() as u64, corpus.len() as u64 + 2 * count)
}

fn mutate(program: &mut Vec<u8>, is_whole: bool, random: &mut Rng) {
    if is_whole || program.is_empty() {
        program.push(random.u8(..));
        random.fill(program);
        return;
    }
    let at = random.usize(..program.len());
    match random.u8(..4) {
        0 => program.insert(at, random.u8(..)),
        1 => drop(program.remove(at)),
        _ => program[at] = random.u8(..),
    }
}

#[test]
fn stores_with_changed_bytes() {
    let stores = Stores::new();
    let (opened, tried) = try_all("store", 150, |program| stores.run(program));
    // Some are refused, some go unnoticed: otherwise nothing was tried.
    assert!((tried / 20..tried).contains(&opened), "{opened} of {tried} opened");
}

#[test]
fn logs_of_others_and_changed_ones() {
    let logs = Logs::new();
    let (opened, tried) = try_all("log", 150, |program| logs.run(program));
    assert!((tried / 20..tried).contains(&opened), "{opened} of {tried} opened");
}

#[test]
fn blob_files_with_changed_bytes() {
    let whole = blob::run(&[0]);
    let (harmed, tried) = try_all("blob", 300, |program| blob::run(program) < whole);
    assert!((tried / 4..tried).contains(&harmed), "{harmed} of {tried} did harm");
}

#[test]
fn encrypted_files_with_changed_bytes() {
    let whole = encrypted::run(&[]);
    assert_eq!(whole, 3, "what nobody changed is read");
    let (harmed, tried) = try_all("encrypted", 400, |program| encrypted::run(program) < whole);
    assert!((tried / 4..tried).contains(&harmed), "{harmed} of {tried} did harm");
}

#[test]
fn operations_and_power_cuts() {
    let (recovered, tried) = try_all("operations", 20, |program| operations::run(program) > 0);
    assert!((tried / 2..=tried).contains(&recovered), "{recovered} of {tried} recovered");
}
