//! Stores that format 1 wrote open, hold what they held, and can be written to.

use std::fs;
use std::path::Path;

use adamant::Store;
use adamant_golden::{content, image};

fn stored(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("stores/format-1").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn opens_and_holds_what_it_held(name: &str) {
    let expected = stored("content.txt");
    assert!(expected.lines().count() > 200, "the list of entries was cut off");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    image::unpack(&stored(name), &path).unwrap();

    let store = Store::open(&path).unwrap();
    // Not by `assert_eq`: the texts are long.
    assert!(content::describe(&store).unwrap() == expected, "{name} holds something else");
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    let names: Vec<String> =
        store.keyspaces().unwrap().into_iter().map(|keyspace| keyspace.name).collect();
    assert_eq!(names, ["empty", "many", "sizes / .. \u{e9}"]);

    store.keyspace("new").unwrap().insert("k", "v").unwrap();
    store.open_keyspace("many").unwrap().insert("key 0000", "again").unwrap();
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    assert_eq!(store.open_keyspace("new").unwrap().get("k").unwrap(), Some("v".into()));
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn closed() {
    opens_and_holds_what_it_held("clean.runs");
}

#[test]
fn crashed() {
    opens_and_holds_what_it_held("crashed.runs");
}

/// What writes golden stores today and what reads them agree; also before there are any.
#[test]
fn a_store_written_now() {
    let directory = tempfile::tempdir().unwrap();
    let (path, copy) = (directory.path().join("store"), directory.path().join("copy"));
    let store = Store::open(&path).unwrap();
    content::fill(&store).unwrap();
    let expected = content::describe(&store).unwrap();
    store.close().unwrap();
    let packed = image::pack(&path).unwrap();
    image::unpack(&packed, &copy).unwrap();
    assert!(image::pack(&copy).unwrap() == packed);
    let store = Store::open(&copy).unwrap();
    assert!(content::describe(&store).unwrap() == expected);
}

#[test]
fn a_broken_image_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    for image in
        ["00 11", "file a x", "file a 1\n00 11 22", "file a 1\nzz 11", "file a 99999999999"]
    {
        assert!(image::unpack(image, directory.path()).is_err(), "{image}");
    }
}
