//! Requests of clients to the state machine, and its responses.
//!
//! Purpose: changes of named keyspaces, which every node applies in the same order with the same
//! result.
//! Invariants: whether a request is refused depends on the request alone, so all nodes refuse the
//! same ones: a changed limit is another format.

use std::fmt;

use adamant::{KEY_BYTES_MAX, NAME_BYTES_MAX, VALUE_BYTES_MAX};
use serde::{Deserialize, Serialize};

use crate::layout::{DEADLINES, RESERVED};

/// Maximum bytes of keys, values and names of a request: 64 MiB. An entry of the log is one value,
/// and is sent as one message.
pub const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// One change of a request, or a condition of it. The first put into a keyspace creates it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// Sets the value of a key.
    Put {
        /// The keyspace.
        keyspace: String,
        /// The key.
        #[serde(with = "bytes")]
        key: Vec<u8>,
        /// Its new value.
        #[serde(with = "bytes")]
        value: Vec<u8>,
    },
    /// Removes a key, if it is there.
    Delete {
        /// The keyspace.
        keyspace: String,
        /// The key.
        #[serde(with = "bytes")]
        key: Vec<u8>,
    },
    /// Removes the keys of a range. Takes memory for them while it is applied.
    DeleteRange {
        /// The keyspace.
        keyspace: String,
        /// The first key of the range; empty for the first there is.
        #[serde(with = "bytes")]
        start: Vec<u8>,
        /// The first key after the range; `None` for no end.
        end: Option<Vec<u8>>,
    },
    /// Makes the request change nothing unless a key has this value now, including earlier changes
    /// of the same request.
    Compare {
        /// The keyspace.
        keyspace: String,
        /// The key.
        #[serde(with = "bytes")]
        key: Vec<u8>,
        /// Its value; `None` if it must have none.
        expected: Option<Vec<u8>>,
    },
    /// Sets the value of a key in a keyspace of expiring entries (`Store::expiring`), and its
    /// deadline. The first put into a keyspace makes it one of expiring entries, or a plain one:
    /// later puts of the other kind are refused, and removals of the other kind find nothing.
    PutEnding {
        /// The keyspace.
        keyspace: String,
        /// The key.
        #[serde(with = "bytes")]
        key: Vec<u8>,
        /// Its new value.
        #[serde(with = "bytes")]
        value: Vec<u8>,
        /// Milliseconds since 1970 at which it expires; `None`: never.
        deadline: Option<u64>,
    },
    /// Removes a key of a keyspace of expiring entries, if it is there.
    DeleteEnding {
        /// The keyspace.
        keyspace: String,
        /// The key.
        #[serde(with = "bytes")]
        key: Vec<u8>,
    },
    /// Removes entries of a keyspace of expiring entries that have expired at a moment, regardless
    /// of the clocks of nodes.
    Expire {
        /// The keyspace.
        keyspace: String,
        /// Milliseconds since 1970.
        now: u64,
        /// Maximum number, the first ones first.
        entries_max: u64,
    },
    /// Removes all entries of a keyspace of expiring entries. Takes memory for them while it is
    /// applied.
    ClearEnding {
        /// The keyspace.
        keyspace: String,
    },
}

/// Bytes of a deadline, which a key is shorter by.
const DEADLINE_BYTES: usize = 8;

/// Changes that take effect together, in their order, or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    changes: Vec<Change>,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// All of it was applied.
    Done,
    /// A key did not have the expected value. Nothing was changed.
    Different {
        /// Index of the change in the request, from 0.
        change: u64,
        /// The value that the key has.
        found: Option<Vec<u8>>,
    },
    /// It cannot be applied, and nothing was changed. [`Request::new`] makes no such request.
    Refused(Refusal),
}

/// Why a request cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Index of the change in the request, from 0.
    pub change: u64,
    /// The expected and the found state.
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "change {} of the request cannot be applied: {}", self.change, self.reason)
    }
}

impl std::error::Error for Refusal {}

impl Request {
    /// A request of these changes.
    ///
    /// ```
    /// use adamant_replica::{Change, Request};
    ///
    /// let (keyspace, key) = ("towns".to_owned(), vec![0; 70_000]);
    /// let refusal = Request::new([Change::Delete { keyspace, key }]).unwrap_err();
    /// assert!(refusal.to_string().contains("at most 65535 bytes"));
    /// ```
    ///
    /// # Errors
    /// Names the change that no node could apply: names, keys or values have invalid lengths, a
    /// name begins with a zero, or there are more than [`REQUEST_BYTES_MAX`] bytes.
    pub fn new(changes: impl IntoIterator<Item = Change>) -> Result<Self, Refusal> {
        let request = Self { changes: changes.into_iter().collect() };
        request.check()?;
        Ok(request)
    }

    /// The changes.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// A request from another node may not have been made by [`Request::new`].
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let mut bytes = 0;
        for (number, change) in (0..).zip(&self.changes) {
            bytes += change.bytes();
            if let Some(reason) = change.fault(bytes) {
                return Err(Refusal { change: number, reason });
            }
        }
        Ok(())
    }
}

impl Change {
    /// Whether it may create its keyspace.
    pub(crate) fn puts(&self) -> bool {
        matches!(self, Self::Put { .. } | Self::PutEnding { .. })
    }

    /// Whether it is for keyspaces of expiring entries.
    pub(crate) fn is_ending(&self) -> bool {
        matches!(
            self,
            Self::PutEnding { .. }
                | Self::DeleteEnding { .. }
                | Self::Expire { .. }
                | Self::ClearEnding { .. }
        )
    }

    /// The keyspace that it changes.
    pub fn keyspace(&self) -> &str {
        match self {
            Self::Put { keyspace, .. }
            | Self::Delete { keyspace, .. }
            | Self::DeleteRange { keyspace, .. }
            | Self::Compare { keyspace, .. }
            | Self::PutEnding { keyspace, .. }
            | Self::DeleteEnding { keyspace, .. }
            | Self::Expire { keyspace, .. }
            | Self::ClearEnding { keyspace } => keyspace,
        }
    }

    fn bytes(&self) -> u64 {
        let others = match self {
            Self::Put { key, value, .. } | Self::PutEnding { key, value, .. } => {
                key.len() + value.len()
            }
            Self::Delete { key, .. } | Self::DeleteEnding { key, .. } => key.len(),
            Self::Expire { .. } | Self::ClearEnding { .. } => 0,
            Self::DeleteRange { start, end, .. } => start.len() + end.as_ref().map_or(0, Vec::len),
            Self::Compare { key, expected, .. } => {
                key.len() + expected.as_ref().map_or(0, Vec::len)
            }
        };
        (self.keyspace().len() + others) as u64
    }

    /// Why it cannot be applied; `request_bytes` are the bytes of the request up to it.
    fn fault(&self, request_bytes: u64) -> Option<String> {
        const _: () = assert!(REQUEST_BYTES_MAX <= VALUE_BYTES_MAX);
        if request_bytes > REQUEST_BYTES_MAX {
            return Some(format!(
                "expected at most {REQUEST_BYTES_MAX} bytes of keys, values and names, found more; \
                 make several requests of it"
            ));
        }
        let name = self.keyspace();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let found = name.len();
            return Some(format!(
                "expected a keyspace's name of 1 to {NAME_BYTES_MAX} bytes, found {found}"
            ));
        }
        if name.starts_with(RESERVED) {
            return Some("expected a keyspace's name that does not begin with a zero".to_owned());
        }
        if name.ends_with(DEADLINES) {
            return Some(format!("expected a keyspace's name that does not end with {DEADLINES}"));
        }
        let (key, bytes_max) = match self {
            Self::Put { key, .. } | Self::Delete { key, .. } | Self::Compare { key, .. } => {
                (key, KEY_BYTES_MAX)
            }
            Self::PutEnding { key, .. } | Self::DeleteEnding { key, .. } => {
                (key, KEY_BYTES_MAX - DEADLINE_BYTES)
            }
            Self::DeleteRange { .. } | Self::Expire { .. } | Self::ClearEnding { .. } => {
                return None;
            }
        };
        let found = key.len();
        (found > bytes_max)
            .then(|| format!("expected a key of at most {bytes_max} bytes, found {found}"))
    }
}

/// Serialises bytes as one piece, where serde would visit them one by one.
mod bytes {
    use std::fmt;

    use serde::de::{Deserializer, Visitor};
    use serde::ser::Serializer;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Bytes)
    }

    struct Bytes;

    impl<'de> Visitor<'de> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }

        // Text formats have no bytes.
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u8>, A::Error> {
            let mut bytes = Vec::new();
            while let Some(byte) = seq.next_element()? {
                bytes.push(byte);
            }
            Ok(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(keyspace: &str, key: &[u8], value: &[u8]) -> Change {
        Change::Put { keyspace: keyspace.into(), key: key.into(), value: value.into() }
    }

    #[test]
    fn what_no_store_takes_is_refused_and_said() {
        let long = vec![7; KEY_BYTES_MAX + 1];
        let name = "n".repeat(NAME_BYTES_MAX + 1);
        let half = vec![7; (REQUEST_BYTES_MAX / 2) as usize];
        let cases = [
            (vec![put("a", b"", b""), put("a", &long, b"")], 1, "at most 65535 bytes, found 65536"),
            (vec![put("", b"k", b"")], 0, "name of 1 to 255 bytes, found 0"),
            (vec![put(&name, b"k", b"")], 0, "found 256"),
            (vec![put("\0replica", b"k", b"")], 0, "does not begin with a zero"),
            (vec![put("a.deadlines", b"k", b"")], 0, "does not end with .deadlines"),
            (vec![put("a", b"k", &half), put("a", b"k", &half)], 1, "at most 67108864 bytes"),
        ];
        for (changes, change, reason) in cases {
            let refusal = Request::new(changes).unwrap_err();
            assert_eq!(refusal.change, change, "{refusal}");
            assert!(refusal.to_string().contains(reason), "{refusal}");
        }
        assert!(Request::new([put("a", &long[1..], &half)]).is_ok());
    }

    #[test]
    fn requests_travel_as_they_are() {
        let (keyspace, key) = ("a".to_owned(), vec![0, 255]);
        let request = Request::new([
            put("a", b"k", &[0, 1, 255]),
            put("a", b"", b"of the empty key"),
            Change::Delete { keyspace: keyspace.clone(), key: key.clone() },
            Change::DeleteRange { keyspace: keyspace.clone(), start: vec![], end: Some(vec![9]) },
            Change::DeleteRange { keyspace: keyspace.clone(), start: vec![1], end: None },
            Change::Compare { keyspace: keyspace.clone(), key: key.clone(), expected: None },
            Change::Compare {
                keyspace: keyspace.clone(),
                key: key.clone(),
                expected: Some(vec![]),
            },
            Change::PutEnding {
                keyspace: keyspace.clone(),
                key: key.clone(),
                value: vec![1, 2],
                deadline: Some(u64::MAX),
            },
            Change::DeleteEnding { keyspace: keyspace.clone(), key },
            Change::Expire { keyspace: keyspace.clone(), now: 7, entries_max: 8 },
            Change::ClearEnding { keyspace },
        ])
        .unwrap();
        let sent = postcard::to_stdvec(&request).unwrap();
        assert_eq!(postcard::from_bytes::<Request>(&sent).unwrap(), request);
    }
}
