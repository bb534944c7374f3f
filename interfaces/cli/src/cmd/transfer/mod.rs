//! Verbs that move whole stores and keyspaces in and out.

pub(crate) mod import;
pub(crate) mod export;
pub(crate) mod backup;
pub(crate) mod restore;
pub(crate) mod copy;
