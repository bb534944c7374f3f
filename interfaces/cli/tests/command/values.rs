//! Compression of values: given with a new keyspace, changed, and turned on for what is there.

use serde_json::Value;

use crate::support::Shell;

/// What the list says of a keyspace.
fn listed(shell: &Shell, name: &str) -> Value {
    let all = shell.ok(["keyspace", "list", "store", "--json"]);
    let all = String::from_utf8(all).expect("UTF-8");
    let mut all = all.lines().map(|line| serde_json::from_str::<Value>(line).expect("an object"));
    all.find(|keyspace| keyspace["name"] == name).expect("it is listed")
}

#[test]
fn values_that_are_there_are_compressed_and_made_plain_again() {
    let shell = Shell::with_sample();
    let kept = shell.ok(["export", "store"]);
    let to = ["keyspace", "convert", "store", "default", "--value-compression"];
    for (given, dictionary, expected) in [
        ("lz4", None, Some("lz4")),
        ("zstd, from 60", None, Some("zstd:3, from 60")),
        ("zstd:9", Some("4096"), Some("zstd:9")),
        ("none", None, None),
    ] {
        let mut words = [&to[..], &[given]].concat();
        words.extend(dictionary.into_iter().flat_map(|bytes| ["--train-dictionary", bytes]));
        shell.ok(&words);
        let found = listed(&shell, "default");
        assert_eq!(found["value_compression"].as_str(), expected);
        let has_dictionary = found["dictionary_bytes"].as_u64().unwrap() > 0;
        assert_eq!(has_dictionary, dictionary.is_some());
        assert_eq!(shell.ok(["export", "store"]), kept, "{given}");
        shell.ok(["check", "store"]);
        let shown = String::from_utf8(shell.ok(["keyspace", "list", "store"])).unwrap();
        assert_eq!(shown.contains("values by"), expected.is_some(), "{shown}");
        let options = String::from_utf8(shell.ok(["keyspace", "options", "store", "default"]));
        assert!(options.unwrap().contains(expected.unwrap_or("none")));
    }
    // Both at once, and a dictionary of a file.
    std::fs::write(shell.path("dictionary"), "Package: Version: Architecture: amd64").unwrap();
    let both = [&to[..], &["zstd", "--dictionary", "dictionary", "--engine", "critbit"]].concat();
    shell.ok(&both);
    let found = listed(&shell, "default");
    assert_eq!((&found["engine"], &found["dictionary_bytes"]), (&"critbit".into(), &37.into()));
    assert_eq!(shell.ok(["export", "store"]), kept);
    shell.ok(["compact", "store"]);
    assert_eq!(listed(&shell, "default"), found);
    assert_eq!(shell.ok(["export", "store"]), kept);
}

#[test]
fn a_new_keyspace_has_it_from_the_beginning() {
    let shell = Shell::with_sample();
    shell.ok(["keyspace", "create", "store", "notes", "--value-compression", "lz4"]);
    shell.ok(["put", "store", "--keyspace", "notes", "1", &"all work and no play ".repeat(20)]);
    assert_eq!(listed(&shell, "notes")["value_compression"], "lz4");
    let options = ["keyspace", "options", "store", "notes", "--value-compression", "lz4, from 300"];
    assert!(String::from_utf8(shell.ok(options)).unwrap().contains("lz4, from 300"));
    let refused = ["keyspace", "options", "store", "default", "--value-compression", "lz4"];
    assert!(shell.fails(4, refused).contains("convert"));
    let lsm = ["keyspace", "create", "store", "log", "--engine", "lsm", "--value-compression"];
    shell.fails(4, [&lsm[..], &["lz4"]].concat());
    shell.fails(2, ["keyspace", "convert", "store", "notes"]);
    shell.fails(2, ["keyspace", "create", "store", "more", "--value-compression", "lz5"]);
    let convert = ["keyspace", "convert", "store", "notes", "--value-compression"];
    assert!(
        shell.fails(4, [&convert[..], &["lz4", "--dictionary", "none"]].concat()).contains("none")
    );
}
