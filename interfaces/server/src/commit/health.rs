//! Whether the store takes writes, for those who look after the server.
//!
//! Purpose: a store that is poisoned knows it. That there is no space is known of a commit that was tried:
//! the one that was refused is remembered, and the keeper tries one like it until that succeeds.
//! Thread safety: any thread.

use adamant::Error;
use parking_lot::Mutex;

/// What is known of the space for commits.
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

/// Why the store takes no writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// In a word, which tells strangers nothing of this machine.
    pub(crate) kind: &'static str,
    /// All of it.
    pub(crate) words: String,
}

impl Health {
    /// A commit of so many bytes has failed.
    pub(crate) fn note(&self, error: &Error, bytes: usize) {
        if error.is_out_of_space() {
            *self.refused.lock() = Some(Refused { bytes, words: error.to_string() });
        }
    }

    /// Bytes of the commit that was refused, if none like it has succeeded since.
    pub(crate) fn refused_bytes(&self) -> Option<usize> {
        self.refused.lock().as_ref().map(|refused| refused.bytes)
    }

    /// A commit like that has succeeded.
    pub(crate) fn recover(&self) {
        *self.refused.lock() = None;
    }

    /// That there is no space, if so.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let refused = self.refused.lock();
        refused.as_ref().map(|it| Trouble { kind: "no space", words: it.words.clone() })
    }
}
