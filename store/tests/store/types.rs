//! The types of typed keyspaces: recorded when they are made, and compared ever after.
//!
//! Types used not to be recorded: a keyspace of texts and `u32` opened as one of texts and `f32`
//! read numbers that were never written, and wrote such.

use std::collections::BTreeMap;
use std::sync::Barrier;

use adamant::typed::{Key, KeyFor, Malformed, Named, Value};
use adamant::{Engine, Error, Keyspace, Options, Result, Slice, Store};

/// A key type of the program, in the second version of its encoding.
#[derive(Debug, PartialEq)]
struct Day(u16);

impl Named for Day {
    const NAME: &'static str = "Day";
    const VERSION: u32 = 2;
}

impl KeyFor<Day> for Day {
    fn encode(&self, bytes: &mut Vec<u8>) {
        self.0.encode(bytes);
    }
}

impl Key for Day {
    fn decode(bytes: &mut &[u8]) -> std::result::Result<Self, Malformed> {
        Key::decode(bytes).map(Day)
    }
}

fn types_of(store: &Store, name: &str) -> Option<String> {
    let all = store.keyspaces().unwrap().into_iter();
    let mut found = all.filter(|info| info.name == name).map(|info| info.types);
    found.next().expect("it is there").map(|types| types.to_string())
}

fn is_wrong<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::WrongTypes { .. }))
}

#[test]
fn names_are_those_that_are_documented() {
    type Parts = (String, Option<Day>, std::cmp::Reverse<u64>, [u8; 4], bool);
    let names = [
        <u8>::name(),
        <i128>::name(),
        <f64>::name(),
        <char>::name(),
        <()>::name(),
        String::name(),
        Vec::<u8>::name(),
        Slice::name(),
        Day::name(),
        Parts::name(),
    ];
    let expected = [
        "u8",
        "i128",
        "f64",
        "char",
        "()",
        "String",
        "bytes",
        "bytes",
        "Day",
        "(String, Option<Day version 2>, Reverse<u64>, [u8; 4], bool)",
    ];
    assert_eq!(names, expected);
}

#[test]
fn other_types_are_refused_and_bytes_never() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path).unwrap();
    let ages = store.keyspace("ages").unwrap().typed::<Day, u32>().unwrap();
    ages.insert(&Day(7), &36).unwrap();
    store.close().unwrap();

    for options in [Options::new().read_only(true), Options::new()] {
        let store = Store::open_with(&path, options).unwrap();
        let bytes = store.open_keyspace("ages").unwrap();
        assert_eq!(bytes.typed::<Day, u32>().unwrap().get(&Day(7)).unwrap(), Some(36));
        // Types of the same size, for the value and for the key.
        assert!(is_wrong(bytes.typed::<Day, f32>()) && is_wrong(bytes.typed::<u16, u32>()));
        assert!(is_wrong(store.open_stored("ages").unwrap().typed::<Slice, Slice>()));
        let error = bytes.typed::<(String, u8), [u8; 4]>().unwrap_err().to_string();
        let expected = "\"ages\" has keys Day version 2, values u32, and was asked for with keys \
                        (String, u8), values [u8; 4]; ask for what it has";
        assert!(error.contains(expected), "{error}");
        assert_eq!(bytes.get([0, 7]).unwrap(), Some([36, 0, 0, 0].into()));
        store.close().unwrap();
    }
}

/// The first record holds: of two first threads, one is refused.
#[test]
fn of_two_that_are_first_one_records() {
    let store = Store::in_memory().unwrap();
    for round in 0..50 {
        let (name, both) = (format!("{round}"), Barrier::new(2));
        let first = std::thread::scope(|scope| {
            let (name, store, both) = (&name, &store, &both);
            let one = scope.spawn(move || {
                let keyspace = store.keyspace(name).unwrap();
                both.wait();
                keyspace.typed::<u8, u32>().is_ok()
            });
            let keyspace = store.keyspace(name).unwrap();
            both.wait();
            let other = keyspace.typed::<u8, f32>().is_ok();
            assert!(one.join().unwrap() != other, "just one of them");
            other
        });
        let value = if first { "f32" } else { "u32" };
        assert_eq!(types_of(&store, &name), Some(format!("keys u8, values {value}")));
    }
}

#[test]
fn what_held_entries_before_is_taken_at_its_word_until_it_is_said() {
    let store = Store::in_memory().unwrap();
    let bytes = store.keyspace("old").unwrap();
    bytes.insert("ada", [36, 0, 0, 0]).unwrap();
    // As before types were recorded; a guess is not recorded.
    assert_eq!(bytes.typed::<String, u32>().unwrap().get("ada").unwrap(), Some(36));
    assert!(bytes.typed::<String, [u8; 4]>().is_ok());
    assert_eq!(types_of(&store, "old"), None);
    let ages = bytes.retype::<String, u32>().unwrap();
    assert_eq!(ages.get("ada").unwrap(), Some(36));
    assert!(is_wrong(bytes.typed::<String, [u8; 4]>()));
    // An earlier handle, and one with other types.
    let others = bytes.retype::<String, [u8; 4]>().unwrap();
    assert_eq!(ages.get("ada").unwrap(), others.get("ada").unwrap().map(u32::from_le_bytes));
    assert!(is_wrong(bytes.typed::<String, u32>()));
    // Without entries it still has its types.
    bytes.clear().unwrap();
    assert!(is_wrong(bytes.typed::<String, u32>()));

    let ending = store.expiring("ending").unwrap();
    let stored = store.open_stored("ending").unwrap();
    assert!(stored.typed::<String, u32>().is_ok());
    assert!(matches!(stored.retype::<String, u32>(), Err(Error::WrongKind { .. })));
    assert_eq!(types_of(&store, "ending"), None, "values stand behind deadlines");
    assert!(ending.is_empty().unwrap());
}

struct Long;

impl Named for Long {
    const NAME: &'static str = "";

    fn name() -> String {
        "long".repeat(251)
    }
}

impl KeyFor<Long> for Long {
    fn encode(&self, _: &mut Vec<u8>) {}
}

impl Key for Long {
    fn decode(_: &mut &[u8]) -> std::result::Result<Self, Malformed> {
        Ok(Self)
    }
}

#[test]
fn a_name_that_is_too_long_is_refused() {
    let store = Store::in_memory().unwrap();
    let error = store.keyspace("k").unwrap().typed::<Long, ()>().unwrap_err();
    assert!(matches!(error, Error::TypeName { bytes: 1004, bytes_max: 1000 }), "{error}");
    assert_eq!(types_of(&store, "k"), None);
}

/// Within its own exclusive transaction a thread compares, but cannot record.
#[test]
fn types_are_compared_within_an_exclusive_transaction() {
    let store = Store::in_memory().unwrap();
    let (said, unsaid) = (store.keyspace("said").unwrap(), store.keyspace("unsaid").unwrap());
    said.typed::<u8, ()>().unwrap();
    let only = store.begin_exclusive().unwrap();
    assert!(said.typed::<u8, ()>().is_ok() && is_wrong(said.typed::<u16, ()>()));
    assert!(matches!(unsaid.typed::<u8, ()>(), Err(Error::WithinExclusive)));
    drop(only);
}

/// Opens a keyspace with types, with `typed` and with `retype`; and what that records.
type Door = (fn(&Keyspace) -> Result<()>, fn(&Keyspace) -> Result<()>, &'static str);

fn door<K: Key, V: Value>(types: &'static str) -> Door {
    let typed = |keyspace: &Keyspace| keyspace.typed::<K, V>().map(drop);
    (typed, |keyspace| keyspace.retype::<K, V>().map(drop), types)
}

/// The recorded types of keyspaces, and whether they have entries.
type Model = BTreeMap<&'static str, (Option<&'static str>, bool)>;

fn assert_as_modelled(store: &Store, model: &Model) {
    let all = store.keyspaces().unwrap().into_iter();
    let found: Vec<_> = all
        .map(|info| (info.name, info.types.map(|types| types.to_string()), info.entries > 0))
        .collect();
    let expected: Vec<_> = model
        .iter()
        .map(|(name, (types, full))| ((*name).to_owned(), types.map(str::to_owned), *full))
        .collect();
    assert_eq!(found, expected);
}

/// Whatever is done to keyspaces, their types go with them.
#[test]
fn types_go_where_the_keyspace_goes() {
    let doors = [
        door::<String, u32>("keys String, values u32"),
        door::<String, f32>("keys String, values f32"),
        door::<Day, Vec<u8>>("keys Day version 2, values bytes"),
    ];
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let mut random = fastrand::Rng::with_seed(12);
    let mut store = Store::open(&path).unwrap();
    let mut model = Model::new();
    let names = ["a", "b", "c"];
    for _ in 0..400 {
        let (name, other) = (random.choice(names).unwrap(), random.choice(names).unwrap());
        let has = model.contains_key(name);
        let keyspace = || store.open_keyspace(name).unwrap();
        match random.u8(0..16) {
            0..3 if !has => {
                let engine = Engine::ALL[random.usize(..Engine::ALL.len())];
                let options = adamant::KeyspaceOptions::new().engine(engine);
                store.create_keyspace_with(name, options).unwrap();
                model.insert(name, (None, false));
            }
            3..6 if has => {
                let (typed, _, types) = random.choice(&doors).unwrap();
                let (recorded, full) = model.get_mut(name).unwrap();
                match (typed(&keyspace()), &*recorded) {
                    (Ok(()), None) if !*full => *recorded = Some(types),
                    (Ok(()), None) => {}
                    (Ok(()), Some(recorded)) => assert_eq!(recorded, types),
                    (Err(Error::WrongTypes { recorded: found, .. }), Some(recorded)) => {
                        assert!(recorded != types && found.to_string() == **recorded);
                    }
                    (outcome, recorded) => panic!("{outcome:?} of {recorded:?}"),
                }
            }
            6 if has => {
                let (_, retype, types) = random.choice(&doors).unwrap();
                retype(&keyspace()).unwrap();
                model.get_mut(name).unwrap().0 = Some(types);
            }
            7 if has => {
                keyspace().insert("bytes", "of anybody").unwrap();
                model.get_mut(name).unwrap().1 = true;
            }
            8 if has => {
                keyspace().clear().unwrap();
                model.get_mut(name).unwrap().1 = false;
            }
            9 if has => {
                store.drop_keyspace(name).unwrap();
                model.remove(name);
            }
            10 if has && !model.contains_key(other) => {
                // A snapshot keeps the tree of a dropped keyspace.
                let _snapshot = store.snapshot().unwrap();
                store.rename_keyspace(name, other).unwrap();
                let found = model.remove(name).unwrap();
                model.insert(other, found);
            }
            11 if has && model.contains_key(other) => {
                store.swap_keyspaces(name, other).unwrap();
                let (one, two) = (model[name], model[other]);
                model.insert(name, two);
                model.insert(other, one);
            }
            12 | 13 if has => {
                let _snapshot = random.bool().then(|| store.snapshot().unwrap());
                let engine = Engine::ALL[random.usize(..Engine::ALL.len())];
                store.convert_keyspace(name, engine).unwrap();
            }
            14 if random.u8(0..4) == 0 => {
                store.close().unwrap();
                store = Store::open(&path).unwrap();
            }
            _ => continue,
        }
        assert_as_modelled(&store, &model);
    }
    for (name, at) in names.into_iter().zip(0..) {
        let keyspace = store.keyspace(name).unwrap();
        keyspace.insert("bytes", "of anybody").unwrap();
        (doors[at].1)(&keyspace).unwrap();
        model.insert(name, (Some(doors[at].2), true));
    }
    store.backup(&copy).unwrap();
    store.close().unwrap();
    adamant::compact(&path).unwrap();
    let copied = Store::open(&copy).unwrap();
    assert_as_modelled(&copied, &model);
    copied.close().unwrap();
    adamant::repair(&copy).unwrap();
    for path in [&path, &copy] {
        let store = Store::open(path).unwrap();
        assert_as_modelled(&store, &model);
        assert!(store.check().unwrap().is_clean());
        store.close().unwrap();
    }
}
