//! JSON Lines records, a format of import and export.
//!
//! Purpose: `{"key":"..","value":".."}` where both are UTF-8; either may be `key_base64` or
//! `value_base64` instead, for bytes that are not.
//! Invariants: writing is a function of the bytes alone, so that exports of the same entries are
//! byte-identical. Reading accepts only what writing can produce, so that no field is dropped
//! silently.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_base64: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value_base64: Option<Cow<'a, str>>,
}

/// A key and a value.
pub type Record = (Vec<u8>, Vec<u8>);

/// Parses a line, and checks that a store can hold the record.
///
/// # Errors
/// A message with the expected and the found.
pub fn parse(line: &[u8]) -> Result<Record, String> {
    let text = std::str::from_utf8(line).map_err(|error| {
        format!("expected UTF-8, found another byte at {}", error.valid_up_to())
    })?;
    // Otherwise the fields in order, as an array, would be accepted too.
    if !text.trim_start().starts_with('{') {
        return Err(r#"expected {"key": "..", "value": ".."}, found no JSON object"#.to_owned());
    }
    let line: Line<'_> = serde_json::from_str(text).map_err(|error| {
        // The caller names the line of the file; the line 1 in JSON's message would confuse.
        let found = error.to_string().replace(" at line 1 column ", " at byte ");
        format!(r#"expected {{"key": "..", "value": ".."}} or key_base64, value_base64; {found}"#)
    })?;
    let key = bytes("key", line.key, line.key_base64)?;
    let value = bytes("value", line.value, line.value_base64)?;
    check(&key, &value)?;
    Ok((key, value))
}

/// Whether a store can hold a key and a value.
///
/// # Errors
/// A message with the expected and the found.
pub fn check(key: &[u8], value: &[u8]) -> Result<(), String> {
    if key.len() > adamant::KEY_BYTES_MAX {
        let (expected, found) = (adamant::KEY_BYTES_MAX, key.len());
        return Err(format!("expected a key of at most {expected} bytes, found {found}"));
    }
    if value.len() as u64 > adamant::VALUE_BYTES_MAX {
        let (expected, found) = (adamant::VALUE_BYTES_MAX, value.len());
        return Err(format!("expected a value of at most {expected} bytes, found {found}"));
    }
    Ok(())
}

fn bytes(
    name: &str,
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
) -> Result<Vec<u8>, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(base64)) => STANDARD
            .decode(base64.as_bytes())
            .map_err(|error| format!("expected base64 in {name}_base64: {error}")),
        (None, None) => Err(format!("expected {name} or {name}_base64, found neither")),
        (Some(_), Some(_)) => Err(format!("expected {name} or {name}_base64, found both")),
    }
}

/// An entry as a JSON object, without a line break.
pub fn format(key: &[u8], value: &[u8]) -> String {
    let (key, key_base64) = fields(key);
    let (value, value_base64) = fields(value);
    json(&Line { key, key_base64, value, value_base64 })
}

/// Only a key, as the fields of a record.
pub fn format_key(key: &[u8]) -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::from_iter([field("key", key)])
}

/// Bytes as a field of that name, or of the name with `_base64` for bytes that are no UTF-8.
pub fn field(name: &str, bytes: &[u8]) -> (String, serde_json::Value) {
    match fields(bytes) {
        (Some(text), _) => (name.to_owned(), text.into()),
        (None, base64) => (format!("{name}_base64"), base64.unwrap_or_default().into()),
    }
}

fn fields(bytes: &[u8]) -> (Option<Cow<'_, str>>, Option<Cow<'_, str>>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.into()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes).into())),
    }
}

fn json(line: &Line<'_>) -> String {
    serde_json::to_string(line).expect("strings are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for bytes in [&b"plain"[..], b"\xff\x00binary", "\u{e4}\n\t\"\\".as_bytes(), b"\0"] {
            let line = format(bytes, bytes);
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(parse(line.as_bytes()), Ok((bytes.to_vec(), bytes.to_vec())), "{line}");
        }
        assert_eq!(format(b"k", b""), r#"{"key":"k","value":""}"#);
        assert_eq!(format(b"k", b"\xff"), r#"{"key":"k","value_base64":"/w=="}"#);
    }

    #[test]
    fn what_no_writer_means_is_refused() {
        for (line, expected) in [
            (&b"not json"[..], "expected {"),
            (b"[]", "expected {"),
            (br#"{"key":"k"}"#, "found neither"),
            (br#"{"key":"k","key_base64":"aw==","value":""}"#, "found both"),
            (br#"{"key":"k","value":"v","other":1}"#, "unknown field"),
            (br#"{"key":"k","key":"l","value":"v"}"#, "duplicate field"),
            (br#"{"key":"k","value":7}"#, "expected"),
            (br#"{"key":"k","value_base64":"*"}"#, "value_base64"),
            (br#"{"key":"k","value":"v"} x"#, "trailing"),
            (b"{\"key\":\"\xff\",\"value\":\"v\"}", "UTF-8"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(expected), "{error} of {}", String::from_utf8_lossy(line));
        }
        let long = format(&vec![b'k'; adamant::KEY_BYTES_MAX + 1], b"v");
        assert!(parse(long.as_bytes()).unwrap_err().contains("found 65536"));
    }
}
