//! The health of the store: whether it accepts writes, for operators.
//!
//! Purpose: a store that is poisoned knows it. Lack of space shows only when a commit is tried: the
//! refused one is remembered, and the keeper tries one like it until that succeeds.
//! Thread safety: any thread.

use adamant::Error;
use parking_lot::Mutex;

/// The state of the space for commits.
#[derive(Debug, Default)]
pub(crate) struct Health {
    refused: Mutex<Option<Refused>>,
}

/// A commit for which there was no space.
#[derive(Debug)]
struct Refused {
    bytes: usize,
    words: String,
}

/// Why the store accepts no writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// A single word, which reveals nothing about this machine.
    pub(crate) kind: &'static str,
    /// The full text.
    pub(crate) words: String,
}

impl Health {
    /// Notes that a commit of `bytes` bytes has failed.
    pub(crate) fn note(&self, error: &Error, bytes: usize) {
        if error.is_out_of_space() {
            *self.refused.lock() = Some(Refused { bytes, words: error.to_string() });
        }
    }

    /// Bytes of the refused commit, if none like it has succeeded since.
    pub(crate) fn refused_bytes(&self) -> Option<usize> {
        self.refused.lock().as_ref().map(|refused| refused.bytes)
    }

    /// Notes that such a commit has succeeded.
    pub(crate) fn recover(&self) {
        *self.refused.lock() = None;
    }

    /// Reports lack of space, if there is any.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let refused = self.refused.lock();
        refused.as_ref().map(|it| Trouble { kind: "no space", words: it.words.clone() })
    }
}
