//! The feed of changes: commits in order, live and from the past; positions of those that read it.

pub(crate) mod feed;
mod settings;
mod cursors;
pub(crate) mod info;
