//! What is in the golden stores: how it was made, and how it is written down.
//!
//! Only the text counts for comparing. What made it may change, as long as stores that were
//! written stay as they are.

use std::fmt::Write as _;

use adamant::{Compression, Engine, KeyspaceOptions, Result, Store, ValueCompression};

/// Entries by keyspace, as [`entries`] has them, and, if there are persistent savepoints, those of
/// each behind a line `savepoint` and its name.
///
/// # Errors
/// Those of reading the store.
pub fn describe(store: &Store) -> Result<String> {
    let mut text = entries(store)?;
    for savepoint in store.savepoints()? {
        let found = entries(&store.open_savepoint(&savepoint.name)?)?;
        write!(text, "savepoint {}\n{found}", savepoint.name).expect("a String takes all");
    }
    Ok(text)
}

/// Entries by keyspace: `keyspace key value` in hexadecimal, one a line, in order.
///
/// # Errors
/// Those of reading the store.
pub fn entries(store: &Store) -> Result<String> {
    let mut text = String::new();
    for info in store.keyspaces()? {
        for entry in store.open_stored(&info.name)?.iter() {
            let (key, value) = entry?;
            let (name, key, value) = (hex(info.name.as_bytes()), hex(&key), hex(&value));
            writeln!(text, "{name} {key} {value}").expect("a String takes all");
        }
    }
    Ok(text)
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a String takes all");
    }
    text
}

/// Puts into an empty store what shows every part of the format: several keyspaces, odd names,
/// short and long keys, values from none to several pages, and what removing and replacing leaves.
///
/// # Errors
/// Those of writing to the store.
pub fn fill(store: &Store) -> Result<()> {
    let many = store.keyspace("many")?;
    let mut batch = store.batch();
    for number in 0..400_u32 {
        batch.put(&many, format!("key {number:04}"), format!("value {}", number * 37 % 101))?;
    }
    batch.commit()?;
    let mut batch = store.batch();
    for number in (0..400_u32).step_by(3) {
        batch.delete(&many, format!("key {number:04}"))?;
        batch.put(&many, format!("key {:04}", number + 1), vec![b'r'; number as usize % 60])?;
    }
    batch.commit()?;

    let sizes = store.keyspace("sizes / .. \u{e9}")?;
    for bytes in [0_usize, 1, 20, 21, 127, 128, 129, 1_024, 1_025, 4_096, 4_097, 9_000, 20_000] {
        sizes.insert(format!("{bytes}"), vec![(bytes % 251) as u8 | 1; bytes])?;
    }
    sizes.insert(vec![0xff; 300], "long key")?;
    sizes.insert([0], "zero")?;
    sizes.insert(vec![b'k'; 65_535], "longest key")?;
    sizes.remove("9000")?;

    store.keyspace("empty")?;
    store.keyspace("dropped")?.insert("k", "v")?;
    store.drop_keyspace("dropped")?;
    Ok(())
}

/// The engines that there were when format 1 was new.
pub const TREES: [Engine; 4] = [Engine::Bplus, Engine::Btree, Engine::Critbit, Engine::Redblack];

/// Puts into an empty store a keyspace for each of these engines, by its name: enough pairs for
/// several levels, values in their entries and in blocks of their own, and what removing,
/// replacing, renaming and converting leaves.
///
/// # Errors
/// Those of writing to the store.
pub fn fill_engines(store: &Store) -> Result<()> {
    for engine in TREES {
        let keyspace = store.keyspace_with(engine.name(), KeyspaceOptions::new().engine(engine))?;
        let mut batch = store.batch();
        for number in 0..160_u32 {
            let value = format!("value {}", number * 37 % 101);
            batch.put(&keyspace, format!("key {:03}", number * 77 % 160), value)?;
        }
        batch.commit()?;
        for bytes in [0_usize, 20, 21, 1_025, 4_096, 4_097, 5_000, 7_000] {
            keyspace.insert(format!("{bytes}"), vec![(bytes % 251) as u8 | 1; bytes])?;
        }
        for number in (0..160_u32).step_by(3) {
            keyspace.remove(format!("key {number:03}"))?;
            keyspace.insert(format!("key {:03}", number + 1), vec![b'r'; number as usize % 60])?;
        }
        keyspace.rename("4097", "renamed")?;
        keyspace.remove("7000")?;
    }
    let converted = store.keyspace("converted")?;
    converted.load_sorted((0..40_u32).map(|number| (format!("{number:02}"), "loaded")))?;
    store.convert_keyspace("converted", Engine::Redblack)?;
    Ok(())
}

/// Puts into an empty store two keyspaces of the engine lsm and one of bplus, changed by the same
/// batches: tables of several levels, tombstones of keys and of ranges in them, long values in blob
/// files of which some are stale, and a memtable with entries, values, tombstones and a long value
/// among them.
///
/// # Errors
/// Those of writing to the store.
pub fn fill_lsm(store: &Store) -> Result<()> {
    let options = KeyspaceOptions::new().engine(Engine::Lsm);
    let (log, blobs) =
        (store.keyspace_with("log", options)?, store.keyspace_with("blobs", options)?);
    let tree = store.keyspace("tree")?;
    let mut snapshot = None;
    for round in 0..30_u32 {
        if round == 23 {
            // Of what changes from now on all versions stay, and what says of ranges that they are
            // empty.
            snapshot = Some(store.snapshot()?);
        }
        let mut batch = store.batch();
        for step in 0..16 {
            let number = (round * 16 + step) * 77 % 300;
            batch.put(&log, format!("key {number:03}"), noise(number + round, 60))?;
            batch.put(&tree, format!("key {number:03}"), format!("{round}"))?;
        }
        for step in 0..2 {
            let number = (round * 2 + step) * 7 % 40;
            let bytes = [0, 599, 600, 900][number as usize % 4];
            batch.put(&blobs, format!("blob {number:02}"), noise(number + round, bytes))?;
        }
        batch.commit()?;
        let mut batch = store.batch();
        for step in 0..4 {
            batch.delete(&log, format!("key {:03}", (round * 31 + step * 11) % 300))?;
        }
        batch.delete(&blobs, format!("blob {:02}", round * 3 % 40))?;
        batch.commit()?;
        if round % 7 == 3 {
            let start = round * 9;
            log.delete_range(format!("key {start:03}")..format!("key {:03}", start + 8))?;
        }
    }
    // The long ones fill memtables; those after them stay in the next ones.
    for keyspace in [&log, &blobs] {
        keyspace.insert("long", noise(1, 4_000))?;
        keyspace.insert("in the memtable", "a value")?;
        keyspace.insert("in the memtable too", noise(2, 1_000))?;
        keyspace.remove("blob 01")?;
    }
    log.delete_range("key 295".."l")?;
    store.keyspace_with("empty", options)?;
    drop(snapshot);
    Ok(())
}

/// Puts into an empty store a multimap of bytes, with zeros, empty keys and empty values among
/// them, and one of each engine whose types were recorded.
///
/// # Errors
/// Those of writing to the store.
pub fn fill_multimaps(store: &Store) -> Result<()> {
    let bytes = store.multimap("bytes")?;
    for key in [&b""[..], &[0], &[0, 0], &[0, 255], &[255], b"a", b"a\0", b"a\0b", b"ab"] {
        for value in [&b""[..], &[0], &[0, 255], &[255, 255], b"a value of more than 20 bytes"] {
            bytes.insert(key, value)?;
        }
    }
    bytes.remove(&b"ab"[..], &b""[..])?;
    bytes.remove_all(&[0, 255])?;
    for engine in [Engine::Bplus, Engine::Lsm] {
        let options = KeyspaceOptions::new().engine(engine);
        let numbers = store.multimap_with(engine.name(), options)?.typed::<String, i64>()?;
        for number in 0..150 {
            numbers.insert(&format!("key {:02}", number * 7 % 40), &(number % 11 - 5))?;
        }
        numbers.remove_all("key 07")?;
    }
    Ok(())
}

/// A dictionary of zstd, which is any bytes that values may have in common.
pub const DICTIONARY: &[u8] =
    b"the value of a keyspace with a dictionary, number; and again, number";

/// How the keyspaces of [`fill_values`] store values: name, engine, compression, dictionary.
pub const VALUES: [(&str, Engine, Compression, Option<&[u8]>); 4] = [
    ("lz4", Engine::Bplus, Compression::Lz4, None),
    ("zstd", Engine::Btree, Compression::Zstd(3), None),
    ("dictionary", Engine::Critbit, Compression::Zstd(9), Some(DICTIONARY)),
    ("converted", Engine::Redblack, Compression::Lz4, None),
];

/// Puts into an empty store keyspaces of trees whose values are compressed in each way, some of
/// them not: short ones, noise, and those from before another option.
///
/// # Errors
/// Those of writing to the store.
pub fn fill_values(store: &Store) -> Result<()> {
    for (name, engine, compression, dictionary) in VALUES {
        let options = KeyspaceOptions::new().engine(engine);
        let before = options.value_compression(Compression::Lz4);
        let keyspace =
            store.keyspace_with(name, if name == "converted" { options } else { before })?;
        for number in 0..60_u32 {
            let text = format!("the value of the keyspace {name}, number {number}; ");
            let value = text.repeat(number as usize % 9);
            keyspace.insert(format!("key {number:03}"), value)?;
        }
        keyspace.insert("noise", noise(3, 200))?;
        keyspace.insert("long noise", random(4_500))?;
        keyspace.insert("long", "all work and no play ".repeat(250))?;
        // Long, compressed and not.
        keyspace.insert("half noise", [random(4_500), vec![b'a'; 1_500]].concat())?;
        let values = ValueCompression::from(compression).with_bytes_min(40);
        store.compress_values(name, values, dictionary)?;
        store.keyspace_with(name, options.value_compression(values.with_bytes_min(64)))?;
        keyspace.insert("later", "a later value ".repeat(8))?;
        keyspace.remove("key 007")?;
    }
    let (one, other) = (store.open_keyspace("lz4")?, store.open_keyspace("dictionary")?);
    one.move_to("key 008", &other, "from lz4")?;
    other.move_to("key 008", &one, "from dictionary")?;
    Ok(())
}

/// Bytes that nothing compresses.
fn random(bytes: usize) -> Vec<u8> {
    let next = |state: &u32| Some(state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let states = std::iter::successors(Some(7), next);
    states.map(|state: u32| (state >> 24) as u8).take(bytes).collect()
}

/// Bytes of which no two pieces are alike, so that LZ4 leaves their number as it is.
fn noise(seed: u32, bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| ((at + 1) * (at + 7 * seed + 3) % 251) as u8).collect()
}
