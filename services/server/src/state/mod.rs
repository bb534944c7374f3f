//! The state that commands work on: keyspaces, cursors, watched keys, and their calls. Called by
//! commands and commits.

pub(crate) mod clock;
pub(crate) mod cursors;
pub(crate) mod fences;
pub(crate) mod watch;
pub(crate) mod data;
pub(crate) mod call;
