//! `splits`: three ways to split a leaf of a B+ tree, side by side.
//!
//! Purpose: tests the claims of the report from which Adamant's own tree grew. Each way is a small
//! crash-safe tree on the heap ([`leaves::Leaves`]), whose splits are part of the transaction of
//! the insert that needs room. They are filled in key order, as in the report, on memory with
//! flushes on.

mod settings;

pub mod strategy;

mod slots;
mod strings;

pub mod leaves;

mod measured;

mod document;

use crate::commands::splits::settings::VALUE_BYTES;
use crate::harness::error::Result;
use crate::harness::report::Report;

pub use crate::commands::splits::document::markdown;
pub use crate::commands::splits::settings::Settings;
pub use crate::commands::splits::slots::Slots;
pub use crate::commands::splits::strings::{Copied, Swapped, SwappedWide};

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of the heap or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("splits", <Slots as strategy::Strategy>::NAME);
    for round in 0..settings.rounds {
        for value_bytes in VALUE_BYTES {
            tell(&format!("round {}: {value_bytes} B", round + 1));
            measured::measure(settings, value_bytes, round, &mut report)?;
        }
    }
    Ok(report)
}
