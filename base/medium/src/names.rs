//! File names as text, whatever their bytes.
//!
//! Purpose: a store gives its files names in UTF-8, and the traits of `storage.rs` take such names;
//! the directory that a store lies in may hold others, its own name among them. These are text too:
//! a byte that is no UTF-8 becomes a NUL and two hexadecimal digits, or on Windows half a pair of
//! UTF-16 a NUL and four.
//! Invariants: no file name holds a NUL, so the mapping between name and text is lossless both
//! ways.
//! Thread safety: functions of their arguments.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::Path;

/// Begins the text of a byte that is no UTF-8.
const MARK: char = '\0';

/// The directory that a path lies in: the current one for a name alone.
pub fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A name as text.
pub fn text_of(name: &OsStr) -> Cow<'_, str> {
    name.to_str().map_or_else(|| system::marked(name).into(), Cow::from)
}

/// The name that a text stands for. Marks without the digits of such a unit stay unchanged, and are
/// refused as part of a name.
pub fn name_of(text: &str) -> Cow<'_, OsStr> {
    if text.contains(MARK) { system::unmarked(text).into() } else { OsStr::new(text).into() }
}

/// The number behind a mark, and the rest, if it is one that has to be marked.
fn marked_number(part: &str, is_marked: impl Fn(u32) -> bool) -> Option<(u32, &str)> {
    let digits = part.get(..system::DIGITS)?;
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|_| are_digits)?;
    is_marked(number).then_some((number, &part[system::DIGITS..]))
}

#[cfg(unix)]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use super::{MARK, marked_number};

    /// Digits behind the mark.
    pub(super) const DIGITS: usize = 2;

    pub(super) fn marked(name: &OsStr) -> String {
        let mut text = String::with_capacity(name.len() + 2 * DIGITS);
        for chunk in name.as_bytes().utf8_chunks() {
            text.push_str(chunk.valid());
            for byte in chunk.invalid() {
                text.push(MARK);
                text.push_str(&format!("{byte:02x}"));
            }
        }
        text
    }

    pub(super) fn unmarked(text: &str) -> OsString {
        let mut parts = text.split(MARK);
        let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            // Other bytes are UTF-8 by themselves, a slash among them.
            match marked_number(part, |byte| byte >= 0x80) {
                Some((byte, rest)) => {
                    bytes.push(byte as u8);
                    bytes.extend_from_slice(rest.as_bytes());
                }
                None => {
                    bytes.push(MARK as u8);
                    bytes.extend_from_slice(part.as_bytes());
                }
            }
        }
        OsString::from_vec(bytes)
    }
}

#[cfg(windows)]
mod system {
    use std::ffi::{OsStr, OsString};
    use std::os::windows::ffi::{OsStrExt, OsStringExt};

    use super::{MARK, marked_number};

    /// Digits behind the mark.
    pub(super) const DIGITS: usize = 4;

    /// Half a pair of UTF-16 without the other is no character.
    pub(super) fn marked(name: &OsStr) -> String {
        let mut text = String::with_capacity(name.len() + 2 * DIGITS);
        for unit in char::decode_utf16(name.encode_wide()) {
            match unit {
                Ok(character) => text.push(character),
                Err(half) => {
                    text.push(MARK);
                    text.push_str(&format!("{:04x}", half.unpaired_surrogate()));
                }
            }
        }
        text
    }

    pub(super) fn unmarked(text: &str) -> OsString {
        let mut parts = text.split(MARK);
        let mut units: Vec<u16> = parts.next().unwrap_or_default().encode_utf16().collect();
        for part in parts {
            match marked_number(part, |unit| (0xD800..0xE000).contains(&unit)) {
                Some((unit, rest)) => {
                    units.push(unit as u16);
                    units.extend(rest.encode_utf16());
                }
                None => {
                    units.push(MARK as u16);
                    units.extend(part.encode_utf16());
                }
            }
        }
        OsString::from_wide(&units)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStrExt;

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
