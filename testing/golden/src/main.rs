//! Writes the golden stores of the format that this code writes.
//!
//! `cargo run -p adamant-golden -- write` makes those in `stores/format-1/` that are not there yet.
//! What is there is never written again.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use adamant::Store;
use adamant_golden::{Set, content, image, words};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["write"] {
        eprintln!("usage: adamant-golden write");
        return ExitCode::from(2);
    }
    for set in Set::ALL {
        if let Err(error) = write(set) {
            eprintln!("adamant-golden: {set:?}: {error}");
            return ExitCode::FAILURE;
        }
    }
    if let Err(error) = write_words() {
        eprintln!("adamant-golden: words: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The heap with maps of words.
fn write_words() -> Result<(), Box<dyn Error>> {
    let target = words::folder();
    if target.join("content.txt").exists() {
        eprintln!("{}: there already", target.display());
        return Ok(());
    }
    fs::create_dir_all(&target)?;
    let work = tempfile::tempdir()?;
    let path = work.path().join("heap");
    let heap = words::open(&path)?;
    words::fill(&heap)?;
    let expected = words::describe(&heap)?;
    let crashed = image::pack(&path)?;
    heap.close()?;
    save(&target, &crashed, &image::pack(&path)?, &expected)
}

fn write(set: Set) -> Result<(), Box<dyn Error>> {
    let target = set.folder();
    if target.join("content.txt").exists() {
        eprintln!("{}: there already", target.display());
        return Ok(());
    }
    fs::create_dir_all(&target)?;
    let work = tempfile::tempdir()?;
    let path = work.path().join("store");
    let store = Store::open_with(&path, set.options().background(false))?;
    set.fill(&store)?;
    let expected = content::describe(&store)?;
    // While the store is open its files are what they would be if the process died now.
    let crashed = image::pack(&path)?;
    store.close()?;
    let clean = image::pack(&path)?;
    save(&target, &crashed, &clean, &expected)
}

fn save(target: &Path, crashed: &str, clean: &str, expected: &str) -> Result<(), Box<dyn Error>> {
    // The list last: where it is, the others are.
    for (name, text) in
        [("crashed.runs", crashed), ("clean.runs", clean), ("content.txt", expected)]
    {
        let file = target.join(name);
        fs::write(&file, text)?;
        eprintln!("{}: {} bytes", file.display(), text.len());
    }
    Ok(())
}
