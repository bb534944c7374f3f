//! The workspace and its source: packages, modules, imports, mutations. Called by all other rooms.

pub(crate) mod workspace;
pub(crate) mod sources;
pub(crate) mod mutations;
pub(crate) mod imports;
pub(crate) mod modules;
