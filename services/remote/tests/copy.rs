//! Copies between a machine and objects.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use adamant::{EncryptionKey, Engine, KeyspaceOptions};
use adamant_remote::{CopyError, CopyOptions, Digest, Error, Options, Store, copy};
use fastrand::Rng;

type Content = Vec<(String, Vec<(Vec<u8>, Vec<u8>)>)>;

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A store on a machine with a keyspace by each engine, an empty one, and names of all kinds.
fn make(path: &Path, seed: u64) -> Content {
    let mut random = Rng::with_seed(seed);
    let store = adamant::Store::open(path).unwrap();
    for (number, engine) in Engine::ALL.into_iter().enumerate() {
        let options = KeyspaceOptions::new().engine(engine);
        let keyspace = store.create_keyspace_with(&format!("{number}/\0\u{e9}"), options).unwrap();
        let pairs: Vec<_> = (0..random.usize(1..1_500))
            .map(|_| {
                let key: Vec<u8> = (0..random.usize(1..12)).map(|_| random.u8(..)).collect();
                let bytes = if random.u8(..100) == 0 { 90_000 } else { random.usize(0..300) };
                (key, vec![random.u8(..); bytes])
            })
            .collect();
        keyspace.extend(pairs).unwrap();
    }
    store.create_keyspace("empty").unwrap();
    store.close().unwrap();
    content(path)
}

fn content(path: &Path) -> Content {
    let store = adamant::Store::open_read_only(path).unwrap();
    let names = store.keyspaces().unwrap().into_iter().map(|info| info.name);
    let all = names.map(|name| {
        let keyspace = store.open_keyspace(&name).unwrap();
        let pairs = keyspace.iter().map(|entry| entry.unwrap());
        (name, pairs.map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
    });
    all.collect()
}

fn engines(path: &Path) -> Vec<Engine> {
    let store = adamant::Store::open_read_only(path).unwrap();
    store.keyspaces().unwrap().into_iter().map(|info| info.engine).collect()
}

#[test]
fn there_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let made = make(&path("made"), 1);
    let [one, other] = ["one", "other"].map(|name| format!("slatedb+file://{}", text(&path(name))));
    let there = copy(&text(&path("made")), &one, &CopyOptions::new()).unwrap();
    let entries = made.iter().map(|(_, pairs)| pairs.len() as u64).sum::<u64>();
    assert_eq!((there.keyspaces, there.entries), (made.len() as u64, entries));

    let store = Store::open(&one).unwrap();
    for (name, pairs) in &made {
        let found = store.open_keyspace(name).unwrap().iter().map(|entry| entry.unwrap());
        let found = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert!(found.eq(pairs.iter().cloned()), "{name:?}");
    }
    store.close().unwrap();

    let between = copy(&one, &other, &CopyOptions::new()).unwrap();
    let back = copy(&other, &text(&path("back")), &CopyOptions::new()).unwrap();
    assert_eq!((between, back), (there, there));
    assert!(content(&path("back")) == made);
    assert_eq!(engines(&path("back")), engines(&path("made")));
    let options = CopyOptions::new().engine(Some(Engine::Critbit));
    let again = copy(&text(&path("back")), &text(&path("critbit")), &options).unwrap();
    assert_eq!(again, there);
    assert!(engines(&path("critbit")).iter().all(|engine| *engine == Engine::Critbit));
}

/// It would be no history of the copy: that has commits of its own.
#[test]
fn a_store_on_a_machine_has_its_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let key = EncryptionKey::random().unwrap();
    let with_key = adamant::Options::new().encryption_key(key.clone());
    let store = adamant::Store::open_with(path("made"), with_key.clone()).unwrap();
    store.keyspace("patients").unwrap().put("4711", "Smith").unwrap();
    store.close().unwrap();
    let objects = format!("slatedb+file://{}", text(&path("objects")));
    let refused = copy(&text(&path("made")), &objects, &CopyOptions::new());
    assert!(matches!(refused, Err(CopyError::Local(adamant::Error::KeyNeeded { .. }))));
    let keyed = CopyOptions::new().encryption_key(Some(key));
    let there = copy(&text(&path("made")), &objects, &keyed).unwrap();
    assert_eq!(copy(&objects, &text(&path("back")), &keyed).unwrap(), there);
    let back = adamant::Store::open_with(path("back"), with_key.read_only(true)).unwrap();
    assert!(back.is_encrypted());
    assert_eq!(back.keyspace("patients").unwrap().get("4711").unwrap(), Some("Smith".into()));
    let other = CopyOptions::new().encryption_key(Some(EncryptionKey::random().unwrap()));
    let refused = copy(&text(&path("back")), &text(&path("third")), &other);
    assert!(matches!(refused, Err(CopyError::Local(adamant::Error::WrongKey { .. }))));
}

#[test]
fn a_history_of_changes_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = adamant::Store::open(path("made")).unwrap();
    store.record_changes(Some(1 << 20)).unwrap();
    store.keyspace("towns").unwrap().put("Bern", "134,000").unwrap();
    let sessions = store.expiring("sessions").unwrap();
    sessions.put("ada", "token", Some(sessions.after(Duration::from_secs(3600)))).unwrap();
    store.close().unwrap();
    let url = format!("slatedb+file://{}", text(&path("objects")));
    copy(&text(&path("made")), &url, &CopyOptions::new()).unwrap();
    copy(&url, &text(&path("back")), &CopyOptions::new()).unwrap();
    let store = adamant::Store::open_read_only(path("back")).unwrap();
    let names: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["sessions", "sessions.deadlines", "towns"]);
    assert!(matches!(store.last_change(), Err(adamant::Error::ChangesNotRecorded)));
}

#[test]
fn multimaps_stay_multimaps() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let store = adamant::Store::open(path("made")).unwrap();
    store.multimap("tags").unwrap().extend([("a", "2"), ("a", "1"), ("b\0", "")]).unwrap();
    let numbers = store.multimap("numbers").unwrap().typed::<u32, i8>().unwrap();
    numbers.extend([(1, -1), (1, 1), (2, 0)]).unwrap();
    store.close().unwrap();
    let url = format!("slatedb+file://{}", text(&path("objects")));
    copy(&text(&path("made")), &url, &CopyOptions::new()).unwrap();
    copy(&url, &text(&path("back")), &CopyOptions::new()).unwrap();
    let store = adamant::Store::open(path("back")).unwrap();
    let kinds = store.keyspaces().unwrap().into_iter().map(|info| info.kind);
    assert_eq!(Vec::from_iter(kinds), [adamant::KeyspaceKind::Multimap; 2]);
    assert_eq!(store.open_multimap("tags").unwrap().count("a").unwrap(), 2);
    let numbers = store.open_multimap("numbers").unwrap().typed::<u32, i8>().unwrap();
    assert_eq!(numbers.first_value(&1).unwrap(), Some(-1));
}

#[test]
fn what_is_there_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let made = make(&path("made"), 2);
    let url = format!("slatedb+file://{}", text(&path("objects")));
    let store = Store::open(&url).unwrap();
    store.keyspace("old").unwrap().put("k", "v").unwrap();
    store.close().unwrap();

    let refused = copy(&text(&path("made")), &url, &CopyOptions::new()).unwrap_err();
    assert!(matches!(refused, CopyError::TargetExists { .. }), "{refused}");
    let store = Store::open(&url).unwrap();
    assert_eq!(store.keyspace("old").unwrap().get("k").unwrap(), Some("v".into()));
    store.close().unwrap();
    for there in ["made", "objects"] {
        let refused = copy(&url, &text(&path(there)), &CopyOptions::new()).unwrap_err();
        assert!(matches!(refused, CopyError::TargetExists { .. }), "{refused}");
    }
    assert!(content(&path("made")) == made);

    copy(&text(&path("made")), &url, &CopyOptions::new().replace(true)).unwrap();
    let store = Store::open_read_only(&url).unwrap();
    let names: Vec<_> = store.keyspaces().unwrap().into_iter().map(|info| info.name).collect();
    assert!(names.iter().eq(made.iter().map(|(name, _)| name)), "{names:?}");
    store.close().unwrap();

    // A directory of somebody else's where the copy would be made.
    let foreign = path("new.copying");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter"), "dear").unwrap();
    let refused = copy(&url, &text(&path("new")), &CopyOptions::new()).unwrap_err();
    assert!(matches!(refused, CopyError::Directory { .. }), "{refused}");
    assert!(foreign.join("letter").exists() && !path("new").exists());
}

#[test]
fn what_cannot_be_copied_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let url = format!("slatedb+file://{}", text(&path("objects")));
    let nothing = copy(&text(&path("nothing")), &url, &CopyOptions::new()).unwrap_err();
    assert!(matches!(nothing, CopyError::Local(adamant::Error::Missing { .. })), "{nothing}");
    let nothing = copy(&url, &text(&path("nothing")), &CopyOptions::new()).unwrap_err();
    assert!(matches!(nothing, CopyError::Remote(Error::Missing { .. })), "{nothing}");
    assert!(!path("objects").exists() && !path("nothing").exists());

    // An object of a program's own would be lost.
    let store = adamant::Store::open(path("counted")).unwrap();
    let made = store.heap().unwrap().transaction(adamant::Durability::Sync, |tx| {
        tx.named_root_or_create("count", |_| Ok(1_u64))?;
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    made.unwrap();
    store.close().unwrap();
    let others = copy(&text(&path("counted")), &url, &CopyOptions::new()).unwrap_err();
    assert!(matches!(others, CopyError::OtherObjects { .. }), "{others}");
    assert!(!path("objects").exists());

    let store = adamant::Store::open(path("held")).unwrap();
    let held = copy(&text(&path("held")), &url, &CopyOptions::new()).unwrap_err();
    assert!(matches!(held, CopyError::Local(adamant::Error::Locked { .. })), "{held}");
    store.close().unwrap();
}

/// A copy is one moment of a store whose writer goes on, and takes no place from it.
#[test]
fn a_store_is_copied_beside_its_writer() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("slatedb+file://{}", text(&directory.path().join("objects")));
    let store = Store::open_with(&url, Options::new().flush_ms(2).poll_ms(50)).unwrap();
    let (left, right) = (store.keyspace("left").unwrap(), store.keyspace("right").unwrap());
    let write = |number: u32| {
        let mut batch = store.batch();
        for keyspace in [&left, &right] {
            batch.put(keyspace, "last", number.to_le_bytes()).unwrap();
            batch.put(keyspace, number.to_le_bytes(), vec![1; 2_000]).unwrap();
        }
        batch.commit().unwrap();
    };
    (0..50).for_each(write);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 50.. {
                write(number);
                if is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        for round in 0..4 {
            let target = directory.path().join(format!("copy {round}"));
            copy(&url, &text(&target), &CopyOptions::new()).unwrap();
            let found = content(&target);
            assert!(found[0].1 == found[1].1, "round {round}: two moments");
            assert!(found[0].1.len() > 50, "round {round}");
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    store.close().unwrap();
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_adamant-remote"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

/// Killed at any moment, in both directions: what is there is no store, or the whole one; and
/// running it again makes the whole one.
#[test]
fn a_copy_that_is_killed_is_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let made = make(&path("made"), 3);
    let url = |name: &str| format!("slatedb+file://{}", text(&path(name)));
    let whole = copy(&text(&path("made")), &url("source"), &CopyOptions::new()).unwrap();
    let seed = 11;
    let mut random = Rng::with_seed(seed);
    for round in 0..8 {
        let (local, objects) = (path(&format!("local {round}")), format!("objects {round}"));
        let directions = [(text(&path("made")), url(&objects)), (url("source"), text(&local))];
        for (source, target) in directions {
            let mut child = command(&["copy", &source, &target]).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(1..400)));
            let _ = child.kill();
            let was_killed = !child.wait().unwrap().success();
            let context = format!("seed {seed}, round {round}: {target}");
            if target == text(&local) {
                assert!(was_killed || local.exists(), "{context}");
                assert!(!local.exists() || content(&local) == made, "{context}");
            } else {
                match Store::open_read_only(&target) {
                    Ok(store) => {
                        assert_eq!(store.keyspaces().unwrap().len(), made.len(), "{context}");
                        store.close().unwrap();
                    }
                    Err(
                        Error::Unfinished { .. } | Error::Missing { .. } | Error::NotAStore { .. },
                    ) => {
                        assert!(was_killed, "{context}");
                    }
                    Err(error) => panic!("{context}: {error}"),
                }
            }
            match copy(&source, &target, &CopyOptions::new()) {
                Ok(digest) => assert_eq!(digest, whole, "{context}"),
                // It had ended before it was killed.
                Err(error) => {
                    assert!(matches!(error, CopyError::TargetExists { .. }), "{context}: {error}")
                }
            }
        }
        assert!(content(&local) == made, "round {round}");
        let back = path(&format!("back {round}"));
        let digest: Digest = copy(&url(&objects), &text(&back), &CopyOptions::new()).unwrap();
        assert_eq!(digest, whole, "round {round}");
    }
}

#[test]
fn the_program_tells_what_it_did_and_what_went_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&directory.path().join(name));
    make(Path::new(&path("made")), 4);
    let url = format!("slatedb+file://{}", path("objects"));
    let (code, said) = run(&["--json", "copy", &path("made"), &url]);
    assert!(code == Some(0) && said.contains("\"checksum\""), "{code:?}: {said}");
    let (code, said) = run(&["copy", &url, &path("back"), "--engine", "lsm"]);
    assert!(code == Some(0) && said.contains("is a copy"), "{code:?}: {said}");
    let (code, said) = run(&["copy", &url, &path("back")]);
    assert!(code == Some(4) && said.contains("already"), "{code:?}: {said}");
    let (code, said) = run(&["copy", &path("none"), &url]);
    assert!(code == Some(3) && said.contains("none"), "{code:?}: {said}");
    let (code, said) = run(&["copy", "slatedb+ftp://x", &path("new")]);
    assert!(code == Some(4) && said.contains("slatedb+s3://"), "{code:?}: {said}");
    let (code, said) = run(&["copy", &url, &path("new"), "--engine", "quick"]);
    assert!(code == Some(2) && said.contains("bplus"), "{code:?}: {said}");
}

/// Most that a program had in memory of its own while it ran, and most of its mapped files' pages,
/// in MiB.
fn peaks_of(mut child: std::process::Child) -> (u64, u64) {
    let (mut own, mut mapped) = (0, 0);
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
        let status = status.unwrap_or_default();
        let mib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let words = line.and_then(|line| line.split_whitespace().next());
            words.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0) >> 10
        };
        (own, mapped) = (own.max(mib("RssAnon:")), mapped.max(mib("RssFile:")));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(child.wait().unwrap().success());
    (own, mapped)
}

/// Less than the store has, and not more for a larger one: 250 and 110 MiB of 640.
#[test]
fn a_copy_takes_little_memory() {
    let mib = std::env::var("ADAMANT_COPY_MIB").map_or(320, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (seed, value_bytes) = (5, 4_000);
    let mut random = Rng::with_seed(seed);
    let options = adamant::Options::new().memory_bytes_max(64 << 20);
    let store = adamant::Store::open_with(path("made"), options).unwrap();
    let options = KeyspaceOptions::new().engine(Engine::Lsm);
    let keyspace = store.create_keyspace_with("main", options).unwrap();
    let entries = (0..mib * (1 << 20) / value_bytes).map(|number: u64| {
        let value = std::iter::repeat_with(|| random.u8(..)).take(value_bytes as usize);
        (number.swap_bytes().to_le_bytes(), value.collect::<Vec<_>>())
    });
    keyspace.load_sorted(entries).unwrap();
    store.close().unwrap();
    let url = format!("slatedb+file://{}", text(&path("objects")));
    let there = peaks_of(command(&["copy", &text(&path("made")), &url]).spawn().unwrap());
    let back = peaks_of(command(&["copy", &url, &text(&path("back"))]).spawn().unwrap());
    println!("{mib} MiB: MiB of its own and mapped: there {there:?}, back {back:?}");
    assert!(there.0 < 320 && back.0 < 200, "{there:?}, {back:?}");
}
