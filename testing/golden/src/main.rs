//! Writes the golden stores of the format that this code writes.
//!
//! `cargo run -p adamant-golden -- write` makes them in `stores/format-1/`. To be run once for
//! each version of the format: what is there afterwards is never written again.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use adamant::{Options, Store};
use adamant_golden::{content, image};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["write"] {
        eprintln!("usage: adamant-golden write");
        return ExitCode::from(2);
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("stores/format-1");
    match write(&target) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("adamant-golden: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(target: &Path) -> Result<(), Box<dyn Error>> {
    if target.join("content.txt").exists() {
        let what = "there are golden stores of this format already; they are never rewritten";
        return Err(format!("{}: {what}", target.display()).into());
    }
    fs::create_dir_all(target)?;
    let work = tempfile::tempdir()?;
    let path = work.path().join("store");
    let store = Store::open_with(&path, Options::new().background(false))?;
    content::fill(&store)?;
    let expected = content::describe(&store)?;
    // While the store is open its files are what they would be if the process died now.
    let crashed = image::pack(&path)?;
    store.close()?;
    let clean = image::pack(&path)?;
    for (name, text) in
        [("crashed.runs", &crashed), ("clean.runs", &clean), ("content.txt", &expected)]
    {
        let file: PathBuf = target.join(name);
        fs::write(&file, text)?;
        eprintln!("{}: {} bytes", file.display(), text.len());
    }
    Ok(())
}
