//! Files and directories of the operating system. Opened by the store; all else sees the traits of
//! `storage`.

pub(crate) mod pieces;
pub mod memory_limit;
pub mod direct;
pub(crate) mod lock;
#[cfg(target_os = "linux")]
pub(crate) mod dax;
pub(crate) mod handle;
pub(crate) mod allocate;
pub mod os;
