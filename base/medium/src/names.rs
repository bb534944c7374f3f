//! File names as text, whatever their bytes.
//!
//! Purpose: a store gives its files names in UTF-8, and the traits of `storage.rs` take such names;
//! the directory that a store lies in may hold others, its own name among them. These are text too:
//! a byte that is no UTF-8 becomes a NUL and two hexadecimal digits.
//! Invariants: no file name holds a NUL, so the mapping between name and text is lossless both
//! ways.
//! Thread safety: functions of their arguments.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Begins the text of a byte that is no UTF-8.
const MARK: char = '\0';
/// Digits behind the mark.
const DIGITS: usize = 2;

/// A name as text.
pub fn text_of(name: &OsStr) -> Cow<'_, str> {
    if let Some(text) = name.to_str() {
        return text.into();
    }
    let mut text = String::with_capacity(name.len() + 2 * DIGITS);
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push(MARK);
            text.push_str(&format!("{byte:02x}"));
        }
    }
    text.into()
}

/// The name that a text stands for. Marks without the digits of such a byte stay unchanged, and are
/// refused as part of a name.
pub fn name_of(text: &str) -> Cow<'_, OsStr> {
    if !text.contains(MARK) {
        return OsStr::new(text).into();
    }
    let mut parts = text.split(MARK);
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..DIGITS).filter(|it| it.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        // Other bytes are UTF-8 by themselves, a slash among them.
        if let Some(byte) = byte.filter(|byte| !byte.is_ascii()) {
            bytes.push(byte);
            bytes.extend_from_slice(&part.as_bytes()[DIGITS..]);
        } else {
            bytes.push(MARK as u8);
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_lead_to_each_other() {
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..10_000 {
            let pieces = [&b"a"[..], b"ff", b"2f", b"\xff", b"\x80", "\u{e4}".as_bytes(), b"\xe2"];
            let parts = 0..random.usize(1..8);
            let bytes: Vec<u8> =
                parts.flat_map(|_| *random.choice(&pieces).unwrap()).copied().collect();
            let name = OsStr::from_bytes(&bytes);
            let text = text_of(name);
            assert_eq!(name_of(&text), name, "{text:?}");
            assert_eq!(text.contains(MARK), name.to_str().is_none());
        }
    }

    #[test]
    fn what_is_no_such_byte_stays() {
        for text in ["\u{0}2f", "\u{0}", "\u{0}f", "a\u{0}zz", "\u{0}41"] {
            assert_eq!(name_of(text), OsStr::new(text));
        }
        assert_eq!(name_of("a\u{0}ff"), OsStr::from_bytes(b"a\xff"));
    }
}
