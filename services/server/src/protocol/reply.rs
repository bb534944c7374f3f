//! The reply writer: RESP2 and RESP3.
//!
//! Purpose: appends bytes that are ready to be sent; nulls, maps and so on are encoded for the
//! client's version of the protocol.
//! Thread safety: replies belong to one thread at a time.

use std::io::Write;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    /// Strings, integers, arrays.
    #[default]
    Two,
    /// Maps, sets, one null, texts with a type.
    Three,
}

/// Replies that were not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Replies {
    bytes: Vec<u8>,
    pub(crate) version: Version,
}

impl Replies {
    /// Empty, for a client of that version.
    pub(crate) fn new(version: Version) -> Self {
        Self { bytes: Vec::new(), version }
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the reply that begins at `start` is an error.
    pub(crate) fn is_error_at(&self, start: usize) -> bool {
        self.bytes.get(start).is_some_and(|kind| [b'-', b'!'].contains(kind))
    }

    /// Drops all bytes after the first `bytes`.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.bytes.truncate(bytes);
    }

    /// Appends encoded replies.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes all bytes; none are left.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// A status word.
    pub(crate) fn simple(&mut self, word: &str) {
        self.line(b'+', word);
    }

    /// `OK`.
    pub(crate) fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// An error: a word in capitals, and the others. Line ends become spaces.
    pub(crate) fn error(&mut self, words: &str) {
        self.bytes.push(b'-');
        self.bytes.extend(words.bytes().map(|byte| match byte {
            b'\r' | b'\n' => b' ',
            other => other,
        }));
        self.raw(b"\r\n");
    }

    /// An integer.
    pub(crate) fn integer(&mut self, number: i64) {
        self.number(b':', number);
    }

    /// A count.
    pub(crate) fn count(&mut self, count: usize) {
        self.integer(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Yes or no, as 1 or 0.
    pub(crate) fn flag(&mut self, is_so: bool) {
        self.integer(i64::from(is_so));
    }

    /// Bytes.
    pub(crate) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.header(b'$', bytes.len());
        self.bytes.reserve(bytes.len() + 2);
        self.raw(bytes);
        self.raw(b"\r\n");
    }

    /// Bytes, or nothing.
    pub(crate) fn bulk_or_null(&mut self, bytes: Option<impl AsRef<[u8]>>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// A text for people.
    pub(crate) fn text(&mut self, text: &str) {
        match self.version {
            Version::Two => self.bulk(text),
            Version::Three => {
                self.header(b'=', text.len() + 4);
                self.raw(b"txt:");
                self.raw(text.as_bytes());
                self.raw(b"\r\n");
            }
        }
    }

    /// Null, in place of bytes.
    pub(crate) fn null(&mut self) {
        match self.version {
            Version::Two => self.raw(b"$-1\r\n"),
            Version::Three => self.raw(b"_\r\n"),
        }
    }

    /// Null, in place of an array.
    pub(crate) fn null_array(&mut self) {
        match self.version {
            Version::Two => self.raw(b"*-1\r\n"),
            Version::Three => self.raw(b"_\r\n"),
        }
    }

    /// An array; `count` replies follow.
    pub(crate) fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// A map; `count` pairs of replies follow.
    pub(crate) fn map(&mut self, count: usize) {
        match self.version {
            Version::Two => self.header(b'*', count * 2),
            Version::Three => self.header(b'%', count),
        }
    }

    /// A set; `count` replies follow, in no order.
    pub(crate) fn set(&mut self, count: usize) {
        match self.version {
            Version::Two => self.header(b'*', count),
            Version::Three => self.header(b'~', count),
        }
    }

    fn line(&mut self, kind: u8, words: &str) {
        self.bytes.push(kind);
        self.raw(words.as_bytes());
        self.raw(b"\r\n");
    }

    fn header(&mut self, kind: u8, count: usize) {
        self.number(kind, i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn number(&mut self, kind: u8, number: i64) {
        self.bytes.push(kind);
        write!(self.bytes, "{number}\r\n").expect("a vector takes all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, write: impl FnOnce(&mut Replies)) -> String {
        let mut replies = Replies::new(version);
        write(&mut replies);
        String::from_utf8(replies.take()).unwrap()
    }

    #[test]
    fn what_both_versions_have() {
        for version in [Version::Two, Version::Three] {
            let all = written(version, |replies| {
                replies.ok();
                replies.error("ERR two\r\nlines");
                replies.integer(-7);
                replies.array(1);
                replies.bulk("a\r\nb");
            });
            assert_eq!(all, "+OK\r\n-ERR two  lines\r\n:-7\r\n*1\r\n$4\r\na\r\nb\r\n");
        }
    }

    #[test]
    fn what_each_version_calls_it() {
        let write = |replies: &mut Replies| {
            replies.null();
            replies.null_array();
            replies.map(2);
            replies.set(2);
            replies.text("hi");
        };
        assert_eq!(written(Version::Two, write), "$-1\r\n*-1\r\n*4\r\n*2\r\n$2\r\nhi\r\n");
        assert_eq!(written(Version::Three, write), "_\r\n_\r\n%2\r\n~2\r\n=6\r\ntxt:hi\r\n");
    }
}
