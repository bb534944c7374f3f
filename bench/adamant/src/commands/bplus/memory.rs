//! Memory beside the files: what grows with the tree.
//!
//! A child process fills a tree and compares the kernel's counts before the heap is opened and
//! after the last insert. It does nothing else and frees nothing in between that an allocator could
//! reuse unseen; memory on a swap device counts, too.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::commands::bplus::ground::{Ground, create};
use crate::commands::bplus::records::{Order, Records};
use crate::commands::bplus::writes::put;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::{memory_private_bytes, memory_tables_bytes};
use crate::harness::place::{self, DURABILITY};
use crate::harness::report::Unit;

/// First argument of a child process.
pub const CHILD_COMMAND: &str = "bplus-memory-child";

/// Adds, in bytes a pair: `memory`, of the process, and `memory.tables`, of the page tables of the
/// mappings.
pub(super) fn measure(ground: &mut Ground<'_>) -> Result<()> {
    let (records, pairs) = (ground.records, ground.settings.pairs);
    let place = ground.place("memory");
    let output = Command::new(env::current_exe()?)
        .args([CHILD_COMMAND, records.order.name()])
        .args([records.value_bytes() as u64, records.seed(), pairs].map(|n| n.to_string()))
        .arg(&place)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    ensure(output.status.success(), || "the child that fills a tree failed".into())?;
    let text = String::from_utf8(output.stdout)?;
    let mut figures = text.split_whitespace();
    for row in ["memory", "memory.tables"] {
        let bytes: u64 = figures.next().ok_or("the child said nothing")?.parse()?;
        ground.add(row, Unit::Bytes, pairs, bytes as f64 / pairs as f64);
    }
    Ok(std::fs::remove_dir_all(place)?)
}

/// The child's work, from the arguments after `CHILD_COMMAND`: fills a tree, and prints the bytes
/// of the rows.
///
/// # Errors
/// The heap's, or invalid arguments.
pub fn child(arguments: &[String]) -> Result<()> {
    let [order, value_bytes, seed, pairs, place] = arguments else {
        return Err("a child needs an order, three numbers and a directory".into());
    };
    let order = Order::of(order).ok_or("there is no such order")?;
    let records = Records::new(order, value_bytes.parse()?, seed.parse()?);
    let pairs: u64 = pairs.parse()?;
    let (memory, tables) = (memory_private_bytes()?, memory_tables_bytes()?);
    let heap = place::open(Path::new(place))?;
    let map = create(&heap)?;
    for index in 0..pairs {
        heap.transaction(DURABILITY, |tx| put(tx, map, &records, index, 0))?;
    }
    let memory = memory_private_bytes()?.saturating_sub(memory);
    let tables = memory_tables_bytes()?.saturating_sub(tables);
    println!("{memory} {tables}");
    Ok(heap.close()?)
}
