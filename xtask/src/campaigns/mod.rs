//! Long runs: sanitizers, mutants, fuzzing, proofs, peers. Called by `main`; in short by `test`.

pub(crate) mod soundness;
pub(crate) mod sanitize;
pub(crate) mod emulate;
pub(crate) mod zig;
pub(crate) mod portable;
pub(crate) mod packages;
pub(crate) mod fuzz;
pub(crate) mod field;
pub(crate) mod numbers;
pub(crate) mod stress;
pub(crate) mod planted;
pub(crate) mod copy;
pub(crate) mod programs;
pub(crate) mod mutants;
pub(crate) mod proof_lines;
pub(crate) mod proof;
pub(crate) mod pmdk;
pub(crate) mod peers;
pub(crate) mod servers;
