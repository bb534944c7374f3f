//! Parts of `cargo xtask test`, and what they need on the machine. Called by `test` and campaigns.

pub(crate) mod together;
pub(crate) mod parts;
pub(crate) mod python;
pub(crate) mod services;
pub(crate) mod redis_py;
pub(crate) mod docs;
pub(crate) mod package;
pub(crate) mod tools;
pub(crate) mod workers;
