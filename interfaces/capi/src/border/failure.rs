//! Errors for C: the function returns a code, the thread keeps a text.
//!
//! Invariants: an exported function that fails has put its text where adamant_last_error finds it;
//! no panic passes `run`.
//! Thread safety: the text belongs to the thread.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use adamant::{Error, LsmError};

use crate::border::code::*;

/// The error of an exported function.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) text: String,
}

/// The result of the inside of an exported function.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

impl Failure {
    /// An error with a code and a text.
    pub(crate) fn new(code: c_int, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// An error for an invalid argument.
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(ADAMANT_INVALID, text)
    }

    /// Puts the text where adamant_last_error finds it; returns the code.
    fn keep(self) -> c_int {
        let Self { code, text } = self;
        // No text of ours has a zero byte, but a name that it quotes may.
        let text = CString::new(text.replace('\0', "\\0")).unwrap_or_default();
        // While a thread exits its text may be gone already: then no call can ask for it.
        let _ = LAST.try_with(|last| last.replace(text));
        code
    }

    fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let words = words.unwrap_or("no text");
        Self::new(ADAMANT_PANIC, format!("the library panicked, which is a defect of it: {words}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(code_of(&error), error.to_string())
    }
}

fn code_of(error: &Error) -> c_int {
    match error {
        Error::NotAscending { .. }
        | Error::NotAParent { .. }
        | Error::PlainValues { .. }
        | Error::WrongMergeOperator { .. }
        | Error::SavepointExists { .. }
        | Error::SavepointName { .. }
        | Error::HasSavepoints { .. }
        | Error::Lsm {
            error:
                LsmError::InvalidOption { .. }
                | LsmError::NoOperator { .. }
                | LsmError::MergeFailed { .. },
            ..
        } => ADAMANT_INVALID,
        Error::KeyTooLong { .. } | Error::PairTooLong { .. } => ADAMANT_KEY_LENGTH,
        Error::ValueTooLong { .. } => ADAMANT_VALUE_LENGTH,
        Error::KeyspaceName { .. } => ADAMANT_NAME,
        Error::UnknownKeyspace { .. } => ADAMANT_UNKNOWN_KEYSPACE,
        Error::KeyspaceExists { .. } => ADAMANT_KEYSPACE_EXISTS,
        Error::KeyspaceDropped { .. } => ADAMANT_KEYSPACE_DROPPED,
        Error::OtherStore { .. } => ADAMANT_OTHER_STORE,
        Error::EngineName { .. } | Error::UnknownEngine { .. } => ADAMANT_UNKNOWN_ENGINE,
        Error::WrongEngine { .. } => ADAMANT_WRONG_ENGINE,
        Error::Missing { .. }
        | Error::MissingLink { .. }
        | Error::UnknownSavepoint { .. }
        | Error::SavepointLost { .. } => ADAMANT_MISSING,
        Error::TargetExists { .. } | Error::TargetInside { .. } => ADAMANT_TARGET,
        Error::Locked { .. } => ADAMANT_LOCKED,
        Error::Conflict { .. } => ADAMANT_CONFLICT,
        Error::SnapshotExpired { .. } => ADAMANT_SNAPSHOT_EXPIRED,
        Error::NotExpiring { .. } => ADAMANT_NOT_EXPIRING,
        Error::WrongKind { .. } => ADAMANT_WRONG_KIND,
        Error::ChangesNotRecorded => ADAMANT_CHANGES_NOT_RECORDED,
        Error::ChangesUnknown { .. } => ADAMANT_CHANGES_UNKNOWN,
        Error::KeyNeeded { .. } => ADAMANT_KEY_NEEDED,
        Error::WrongKey { .. } => ADAMANT_WRONG_KEY,
        Error::NotEncrypted { .. } => ADAMANT_NOT_ENCRYPTED,
        Error::Closed => ADAMANT_CLOSED,
        Error::Reentrant => ADAMANT_REENTRANT,
        _ if error.is_out_of_space() => ADAMANT_OUT_OF_SPACE,
        _ if error.is_poisoned() => ADAMANT_POISONED,
        _ if error.is_read_only() => ADAMANT_READ_ONLY,
        _ if error.is_damaged() => ADAMANT_DAMAGED,
        _ if error.is_unsupported() => ADAMANT_NOT_A_STORE,
        _ if error.is_misuse() => ADAMANT_MISUSE,
        Error::Medium(_) => ADAMANT_SYSTEM,
        _ => ADAMANT_OTHER,
    }
}

/// Runs the inside of an exported function, and turns every outcome into a code, panics too.
pub(crate) fn run(work: impl FnOnce() -> Result<c_int>) -> c_int {
    // After a panic nothing is left half done: the store undoes its part itself, handles for one
    // thread are behind mutexes, which are poisoned, and nothing else of a handle changes.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.keep(),
        Err(payload) => Failure::of_panic(&*payload).keep(),
    }
}

/// Like [`run`], for a function that returns no code.
pub(crate) fn run_or<T>(otherwise: T, work: impl FnOnce() -> Result<T>) -> T {
    let mut done = None;
    run(|| {
        done = Some(work()?);
        Ok(ADAMANT_OK)
    });
    done.unwrap_or(otherwise)
}

/// What the last call of this thread that failed has to say: what was expected, what was found, and
/// what to do. Empty if none failed. The text is there until another call of this thread fails; it
/// is not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// The name of a code, such as "ADAMANT_CONFLICT"; "?" for a number that is none. Not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_code_name(code: c_int) -> *const c_char {
    name_of(code).as_ptr()
}

fn name_of(code: c_int) -> &'static CStr {
    match code {
        ADAMANT_OK => c"ADAMANT_OK",
        ADAMANT_NOT_FOUND => c"ADAMANT_NOT_FOUND",
        ADAMANT_END => c"ADAMANT_END",
        ADAMANT_INVALID => c"ADAMANT_INVALID",
        ADAMANT_PANIC => c"ADAMANT_PANIC",
        ADAMANT_CLOSED => c"ADAMANT_CLOSED",
        ADAMANT_BUSY => c"ADAMANT_BUSY",
        ADAMANT_KEY_LENGTH => c"ADAMANT_KEY_LENGTH",
        ADAMANT_VALUE_LENGTH => c"ADAMANT_VALUE_LENGTH",
        ADAMANT_NAME => c"ADAMANT_NAME",
        ADAMANT_UNKNOWN_KEYSPACE => c"ADAMANT_UNKNOWN_KEYSPACE",
        ADAMANT_KEYSPACE_EXISTS => c"ADAMANT_KEYSPACE_EXISTS",
        ADAMANT_KEYSPACE_DROPPED => c"ADAMANT_KEYSPACE_DROPPED",
        ADAMANT_OTHER_STORE => c"ADAMANT_OTHER_STORE",
        ADAMANT_UNKNOWN_ENGINE => c"ADAMANT_UNKNOWN_ENGINE",
        ADAMANT_WRONG_ENGINE => c"ADAMANT_WRONG_ENGINE",
        ADAMANT_NOT_A_STORE => c"ADAMANT_NOT_A_STORE",
        ADAMANT_MISSING => c"ADAMANT_MISSING",
        ADAMANT_TARGET => c"ADAMANT_TARGET",
        ADAMANT_LOCKED => c"ADAMANT_LOCKED",
        ADAMANT_CONFLICT => c"ADAMANT_CONFLICT",
        ADAMANT_SNAPSHOT_EXPIRED => c"ADAMANT_SNAPSHOT_EXPIRED",
        ADAMANT_READ_ONLY => c"ADAMANT_READ_ONLY",
        ADAMANT_OUT_OF_SPACE => c"ADAMANT_OUT_OF_SPACE",
        ADAMANT_POISONED => c"ADAMANT_POISONED",
        ADAMANT_DAMAGED => c"ADAMANT_DAMAGED",
        ADAMANT_REENTRANT => c"ADAMANT_REENTRANT",
        ADAMANT_TOO_SMALL => c"ADAMANT_TOO_SMALL",
        ADAMANT_MISUSE => c"ADAMANT_MISUSE",
        ADAMANT_SYSTEM => c"ADAMANT_SYSTEM",
        ADAMANT_OTHER => c"ADAMANT_OTHER",
        ADAMANT_NOT_EXPIRING => c"ADAMANT_NOT_EXPIRING",
        ADAMANT_WRONG_KIND => c"ADAMANT_WRONG_KIND",
        ADAMANT_TIMED_OUT => c"ADAMANT_TIMED_OUT",
        ADAMANT_CHANGES_NOT_RECORDED => c"ADAMANT_CHANGES_NOT_RECORDED",
        ADAMANT_CHANGES_UNKNOWN => c"ADAMANT_CHANGES_UNKNOWN",
        ADAMANT_KEY_NEEDED => c"ADAMANT_KEY_NEEDED",
        ADAMANT_WRONG_KEY => c"ADAMANT_WRONG_KEY",
        ADAMANT_NOT_ENCRYPTED => c"ADAMANT_NOT_ENCRYPTED",
        _ => c"?",
    }
}

/// The version of the library, such as "0.1.0". Not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_version() -> *const c_char {
    VERSION.as_ptr()
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero byte"),
    };

/// The number of the library's binary interface. A program compares it with ADAMANT_ABI, which is
/// that of the header it was compiled with: they must be equal.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_abi() -> u32 {
    ADAMANT_ABI
}
