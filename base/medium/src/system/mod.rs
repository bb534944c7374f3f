//! Files and directories of the operating system.

pub(crate) mod pieces;
pub mod direct;
pub(crate) mod lock;
pub(crate) mod dax;
pub(crate) mod handle;
pub mod os;
