//! Records, the files of the log, and the group commit: the path of a commit to durability. Called
//! by the journal; recovery reads the files.

pub(super) mod layout;
pub(super) mod options;
pub(super) mod record;
pub(super) mod poison;
pub(super) mod log_file;
pub(super) mod files;
pub(super) mod chain;
pub(super) mod group;
pub(super) mod pending;
pub(super) mod log;
