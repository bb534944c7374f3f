//! Files of records made to do harm are read to an end, or to an error: the short form of the fuzz
//! target.

#[path = "hostile/mod.rs"]
mod program;

use std::path::Path;

/// What begins, separates and ends things in both formats.
const PIECES: [&[u8]; 18] = [
    b"\"",
    b"\\",
    b",",
    b"\n",
    b"\r\n",
    b"\r",
    b"{",
    b"}",
    b":",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"key",
    b"\"key_base64\":\"/w==\"",
    b"-",
    b"a",
    b"\\x4",
    b"\xef\xbb\xbf",
];

#[test]
fn files_of_records_with_changed_bytes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/fuzz/corpus/import");
    let mut programs: Vec<Vec<u8>> = std::fs::read_dir(&corpus)
        .expect("the target has a corpus")
        .map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a file"))
        .collect();
    programs.sort();
    let whole: Vec<usize> = programs.iter().map(|program| program::run(program)).collect();
    assert!(whole.iter().sum::<usize>() >= programs.len(), "{whole:?}");
    let (mut taken, mut harmed) = (0, 0);
    for seed in 0..6000 {
        let mut random = fastrand::Rng::with_seed(seed);
        println!("seed {seed}");
        let number = random.usize(..programs.len());
        let mut program = programs[number].clone();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(..program.len());
            match random.u8(..4) {
                0 => program[at] = random.u8(..),
                1 if program.len() > 1 => drop(program.remove(at)),
                _ => {
                    let piece = PIECES[random.usize(..PIECES.len())];
                    program.splice(at..at, piece.iter().copied());
                }
            }
        }
        let count = program::run(&program);
        taken += count;
        harmed += usize::from(count < whole[number]);
    }
    assert!(harmed > 600 && taken > 600, "{taken} records taken, {harmed} files harmed");
}
