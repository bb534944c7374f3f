//! A heap with maps of words that format 1 wrote opens, holds what it held, and can be written to.

use std::fs;

use adamant_golden::{image, words};
use adamant_heap::Durability;
use adamant_trees::{Btree, OrderedMap, Redblack, Result};

fn opens_and_holds_what_it_held(name: &str) {
    let stored = |name: &str| fs::read_to_string(words::folder().join(name)).unwrap();
    let expected = stored("content.txt");
    assert_eq!(expected.lines().count(), 400, "of two maps");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("heap");
    image::unpack(&stored(name), &path).unwrap();
    let heap = words::open(&path).unwrap();
    assert!(words::describe(&heap).unwrap() == expected, "{name} holds something else");
    assert!(heap.check().unwrap().is_clean());

    // They still take changes: enough of them for nodes to split and to merge.
    let change = |heap: &adamant_heap::Heap| -> Result<()> {
        heap.transaction(Durability::Sync, |tx| {
            let (btree, redblack) = (Btree::open(tx, tx.root(0))?, Redblack::open(tx, tx.root(1))?);
            for number in 0..200_u64 {
                let key = (number * 1_000_003).swap_bytes().to_le_bytes();
                btree.remove(tx, &key)?;
                redblack.remove(tx, &key)?;
                let key = (number * 7 + 1).swap_bytes().to_le_bytes();
                btree.insert(tx, &key, &key)?;
                redblack.insert(tx, &key, &key)?;
            }
            Ok(())
        })
    };
    change(&heap).unwrap();
    heap.close().unwrap();
    let heap = words::open(&path).unwrap();
    let lines = words::describe(&heap).unwrap();
    assert!(lines.lines().count() > 400 && lines != expected);
    assert!(heap.check().unwrap().is_clean());
}

#[test]
fn closed() {
    opens_and_holds_what_it_held("clean.runs");
}

#[test]
fn crashed() {
    opens_and_holds_what_it_held("crashed.runs");
}
