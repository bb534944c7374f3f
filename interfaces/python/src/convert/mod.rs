//! Conversion between Python objects and what the store takes and returns. Used by all classes.

pub(crate) mod objects;
pub(crate) mod dynamic;
pub(crate) mod json;
pub(crate) mod typed;
pub(crate) mod codec;
pub(crate) mod choices;
pub(crate) mod key;
pub(crate) mod keyspace_options;
pub(crate) mod path;
pub(crate) mod span;
pub(crate) mod pairs;
pub(crate) mod lent;
pub(crate) mod moment;
pub(crate) mod stats;
