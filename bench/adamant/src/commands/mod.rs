//! The benchmarks, one for each command of `adamant-bench`.

pub mod kv;
pub mod heap;
pub mod maps;
pub mod bplus;
pub mod splits;
pub mod slice;
pub mod transactions;
pub mod bounded;
pub mod lsm;
pub mod large;
pub mod beside;
pub mod values;
