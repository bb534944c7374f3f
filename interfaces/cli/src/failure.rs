//! Failures of a subcommand, with message and exit code.

use std::fmt;
use std::io;
use std::path::Path;

use adamant_cli::reading;

/// The result of a subcommand.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Exit codes. They are part of the interface: never renumber one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// The reader of standard output is gone; no process is left to report to.
    Unheard = 0,
    /// Anything else, such as a failing device.
    Other = 1,
    /// There is no such store, keyspace, key, input file or commit.
    NotFound = 3,
    /// A malformed line, a key that is too long, bad base64.
    BadInput = 4,
    /// Durable data is damaged.
    Damaged = 5,
    /// Another process has the store open.
    Locked = 6,
    /// No space on the device; what was acknowledged is there.
    OutOfSpace = 7,
    /// The path is no store, or one of a newer version; a merge operator of another program.
    Unsupported = 8,
    /// No key for an encrypted store, a wrong one, or one for a store that is not encrypted.
    Key = 9,
}

/// The exit codes as `--help` shows them; clap itself exits with 2.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed for another reason than those below
  2  wrong usage
  3  no such store, keyspace, key, file or commit
  4  bad input: a malformed line, a key that is too long, bad base64,
     a target where something is
  5  the store is damaged
  6  another process has the store open
  7  no space on the device; what was acknowledged is there
  8  the path is no store, or one of a newer version; a merge operator of
     another program
  9  no key for an encrypted store, a wrong one, none in the file, or one for
     a store that is not encrypted";

/// A failure: its message and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    /// A failure with a message.
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The same failure with a text before its message.
    pub(crate) fn before(self, words: impl fmt::Display) -> Self {
        Self { code: self.code, message: format!("{words}: {}", self.message) }
    }

    /// A check whose only findings are failed reads: no reason to repair.
    pub(crate) fn unread(what: impl fmt::Display, findings: usize) -> Self {
        let message = format!(
            "{what} could not be read as a whole: {findings} findings; look at what the system says of the \
             device, then check again"
        );
        Self::new(Code::Other, message)
    }

    /// A file that could not be read or written.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::new(code_of(error), format!("{}: {error}", path.display()))
    }

    /// Standard output that could not be written. A reader that is gone is no failure.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::new(Code::Unheard, ""),
            _ => Self::new(code_of(error), format!("standard output: {error}")),
        }
    }
}

fn code_of(error: &io::Error) -> Code {
    match error.kind() {
        io::ErrorKind::NotFound => Code::NotFound,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::OutOfSpace,
        _ => Code::Other,
    }
}

impl From<reading::Error> for Failure {
    fn from(error: reading::Error) -> Self {
        match error {
            reading::Error::Unread(error) => Self::file(Path::new("the input"), &error),
            malformed => Self::new(Code::BadInput, malformed.to_string()),
        }
    }
}

impl From<adamant::Error> for Failure {
    fn from(error: adamant::Error) -> Self {
        use adamant::{Error, LsmError};
        let code = match &error {
            Error::KeyTooLong { .. }
            | Error::PairTooLong { .. }
            | Error::ValueTooLong { .. }
            | Error::KeyspaceName { .. }
            | Error::WrongEngine { .. }
            | Error::WrongMergeOperator { .. }
            | Error::PlainValues { .. }
            | Error::NotExpiring { .. }
            | Error::WrongKind { .. }
            | Error::EngineName { .. }
            | Error::KeyspaceExists { .. }
            | Error::SavepointExists { .. }
            | Error::SavepointName { .. }
            | Error::HasSavepoints { .. }
            | Error::TargetExists { .. }
            | Error::TargetInside { .. }
            | Error::NotAParent { .. }
            | Error::Lsm { error: LsmError::MergeFailed { .. }, .. } => Code::BadInput,
            Error::Lsm { error: LsmError::NoOperator { .. }, .. } => Code::Unsupported,
            Error::UnknownKeyspace { .. }
            | Error::UnknownSavepoint { .. }
            | Error::SavepointLost { .. }
            | Error::Missing { .. }
            | Error::MissingLink { .. }
            | Error::ChangesNotRecorded
            | Error::ChangesUnknown { .. } => Code::NotFound,
            Error::Locked { .. } => Code::Locked,
            Error::KeyNeeded { .. } | Error::WrongKey { .. } | Error::NotEncrypted { .. } => {
                Code::Key
            }
            error if error.is_out_of_space() => Code::OutOfSpace,
            error if error.is_damaged() => Code::Damaged,
            error if error.is_unsupported() => Code::Unsupported,
            _ => Code::Other,
        };
        Self::new(code, error.to_string())
    }
}
