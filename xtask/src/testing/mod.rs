//! Every test, and what it needs on the machine: for `cargo xtask test`.

pub(crate) mod together;
pub(crate) mod parts;
pub(crate) mod python;
pub(crate) mod redis_py;
pub(crate) mod docs;
pub(crate) mod package;
pub(crate) mod remote;
pub(crate) mod tools;
pub(crate) mod workers;
