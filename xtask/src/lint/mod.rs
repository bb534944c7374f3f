//! Checks of the source: layers, words, names, proofs of unsafe code.

pub(crate) mod layers;
pub(crate) mod words;
pub(crate) mod named;
pub(crate) mod proofs;
pub(crate) mod ways;
pub(crate) mod prose;
pub(crate) mod tidy;
