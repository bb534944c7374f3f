//! Checkpoints: writing dirty pages to the pool file, in batches that tables of doubt name. Called
//! by the journal and by recovery.

pub(super) mod holds;
pub(super) mod table;
pub(super) mod old_pages;
pub(super) mod keepers;
pub(super) mod batch;
pub(super) mod pace;
pub(super) mod source;
pub(super) mod checkpoint;
