//! Keyspaces as mappings: reading, iterating, and the writable ones.

pub(crate) mod map;
pub(crate) mod place;
pub(crate) mod cursor;
pub(crate) mod reader;
