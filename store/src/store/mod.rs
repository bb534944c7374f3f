//! The store: opening, options, sync points, figures. Called by users; `care` opens stores by it.

pub(crate) mod inspect;
pub(crate) mod replacement;
pub(crate) mod open;
pub(crate) mod sync_point;
pub(crate) mod handle;
mod keyspaces;
mod upkeep;
pub(crate) mod compression;
pub(crate) mod exclusive;
pub(crate) mod attempts;
pub(crate) mod refresh;
pub(crate) mod objects;
