//! Planted mistakes, one in a process. Only in the copy of the tree that `cargo xtask mutants`
//! makes: there this is a module of adamant-wire, `mutants`.
//!
//! Purpose: a test that passes shows little unless it fails when a rule is broken. The mutations
//! ask here whether they are the chosen one; an environment variable names it.
//! Invariants: the choice holds for the life of the process. Thread safety: any thread may ask.

use std::env;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable that names the mistake.
const VARIABLE: &str = "ADAMANT_MUTANT";
/// Begins the line that says that the process reached it.
const REACHED: &str = "planted: ";

static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
static IS_REACHED: AtomicBool = AtomicBool::new(false);

/// Whether the mistake of that name is planted. The first time that it is, standard error says so.
pub fn is_planted(name: &str) -> bool {
    let chosen = CHOSEN.get_or_init(|| env::var(VARIABLE).ok());
    let is_it = chosen.as_deref() == Some(name);
    if is_it && !IS_REACHED.swap(true, Ordering::Relaxed) {
        // Not by a macro: the test harness captures the output of tests until they end.
        let line = format!("{REACHED}{name}\n");
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
    is_it
}
