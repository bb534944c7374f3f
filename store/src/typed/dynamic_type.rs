//! Types of keys and values that are known while a program runs.
//!
//! Purpose: a program that has only the recorded name of a type, such as an interpreter, encodes
//! and decodes as one that was compiled for it.
//! Invariants: a type is parsed from exactly its recorded name, and from spellings of it that
//! differ by spaces. A name is at most `TYPE_NAME_BYTES_MAX` long, which bounds the depth.

use std::fmt;

use crate::types::TYPE_NAME_BYTES_MAX;

/// Parts that a tuple may have.
const TUPLE_PARTS: std::ops::RangeInclusive<usize> = 2..=6;

/// A type of keys or values of `docs/format/typed.md`, known by its recorded name; neither `Serde`,
/// nor `Json`, nor a type of a program's own.
///
/// ```
/// use adamant::typed::{DynamicType, DynamicValue, KeyFor};
///
/// let asked = DynamicType::parse("(String, Reverse<u64>)").expect("a type of keys");
/// let key = DynamicValue::Tuple(vec!["ada".into(), DynamicValue::U64(7)]);
/// let bytes = asked.encode_key(&key)?;
/// assert_eq!(asked.decode_key(&bytes)?, key);
///
/// let mut expected = Vec::new();
/// KeyFor::<(String, std::cmp::Reverse<u64>)>::encode_last(
///     &("ada", std::cmp::Reverse(7)),
///     &mut expected,
/// );
/// assert_eq!(bytes, expected);
/// # Ok::<(), adamant::typed::Malformed>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are called as the types are")]
#[non_exhaustive]
pub enum DynamicType {
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    Bool,
    Char,
    /// `()`.
    Unit,
    String,
    /// `Vec<u8>` and `Slice`.
    Bytes,
    /// `[u8; N]`.
    Array(usize),
    Option(Box<Self>),
    Reverse(Box<Self>),
    Tuple(Vec<Self>),
}

/// The types without parts, by name.
const PLAIN: [(&str, DynamicType); 17] = [
    ("u8", DynamicType::U8),
    ("u16", DynamicType::U16),
    ("u32", DynamicType::U32),
    ("u64", DynamicType::U64),
    ("u128", DynamicType::U128),
    ("i8", DynamicType::I8),
    ("i16", DynamicType::I16),
    ("i32", DynamicType::I32),
    ("i64", DynamicType::I64),
    ("i128", DynamicType::I128),
    ("f32", DynamicType::F32),
    ("f64", DynamicType::F64),
    ("bool", DynamicType::Bool),
    ("char", DynamicType::Char),
    ("()", DynamicType::Unit),
    ("String", DynamicType::String),
    ("bytes", DynamicType::Bytes),
];

impl DynamicType {
    /// The type with this recorded name; `None` if it is another one.
    ///
    /// ```
    /// use adamant::typed::DynamicType;
    ///
    /// assert_eq!(DynamicType::parse("[u8; 4]"), Some(DynamicType::Array(4)));
    /// assert_eq!(DynamicType::parse("(u8,u16)").unwrap().to_string(), "(u8, u16)");
    /// assert_eq!(DynamicType::parse("Serde<Person>"), None);
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        if name.len() > TYPE_NAME_BYTES_MAX {
            return None;
        }
        let mut rest = name;
        let found = parse_type(&mut rest)?;
        rest.trim().is_empty().then_some(found)
    }

    /// Whether keys can be of this type.
    pub fn is_key(&self) -> bool {
        match self {
            Self::Unit => false,
            Self::Option(part) | Self::Reverse(part) => part.is_key(),
            Self::Tuple(parts) => parts.iter().all(Self::is_key),
            _ => true,
        }
    }

    /// Whether values can be of this type.
    pub fn is_value(&self) -> bool {
        !matches!(self, Self::Option(_) | Self::Reverse(_) | Self::Tuple(_))
    }
}

/// Takes a word off the front, and spaces before it; whether it was there.
fn takes(rest: &mut &str, word: &str) -> bool {
    let behind = rest.trim_start().strip_prefix(word);
    *rest = behind.unwrap_or(rest);
    behind.is_some()
}

fn parse_type(rest: &mut &str) -> Option<DynamicType> {
    // A whole word, so that `u8` is not found in `u8x`; `()` is no tuple.
    let start = rest.trim_start();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric();
    let word = &start[..start.bytes().take_while(is_name).count()];
    let word = if start.starts_with("()") { "()" } else { word };
    if let Some((_, found)) = PLAIN.iter().find(|(name, _)| *name == word) {
        *rest = &start[word.len()..];
        return Some(found.clone());
    }
    if takes(rest, "Option<") {
        let part = parse_type(rest)?;
        return takes(rest, ">").then(|| DynamicType::Option(Box::new(part)));
    }
    if takes(rest, "Reverse<") {
        let part = parse_type(rest)?;
        return takes(rest, ">").then(|| DynamicType::Reverse(Box::new(part)));
    }
    if takes(rest, "[") {
        let (length, behind) =
            (takes(rest, "u8") && takes(rest, ";")).then(|| rest.split_once(']')).flatten()?;
        *rest = behind;
        return length.trim().parse().ok().map(DynamicType::Array);
    }
    if !takes(rest, "(") {
        return None;
    }
    let mut parts = vec![parse_type(rest)?];
    while takes(rest, ",") {
        parts.push(parse_type(rest)?);
    }
    let is_tuple = takes(rest, ")") && TUPLE_PARTS.contains(&parts.len());
    is_tuple.then_some(DynamicType::Tuple(parts))
}

impl fmt::Display for DynamicType {
    /// Its recorded name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(length) => write!(f, "[u8; {length}]"),
            Self::Option(part) => write!(f, "Option<{part}>"),
            Self::Reverse(part) => write!(f, "Reverse<{part}>"),
            Self::Tuple(parts) => {
                for (number, part) in parts.iter().enumerate() {
                    write!(f, "{}{part}", if number == 0 { "(" } else { ", " })?;
                }
                f.write_str(")")
            }
            plain => {
                let found = PLAIN.iter().find(|(_, it)| it == plain);
                f.write_str(found.map_or("?", |(name, _)| name))
            }
        }
    }
}
