//! The journal: how a commit becomes durable, and how it reaches the pool file.
//!
//! A commit appends one record to the log (`log`). The applier takes durable records to the pool
//! file (`apply`, `checkpoint`) and never looks at the image. Opening applies what the log holds
//! beyond the pool (`recover`) before anything is mapped; who only reads lays that over the image
//! (`read_only`); a copy is made by the same means (`backup`). See `docs/format/log.md`.

mod layout;
mod options;
mod record;
mod poison;
mod log_file;
mod files;
mod chain;
mod group;
mod pending;
mod log;
mod holds;
mod by_page;
mod apply;
mod checkpoint;
mod tail;
mod backup;
mod search;
mod scan;
mod judge;
mod recover;
mod worker;
mod stats;
mod handle;
mod create;
mod overlay;
mod read_only;
mod opened;
#[cfg(test)]
mod tests;

pub(crate) use handle::Journal;
pub(crate) use holds::Holds;
pub(crate) use judge::{Judged, identities, judge};
pub(crate) use log_file::remove_if_there;
pub(crate) use opened::Opened;
pub(crate) use options::JournalOptions;
pub(crate) use overlay::{grow_to_end, lay_over};
pub(crate) use read_only::ReadOnly;
pub(crate) use record::RecordBuilder;
pub use recover::Recovery;
pub use stats::JournalStats;
pub(crate) use tail::Tail;
pub(crate) use worker::{Signal, Worker};
