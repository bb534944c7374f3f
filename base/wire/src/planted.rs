//! Mistakes that can be planted, one in a process: for builds that test the tests.
//!
//! Purpose: a test that passes shows little unless it fails where something is missing. Every rule
//! of the design and every test of a checksum asks here whether it is to be left out; the
//! environment of the process names the one that is. `cargo xtask mutants` runs the tests once
//! for each name, and fails if nobody notices. Compiled under the feature `mutants` alone, which
//! nothing turns on by itself.
//! Invariants: the choice holds for the life of the process. Thread safety: any thread may ask.

use std::env;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What names the mistake.
const VARIABLE: &str = "ADAMANT_MUTANT";
/// How the line begins that says that the process came to it.
const REACHED: &str = "planted: ";

static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
static IS_REACHED: AtomicBool = AtomicBool::new(false);

/// Whether the mistake of that name is planted. The first time that it is, standard error says so.
pub fn is_planted(name: &str) -> bool {
    let chosen = CHOSEN.get_or_init(|| env::var(VARIABLE).ok());
    let is_it = chosen.as_deref() == Some(name);
    if is_it && !IS_REACHED.swap(true, Ordering::Relaxed) {
        // Not by a macro: what tests print is kept from who runs them until they end.
        let line = format!("{REACHED}{name}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    is_it
}
