//! Keyspaces of the engine lsm: figures, levels, merging.

use serde_json::Value;

use crate::support::{SAMPLE, Shell};

fn objects(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a JSON object")).collect()
}

fn sum(objects: &[Value], field: &str) -> u64 {
    objects.iter().map(|object| object[field].as_u64().expect(field)).sum()
}

/// A store with the sample in a keyspace of lsm, merged, changed after that, and in one of bplus.
fn with_levels() -> Shell {
    let shell = Shell::with_sample();
    shell.ok(["keyspace", "create", "store", "log", "--engine", "lsm"]);
    shell.ok(["import", "store", SAMPLE, "--keyspace", "log"]);
    shell.ok(["lsm", "compact", "store", "log"]);
    shell.ok(["put", "store", "one more", "value", "--keyspace", "log"]);
    shell.ok(["delete", "store", "python3-can", "--keyspace", "log"]);
    shell
}

#[test]
fn options_stay_with_a_keyspace() {
    let shell = with_levels();
    let stored = || sum(&objects(&shell.ok(["lsm", "levels", "store", "log", "--json"])), "bytes");
    let plain = stored();
    let options = ["keyspace", "options", "store", "log"];
    assert!(shell.run(options).text().starts_with("compression lz4; block bytes 4,096;"));
    let zstd = [&options[..], &["--compression", "lz4, last zstd:9", "--json"]].concat();
    assert_eq!(objects(&shell.ok(zstd))[0]["compression"], "lz4, last zstd:9");
    shell.ok([&options[..], &["--block-bytes", "16384"]].concat());
    let found = objects(&shell.ok([&options[..], &["--json"]].concat()));
    assert_eq!((&found[0]["block_bytes"], &found[0]["filter_bits"]), (&16384.into(), &10.into()));
    assert_eq!(found[0]["compression"], "lz4, last zstd:9");
    shell.ok(["compact", "store"]);
    shell.ok(["lsm", "compact", "store", "log"]);
    assert!(stored() * 5 < plain * 4, "{} of {plain} bytes", stored());
    let wrong = ["keyspace", "options", "store", "log", "--block-bytes", "1"];
    assert!(shell.run(wrong).code != 0);
    // One that a tree keeps has its own.
    let tree = ["keyspace", "options", "store", "default"];
    assert!(String::from_utf8_lossy(&shell.ok(tree)).contains("value compression none"));
    assert!(shell.run([&tree[..], &["--block-bytes", "16384"]].concat()).code != 0);
}

#[test]
fn durability_and_figures_of_each_keyspace() {
    let shell = with_levels();
    shell.ok(["keyspace", "options", "store", "default", "--durability", "buffered"]);
    let own = ["--durability", "deferred", "--caches-data", "false", "--json"];
    let lsm = [&["keyspace", "options", "store", "log"][..], &own].concat();
    let found = objects(&shell.ok(lsm));
    assert_eq!(
        (&found[0]["durability"], &found[0]["caches_data"]),
        (&"deferred".into(), &false.into())
    );
    let list = || objects(&shell.ok(["keyspace", "list", "store", "--json"]));
    let durabilities = || list().iter().map(|it| it["durability"].clone()).collect::<Vec<_>>();
    assert_eq!(durabilities(), ["buffered", "deferred"]);
    assert!(shell.run(["keyspace", "list", "store"]).text().contains("buffered"));
    shell.ok(["keyspace", "options", "store", "log", "--durability", "store"]);
    assert_eq!(durabilities(), [Value::from("buffered"), Value::Null]);
    let words = shell.run(["keyspace", "options", "store", "log"]).text();
    assert!(words.contains("caches data false; durability of the store"), "{words}");
    let wrong = ["keyspace", "options", "store", "log", "--durability", "never"];
    assert!(shell.run(wrong).code != 0);
    let tree = ["keyspace", "options", "store", "default", "--caches-data", "true"];
    assert!(shell.run(tree).code != 0);

    let stat = objects(&shell.ok(["stat", "store", "--json"]));
    let found = stat[0]["by_keyspace"].as_array().expect("keyspaces");
    let names: Vec<_> = found.iter().map(|it| it["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["default", "log"]);
    assert_eq!(sum(found, "entries"), stat[0]["entries"].as_u64().expect("entries"));
    assert!(found[0]["heap_bytes"].as_u64() > Some(10_000) && found[0]["tables"].is_null());
    let levels = objects(&shell.ok(["lsm", "levels", "store", "log", "--json"]));
    assert_eq!(found[1]["table_bytes"].as_u64(), Some(sum(&levels, "bytes")));
    let words = shell.run(["stat", "store"]).text();
    assert!(words.contains("in the pool") && words.contains("in tables"), "{words}");
}

#[test]
fn stat_and_levels_agree() {
    let shell = with_levels();
    let stats = objects(&shell.ok(["lsm", "stat", "store", "--json"]));
    let [stat] = &stats[..] else { panic!("{stats:?}") };
    assert_eq!(stat["keyspace"], "log");
    let memtables = stat["memtables"].as_array().expect("memtables");
    assert_eq!(sum(memtables, "entries"), 2, "a value and a tombstone: {stat}");
    let levels = stat["levels"].as_array().expect("levels");
    assert_eq!(sum(levels, "entries"), 1000, "{stat}");
    let tables = objects(&shell.ok(["lsm", "levels", "store", "log", "--json"]));
    assert!(!tables.is_empty());
    for (field, tables_field) in [("bytes", "bytes"), ("entries", "entries")] {
        assert_eq!(sum(levels, field), sum(&tables, tables_field), "{stat}, {tables:?}");
    }
    assert_eq!(sum(levels, "tables"), tables.len() as u64);
    let first = &tables[0]["first"]["key"];
    let lowest = objects(&shell.ok(["scan", "store", "--limit", "1", "--json"]));
    assert_eq!(*first, lowest[0]["key"]);
    let words = shell.run(["lsm", "stat", "store"]);
    assert!(words.text().contains("active") && words.text().contains("\"log\""));
    let words = shell.run(["lsm", "levels", "store", "log"]).text();
    assert!(words.contains(first.as_str().expect("a text")), "{words}");
}

#[test]
fn levels_are_drawn() {
    let shell = with_levels();
    shell.ok(["keyspace", "create", "store", "<none> & \n", "--engine", "lsm"]);
    shell.ok(["lsm", "levels", "store", "--svg", "levels.svg"]);
    let picture = std::fs::read_to_string(shell.path("levels.svg")).expect("a file");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
    assert!(picture.contains("&lt;none&gt; &amp; \\n"), "{picture}");
    assert_eq!(picture.matches("<title>table ").count(), 1, "{picture}");
}

#[test]
fn merging_drops_what_nobody_sees() {
    let shell = with_levels();
    let kept = shell.ok(["export", "store", "--keyspace", "log"]);
    let done = objects(&shell.ok(["lsm", "compact", "store", "--json"]));
    assert_eq!(done.len(), 1);
    assert_eq!(done[0]["compacted"], "log");
    assert!(done[0]["bytes_after"].as_u64().expect("bytes") > 0);
    let tables = objects(&shell.ok(["lsm", "levels", "store", "--json"]));
    assert_eq!((sum(&tables, "entries"), sum(&tables, "tombstones")), (1000, 0), "{tables:?}");
    let stats = objects(&shell.ok(["lsm", "stat", "store", "--json"]));
    let memtables = stats[0]["memtables"].as_array().expect("memtables");
    assert_eq!(sum(memtables, "entries"), 0);
    assert_eq!(shell.ok(["export", "store", "--keyspace", "log"]), kept);
    shell.ok(["check", "store"]);
}

#[test]
fn what_could_not_be_read_is_not_called_damaged() {
    let shell = with_levels();
    let tables = std::fs::read_dir(shell.path("store").join("tables")).expect("tables");
    let table = tables.map(|table| table.expect("a table").path()).next().expect("a table");
    let aside = shell.path("aside");
    std::fs::rename(&table, &aside).expect("rename");
    assert!(shell.fails(5, ["check", "store"]).contains("damaged"));
    // The system reads no bytes of a folder.
    std::fs::create_dir(&table).expect("a folder");
    let words = shell.fails(1, ["check", "store"]);
    assert!(words.contains("check again") && !words.contains("damaged"), "{words}");
    let found = objects(&shell.run(["check", "store", "--json"]).stdout);
    assert!(found.len() > 1 && found[0]["unread"] == true, "{found:?}");
    std::fs::remove_dir(&table).expect("remove");
    std::fs::rename(&aside, &table).expect("rename");
    shell.ok(["check", "store"]);
}

#[test]
fn what_is_no_lsm_is_refused() {
    let shell = Shell::with_sample();
    for action in ["stat", "levels", "compact"] {
        assert!(shell.fails(3, ["lsm", action, "store"]).contains("lsm"));
        assert!(shell.fails(4, ["lsm", action, "store", "default"]).contains("bplus"));
        shell.fails(3, ["lsm", action, "store", "none"]);
        shell.fails(3, ["lsm", action, "nowhere"]);
    }
}

#[test]
fn a_keyspace_is_converted_to_lsm_and_back() {
    let shell = Shell::with_sample();
    let kept = shell.ok(["export", "store"]);
    for engine in ["lsm", "btree", "lsm"] {
        shell.ok(["keyspace", "convert", "store", "default", "--engine", engine]);
        assert_eq!(shell.ok(["export", "store"]), kept, "{engine}");
        shell.ok(["check", "store"]);
    }
    shell.ok(["lsm", "compact", "store"]);
    shell.ok(["backup", "store", "copy"]);
    shell.ok(["backup", "store", "linked", "--link"]);
    shell.ok(["compact", "store"]);
    for path in ["store", "copy", "linked"] {
        assert_eq!(shell.ok(["export", path]), kept, "{path}");
        shell.ok(["check", path]);
    }
}
