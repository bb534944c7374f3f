//! Compaction: writes tables from memtables and from other tables. Called by the tree, for
//! background threads.

mod survivors;
mod fold;
mod output;
mod pick;
mod run;
#[cfg(test)]
mod tests;

pub(crate) use output::Outcome;
pub(crate) use pick::{Job, Pace, Parked, Picker, is_bottom, pick, pick_all};
pub(crate) use run::{LoadPlace, compact, flush, load, reclaim};
