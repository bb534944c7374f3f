//! Backup, restore, savepoints, compaction, repair and rescue of whole stores. Called by users
//! alone.

pub(crate) mod unfinished;
pub(crate) mod rebuild;
pub(crate) mod backup;
pub(crate) mod backup_since;
pub(crate) mod restore;
pub(crate) mod savepoints;
pub(crate) mod go_back;
pub(crate) mod compact;
#[cfg(feature = "encryption")]
pub(crate) mod encrypt;
pub(crate) mod rescue;
pub(crate) mod repair;
