//! `slice`: byte strings, one operation at a time, and many of them.
//!
//! Purpose: the groups of rows and their rounds, over a small trait, so that other types of byte
//! strings can be measured by the same code in the same process (`cargo xtask peers slice`). Types
//! take turns in every group, in an order that is reversed from round to round. A figure of a round
//! is the minimum of several short batches: a batch that is interrupted would measure the
//! interruption.

mod string;
mod ground;

mod many;
mod records;
mod single;

use crate::commands::slice::ground::Ground;
use crate::harness::error::{Result, ensure};
use crate::harness::report::Report;

pub use crate::commands::slice::ground::Settings;
pub use crate::commands::slice::string::{ByteString, VecBytes};

/// The function that measures a group for one type.
type Measure = fn(&mut Ground<'_>) -> Result<()>;

/// A type under measurement.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    name: &'static str,
    groups: [(&'static str, Measure); 3],
}

impl Contender {
    /// The type of strings `S`.
    pub fn of<S: ByteString>() -> Self {
        let groups: [(&str, Measure); 3] = [
            ("single", single::measure::<S>),
            ("records", records::measure::<S>),
            ("many", many::measure::<S>),
        ];
        Self { name: S::NAME, groups }
    }

    /// The engine name of rows.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The rated type.
pub const JUDGED: &str = <adamant_slice::Slice as ByteString>::NAME;

/// The types that `adamant-bench` measures by itself: the slice, and a vector.
pub fn own_contenders() -> Vec<Contender> {
    vec![Contender::of::<adamant_slice::Slice>(), Contender::of::<VecBytes>()]
}

/// Measures all rows of all types for one round; `tell` is called with each next step.
///
/// # Errors
/// Contents that are not what was written, and a thread that panicked.
pub fn round(
    settings: &Settings,
    contenders: &[Contender],
    round: u32,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let groups = contenders.first().map_or(0, |contender| contender.groups.len());
    for group in 0..groups {
        let mut turns: Vec<&Contender> = contenders.iter().collect();
        if round % 2 == 1 {
            turns.reverse();
        }
        for contender in turns {
            let (name, measure) = contender.groups[group];
            tell(&format!("round {}: {name}: {}", round + 1, contender.name));
            measure(&mut Ground { settings, engine: contender.name, report })?;
        }
    }
    Ok(())
}

/// Measures everything.
///
/// # Errors
/// As [`round`].
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    ensure(settings.rounds > 0, || "there is nothing to measure in no rounds".to_owned())?;
    let mut report = Report::new("slice", JUDGED);
    let contenders = own_contenders();
    for number in 0..settings.rounds {
        round(settings, &contenders, number, &mut report, tell)?;
    }
    Ok(report)
}
