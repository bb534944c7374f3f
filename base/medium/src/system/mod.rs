//! Files and directories of the operating system. Opened by the store; all else sees the traits of
//! `storage`.

pub(crate) mod pieces;
pub mod memory_limit;
pub(crate) mod holder;
pub(crate) mod random;
pub(crate) mod sync_beside;
pub mod direct;
#[cfg(unix)]
pub(crate) mod lock;
#[cfg(target_os = "linux")]
pub(crate) mod dax;
pub(crate) mod handle;
pub(crate) mod complete;
#[cfg(unix)]
mod allocate;
#[cfg(unix)]
pub mod os;
#[cfg(windows)]
pub mod windows;
#[cfg(windows)]
pub use windows as os;
