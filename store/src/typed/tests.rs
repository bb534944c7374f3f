//! Tests of typed keys: encodings keep the order, and malformed bytes are errors.

use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

use adamant_slice::Slice;

use super::*;
use crate::error::Error;
use crate::store::handle::Store;

fn encoded<K: Key>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode_last(&mut bytes);
    bytes
}

/// Bytes compare as keys do, alone and before another part, and keys round-trip; also by the codec
/// of types that are known by name.
pub(super) fn order_is_kept<K: Key + Ord + Clone + Debug>(keys: &[K]) {
    order_is_kept_by(keys, K::cmp);
}

pub(super) fn order_is_kept_by<K: Key + Clone + Debug>(
    keys: &[K],
    compare: impl Fn(&K, &K) -> Ordering,
) {
    let named = DynamicType::parse(&K::name()).expect("a type of keys");
    assert_eq!((named.is_key(), named.to_string()), (true, K::name()));
    for one in keys {
        let bytes = encoded(one);
        assert!(K::decode_last(&bytes).is_ok_and(|key| compare(&key, one).is_eq()), "{one:?}");
        let key = named.decode_key(&bytes).unwrap();
        assert_eq!(named.encode_key(&key).as_ref(), Ok(&bytes), "{one:?}, as {key:?}");
        for other in keys {
            let (left, right) = (encoded(one), encoded(other));
            assert_eq!(left.cmp(&right), compare(one, other), "{one:?} {other:?}");
            for (front, back) in [(0_u8, 255_u8), (255, 0), (255, 255)] {
                let (left, right) = ((one.clone(), front), (other.clone(), back));
                let (key, last) = <(K, u8)>::decode_last(&encoded(&left)).unwrap();
                assert!(compare(&key, one).is_eq() && last == front, "{one:?}");
                let expected = compare(one, other).then(front.cmp(&back));
                assert_eq!(encoded(&left).cmp(&encoded(&right)), expected, "{one:?} {other:?}");
            }
        }
    }
}

fn texts(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> =
        vec![vec![], vec![0], vec![0, 0], vec![0, 255], vec![255], vec![1]];
    let bytes = [0, 1, b'a', 0xfe, 0xff];
    for _ in 0..40 {
        texts.push((0..random.usize(0..6)).map(|_| bytes[random.usize(0..5)]).collect());
    }
    texts
}

#[test]
fn bytes_have_the_order_of_keys() {
    let mut random = fastrand::Rng::with_seed(7);
    let random = &mut random;
    order_is_kept(&[u8::MIN, 1, 127, 128, u8::MAX]);
    order_is_kept(&[i8::MIN, -1, 0, 1, i8::MAX]);
    order_is_kept(&[u16::MIN, 255, 256, u16::MAX]);
    order_is_kept(&[i32::MIN, -256, -1, 0, 255, 256, i32::MAX]);
    order_is_kept(&[u128::MIN, u128::from(u64::MAX), u128::MAX]);
    order_is_kept(&[i128::MIN, -1, 0, i128::MAX]);
    order_is_kept(&(0..60).map(|_| random.u64(..) >> random.u32(0..64)).collect::<Vec<_>>());
    order_is_kept(&(0..60).map(|_| random.i64(..) >> random.u32(0..64)).collect::<Vec<_>>());
    order_is_kept(&[false, true]);
    order_is_kept(&[[0_u8, 0], [0, 1], [1, 0]]);
    let texts = texts(random);
    order_is_kept(&texts);
    order_is_kept(&texts.iter().map(|text| Slice::from(&text[..])).collect::<Vec<_>>());
    order_is_kept(&texts.iter().map(|text| Reverse(text.clone())).collect::<Vec<_>>());
    order_is_kept(&texts.iter().map(|text| Some(text.clone())).chain([None]).collect::<Vec<_>>());
    let words = ["", "a", "a\0", "ab", "b", "\u{e9}", "z"].map(String::from);
    order_is_kept(&words);
    let mut tuples = Vec::new();
    for text in texts.iter().take(12) {
        for number in [i64::MIN, -5, 0, 7] {
            tuples.push((text.clone(), Reverse(number), texts[random.usize(0..20)].clone()));
        }
    }
    order_is_kept(&tuples);
}

#[test]
fn bytes_that_are_no_key_are_refused() {
    fn decode<K: Key>(bytes: &[u8]) -> bool {
        let named = DynamicType::parse(&K::name()).expect("a type of keys");
        let is_key = K::decode_last(bytes).is_ok();
        assert_eq!(named.decode_key(bytes).is_ok(), is_key, "{named}: {bytes:?}");
        // A decodable key encodes to the same bytes: there is one encoding of a key.
        K::decode_last(bytes).is_ok_and(|key| {
            assert_eq!(encoded(&key), bytes);
            true
        })
    }
    let mut random = fastrand::Rng::with_seed(11);
    let mut decoded = 0;
    for _ in 0..20_000 {
        let alphabet = [0, 1, 0xfe, 0xff, random.u8(..)];
        let bytes: Vec<u8> =
            (0..random.usize(0..12)).map(|_| alphabet[random.usize(0..5)]).collect();
        for is_key in [
            decode::<u64>(&bytes),
            decode::<(u16, bool)>(&bytes),
            decode::<(String, u8)>(&bytes),
            decode::<Reverse<(Vec<u8>, i16)>>(&bytes),
            decode::<Option<String>>(&bytes),
            decode::<Option<(u8, [u8; 3])>>(&bytes),
            decode::<f32>(&bytes),
            decode::<(Vec<u8>, f64)>(&bytes),
            decode::<(char, Option<bool>)>(&bytes),
        ] {
            decoded += u32::from(is_key);
        }
    }
    assert!(decoded > 1000, "some are keys, {decoded}");
    assert!(u64::decode_last(&[0; 7]).is_err());
    assert!(u64::decode_last(&[0; 9]).is_err());
    assert!(String::decode_last(&[0xff]).is_err());
    assert!(bool::decode_last(&[2]).is_err());
    assert!(f64::decode_last(&[0; 7]).is_err() && f32::decode_last(&[0; 5]).is_err());
    // A surrogate is no character.
    assert!(char::decode_last(&[0, 0, 0xd8, 0]).is_err());
}

type Entry = Result<((String, i32), Slice), Error>;

fn names(entries: impl Iterator<Item = Entry>) -> Result<Vec<(String, i32)>, Error> {
    entries.map(|entry| entry.map(|(key, _)| key)).collect()
}

#[test]
fn a_keyspace_of_types_is_the_keyspace() -> Result<(), Error> {
    let store = Store::in_memory()?;
    let scores = store.keyspace("scores")?.typed::<(String, i32), Slice>()?;
    for (name, round) in [("ada", 2), ("ada", -1), ("ad", 7), ("bob", 0), ("", 1)] {
        assert!(!scores.insert(&(name, round), &format!("{name}{round}"))?);
    }
    let own = |list: &[(&str, i32)]| -> Vec<(String, i32)> {
        list.iter().map(|&(name, round)| (name.into(), round)).collect()
    };
    let all = own(&[("", 1), ("ad", 7), ("ada", -1), ("ada", 2), ("bob", 0)]);
    assert_eq!(names(scores.iter())?, all);
    assert_eq!(names(scores.iter().rev())?, all.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(names(scores.prefix(&("ada",)))?, own(&[("ada", -1), ("ada", 2)]));
    let range = ("ad", i32::MIN)..=("ada", -1);
    assert_eq!(names(scores.range(range))?, own(&[("ad", 7), ("ada", -1)]));
    assert_eq!(scores.first()?.map(|entry| entry.0), Some((String::new(), 1)));
    assert_eq!(scores.last()?.map(|entry| entry.0), Some(("bob".into(), 0)));

    let copy = store.keyspace("copy")?.typed::<(String, i32), Slice>()?;
    for (name, round) in &all {
        copy.put(&(&**name, *round), "")?;
    }
    copy.put(&("eve", 3), "")?;
    copy.delete(&("eve", 3))?;
    copy.delete(&("eve", 3))?;
    copy.delete_range(("ad", i32::MIN)..("ada", 2))?;
    assert_eq!(names(copy.iter())?, own(&[("", 1), ("ada", 2), ("bob", 0)]));

    let before = store.snapshot()?;
    let mut batch = store.batch();
    scores.delete_from(&mut batch, &("bob", 0))?;
    scores.put_into(&mut batch, &("eve", 3), "eve3")?;
    batch.commit()?;
    assert_eq!(scores.take(&("ad", 7))?, Some("ad7".into()));
    assert!(!scores.contains(&("ad", 7))? && scores.contains(&("eve", 3))?);
    assert_eq!(scores.len()?, 4);
    assert_eq!(scores.at(&before).get(&("bob", 0))?, Some("bob0".into()));
    assert_eq!(names(scores.at(&before).iter())?, all);
    assert_eq!(scores.at(&before).prefix(&("ada",)).count(), 2);

    store.transaction(|tx| {
        let mut scores = scores.within(tx);
        scores.put(&("ada", 5), "new")?;
        scores.delete(&("ada", 2))?;
        let seen = scores.prefix(&("ada",)).rev();
        assert_eq!(names(seen)?, own(&[("ada", 5), ("ada", -1)]));
        assert_eq!(scores.take(&("eve", 3))?, Some("eve3".into()));
        Ok::<_, Error>(())
    })?;
    assert_eq!(scores.get(&("ada", 5))?, Some("new".into()));
    assert_eq!(scores.len()?, 3);
    Ok(())
}

#[test]
fn what_is_of_another_type_is_an_error_that_says_where() -> Result<(), Error> {
    let store = Store::in_memory()?;
    let bytes = store.keyspace("odd")?;
    bytes.insert([1, 2, 3], "text")?;
    let numbers = bytes.typed::<u64, u64>()?;
    let error = numbers.first().expect_err("no u64");
    let text = error.to_string();
    assert!(text.contains("\"odd\"") && text.contains("8 bytes of a u64"), "{text}");
    let numbers = bytes.typed::<[u8; 3], u64>()?;
    let text = numbers.get(&[1, 2, 3]).expect_err("no u64").to_string();
    assert!(text.contains("found 4 bytes, \"text\""), "{text}");
    assert_eq!(numbers.iter().filter(Result::is_err).count(), 1);
    // The empty text is a key like any other.
    let texts = store.keyspace("texts")?.typed::<String, ()>()?;
    assert!(!texts.insert("", &())? && texts.contains("")?);
    assert_eq!(texts.first()?, Some((String::new(), ())));
    Ok(())
}

fn collected(keys: &mut dyn Iterator<Item = Result<u16, Error>>) -> Result<Vec<u16>, Error> {
    keys.collect()
}

#[test]
fn keys_come_without_values_that_are_none() -> Result<(), Error> {
    let store = Store::in_memory()?;
    let numbers = store.keyspace("numbers")?.typed::<u16, u64>()?;
    for number in 0..200_u16 {
        // Two bytes are no u64.
        numbers.untyped().insert(number.swap_bytes().to_le_bytes(), "no")?;
    }
    assert!(numbers.iter().all(|entry| entry.is_err()));
    let before = store.snapshot()?;
    let all: Vec<u16> = (0..200).collect();
    assert_eq!(collected(&mut numbers.iter().keys())?, all);
    store.transaction(|tx| {
        let mut within = numbers.within(tx);
        within.put(&500_u16, &7_u64)?;
        within.delete(&199_u16)?;
        assert_eq!(collected(&mut within.range(197_u16..).keys())?, [197, 198, 500]);
        assert_eq!(collected(&mut within.iter().keys().rev().take(2))?, [500, 198]);
        Ok::<_, Error>(())
    })?;
    let seen = numbers.at(&before);
    assert_eq!(collected(&mut seen.range(..=5_u16).keys().rev())?, [5, 4, 3, 2, 1, 0]);

    // A malformed key is an error, and the next one comes after it.
    numbers.untyped().insert([0, 3, 0], "")?;
    let mut keys = numbers.range(3_u16..5).keys();
    assert!(matches!(keys.next(), Some(Ok(3))));
    assert!(matches!(keys.next(), Some(Err(Error::Encoding { .. }))));
    assert!(matches!(keys.next_back(), Some(Ok(4))));
    assert!(keys.next().is_none());
    Ok(())
}

#[cfg(feature = "serde")]
#[test]
fn values_of_serde_come_back() -> Result<(), Error> {
    let store = Store::in_memory()?;
    let lists = store.keyspace("lists")?.typed::<u32, Serde<Vec<(String, Option<i64>)>>>()?;
    let list = Serde(vec![("a".to_owned(), Some(-1)), (String::new(), None)]);
    lists.insert(&5, &list)?;
    assert_eq!(lists.get(&5)?, Some(list));
    lists.untyped().insert(6_u32.swap_bytes().to_le_bytes(), [9, 9])?;
    assert!(matches!(lists.get(&6), Err(Error::Encoding { .. })));
    Ok(())
}

/// Types that postcard encodes to bytes from which it cannot decode them.
#[cfg(feature = "json")]
mod unread {
    use std::collections::BTreeMap;

    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};

    use super::super::{Json, Named, Serde};
    use crate::error::Error;
    use crate::store::handle::Store;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Untagged {
        Number(u32),
        Text(String),
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged {
        Login { user: String },
        Restart,
    }

    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Sparse {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        first: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        second: Option<u8>,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Flat {
        id: u32,
        #[serde(flatten)]
        rest: BTreeMap<String, u32>,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(rename = "person")]
    struct Renamed {
        _name: String,
    }

    /// Infinite without a limit on the depth.
    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Nested(Option<Box<Nested>>);

    /// A name that changes makes stores refuse the programs that wrote them.
    #[test]
    fn names_are_those_that_serde_has() {
        type Pairs = Vec<(String, Option<i64>)>;
        let names = [
            Serde::<Sparse>::name(),
            Json::<Sparse>::name(),
            Serde::<Renamed>::name(),
            Serde::<Tagged>::name(),
            Serde::<Flat>::name(),
            Serde::<Pairs>::name(),
            Serde::<BTreeMap<u8, Flat>>::name(),
            Serde::<()>::name(),
            Json::<serde_json::Value>::name(),
            Serde::<std::net::Ipv4Addr>::name(),
            Json::<std::net::Ipv4Addr>::name(),
        ];
        let expected = [
            "Serde<Sparse>",
            "Json<Sparse>",
            "Serde<person>",
            "Serde<any>",
            "Serde<{field}>",
            "Serde<[[String; 2]]>",
            "Serde<{u8}>",
            "Serde<()>",
            "Json<any>",
            "Serde<[u8; 4]>",
            "Json<String>",
        ];
        assert_eq!(names, expected);
        assert!(Serde::<Nested>::name().ends_with("Option<..>>>>>>>>"));
    }

    #[test]
    fn a_new_version_is_another_type() {
        let store = Store::in_memory().unwrap();
        let keyspace = store.keyspace("whole").unwrap();
        let first = keyspace.typed::<u32, Serde<Sparse>>().unwrap();
        first.insert(&1, &Serde(Sparse { first: Some(5), second: Some(1) })).unwrap();
        let error = keyspace.typed::<u32, Serde<Sparse, 2>>().unwrap_err().to_string();
        assert!(error.contains("has keys u32, values Serde<Sparse>, and"), "{error}");
        assert!(error.contains("values Serde<Sparse> version 2;"), "{error}");
        assert!(keyspace.typed::<u32, Json<Sparse>>().is_err());
        let second = keyspace.retype::<u32, Serde<Sparse, 2>>().unwrap();
        second.insert(&2, &Serde(Sparse { first: Some(6), second: Some(2) })).unwrap();
        assert_eq!(second.get(&1).unwrap().map(|found| found.first), Some(Some(5)));
        assert!(keyspace.typed::<u32, Serde<Sparse>>().is_err());
    }

    /// `Serde` refuses the value, and `Json` keeps it.
    fn only_as_json<T>(store: &Store, value: &T)
    where
        T: Clone + std::fmt::Debug + PartialEq + Serialize + DeserializeOwned,
    {
        store.drop_keyspace("values").unwrap();
        let keyspace = store.keyspace("values").unwrap();
        let binary = keyspace.typed::<u32, Serde<T>>().unwrap();
        let error = binary.insert(&1, &Serde(value.clone())).unwrap_err();
        assert!(matches!(&error, Error::Encoding { .. }), "{value:?}: {error}");
        let within = store.transaction(|tx| binary.within(tx).put(&1, &Serde(value.clone())));
        assert!(within.is_err() && keyspace.is_empty().unwrap(), "{value:?}: nothing is kept");
        let text = keyspace.retype::<u32, Json<T>>().unwrap();
        text.insert(&1, &Json(value.clone())).unwrap();
        assert_eq!(text.get(&1).unwrap().map(|json| json.0).as_ref(), Some(value));
    }

    /// Each was accepted, and every later `get` of it failed, or gave another value.
    #[test]
    fn what_could_not_be_read_back_is_not_taken() {
        let store = Store::in_memory().unwrap();
        only_as_json(&store, &Untagged::Number(7));
        only_as_json(&store, &vec![Untagged::Text("x".into())]);
        only_as_json(&store, &Tagged::Login { user: "ada".into() });
        only_as_json(&store, &Tagged::Restart);
        only_as_json(&store, &serde_json::json!({"a": [1, null]}));
        only_as_json(&store, &Flat { id: 1, rest: BTreeMap::from([("x".into(), 2)]) });
        let (first, second) = (Some(5), Some(1));
        only_as_json(&store, &Sparse { first: None, second });
        // Two of these were read as one and a half others.
        let pair = Sparse { first, second: None };
        only_as_json(&store, &vec![pair.clone(), pair]);
        // A complete value is accepted.
        let binary = store.keyspace("whole").unwrap().typed::<u32, Serde<Sparse>>().unwrap();
        let whole = Sparse { first, second };
        binary.insert(&1, &Serde(whole.clone())).unwrap();
        assert_eq!(binary.get(&1).unwrap(), Some(Serde(whole)));

        let numbers = store.keyspace("numbers").unwrap().typed::<u32, Json<f64>>().unwrap();
        assert!(matches!(numbers.insert(&1, &Json(f64::NAN)), Err(Error::Encoding { .. })));
        numbers.insert(&1, &Json(0.5)).unwrap();
    }
}

/// The examples of docs/format/typed.md.
#[test]
fn bytes_are_as_documented() {
    assert_eq!(encoded(&("ab".to_owned(), 1_u16)), b"ab\0\0\0\x01");
    assert_eq!(encoded(&(1_u16, "ab".to_owned())), b"\0\x01ab");
    assert_eq!(encoded(&Reverse("a".to_owned())), [0x9e, 0xff, 0xff]);
    assert_eq!(encoded(&-1_i16), [0x7f, 0xff]);
    assert_eq!(encoded(&(b"\0".to_vec(), true)), [0, 0xff, 0, 0, 1]);
    assert_eq!(encoded(&Some(5_u8)), [1, 5]);
    assert_eq!(encoded(&None::<u8>), [0]);
    assert_eq!(encoded(&1.5_f64), [0xbf, 0xf8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(encoded(&-1.5_f64), [0x40, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    assert_eq!(encoded(&-0.0_f32), [0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(encoded(&0.0_f32), [0x80, 0, 0, 0]);
    assert_eq!(encoded(&'\u{e9}'), [0, 0, 0, 0xe9]);
    let mut spare = Vec::new();
    assert_eq!(0x0102_u16.encode_value(&mut spare), Ok(&[2, 1][..]));
}

/// An entry of another type is an error, and then nothing is deleted.
#[test]
fn entries_that_cannot_be_decoded_are_not_chosen() {
    let store = Store::in_memory().unwrap();
    let bytes = store.keyspace("ages").unwrap();
    let ages = bytes.typed::<String, u16>().unwrap();
    for (name, age) in [("ada", 36), ("bob", 41), ("eve", 17)] {
        ages.put(name, &age).unwrap();
    }
    assert_eq!(ages.extract_if(.., |_, age| *age < 18).unwrap(), [("eve".to_string(), 17)]);
    let kept =
        store.transaction(|tx| ages.within(tx).retain("b".to_string().., |_, age| *age > 40));
    assert_eq!(kept.unwrap(), 0);
    bytes.put("carl", "thirty").unwrap();
    assert!(matches!(ages.retain(.., |_, _| false), Err(Error::Encoding { .. })));
    let refused = store.transaction(|tx| ages.within(tx).extract_if(.., |_, _| true).map(drop));
    assert!(matches!(refused, Err(Error::Encoding { .. })));
    assert_eq!(bytes.len().unwrap(), 3);
    assert_eq!(ages.pop_first().unwrap(), Some(("ada".to_string(), 36)));
    let popped = store.transaction(|tx| ages.within(tx).pop_first());
    assert_eq!(popped.unwrap(), Some(("bob".to_string(), 41)));
    assert!(matches!(ages.pop_last(), Err(Error::Encoding { .. })));
    assert!(bytes.is_empty().unwrap(), "it was removed all the same");
}
