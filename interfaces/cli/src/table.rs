//! CSV records with named columns, the other format of import and export.
//!
//! Purpose: which columns are the key, and which the value; how bytes become fields and back.
//! Invariants: written records are read back as the same bytes, whatever they are, or refused. The
//! columns that form a key or a value never contain the separator between them.
//!
//! A backslash is written as two, and bytes that are no UTF-8 as `\xNN`; the same is read, and a
//! table that is no UTF-8 is refused: it has another encoding. With `raw`, fields are plain bytes.

use std::io;

use csv::{ByteRecord, StringRecord};

use crate::record::{Record, check};

/// Which columns of a file are the key, which the value, and how they are joined.
#[derive(Clone, Debug)]
pub struct Layout {
    keys: Vec<String>,
    values: Vec<String>,
    separator: String,
    is_raw: bool,
}

impl Layout {
    /// The names of the columns that form the key and the value, the separator between these, and
    /// whether fields are plain bytes.
    ///
    /// # Errors
    /// A message, if there is no column for the key or the value, or an empty separator.
    pub fn new(
        keys: Vec<String>,
        values: Vec<String>,
        separator: String,
        is_raw: bool,
    ) -> Result<Self, String> {
        if keys.is_empty() || values.is_empty() {
            return Err("expected a column for the key and one for the value, found none".into());
        }
        if separator.is_empty() {
            return Err("expected something to stand between columns, found nothing".into());
        }
        Ok(Self { keys, values, separator, is_raw })
    }

    /// Refuses a row that is not in the encoding of the fields.
    fn check_encoding(&self, fields: &ByteRecord) -> Result<(), String> {
        if self.is_raw {
            return Ok(());
        }
        for (field, column) in fields.iter().zip(1..) {
            if let Err(error) = std::str::from_utf8(field) {
                let (at, shown) = (error.valid_up_to(), String::from_utf8_lossy(field));
                return Err(format!(
                    "expected UTF-8, found the byte 0x{:02x} in column {column}, {shown:?}; convert the \
                     file (iconv -t UTF-8), or take fields as they are with --raw",
                    field[at]
                ));
            }
        }
        Ok(())
    }
}

/// Where the columns of a layout are in a file.
pub struct Columns<'a> {
    layout: &'a Layout,
    keys: Vec<usize>,
    values: Vec<usize>,
}

impl<'a> Columns<'a> {
    /// Finds the columns in the first line of a file.
    ///
    /// # Errors
    /// A message, for a name that is missing, present twice, or requested twice, and for one that
    /// is no UTF-8.
    pub fn find(layout: &'a Layout, header: &ByteRecord) -> Result<Self, String> {
        layout.check_encoding(header)?;
        let find = |name: &String| {
            let mut found = (0..header.len()).filter(|&at| &header[at] == name.as_bytes());
            match (found.next(), found.next()) {
                (Some(at), None) => Ok(at),
                (Some(_), Some(_)) => Err(format!("the column {name:?} is there twice")),
                (None, _) => {
                    let names: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
                    Err(format!("expected a column {name:?}, found {}", names.join(", ")))
                }
            }
        };
        let keys = layout.keys.iter().map(find).collect::<Result<_, _>>()?;
        let values = layout.values.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self { layout, keys, values })
    }

    /// Parses a record, and checks that a store can hold it. Other columns are ignored.
    ///
    /// # Errors
    /// A message with the expected and the found.
    pub fn parse(&self, fields: &ByteRecord) -> Result<Record, String> {
        self.layout.check_encoding(fields)?;
        let key = self.join(fields, &self.keys, &self.layout.keys)?;
        let value = self.join(fields, &self.values, &self.layout.values)?;
        check(&key, &value)?;
        Ok((key, value))
    }

    fn join(
        &self,
        fields: &ByteRecord,
        columns: &[usize],
        names: &[String],
    ) -> Result<Vec<u8>, String> {
        let separator = self.layout.separator.as_bytes();
        let mut joined = Vec::new();
        for (number, (&column, name)) in columns.iter().zip(names).enumerate() {
            let field = fields.get(column).unwrap_or_default();
            let bytes = match self.layout.is_raw {
                true => field.to_vec(),
                false => unescape(field).map_err(|what| format!("column {name:?}: {what}"))?,
            };
            if columns.len() > 1 && contains(&bytes, separator) {
                return Err(format!(
                    "column {name:?} holds the separator {:?}; choose another one (--separator)",
                    self.layout.separator
                ));
            }
            if number > 0 {
                joined.extend_from_slice(separator);
            }
            joined.extend_from_slice(&bytes);
        }
        Ok(joined)
    }
}

/// The first line of a file: the names of the columns.
///
/// # Errors
/// A message, for a duplicate name.
pub fn header(layout: &Layout) -> Result<StringRecord, String> {
    let names: Vec<&String> = layout.keys.iter().chain(&layout.values).collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(format!("the column {name:?} was asked for twice"));
        }
    }
    Ok(names.into_iter().collect())
}

/// An entry as a record.
///
/// # Errors
/// A message, if key or value do not have as many parts as there are columns.
pub fn format(layout: &Layout, key: &[u8], value: &[u8]) -> Result<ByteRecord, String> {
    let mut record = ByteRecord::new();
    for (what, bytes, names) in [("key", key, &layout.keys), ("value", value, &layout.values)] {
        let parts = match names.len() {
            1 => vec![bytes],
            _ => split(bytes, layout.separator.as_bytes()),
        };
        if parts.len() != names.len() {
            return Err(format!(
                "expected {} parts in the {what} of {:?}, as there are columns, found {}",
                names.len(),
                String::from_utf8_lossy(key),
                parts.len()
            ));
        }
        for part in parts {
            if layout.is_raw {
                record.push_field(part);
            } else {
                record.push_field(&escape(part));
            }
        }
    }
    Ok(record)
}

/// The bytes of a row.
///
/// # Errors
/// None that a record can cause.
pub fn row(record: &ByteRecord) -> io::Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_byte_record(record)?;
    writer.into_inner().map_err(|error| error.into_error())
}

fn contains(bytes: &[u8], separator: &[u8]) -> bool {
    bytes.windows(separator.len()).any(|window| window == separator)
}

fn split<'b>(mut bytes: &'b [u8], separator: &[u8]) -> Vec<&'b [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = bytes.windows(separator.len()).position(|window| window == separator) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + separator.len()..];
    }
    parts.push(bytes);
    parts
}

fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        escaped.extend_from_slice(chunk.valid().replace('\\', r"\\").as_bytes());
        for byte in chunk.invalid() {
            escaped.extend_from_slice(format!(r"\x{byte:02x}").as_bytes());
        }
    }
    escaped
}

fn unescape(field: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let (byte, taken) = match rest {
            [b'\\', ..] => (Some(b'\\'), 1),
            [b'x', digits @ ..] => {
                let digits = digits.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                let digits = digits.filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
                (digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()), 3)
            }
            _ => (None, 0),
        };
        let Some(byte) = byte else {
            let what = r"expected \\ or \xNN after a backslash; with --raw fields stay as they are";
            return Err(what.into());
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(keys: &[&str], values: &[&str]) -> Layout {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Layout::new(owned(keys), owned(values), "\t".into(), false).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let mut random = fastrand::Rng::with_seed(3);
        for (keys, values) in [(&["k"][..], &["v"][..]), (&["a", "b"], &["c", "d", "e"])] {
            let layout = layout(keys, values);
            let header = header(&layout).unwrap();
            let columns = Columns::find(&layout, header.as_byte_record()).unwrap();
            for _ in 0..2_000 {
                let mut part = || -> Vec<u8> {
                    let pieces = [&b"\\"[..], b"x", b"41", b"\xff", "\u{e4}".as_bytes(), b"\n\","];
                    (0..random.usize(1..6))
                        .flat_map(|_| *random.choice(&pieces).unwrap())
                        .copied()
                        .collect()
                };
                let mut whole =
                    |count: usize| (0..count).map(|_| part()).collect::<Vec<_>>().join(&b"\t"[..]);
                let (key, value) = (whole(keys.len()), whole(values.len()));
                let record = format(&layout, &key, &value).unwrap();
                assert!(record.iter().all(|field| std::str::from_utf8(field).is_ok()));
                assert_eq!(columns.parse(&record), Ok((key, value)));
            }
        }
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let two = layout(&["a", "b"], &["v"]);
        let header = ByteRecord::from(vec!["v", "a", "x", "b"]);
        let columns = Columns::find(&two, &header).unwrap();
        let parse = |fields: [&str; 4]| columns.parse(&ByteRecord::from(fields.to_vec()));
        assert_eq!(parse(["1", "2", "3", "4"]), Ok((b"2\t4".to_vec(), b"1".to_vec())));
        assert!(parse(["1", "2\t", "3", "4"]).unwrap_err().contains("separator"));
        assert!(parse([r"\n", "2", "3", "4"]).unwrap_err().contains("backslash"));
        assert!(parse([r"\x4", "2", "3", "4"]).unwrap_err().contains("--raw"));
        assert!(parse([r"\x+1", "2", "3", "4"]).unwrap_err().contains("--raw"));
        let error = Columns::find(&layout(&["k"], &["v"]), &header).err().unwrap();
        assert!(error.contains("\"k\"") && error.contains("v, a, x, b"), "{error}");
        let latin = |fields: [&[u8]; 4]| columns.parse(&ByteRecord::from(fields.to_vec()));
        let error = latin([b"1", b"2", b"M\xfcnchen", b"4"]).unwrap_err();
        assert!(error.contains("0xfc") && error.contains("column 3") && error.contains("--raw"));
        let twice = ByteRecord::from(vec!["k", "v", "k"]);
        assert!(Columns::find(&layout(&["k"], &["v"]), &twice).is_err());
        let nothing = |keys: &[&str], separator: &str| {
            let keys = keys.iter().map(|name| (*name).to_owned()).collect();
            Layout::new(keys, vec!["v".into()], separator.into(), false).is_err()
        };
        assert!(nothing(&[], "-") && nothing(&["a", "b"], "") && !nothing(&["a"], "-"));
        assert!(super::header(&layout(&["k"], &["k"])).is_err());
        assert!(format(&two, b"no tab", b"v").unwrap_err().contains("2 parts"));
        assert!(format(&two, b"a\tb\tc", b"v").unwrap_err().contains("found 3"));
    }
}
