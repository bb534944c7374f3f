//! The benchmarks run, and say what they measured.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

mod beside;
mod bplus;
mod heap;
mod kv;
mod large;
mod lsm;
mod maps;
mod memory;
mod slice;
mod splits;
mod transactions;

/// The program.
fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_adamant-bench"))
}

/// Runs the program, which succeeds: the rows that it wrote to `json`, and the table.
fn run(command: &mut Command, json: &Path) -> (Vec<Value>, String) {
    let output = command.arg("--json").arg(json).output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {talk}");
    let text = fs::read_to_string(json).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (rows, String::from_utf8(output.stdout).unwrap())
}

/// Runs the program in a new folder, given as `--path`; it succeeds. What it printed.
fn printed(arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut command = program();
    command.args(arguments).arg("--path").arg(directory.path());
    let output = command.output().expect("the program runs");
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
    out.into_owned()
}
