//! The decoding error of typed keys and values.

use std::fmt;

use crate::error::Error;

/// How many undecodable bytes an error shows.
const SHOWN_BYTES_MAX: usize = 24;

/// Bytes that are not an encoding of the expected type.
///
/// ```
/// # let store = adamant::Store::in_memory()?;
/// use adamant::Error;
///
/// store.keyspace("ages")?.put("ada", "thirty-six")?;
/// let ages = store.keyspace("ages")?.typed::<String, u32>()?;
/// let Err(Error::Encoding { expected, .. }) = ages.get("ada") else { panic!("10 bytes are no u32") };
/// assert_eq!(expected, "4 bytes of a u32");
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    expected: String,
}

impl Malformed {
    /// `expected` describes the right encoding, such as "8 bytes of a u64".
    pub fn new(expected: impl Into<String>) -> Self {
        Self { expected: expected.into() }
    }

    /// The error about bytes of a keyspace, which shows some of them.
    pub(crate) fn error(&self, keyspace: &str, bytes: &[u8]) -> Error {
        let shown = &bytes[..bytes.len().min(SHOWN_BYTES_MAX)];
        let more = if shown.len() < bytes.len() { ".." } else { "" };
        Error::Encoding {
            keyspace: keyspace.into(),
            expected: self.expected.clone(),
            found: format!("{} bytes, \"{}{more}\"", bytes.len(), shown.escape_ascii()),
        }
    }

    /// The expected encoding.
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
