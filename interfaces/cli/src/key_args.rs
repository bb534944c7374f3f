//! Command-line arguments for the keys of encrypted stores.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;

/// The key of all stores that a verb opens; see `keys.rs` for the variables.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// The key of an encrypted store: a file with 64 hexadecimal digits or 32 bytes, - for standard
    /// input; a store that is made is encrypted by it [env: ADAMANT_KEY_FILE]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) key_file: Option<PathBuf>,

    /// The same by a command of the shell, which prints the key [env: ADAMANT_KEY_COMMAND]
    #[arg(long, value_name = "COMMAND", global = true)]
    pub(crate) key_command: Option<OsString>,
}

/// A store, and the key that is to open it.
#[derive(Debug, clap::Args)]
pub(crate) struct EncryptArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,

    /// The key that is to open it from now on: a file as of --key-file
    #[arg(long, value_name = "FILE", required_unless_present = "new_key_command")]
    pub(crate) new_key_file: Option<PathBuf>,

    /// The same by a command of the shell, which prints the key
    #[arg(long, value_name = "COMMAND", conflicts_with = "new_key_file")]
    pub(crate) new_key_command: Option<OsString>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DecryptArgs {
    /// Folder of the store
    pub(crate) store: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct KeyVerbArgs {
    #[command(subcommand)]
    pub(crate) action: KeyAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyAction {
    /// Write a random key as 64 hexadecimal digits, which only the owner of the file can read
    New {
        /// The file, which is not there yet
        file: PathBuf,
    },
}
