//! Which keyspace a verb is for, and how keys and values on the command line are written.

use std::ffi::OsString;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::failure::{Code, Failure, Result};

/// The keyspace of a store.
#[derive(Debug, clap::Args)]
pub(crate) struct Target {
    /// Folder of the store
    #[arg(value_name = "STORE")]
    pub(crate) store: PathBuf,

    /// Name of the keyspace: 1 to 255 bytes, any characters
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) keyspace: String,
}

/// How keys and values on the command line are written.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Encoding {
    /// Keys and values of the command line are base64
    #[arg(long)]
    pub(crate) base64: bool,
}

impl Encoding {
    /// The bytes that an argument stands for.
    pub(crate) fn bytes(self, argument: &OsString) -> Result<Vec<u8>> {
        let bytes = argument.as_encoded_bytes();
        if !self.base64 {
            return Ok(bytes.to_vec());
        }
        STANDARD.decode(bytes).map_err(|error| {
            Failure::new(
                Code::BadInput,
                format!("expected base64, found {:?}: {error}", argument.to_string_lossy()),
            )
        })
    }
}
