//! State shared by all handles of an open store: the catalogue, versions for snapshots, background
//! workers. Used by everything but engines.

pub(crate) mod spans;
pub(crate) mod content;
pub(crate) mod recorded_options;
pub(crate) mod catalogue_entry;
pub(crate) mod catalogue;
pub(crate) mod kept;
pub(crate) mod lent_values;
pub(crate) mod seen;
pub(crate) mod versions;
pub(crate) mod background;
pub(crate) mod state;
pub(crate) mod change;
pub(crate) mod change_codec;
pub(crate) mod history;
pub(crate) mod undone_changes;
pub(crate) mod cache_policy;
pub(crate) mod sweeper;
pub(crate) mod shared;
pub(crate) mod keyspace_options;
pub(crate) mod chunked;
