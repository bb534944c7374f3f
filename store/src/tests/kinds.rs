//! Tests of unrecorded and damaged kinds of keyspaces, and of the number of catalogue lookups.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use adamant_heap::{Durability, MemoryDirectory};
use zerocopy::IntoBytes;

use super::write_entry;
use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::expiring::Deadline;
use crate::kind::KeyspaceKind;
use crate::layout::{KIND_UNSAID, KeyspaceEntry};
use crate::options::Options;
use crate::store::handle::Store;

/// Writes a kind's number into the entry of a keyspace.
fn write_kind(store: &Store, name: &str, kind: u16) {
    let (shared, catalogue) = (&store.shared, store.shared.catalogue());
    let written = shared.transaction(Durability::Sync, |transaction| {
        let entry = catalogue.find(transaction, name)?.expect("it is there");
        let entry = KeyspaceEntry { kind: kind.into(), ..*entry };
        catalogue.tree().insert(transaction, name.as_bytes(), entry.as_bytes())
    });
    assert!(written.unwrap());
}

/// Options by which entries expire by the clocks of the tests alone.
fn quiet() -> Options {
    Options::new().sweep_expired(false)
}

/// A store that has no kinds recorded for these keyspaces.
fn unsaid(
    fill: impl FnOnce(&Store) -> Result<()>,
    names: &[&str],
) -> (Arc<MemoryDirectory>, Store) {
    let directory = Arc::new(MemoryDirectory::new());
    let store = Store::open_directory(directory.clone(), quiet()).unwrap();
    fill(&store).unwrap();
    names.iter().for_each(|name| write_kind(&store, name, KIND_UNSAID));
    store.close().unwrap();
    let store = Store::open_directory(directory.clone(), quiet()).unwrap();
    (directory, store)
}

fn fill_ending(store: &Store) -> Result<()> {
    let all = store.expiring("all")?.with_clock(|| 0);
    all.insert("ends", "1", Some(Deadline::from_millis(1_000)))?;
    all.insert("stays", "2", None).map(drop)
}

#[test]
fn kinds_that_an_old_store_does_not_say_are_found_out_once() {
    let (directory, store) = unsaid(fill_ending, &["all", "all.deadlines"]);
    // Before that, both functions open it, as before kinds were recorded.
    let plain = store.keyspace("all").unwrap();
    assert_eq!(plain.len().unwrap(), 2);
    let all = store.open_expiring("all").unwrap().with_clock(|| 0);
    assert_eq!((all.len().unwrap(), all.next_deadline().unwrap().is_some()), (2, true));
    assert!(matches!(plain.insert("k", "v"), Err(Error::WrongKind { .. })));
    assert!(matches!(store.keyspace("all"), Err(Error::WrongKind { .. })));
    store.close().unwrap();

    let store = Store::open_directory(directory, Options::new().read_only(true)).unwrap();
    let kinds: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.kind).collect();
    assert_eq!(kinds, [KeyspaceKind::Expiring, KeyspaceKind::Deadlines]);
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn an_old_store_is_read_where_nothing_can_be_said() {
    let (directory, store) = unsaid(fill_ending, &["all", "all.deadlines"]);
    store.close().unwrap();
    let store = Store::open_directory(directory, Options::new().read_only(true)).unwrap();
    let all = store.open_expiring("all").unwrap().with_clock(|| 0);
    assert_eq!((all.len().unwrap(), all.iter().count()), (2, 2));
    assert!(store.expiring("none").is_err());
}

#[test]
fn old_keyspaces_that_do_not_belong_together_are_not_taken_for_halves() {
    // Entries without their row, rows of others, values too short, and rows alone: as after a
    // rename of one half.
    let fills: [fn(&Store) -> Result<()>; 4] = [
        |store| store.keyspace("all")?.insert("key", [0, 0, 0, 0, 0, 0, 9, 9, 1]).map(drop),
        |store| store.keyspace("all.deadlines")?.insert("task 1: do", "").map(drop),
        |store| store.keyspace("all")?.insert("key", "short").map(drop),
        |store| store.keyspace("all.deadlines")?.insert([0, 0, 0, 0, 0, 0, 9, 9, 1], "").map(drop),
    ];
    for (number, fill) in fills.into_iter().enumerate() {
        let fill = |store: &Store| {
            store.keyspace("all")?;
            store.keyspace("all.deadlines")?;
            fill(store)
        };
        let (_, store) = unsaid(fill, &["all", "all.deadlines"]);
        let error = store.expiring("all").unwrap_err();
        assert!(matches!(error, Error::NotExpiring { .. }), "{number}: {error}");
        assert!(store.keyspace("all").is_ok(), "as ever");
    }
}

#[test]
fn a_check_finds_a_half_without_the_other_and_kinds_that_nobody_knows() {
    for (name, kind, found) in [
        ("all.deadlines", KeyspaceKind::Plain.number(), "of kind deadlines beside \"all\""),
        ("all", KeyspaceKind::Plain.number(), "of kind expiring beside \"all.deadlines\""),
        ("all", 77, "is of kind 77"),
    ] {
        let store = Store::in_memory().unwrap();
        fill_ending(&store).unwrap();
        assert!(store.check().unwrap().is_clean());
        write_kind(&store, name, kind);
        let report = store.check().unwrap();
        let findings = report.findings.iter().map(ToString::to_string).collect::<String>();
        assert!(findings.contains(found), "{findings}");
        assert!(store.open_expiring("all").is_err());
    }
}

/// A handle from before a rename, a conversion or a clear used to look up the catalogue at each
/// call.
#[test]
fn handles_ask_the_catalogue_once_for_each_change_at_most() {
    let store = Store::in_memory().unwrap();
    let looks = || store.shared.catalogue().looks.load(Ordering::Relaxed);
    let handle = store.keyspace("one").unwrap();
    store.keyspace("other").unwrap();
    let by_calls = |calls: u64| {
        let before = looks();
        for call in 0..calls {
            handle.insert("key", call.to_string()).unwrap();
            assert_eq!(handle.get("key").unwrap(), Some(call.to_string().into()));
            assert_eq!(handle.iter().count(), 1);
        }
        looks() - before
    };
    assert_eq!(by_calls(100), 0);
    store.rename_keyspace("one", "renamed").unwrap();
    store.swap_keyspaces("renamed", "other").unwrap();
    assert_eq!(by_calls(100), 0, "it has the same tree");
    for engine in Engine::ALL {
        store.convert_keyspace("other", engine).unwrap();
        assert!(by_calls(100) <= 1, "found by its new name");
        assert_eq!(by_calls(100), 0);
    }
    handle.clear().unwrap();
    assert!(by_calls(100) <= 1);
    // A change that is undone changes nothing.
    let refused = store.shared.transaction(Durability::Sync, |transaction| {
        handle.state.find(transaction, store.shared.catalogue())?;
        Err::<(), _>(Error::WithinExclusive)
    });
    assert!(refused.is_err() && by_calls(100) == 0);
    store.drop_keyspace("other").unwrap();
    let before = looks();
    for _ in 0..100 {
        assert!(matches!(handle.get("key"), Err(Error::KeyspaceDropped { .. })));
    }
    assert!(looks() - before <= 2, "by its name, and by its number");
}

/// Leaves orphaned by damage used to be assigned by their keys alone: arbitrary bytes became
/// entries with deadlines that were never written. And each half was saved without the other:
/// entries had no row that removes them, and there were rows without entries.
#[test]
#[cfg_attr(adamant_encrypted, ignore = "looks at the files as they are")]
fn repaired_entries_end_as_they_were_written_and_have_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    let store = Store::open_with(&path, quiet()).unwrap();
    let all = store.expiring("all").unwrap().with_clock(|| 0);
    let plain = store.keyspace("plain").unwrap();
    store
        .exclusive(|tx| {
            for number in 0..400_u64 {
                let ends = (number % 3 > 0).then(|| Deadline::from_millis(number + 1));
                let value = [number as u8; 40];
                all.within(tx).insert(format!("key {number:03}"), value, ends)?;
                tx.put(&plain, format!("key {number:03}"), [(number as u8).wrapping_add(1); 30])?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    let content = |name: &str, store: &Store| -> BTreeMap<_, _> {
        let stored = store.open_stored(name).unwrap();
        stored.iter().map(|entry| entry.unwrap()).collect()
    };
    let model = ["all", "all.deadlines", "plain"].map(|name| content(name, &store));
    drop((all, plain));
    store.close().unwrap();
    let pool = std::fs::read(path.join("pool")).unwrap();
    let of_entries = |page: &&[u8]| page.windows(4).any(|window| window == b"key ");
    let pages = pool.chunks(4096).enumerate().filter(|(_, page)| of_entries(page));
    let pages: Vec<usize> = pages.map(|(number, _)| number).collect();
    assert!(pages.len() > 8, "{pages:?}");
    let (mut lost, mut adopted) = (0, 0);
    for trial in 0..8 {
        let damaged = folder.path().join("damaged");
        copy(&path, &damaged);
        let mut bytes = pool.clone();
        for page in [trial * pages.len() / 8, (trial * 5 + 3) % pages.len()] {
            bytes[pages[page] * 4096 + 77] ^= 1;
        }
        std::fs::write(damaged.join("pool"), bytes).unwrap();
        let report = crate::repair(&damaged).unwrap();
        assert!(!report.findings.is_empty());
        adopted += report.keyspaces.iter().map(|keyspace| keyspace.adopted).sum::<u64>();
        let store = Store::open_with(&damaged, quiet()).unwrap();
        assert!(store.check().unwrap().is_clean());
        for info in store.keyspaces().unwrap() {
            let of_name = ["all", "all.deadlines", "plain"].iter().position(|n| *n == info.name);
            for (key, value) in content(&info.name, &store) {
                let is_of = |model: &BTreeMap<_, _>| model.get(&key) == Some(&value);
                let is_written = match of_name {
                    Some(at) => is_of(&model[at]),
                    None => model.iter().any(is_of),
                };
                assert!(is_written, "{trial}: {}: {key:?}: {value:?}", info.name);
            }
        }
        let all = store.open_expiring("all").unwrap().with_clock(|| 0);
        let entries: Vec<_> = all.iter().map(|entry| entry.unwrap()).collect();
        let ending = entries.iter().filter(|(_, _, ends)| ends.is_some()).count() as u64;
        let late = all.with_clock(|| u64::MAX);
        assert_eq!(late.remove_expired(1000).unwrap(), ending, "{trial}: each has its row");
        assert_eq!(all.next_deadline().unwrap(), None, "{trial}: and no other is there");
        lost += 400 - entries.len();
        drop((all, late));
        store.close().unwrap();
        std::fs::remove_dir_all(&damaged).unwrap();
        std::fs::remove_dir_all(report.damaged_path.unwrap()).unwrap();
    }
    println!("{lost} entries lost, {adopted} adopted");
    assert!(lost > 0);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn types_that_say_nothing_are_damage_and_keep_nobody_from_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store = Store::open(&path).unwrap();
    let ages = store.keyspace("ages").unwrap();
    ages.typed::<String, u32>().unwrap().insert("ada", &36).unwrap();
    store.keyspace("other").unwrap().typed::<u8, ()>().unwrap().insert(&1, &()).unwrap();
    let entry = ages.state.find(&store.shared.view().unwrap(), store.shared.catalogue()).unwrap().1;
    let whole = entry.to_bytes();
    assert_eq!(&whole[24..], b"\x01\0\0\0\x01\0\0\0\x06\0\x03\0Stringu32", "docs/format/store.md");
    let with = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    let damaged = [
        with(22, 0),
        with(22, 20),
        with(23, 1),
        with(32, 7),
        with(33, 1),
        with(34, 2),
        with(36, 0xff),
        [&with(22, 12)[..36]].concat(),
        [&with(22, 5)[..29]].concat(),
        [&whole, &b"more"[..]].concat(),
    ];
    for (number, bytes) in damaged.iter().enumerate() {
        write_entry(&store, "ages", bytes);
        let refused = [
            ages.typed::<String, u32>().map(drop),
            ages.typed::<u8, ()>().map(drop),
            store.keyspaces().map(drop),
        ];
        for refused in refused {
            let error = refused.unwrap_err();
            assert!(error.is_damaged(), "{number}: {error}");
            assert!(error.to_string().contains("the types of keyspace \"ages\""), "{error}");
        }
        assert_eq!(ages.get("ada").unwrap(), Some([36, 0, 0, 0].into()));
        assert!(store.keyspace("other").unwrap().typed::<u8, ()>().is_ok());
        let findings = store.check().unwrap().findings;
        assert!(findings[0].to_string().contains("types of keyspace \"ages\""), "{findings:?}");
        // A damaged version makes it refuse the right types: nothing is made up from the bytes.
        write_entry(&store, "ages", &with(24, 2));
        assert!(matches!(ages.typed::<String, u32>(), Err(Error::WrongTypes { .. })));
        // Recorded anew, or renamed as it is.
        write_entry(&store, "ages", bytes);
        store.rename_keyspace("ages", "moved").unwrap();
        assert!(store.keyspace("moved").unwrap().typed::<String, u32>().is_err());
        store.rename_keyspace("moved", "ages").unwrap();
        ages.retype::<String, u32>().unwrap();
        assert!(ages.typed::<String, u32>().is_ok() && store.check().unwrap().is_clean());
    }
    write_entry(&store, "ages", &with(32, 7));
    drop((ages, entry));
    store.close().unwrap();
    let report = crate::repair(&path).unwrap();
    assert!(report.findings.iter().any(|finding| finding.what.contains("are lost")), "{report:?}");
    let store = Store::open(&path).unwrap();
    let types: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.types).collect();
    assert!(types[0].is_none() && types[1].is_some(), "{types:?}");
    assert_eq!(store.keyspace("ages").unwrap().typed::<String, u32>().unwrap().len().unwrap(), 1);
}
