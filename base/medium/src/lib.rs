//! The system interface of Adamant: regions of memory, files, locks and the flush of cache lines.
//! No other crate makes system calls.
//!
//! [`storage`] and [`address::persist`] have the traits that the rest is written against;
//! [`system::os`] and [`memory`] implement them, and so does the simulator in `testing/sim`.
//! [`bare`] is for measurements.

#[cfg(not(all(any(unix, windows), target_endian = "little", target_pointer_width = "64")))]
compile_error!("Adamant needs a 64-bit little-endian Unix or Windows, on x86-64 or aarch64.");

pub mod error;
pub mod fork;
pub mod address;
pub mod names;
pub mod storage;
pub mod system;
pub mod memory;
#[cfg(feature = "encryption")]
pub mod encrypted;
pub mod bare;
