//! Bytes that are not what a type is encoded to.

use std::fmt;

/// Bytes that are not an encoding of the type they were taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    expected: String,
}

impl Malformed {
    /// `expected` says what would have been right, as "8 bytes of a u64".
    pub fn new(expected: impl Into<String>) -> Self {
        Self { expected: expected.into() }
    }

    /// What would have been right.
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found other bytes", self.expected)
    }
}

impl std::error::Error for Malformed {}
