//! Reading one version: lookups, merges and scans. Used by the tree and compactions.

pub(crate) mod merge;
pub(crate) mod lookup;
pub(crate) mod sources;
pub(crate) mod scan;
pub(crate) mod estimate;
