//! `maps`: the ordered maps by themselves.
//!
//! Purpose: insert, remove and get of random `u64` keys, by three sizes of transactions, with a
//! word or a newly allocated object as the value: times, and storage costs of each operation. A key
//! is 8 bytes, the highest first; trees are created for words, as typed maps of such keys and
//! values create them.

mod settings;
mod table;

mod ground;

mod container;
mod saving;

use adamant_trees::{Bplus, Btree, Critbit, OrderedMap, Redblack};

use crate::commands::maps::ground::Ground;
use crate::harness::asked::AskedRows;
use crate::harness::error::{Result, ensure};
use crate::harness::place::ENGINE;
use crate::harness::report::Report;

pub use crate::commands::maps::settings::{Settings, Value};
pub use crate::commands::maps::table::{Cell, Table};

/// Operations of a transaction; `None` is one transaction for all.
const BATCHES: [Option<u64>; 3] = [None, Some(1), Some(1_000)];

/// The B-tree with the default order: see decision 0015.
const CHOSEN_ORDER: &str = "btree-16";

/// The name of a structure, and the function that measures it.
type Measure = fn(&mut Ground<'_>) -> Result<()>;

/// All structures.
const STRUCTURES: [(&str, Measure); 7] = [
    ("bplus", measure::<Bplus>),
    ("critbit", measure::<Critbit>),
    ("redblack", measure::<Redblack>),
    ("btree-8", |ground| ground.measure(&|tx| Btree::create_of_words_with_order(tx, 8))),
    ("btree-16", |ground| ground.measure(&|tx| Btree::create_of_words_with_order(tx, 16))),
    ("btree-32", |ground| ground.measure(&|tx| Btree::create_of_words_with_order(tx, 32))),
    ("btree-64", |ground| ground.measure(&|tx| Btree::create_of_words_with_order(tx, 64))),
];

fn measure<T: OrderedMap>(ground: &mut Ground<'_>) -> Result<()> {
    ground.measure(&|tx| T::create_of_words(tx))
}

/// Measures everything, and reports the rows that have targets, with those of the range set and of
/// a container that threads fill; `tell` is called with each next step.
///
/// # Errors
/// The first of the heap or the file system, and contents that are not what was written.
pub fn run(
    settings: &Settings,
    asked: &AskedRows,
    tell: &mut dyn FnMut(&str),
) -> Result<(Table, Report)> {
    let wanted = |name: &str| settings.structure.as_deref().is_none_or(|wanted| wanted == name);
    ensure(STRUCTURES.iter().any(|(name, _)| wanted(name)), || {
        let names = STRUCTURES.map(|(name, _)| name).join(", ");
        format!("there is no such structure; there are {names}")
    })?;
    let mut table = Table::default();
    let mut report = Report::new("maps", ENGINE);
    for round in 0..settings.rounds {
        for (name, measure) in STRUCTURES.iter().filter(|(name, _)| wanted(name)) {
            // The other orders serve to choose the default.
            let is_other = name.starts_with("btree") && *name != CHOSEN_ORDER;
            let values = if is_other { &Value::ALL[..1] } else { &Value::ALL };
            for (value, batch) in values.iter().flat_map(|v| BATCHES.map(|b| (*v, b))) {
                let batch_name = batch.map_or("all".to_owned(), |batch| batch.to_string());
                tell(&format!("{name} {} {batch_name}", value.name()));
                let seed = u64::from(round) + 1;
                let mut ground = Ground::new(settings, (value, batch), seed);
                measure(&mut ground)?;
                table.add((*name, value.name(), batch_name), ground.cell);
            }
        }
        if settings.structure.is_none() {
            tell("one large transaction");
            saving::measure(settings, &mut report)?;
            tell("a container");
            container::measure(settings, &mut report)?;
        }
    }
    table.judge(asked, settings.pairs, &mut report);
    Ok((table, report))
}
