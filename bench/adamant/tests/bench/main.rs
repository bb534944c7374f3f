//! The benchmarks run, and say what they measured.

mod bplus;
mod heap;
mod kv;
mod lsm;
mod maps;
mod memory;
mod slice;
mod splits;
mod transactions;
