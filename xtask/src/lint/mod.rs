//! Checks of the source: layers, words, names, ways, prose, methods by handle, proofs of unsafe
//! code. Called by `main` and `quick`.

pub(crate) mod layers;
pub(crate) mod words;
pub(crate) mod named;
pub(crate) mod proofs;
pub(crate) mod ways;
pub(crate) mod prose;
pub(crate) mod gaps;
pub(crate) mod methods;
pub(crate) mod tidy;
