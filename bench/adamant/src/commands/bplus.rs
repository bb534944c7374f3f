//! `bplus`: the B+ tree by itself, each operation a transaction of its own.
//!
//! Purpose: rates, storage costs, space and memory with keys of 20 bytes and values of 800 and of
//! 15, in key order and in a random one; against a `BTreeMap` and against plain stores into the
//! same memory. The targets in `asked.toml` come with the figures of others. Figures are medians
//! over rounds.

mod records;
mod settings;

mod floor;

mod ground;

mod reads;
mod space;
mod volatile;
mod writes;

mod memory;

use crate::commands::bplus::ground::Ground;
use crate::harness::error::Result;
use crate::harness::place::ENGINE;
use crate::harness::report::Report;

pub use crate::commands::bplus::memory::{CHILD_COMMAND, child};
pub(crate) use crate::commands::bplus::records::{Order, Records};
pub use crate::commands::bplus::settings::Settings;

/// Bytes of values.
const VALUE_BYTES: [usize; 2] = [800, 15];

/// Measures everything; `tell` is called with each next step.
///
/// # Errors
/// The first of the heap or the file system, and contents that are not what was written.
pub fn run(settings: &Settings, tell: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut report = Report::new("bplus", ENGINE);
    for round in 0..settings.rounds {
        for value_bytes in VALUE_BYTES {
            tell(&format!("round {}: {value_bytes} B: the floor", round + 1));
            floor::measure(settings, value_bytes, &mut report)?;
            for order in Order::ALL {
                let records = Records::new(order, value_bytes, u64::from(round) + 1);
                tell(&format!("round {}: {}: BTreeMap", round + 1, records.name()));
                volatile::measure(settings, &records, &mut report)?;
                tell(&format!("round {}: {}: the tree", round + 1, records.name()));
                measure(&mut Ground::new(settings, &records, &mut report)?)?;
            }
        }
    }
    add_ratios(&mut report)?;
    Ok(report)
}

/// All rows of one tree.
fn measure(ground: &mut Ground<'_>) -> Result<()> {
    writes::fill(ground)?;
    space::efficiency(ground)?;
    reads::measure(ground)?;
    writes::overwrite(ground)?;
    writes::delete(ground)?;
    space::left(ground)?;
    writes::refill(ground)?;
    space::reopen(ground)?;
    ground.end()?;
    memory::measure(ground)
}

/// Rows that compare with others of the same round.
fn add_ratios(report: &mut Report) -> Result<()> {
    for value_bytes in VALUE_BYTES {
        for order in Order::ALL {
            let get = format!("get.{}.{value_bytes}", order.name());
            report.add_ratio(&format!("{get}.vs_btreemap"), &get, (&get, volatile::NAME))?;
        }
        for (row, floor) in [("fill", "append.cold"), ("refill", "append.1fence")] {
            let row = format!("{row}.sequential.{value_bytes}");
            let floor = format!("{floor}.{value_bytes}");
            report.add_ratio(&format!("{row}.vs_floor"), &row, (&floor, floor::NAME))?;
        }
    }
    Ok(())
}
