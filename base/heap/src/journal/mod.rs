//! The journal: how a commit becomes durable, and how it reaches the pool file.
//!
//! A commit appends one record to the log (`log`). A checkpoint (`checkpoint`) copies the pages that
//! records name out of memory (`source`) and writes them to the pool file, and callers that write keep
//! step with it (`pace`). What the log holds beyond the pool
//! (`judge`, `tail`) is laid over pages by one piece of code (`overlay`): opening lays it over
//! those of the file (`recover`, `dirty`), before anything is mapped, and writes them in batches
//! (`batch`) that tables in the head of the pool name (`table`); a copy is made by the same means
//! (`backup`); who only reads lays it over the image (`read_only`). See `docs/format/log.md`.

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
mod table;
mod batch;
mod pace;
mod source;
mod checkpoint;
mod tail;
mod overlay;
mod dirty;
mod backup;
mod search;
mod scan;
mod judge;
mod recover;
mod worker;
mod stats;
mod handle;
mod create;
mod read_only;
mod opened;
#[cfg(test)]
mod tests;

pub(crate) use batch::{Copies, PageBytes};
pub(crate) use handle::{Checkpoints, Journal};
pub(crate) use holds::Holds;
pub(crate) use judge::{Judged, identities, judge};
pub(crate) use log_file::remove_if_there;
pub(crate) use opened::Opened;
pub(crate) use options::{JournalOptions, RECOVERY_BYTES};
pub(crate) use overlay::Private;
pub(crate) use read_only::ReadOnly;
pub(crate) use record::RecordBuilder;
pub use recover::Recovery;
pub(crate) use source::PageSource;
pub use stats::JournalStats;
pub(crate) use table::Doubt;
pub(crate) use tail::Tail;
pub(crate) use worker::{Signal, Worker};
