//! Programs made of bytes, which do harm: the fuzz targets of `testing/fuzz`, and what a test on
//! the stable toolchain runs over their corpora and over bytes at random.
//!
//! A program is short, and any bytes are one. Where it tampers with files, all that is asked of the
//! store ends, with answers or with errors; nothing panics, and nothing takes more memory than the
//! files give reason for. Where checksums can tell, answers are right ones.

mod image;
mod seals;
mod usage;

pub mod blob;
pub mod log;
pub mod operations;
pub mod store;
