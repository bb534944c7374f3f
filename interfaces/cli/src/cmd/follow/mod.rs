//! Verbs for the feed of changes.

mod describe;
pub(crate) mod changes;
pub(crate) mod watch;
