//! Fuzz targets: hostile programs of bytes, for `testing/fuzz`, and for a test on the stable
//! toolchain that runs them over their corpora and over random bytes.
//!
//! A program is short, and any bytes are valid. If it damages files, every call to the store ends,
//! with a result or an error; nothing panics, and nothing takes more memory than the files justify.
//! Where checksums can tell, results are correct.

mod image;
mod seals;
mod usage;

pub mod blob;
pub mod encrypted;
pub mod log;
pub mod operations;
pub mod store;
