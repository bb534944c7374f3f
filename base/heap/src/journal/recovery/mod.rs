//! Recovery: finds the tail of the log and applies it to pages. For opening, backups, `check` and
//! `repair`.

pub(super) mod tail;
pub(super) mod overlay;
pub(super) mod dirty;
pub(super) mod backup;
pub(super) mod go_back;
pub(super) mod search;
pub(super) mod scan;
pub(super) mod validate;
pub(super) mod recover;
pub(super) mod as_of;
pub(super) mod read_only;
pub(super) mod beside;
