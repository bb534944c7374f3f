//! Keys of encrypted stores: where the command gets them.
//!
//! Invariants: a key is never an argument, which everyone on the machine can read, and is in no
//! message.

use std::env;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use adamant::{EncryptionKey, Error};

use crate::failure::{Code, Failure, Result};
use crate::key_args::{EncryptArgs, KeyArgs};

const FILE_VARIABLE: &str = "ADAMANT_KEY_FILE";
const COMMAND_VARIABLE: &str = "ADAMANT_KEY_COMMAND";

impl KeyArgs {
    /// The key of the arguments, else that of the environment, if there is one.
    pub(crate) fn key(&self) -> Result<Option<EncryptionKey>> {
        let Self { key_file, key_command } = self;
        match key_file.is_some() || key_command.is_some() {
            true => key_of(key_file.as_deref(), key_command.as_deref()),
            false => {
                let set = |name| env::var_os(name).filter(|value: &OsString| !value.is_empty());
                let file = set(FILE_VARIABLE).map(PathBuf::from);
                key_of(file.as_deref(), set(COMMAND_VARIABLE).as_deref())
            }
        }
    }

    /// Whether the key is read from standard input.
    pub(crate) fn takes_input(&self) -> bool {
        self.key_file.as_deref() == Some(Path::new("-"))
    }
}

impl EncryptArgs {
    /// The key that is to open the store.
    pub(crate) fn new_key(&self) -> Result<EncryptionKey> {
        let key = key_of(self.new_key_file.as_deref(), self.new_key_command.as_deref())?;
        key.ok_or_else(|| Failure::new(Code::Key, "expected a new key (--new-key-file)"))
    }
}

fn key_of(file: Option<&Path>, command: Option<&OsStr>) -> Result<Option<EncryptionKey>> {
    let read = match (file, command) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let words = format!(
                "expected one key, found both a file and a command for it; give one of --key-file and \
                 --key-command, or set one of {FILE_VARIABLE} and {COMMAND_VARIABLE}"
            );
            return Err(Failure::new(Code::Key, words));
        }
        (Some(file), None) if file == Path::new("-") => {
            EncryptionKey::read_from(io::stdin().lock(), Path::new("standard input"))
        }
        (Some(file), None) => EncryptionKey::read(file),
        (None, Some(command)) => EncryptionKey::from_command(command),
    };
    read.map(Some).map_err(|error| {
        let error = Error::from(error);
        let system = error.source().and_then(|medium| medium.source()).or(error.source());
        let kind = system.and_then(|it| it.downcast_ref()).map(io::Error::kind);
        let code = match kind {
            Some(ErrorKind::NotFound) => Code::NotFound,
            Some(ErrorKind::InvalidData) => Code::Key,
            _ => Code::Other,
        };
        Failure::new(code, error.to_string())
    })
}
