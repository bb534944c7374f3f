//! The journal: how a commit becomes durable, and how it reaches the pool file.
//!
//! A commit appends one record to the log (`log`). A checkpoint (`checkpoint`) copies the pages
//! that records name out of memory (`source`) and writes them to the pool file, and callers that
//! write keep step with it (`pace`). What the log holds beyond the pool (`judge`, `tail`) is laid
//! over pages by one piece of code (`overlay`): opening lays it over those of the file (`recover`,
//! `dirty`), before anything is mapped, and writes them in batches (`batch`) that tables in the
//! head of the pool name (`table`); a copy is made by the same means (`backup`); who only reads
//! lays it over the image (`read_only`). See `docs/format/log.md`.

mod records;
mod checkpoints;
mod worker;
mod stats;
mod recovery;
mod handle;
mod create;
mod opened;
#[cfg(test)]
mod tests;

pub(crate) use checkpoints::batch::{Copies, PageBytes};
pub(crate) use checkpoints::holds::Holds;
pub(crate) use checkpoints::source::PageSource;
pub(crate) use checkpoints::table::Doubt;
pub(crate) use handle::{Checkpoints, Journal};
pub(crate) use opened::Opened;
pub(crate) use records::log_file::remove_if_there;
pub(crate) use records::options::{JournalOptions, RECOVERY_BYTES};
pub(crate) use records::record::RecordBuilder;
pub(crate) use recovery::judge::{Judged, identities, judge};
pub(crate) use recovery::overlay::Private;
pub(crate) use recovery::read_only::ReadOnly;
pub use recovery::recover::Recovery;
pub(crate) use recovery::tail::Tail;
pub use stats::JournalStats;
pub(crate) use worker::{Signal, Worker};
