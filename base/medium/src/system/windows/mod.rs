//! Files and directories of Windows.

mod directory;
mod file;
pub(crate) mod lock;

pub use directory::OsDirectory;
pub(crate) use file::OsFile;
