//! Tests of types that are known by name: the same bytes as compiled types have, for the examples
//! of `docs/format/typed.md`, which `interfaces/python/tests/test_typed.py` has, too.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Debug;

use adamant_slice::Slice;

use super::DynamicValue as Dynamic;
use super::*;
use crate::error::Error;
use crate::store::handle::Store;

fn some(value: Dynamic) -> Dynamic {
    Dynamic::Option(Some(Box::new(value)))
}

/// Rows of examples: a type and bytes, as the page writes them.
type Rows = BTreeSet<(String, String)>;

thread_local! {
    /// What a test has compared; taken at its end, since tests may share a thread.
    static COMPARED: RefCell<Rows> = RefCell::default();
}

fn compared(name: String, bytes: &[u8]) {
    let digits: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.join(" ");
    COMPARED.with_borrow_mut(|rows| rows.insert((name, digits)));
}

/// The rows of the table below this head, on the page.
fn rows(head: &str) -> Rows {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/format/typed.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once(head).expect("the page has examples");
    let lines = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<_> = line.split(" | ").collect();
        let [name, _, bytes] = cells[..] else { panic!("three columns, not {line:?}") };
        let bytes = bytes.trim_end_matches(" |").trim_matches('`');
        let name = name.trim_start_matches("| ").trim_matches('`');
        (name.to_owned(), if bytes == "none" { String::new() } else { bytes.to_owned() })
    };
    lines.map(row).collect()
}

/// A key has these bytes, by its type as by its name.
fn same_key<K: Key + Debug>(key: &K, named: &Dynamic, expected: &[u8]) {
    compared(K::name(), expected);
    let mut bytes = Vec::new();
    key.encode_last(&mut bytes);
    assert_eq!(bytes, expected, "{key:?}");
    let asked = DynamicType::parse(&K::name()).unwrap();
    assert_eq!(asked.encode_key(named).as_deref(), Ok(expected), "{key:?}");
    assert_eq!(asked.decode_key(expected).as_ref(), Ok(named), "{key:?}");
}

#[test]
fn keys_have_the_bytes_of_compiled_types() {
    use DynamicValue::{
        Bool, Bytes, Char, F32, F64, I8, I16, I32, I64, I128, Tuple, U8, U16, U32, U64,
    };
    same_key(&7_u8, &U8(7), b"\x07");
    same_key(&0x102_u16, &U16(0x102), b"\x01\x02");
    same_key(&0x102_u32, &U32(0x102), b"\0\0\x01\x02");
    same_key(&0x102_u64, &U64(0x102), b"\0\0\0\0\0\0\x01\x02");
    same_key(&u128::MAX, &Dynamic::U128(u128::MAX), &[0xff; 16]);
    same_key(&-1_i8, &I8(-1), b"\x7f");
    same_key(&-1_i16, &I16(-1), b"\x7f\xff");
    same_key(&5_i32, &I32(5), b"\x80\0\0\x05");
    same_key(&i64::MIN, &I64(i64::MIN), &[0; 8]);
    same_key(&i128::MAX, &I128(i128::MAX), &[0xff; 16]);
    same_key(&1.5_f32, &F32(1.5), b"\xbf\xc0\0\0");
    same_key(&-1.5_f64, &F64(-1.5), b"\x40\x07\xff\xff\xff\xff\xff\xff");
    same_key(&true, &Bool(true), b"\x01");
    same_key(&'\u{e9}', &Char('\u{e9}'), b"\0\0\0\xe9");
    same_key(&"ab".to_owned(), &"ab".into(), b"ab");
    same_key(&b"a\0".to_vec(), &Bytes(b"a\0".to_vec()), b"a\0");
    same_key(&Slice::from(b"a\0"), &Bytes(b"a\0".to_vec()), b"a\0");
    same_key(&[1_u8, 2, 3], &Bytes(vec![1, 2, 3]), b"\x01\x02\x03");
    same_key(&None::<String>, &Dynamic::Option(None), b"\0");
    same_key(&Some("a".to_owned()), &some("a".into()), b"\x01a");
    same_key(&Reverse("a".to_owned()), &"a".into(), b"\x9e\xff\xff");
    let pair = Tuple(vec!["ab".into(), U64(5)]);
    let bytes = b"ab\0\0\xff\xff\xff\xff\xff\xff\xff\xfa";
    same_key(&("ab".to_owned(), Reverse(5_u64)), &pair, bytes);
    let nested = Tuple(vec![Tuple(vec![U8(1), "a\0b".into()]), some(I8(-2)), "c".into()]);
    let bytes = b"\x01a\0\xffb\0\0\x01\x7ec";
    same_key(&((1_u8, "a\0b".to_owned()), Some(-2_i8), "c".to_owned()), &nested, bytes);
    let sixth = Tuple((1..=6).map(U8).collect());
    same_key(&(1_u8, 2_u8, 3_u8, 4_u8, 5_u8, 6_u8), &sixth, b"\x01\x02\x03\x04\x05\x06");
    let rows = rows("| type of keys | key | bytes |");
    assert_eq!(COMPARED.take(), rows);
}

/// A value has these bytes, by its type as by its name.
fn same_value<V: Value + Debug>(value: &V, named: &Dynamic, expected: &[u8]) {
    compared(V::name(), expected);
    assert_eq!(value.encode_value(&mut Vec::new()), Ok(expected), "{value:?}");
    let asked = DynamicType::parse(&V::name()).unwrap();
    assert!(asked.is_value());
    assert_eq!(asked.encode_value(named).as_deref(), Ok(expected), "{value:?}");
    assert_eq!(asked.decode_value(expected.into()).as_ref(), Ok(named), "{value:?}");
    // One byte more, or less, is another value, or an error.
    let longer = [expected, &[0]].concat();
    assert_ne!(asked.decode_value(longer[..].into()).as_ref(), Ok(named), "{value:?}");
}

#[test]
fn values_have_the_bytes_of_compiled_types() {
    same_value(&0x102_u16, &Dynamic::U16(0x102), b"\x02\x01");
    same_value(&-2_i32, &Dynamic::I32(-2), b"\xfe\xff\xff\xff");
    same_value(&0x102_u128, &Dynamic::U128(0x102), b"\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    same_value(&1.5_f32, &Dynamic::F32(1.5), b"\0\0\xc0\x3f");
    same_value(&-1.5_f64, &Dynamic::F64(-1.5), b"\0\0\0\0\0\0\xf8\xbf");
    same_value(&false, &Dynamic::Bool(false), b"\0");
    same_value(&'\u{e9}', &Dynamic::Char('\u{e9}'), b"\xe9\0\0\0");
    same_value(&(), &Dynamic::Unit, b"");
    same_value(&"ab".to_owned(), &"ab".into(), b"ab");
    same_value(&b"a\0".to_vec(), &b"a\0"[..].into(), b"a\0");
    same_value(&[1_u8, 2], &b"\x01\x02"[..].into(), b"\x01\x02");
    let mut rows = rows("| type of values | value | bytes |");
    rows.retain(|(name, _)| name != "Json<any>");
    assert_eq!(COMPARED.take(), rows);
}

/// What Python writes as JSON is what a Rust program writes for the same value.
#[cfg(feature = "json")]
#[test]
fn json_has_the_bytes_of_the_page() {
    let value = Json::<_, 1>(serde_json::json!({"a": [1, -2, 0.5, null, "\u{e9}"]}));
    let mut spare = Vec::new();
    let encoded = value.encode_value(&mut spare).unwrap();
    compared(Json::<serde_json::Value>::name(), encoded);
    let mut rows = rows("| type of values | value | bytes |");
    rows.retain(|(name, _)| name == "Json<any>");
    assert_eq!(COMPARED.take(), rows);
    assert_eq!(Json::decode_value(encoded.into()).as_ref(), Ok(&value));
}

#[test]
fn names_that_describe_no_type_are_refused() {
    let names = [
        "",
        " ",
        "u7",
        "u8x",
        "u8 u8",
        "(u8)",
        "(u8,)",
        "(u8, u16",
        "u8)",
        "Option<u8",
        "Option<>",
        "[u8; ]",
        "[u8; -1]",
        "[u16; 2]",
        "[u8]",
        "Serde<Person>",
        "Json<any>",
        "Day",
        "str",
        "(Day version 2, u32)",
        "(u8, u8, u8, u8, u8, u8, u8)",
        "Reverse<u8>>",
        "\u{e9}",
    ];
    for name in names {
        assert_eq!(DynamicType::parse(name), None, "{name:?}");
    }
    assert_eq!(DynamicType::parse(&"(".repeat(1 << 20)), None);
    assert_eq!(DynamicType::parse(&"Option<".repeat(1 << 20)), None);
    for name in ["u8", "()", "[u8; 12]", "Option<Reverse<(String, ((bytes, i128), char))>>"] {
        let found = DynamicType::parse(name).unwrap();
        assert_eq!(found.to_string(), name);
        let spaced: String = name.chars().flat_map(|it| [it, ' ']).collect();
        let is_spaced = name.chars().all(|it| !it.is_ascii_alphanumeric());
        assert_eq!(DynamicType::parse(&spaced).is_some(), is_spaced && name != "()", "{spaced}");
    }
    assert_eq!(
        DynamicType::parse(" ( u8 ,u16 ) ").map(|it| it.to_string()),
        Some("(u8, u16)".into())
    );
    let unit = DynamicType::parse("(u8, ())").unwrap();
    assert!(!unit.is_key() && !unit.is_value());
    assert!(unit.decode_key(&[1]).is_err());
}

#[test]
fn values_of_other_types_are_refused() {
    let refused = |name: &str, key: Dynamic| {
        let asked = DynamicType::parse(name).unwrap();
        let error = asked.encode_key(&key).unwrap_err();
        assert!(error.expected().contains("of type"), "{error}");
        assert!(asked.encode_value(&key).is_err());
    };
    refused("u8", Dynamic::U16(1));
    refused("String", b"a"[..].into());
    refused("[u8; 2]", b"abc"[..].into());
    refused("(u8, u8)", Dynamic::Tuple(vec![Dynamic::U8(1)]));
    refused("(u8, u8)", Dynamic::Tuple(vec![Dynamic::U8(1), Dynamic::I8(1)]));
    refused("Option<u8>", Dynamic::U8(1));
    refused("()", Dynamic::U8(1));
}

/// First parts are a prefix of the tuples that begin with them, and of no others.
#[test]
fn first_parts_are_a_prefix() {
    let asked = DynamicType::parse("(String, Reverse<u8>, bytes)").unwrap();
    let key = |text: &str, number, last: &[u8]| {
        Dynamic::Tuple(vec![text.into(), Dynamic::U8(number), last.into()])
    };
    let parts = ["ada".into(), Dynamic::U8(7)];
    for count in 0..=2 {
        let prefix = asked.encode_first_parts(&parts[..count]).unwrap();
        for (text, number) in [("ada", 7), ("ada", 8), ("ad", 7), ("adam", 7), ("ada\0", 7)] {
            let bytes = asked.encode_key(&key(text, number, b"")).unwrap();
            let begins = count == 0 || text == "ada" && (count == 1 || number == 7);
            assert_eq!(bytes.starts_with(&prefix), begins, "{count} {text:?} {number}");
        }
    }
    let all = ["ada".into(), Dynamic::U8(7), b""[..].into()];
    assert!(asked.encode_first_parts(&all).is_err());
    assert!(asked.encode_first_parts(&[Dynamic::U8(7)]).is_err());
    assert!(DynamicType::String.encode_first_parts(&["a".into()]).is_err());
}

#[test]
fn declared_types_are_those_of_compiled_programs() -> Result<(), Error> {
    let store = Store::in_memory()?;
    let scores = store.keyspace("scores")?;
    assert_eq!(scores.types()?, None);
    let typed = scores.typed::<(String, Reverse<u64>), f64>()?;
    let types = scores.types()?.expect("recorded");
    assert_eq!(types.to_string(), "keys (String, Reverse<u64>), values f64");
    scores.declare_types(&types)?;
    let (keys, values) =
        (DynamicType::parse(&types.key.name), DynamicType::parse(&types.value.name));
    let (keys, values) = (keys.expect("keys"), values.expect("values"));
    let key = Dynamic::Tuple(vec!["ada".into(), Dynamic::U64(3)]);
    let encoded = |it: Result<Vec<u8>, Malformed>| it.expect("of the type");
    scores.put(encoded(keys.encode_key(&key)), encoded(values.encode_value(&Dynamic::F64(0.5))))?;
    assert_eq!(typed.first()?, Some((("ada".to_owned(), Reverse(3)), 0.5)));

    // The first one records; an empty keyspace of bytes takes types, a filled one is trusted.
    let first = store.keyspace("first")?;
    first.declare_types(&types)?;
    assert_eq!(first.types()?, Some(types.clone()));
    assert!(matches!(first.typed::<u8, u8>(), Err(Error::WrongTypes { .. })));
    let mut other = types.clone();
    other.key.version = 2;
    assert!(matches!(first.declare_types(&other), Err(Error::WrongTypes { .. })));
    let filled = store.keyspace("filled")?;
    filled.put("a", "b")?;
    filled.declare_types(&types)?;
    assert_eq!(filled.types()?, None);
    other.key.name = String::new();
    assert!(matches!(store.keyspace("new")?.declare_types(&other), Err(Error::TypeName { .. })));
    Ok(())
}
