//! Options of a keyspace of the engine `lsm`: they stay with it, whatever happens to it, and hold
//! for what is written from then on.

use std::collections::BTreeMap;
use std::path::Path;

use adamant::{
    Compression, Durability, Engine, Error, Keyspace, KeyspaceOptions, LevelCompression, LsmLevel,
    LsmOptions, Options, Store, compact, repair, restore,
};

/// Memtables and tables of a few hundred entries, and a store that compresses by LZ4.
fn of_store() -> Options {
    let mut lsm = LsmOptions::default();
    lsm.memtable_bytes_max = 32 << 10;
    lsm.table_bytes_max = 64 << 10;
    lsm.base_bytes_min = 128 << 10;
    lsm.level0_tables_max = 4;
    lsm.blob_bytes_min = None;
    Options::new().durability(Durability::Buffered).lsm(lsm)
}

fn lsm() -> KeyspaceOptions {
    KeyspaceOptions::new().engine(Engine::Lsm)
}

/// The smallest that this build has.
fn smallest() -> Compression {
    if Compression::zstd().is_built() { Compression::zstd() } else { Compression::Lz4 }
}

/// Plain where it is new, small where it stays.
fn by_level() -> LevelCompression {
    LevelCompression::from(Compression::None).bottommost(smallest())
}

fn own() -> KeyspaceOptions {
    let options = lsm().compression(by_level()).block_bytes(1 << 10).filter_bits_per_key(0);
    let options = options.hash_index(true).blob_bytes_min(Some(2_000));
    options.caches_data(false).durability(Durability::Deferred)
}

/// Panics unless the keyspace has the options of [`own`].
fn assert_own(keyspace: &Keyspace, at: &str) {
    let found = keyspace.lsm().unwrap().options().unwrap();
    assert_eq!(found.compression, by_level(), "{at}");
    let sizes = (found.block_bytes, found.filter_bits_per_key, found.hash_index);
    assert_eq!((sizes, found.blob_bytes_min), ((1 << 10, 0, true), Some(2_000)), "{at}");
    assert_eq!((found.caches_data, keyspace.durability()), (false, Durability::Deferred), "{at}");
    // Those that no keyspace has are the store's.
    assert_eq!((found.memtable_bytes_max, found.base_bytes_min), (32 << 10, 128 << 10), "{at}");
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Writes words, which compress well, and some large values.
fn fill(keyspace: &Keyspace, random: &mut fastrand::Rng, model: &mut Model, entries: u32) {
    for _ in 0..entries {
        let key = format!("user {:05}", random.u32(..9_000)).into_bytes();
        let words = if random.u32(..200) == 0 { 500 } else { random.usize(1..30) };
        let word = |_| ["Lugano ", "Bern ", "Basel ", "Genf "][random.usize(..4)];
        let value: String = (0..words).map(word).collect();
        keyspace.put(&key, &value).unwrap();
        model.insert(key, value.into_bytes());
    }
}

fn assert_holds(keyspace: &Keyspace, model: &Model, at: &str) {
    let mut expected = model.iter();
    for entry in keyspace.iter() {
        let (key, value) = entry.unwrap();
        let (expected_key, expected_value) = expected.next().expect("no more than the model");
        assert!(key == expected_key[..] && value == expected_value[..], "{at}: {key:?}");
    }
    assert!(expected.next().is_none(), "{at}");
    for (key, value) in model.iter().step_by(97) {
        assert_eq!(keyspace.get(key).unwrap().unwrap(), value[..], "{at}");
    }
    assert_eq!(keyspace.get("user 5").unwrap(), None);
}

fn levels(keyspace: &Keyspace) -> Vec<LsmLevel> {
    keyspace.lsm().unwrap().stats().unwrap().levels.to_vec()
}

fn open(path: &Path) -> Store {
    Store::open_with(path, of_store()).unwrap()
}

#[test]
fn each_level_has_its_compression() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_with(directory.path(), of_store().background(false)).unwrap();
    let (mut random, mut model) = (fastrand::Rng::with_seed(1), Model::new());
    let of = |name: &str, levels: LevelCompression| {
        store.keyspace_with(name, lsm().compression(levels)).unwrap()
    };
    let plain = of("plain", Compression::None.into());
    let fast = of("fast", Compression::Lz4.into());
    let mixed = of("mixed", [Compression::None, Compression::Lz4].into());
    let mixed_small = of("small", by_level());
    let all = [&plain, &fast, &mixed, &mixed_small];
    for keyspace in all {
        model.clear();
        random.seed(1);
        fill(keyspace, &mut random, &mut model, 300);
    }
    let ratio = |keyspace: &Keyspace, level: usize| {
        let level = levels(keyspace)[level];
        (level.tables > 0)
            .then(|| level.data_bytes_stored as f64 / level.data_bytes_plain.max(1) as f64)
    };
    for keyspace in all {
        // All that was flushed is in level 0 yet.
        while ratio(keyspace, 0).is_none() {
            fill(keyspace, &mut random, &mut model, 100);
        }
    }
    let of_level0 = all.map(|keyspace| ratio(keyspace, 0).unwrap());
    assert!(of_level0[0] > 1.0 && of_level0[2] > 1.0 && of_level0[3] > 1.0, "{of_level0:?}");
    assert!(of_level0[1] < 0.7, "{of_level0:?}");
    for keyspace in all {
        keyspace.compact().unwrap();
    }
    let of_last = all.map(|keyspace| ratio(keyspace, 6).unwrap());
    assert!(of_last[0] > 1.0 && of_last[1] < 0.7 && of_last[2] < 0.7, "{of_last:?}");
    if smallest() != Compression::Lz4 {
        assert!(of_last[3] < 0.8 * of_last[2], "{of_last:?}");
    }
    let tables = |keyspace| levels(keyspace)[..6].iter().map(|level| level.tables).sum();
    let sums: [u64; 4] = all.map(tables);
    assert_eq!(sums, [0; 4]);
}

#[test]
fn options_stay_and_hold_for_the_merges_of_the_background() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (mut random, mut model) = (fastrand::Rng::with_seed(2), Model::new());
    let store = open(&path);
    let data = store.create_keyspace_with("data", own()).unwrap();
    assert_own(&data, "made");
    fill(&data, &mut random, &mut model, 2_000);
    store.close().unwrap();
    // Opened without options: those that it has hold.
    let store = open(&path);
    let data = store.open_keyspace("data").unwrap();
    assert_own(&data, "opened again");
    fill(&data, &mut random, &mut model, 6_000);
    data.compact().unwrap();
    assert_holds(&data, &model, "merged");
    let last = levels(&data)[6];
    assert!(last.data_bytes_stored * 10 < last.data_bytes_plain * 7, "{last:?}");
    assert!(data.lsm().unwrap().stats().unwrap().blobs.values > 0, "from 2,000 bytes on");
    assert!(store.check().unwrap().is_clean());
    store.close().unwrap();
    let store = Store::open_read_only(&path).unwrap();
    let data = store.open_keyspace("data").unwrap();
    assert_eq!(data.lsm().unwrap().options().unwrap().block_bytes, 1 << 10);
    // It cannot record others, and needs none to read.
    let data = store.keyspace_with("data", lsm().block_bytes(4_000)).unwrap();
    assert_holds(&data, &model, "read only");
}

#[test]
fn other_options_are_one_commit_and_hold_from_then_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (mut random, mut model) = (fastrand::Rng::with_seed(3), Model::new());
    let store = open(&path);
    let commits = || store.stats().unwrap().heap.journal.last_sequence;
    let data = store.keyspace_with("data", lsm().compression(Compression::None)).unwrap();
    fill(&data, &mut random, &mut model, 1_000);
    data.compact().unwrap();
    let plain = levels(&data)[6];
    assert!(plain.data_bytes_stored > plain.data_bytes_plain, "{plain:?}");
    let before = commits();
    let again = store.keyspace_with("data", lsm().compression(Compression::None)).unwrap();
    let unsaid = store.keyspace_with("data", lsm()).unwrap();
    assert_eq!(commits(), before, "nothing was recorded");
    let other = store.keyspace_with("data", lsm().compression(Compression::Lz4)).unwrap();
    assert_eq!(commits(), before + 1);
    // All handles are of one tree, and what was not given stays.
    let other = store.keyspace_with("data", lsm().filter_bits_per_key(14)).map(|_| other).unwrap();
    for handle in [&data, &again, &unsaid, &other] {
        let options = handle.lsm().unwrap().options().unwrap();
        assert_eq!(options.compression, Compression::Lz4.into());
        assert_eq!((options.filter_bits_per_key, options.block_bytes), (14, 4096));
    }
    assert_holds(&data, &model, "older tables");
    fill(&data, &mut random, &mut model, 500);
    assert_holds(&data, &model, "older and newer tables");
    data.compact().unwrap();
    let small = levels(&data)[6];
    assert!(small.data_bytes_stored * 10 < small.data_bytes_plain * 7, "{small:?}");
    // Nothing is left to be merged, and yet all is written anew.
    let others = lsm().compression(smallest()).block_bytes(32 << 10);
    store.keyspace_with("data", others).unwrap().compact().unwrap();
    let smaller = levels(&data)[6];
    assert!(smaller.data_bytes_stored < small.data_bytes_stored, "{smaller:?}, {small:?}");
    assert_holds(&data, &model, "written anew");
    store.close().unwrap();
    assert_holds(&open(&path).open_keyspace("data").unwrap(), &model, "opened again");
}

#[test]
fn options_stay_whatever_happens_to_the_keyspace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let (mut random, mut model) = (fastrand::Rng::with_seed(4), Model::new());
    let store = open(&path);
    let data = store.keyspace_with("data", own()).unwrap();
    store.keyspace_with("other", lsm()).unwrap().put("key", "value").unwrap();
    fill(&data, &mut random, &mut model, 1_500);
    data.typed::<String, String>().unwrap();
    data.retype::<String, String>().unwrap();
    store.rename_keyspace("data", "renamed").unwrap();
    assert_own(&store.open_keyspace("renamed").unwrap(), "renamed");
    store.swap_keyspaces("renamed", "other").unwrap();
    assert_own(&store.open_keyspace("other").unwrap(), "exchanged");
    assert_own(&data, "a handle from before");
    let plain = store.open_keyspace("renamed").unwrap().lsm().unwrap().options().unwrap();
    assert_eq!((plain.block_bytes, plain.hash_index), (4096, false));
    for engine in [Engine::Btree, Engine::Bplus, Engine::Lsm] {
        assert!(store.convert_keyspace("other", engine).unwrap());
        let opened = store.open_keyspace("other").unwrap();
        match engine {
            Engine::Lsm => assert_own(&opened, "converted to and fro"),
            _ => {
                let refused = store.keyspace_with("other", KeyspaceOptions::new().block_bytes(99));
                let found = engine.name();
                assert!(
                    matches!(refused, Err(Error::WrongEngine { found: it, .. }) if it == found)
                );
            }
        }
        assert_holds(&opened, &model, engine.name());
    }
    // What the tables of the conversion were written by.
    data.compact().unwrap();
    let last = levels(&data)[6];
    assert!(last.tables > 0 && last.data_bytes_stored * 10 < last.data_bytes_plain * 7, "{last:?}");
    data.clear().unwrap();
    assert_own(&data, "cleared");
    model.clear();
    fill(&data, &mut random, &mut model, 1_500);
    let copy = directory.path().join("copy");
    store.backup(&copy).unwrap();
    store.compact().unwrap();
    assert_own(&data, "compacted while in use");
    store.close().unwrap();
    for (path, at) in [(&copy, "a backup"), (&path, "the store")] {
        compact(path).unwrap();
        let store = open(path);
        let data = store.open_keyspace("other").unwrap();
        assert_own(&data, at);
        assert_holds(&data, &model, at);
        data.compact().unwrap();
        let last = levels(&data)[6];
        assert!(last.data_bytes_stored * 10 < last.data_bytes_plain * 7, "{at}: {last:?}");
        let types = store.keyspaces().unwrap().into_iter().find(|info| info.name == "other");
        assert!(types.unwrap().types.is_some(), "{at}");
        store.close().unwrap();
    }
    let restored = directory.path().join("restored");
    restore(&copy, &restored).unwrap();
    assert_own(&open(&restored).open_keyspace("other").unwrap(), "restored");
    // Damage of another keyspace's tree makes the store anew, as it was.
    damage(&path);
    let report = repair(&path).unwrap();
    assert!(!report.findings.is_empty());
    let store = open(&path);
    let data = store.open_keyspace("other").unwrap();
    assert_own(&data, "repaired");
    assert_holds(&data, &model, "repaired");
}

/// Makes the table of the keyspace that is not looked at unreadable.
fn damage(path: &Path) {
    let store = open(path);
    let other = store.open_keyspace("renamed").unwrap();
    other.put("key", "value").unwrap();
    other.compact().unwrap();
    let number = other.lsm().unwrap().levels().unwrap()[6][0].number;
    store.close().unwrap();
    let table = path.join("tables").join(format!("{number:04}"));
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[60] ^= 1;
    std::fs::write(&table, bytes).unwrap();
}

#[test]
fn options_that_cannot_be_are_refused_and_change_nothing() {
    let store = Store::in_memory().unwrap();
    let refusals = [
        (lsm().block_bytes(0), "block_bytes: expected 64 to 8388608 bytes, found 0"),
        (lsm().block_bytes(u32::MAX), "found 4294967295"),
        (lsm().filter_bits_per_key(31), "filter_bits_per_key: expected at most 30 bits, found 31"),
        (lsm().compression(Compression::Zstd(0)), "found zstd:0"),
        (lsm().compression([Compression::Lz4, Compression::Zstd(23)]), "found zstd:23"),
    ];
    for (options, expected) in refusals {
        let made = store.create_keyspace_with("data", options).unwrap_err().to_string();
        assert!(made.contains(expected) && made.contains("\"data\""), "{made}");
        assert!(store.keyspaces().unwrap().is_empty());
        store.keyspace_with("data", lsm()).unwrap();
        let opened = store.keyspace_with("data", options).unwrap_err();
        assert_eq!(opened.to_string(), made);
        assert!(!opened.is_damaged() && !opened.is_unsupported());
        let found = store.open_keyspace("data").unwrap().lsm().unwrap().options().unwrap();
        assert_eq!(found.block_bytes, 4096);
        assert!(store.drop_keyspace("data").unwrap());
    }
    for engine in [None, Some(Engine::Btree)] {
        let own = KeyspaceOptions::new().hash_index(true);
        let own = engine.map_or(own, |engine| own.engine(engine));
        let refused = store.create_keyspace_with("data", own).unwrap_err();
        assert!(matches!(refused, Error::WrongEngine { expected: "lsm", .. }), "{refused}");
        assert!(store.keyspaces().unwrap().is_empty());
    }
    let mut lsm = LsmOptions::default();
    lsm.block_bytes = 0;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let refused = Store::open_with(&path, Options::new().lsm(lsm)).unwrap_err().to_string();
    assert!(refused.contains("block_bytes: expected"), "{refused}");
    assert!(!path.exists());
}

/// Whoever asks for zstd where it was left out is told so, and what to do.
#[test]
fn zstd_is_refused_where_it_is_not_built() {
    let store = Store::in_memory().unwrap();
    let zstd = lsm().compression(by_level().bottommost(Compression::zstd()));
    let made = store.keyspace_with("data", zstd).map(drop);
    let mut of_store = LsmOptions::default();
    of_store.compression = Compression::zstd().into();
    let directory = tempfile::tempdir().unwrap();
    let opened = Store::open_with(directory.path(), Options::new().lsm(of_store)).map(drop);
    if Compression::zstd().is_built() {
        return made.and(opened).unwrap();
    }
    for refused in [made.unwrap_err(), opened.unwrap_err()] {
        let text = refused.to_string();
        assert!(text.contains("built without the feature zstd, found zstd:3"), "{text}");
        assert!(!refused.is_damaged());
    }
}

#[test]
fn expiring_keyspaces_have_options_too() {
    let store = Store::in_memory().unwrap();
    let leases = store.expiring_with("leases", own()).unwrap();
    assert_eq!(leases.keyspaces().0.lsm().unwrap().options().unwrap().compression, by_level());
    assert_eq!(leases.keyspaces().1.engine(), Engine::Bplus);
    let leases = store.expiring_with("leases", lsm().block_bytes(512)).unwrap();
    let found = leases.keyspaces().0.lsm().unwrap().options().unwrap();
    assert_eq!((found.block_bytes, found.compression), (512, by_level()));
}
