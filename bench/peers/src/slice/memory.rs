//! Memory of an element: what a vector of strings takes, counted by an allocator that counts.
//!
//! The counting allocator is that of a program of its own, `adamant-peers-memory`, so that nothing
//! that is timed has it.

use std::env;
use std::process::{Command, Stdio};

use adamant_bench::commands::slice::{ByteString, VecBytes};
use adamant_bench::harness::error::{Result, ensure};
use serde_json::{Value, json};

use crate::slice::types::{Counted, Hip, Shared, View};

/// Lengths of the strings.
pub const LENGTHS: [usize; 8] = [0, 8, 16, 20, 24, 64, 1024, 65_536];

/// One line for each type and length, from the program that counts.
///
/// # Errors
/// When it is not beside this program, or fails.
pub fn lines(strings: usize) -> Result<Vec<Value>> {
    let name = format!("adamant-peers-memory{}", env::consts::EXE_SUFFIX);
    let program = env::current_exe()?.with_file_name(name);
    ensure(program.is_file(), || {
        "the program that counts memory was not built: `cargo xtask peers slice` builds it".into()
    })?;
    let output = Command::new(program)
        .arg(strings.to_string())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure(output.status.success(), || "the program that counts memory failed".to_owned())?;
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?)
}

/// What the program that counts prints; `used` says how many bytes are allocated now.
pub fn count(strings: usize, used: &dyn Fn() -> usize) {
    of::<adamant_slice::Slice>(strings, used);
    of::<View>(strings, used);
    of::<Shared>(strings, used);
    of::<Counted>(strings, used);
    of::<VecBytes>(strings, used);
    of::<Hip>(strings, used);
}

fn of<S: ByteString>(strings: usize, used: &dyn Fn() -> usize) {
    for len in LENGTHS {
        let bytes = vec![7; len];
        let before = used();
        let mut all: Vec<S> = Vec::with_capacity(strings);
        all.extend((0..strings).map(|_| S::copy_of(&bytes)));
        let each = (used() - before) as f64 / strings as f64;
        drop(all);
        let line = json!({
            "row": format!("memory.{len}"), "engine": S::NAME, "unit": "B", "round": 0,
            "median": each,
        });
        println!("{line}");
    }
}
