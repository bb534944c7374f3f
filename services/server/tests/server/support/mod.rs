//! Servers, connections and certificates for tests.

pub(crate) mod connections;
pub(crate) mod certificates;
pub(crate) mod program;
pub(crate) mod exchange;
