//! The journal: durability of commits, and checkpoints to the pool file.
//!
//! A commit appends one record to the log (`records`). A checkpoint (`checkpoints`) copies the
//! pages that records name out of memory (its page source) and writes them to the pool file;
//! callers that write are throttled to keep step with it (its pace). One piece of code (`overlay`
//! in `recovery`) applies what the log holds beyond the pool to pages: opening applies it to those
//! of the file, before anything is mapped, and writes them in batches that tables in the head of
//! the pool name; a backup is made by the same means; a read-only open applies it to the image. See
//! `docs/format/log.md`.

mod records;
mod readers;
mod savepoints;
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
pub(crate) use handle::{CheckpointLock, Journal};
pub(crate) use opened::Opened;
pub(crate) use readers::READERS_NAME;
pub(crate) use records::log_file::remove_if_there;
pub(crate) use records::options::{JournalOptions, RECOVERY_BYTES};
pub(crate) use records::record::RecordBuilder;
pub use recovery::beside::Refresh;
pub(crate) use recovery::go_back::Arrival;
pub(crate) use recovery::overlay::Private;
pub(crate) use recovery::read_only::ReadOnly;
pub use recovery::recover::Recovery;
pub(crate) use recovery::tail::Tail;
pub(crate) use recovery::validate::{Validated, identities, validate};
pub(crate) use savepoints::layout::SAVEPOINT_NAME_BYTES_MAX;
pub(crate) use savepoints::registry::Registry;
pub use savepoints::registry::{Savepoint, SavepointState};
pub(crate) use savepoints::view::PoolView;
pub use stats::JournalStats;
pub(crate) use worker::{Signal, Worker, Workers};
