//! Keys from a command: that of a key store, which prints one.
//!
//! Invariants: neither the command, which may hold a password, nor what it prints is in an error.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use zeroize::Zeroizing;

use super::key::EncryptionKey;
use crate::error::{Error, Result};

/// What errors say of its standard error, at most.
const WORDS_BYTES_MAX: usize = 1024;

impl EncryptionKey {
    /// The key that a command of the shell prints, as [`EncryptionKey::parse`] reads it. Its input
    /// is empty.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use adamant_medium::encrypted::key::EncryptionKey;
    ///
    /// let command = "printf %064d 7"; // A program that asks a key store.
    /// let key = EncryptionKey::from_command(command.as_ref()).unwrap();
    /// assert!(key.to_text().ends_with("007"));
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Error::Io`, with what the command says to standard error if it fails, and of kind
    /// `InvalidData` if it prints no key.
    pub fn from_command(command: &OsStr) -> Result<Self> {
        let failed = |source| Error::io("run", Path::new("the key command"), None, 0, source);
        let Output { status, stdout, stderr } =
            shell(command).stdin(Stdio::null()).output().map_err(failed)?;
        let stdout = Zeroizing::new(stdout);
        if !status.success() {
            let words = stderr.get(..WORDS_BYTES_MAX).unwrap_or(&stderr).trim_ascii();
            let words = format!("{status}: {}", String::from_utf8_lossy(words));
            return Err(failed(io::Error::other(words)));
        }
        Self::read_from(stdout.as_slice(), Path::new("what the key command printed"))
    }
}

#[cfg(not(windows))]
fn shell(command: &OsStr) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(windows)]
fn shell(command: &OsStr) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    // As it is: the shell takes quotes apart by rules of its own.
    shell.arg("/C").raw_arg(command);
    shell
}
