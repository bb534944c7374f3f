//! Files and directories of Windows.

mod file;
mod lock;
mod directory;

pub use directory::OsDirectory;
pub(crate) use file::OsFile;
