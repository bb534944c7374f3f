//! Memory by address: reserved regions, mapped pieces, huge pages, cache lines. Used by files, and
//! by the heap's image.

#[cfg(target_os = "linux")]
pub(crate) mod tmpfs;
mod vm;
pub mod region;
#[cfg(target_os = "linux")]
mod mapped;
pub mod huge;
pub mod persist;
#[cfg(target_os = "linux")]
pub(crate) mod lines;
#[cfg(target_os = "linux")]
pub(crate) mod window;
pub mod bell;
#[cfg(target_os = "linux")]
pub(crate) mod futex;
