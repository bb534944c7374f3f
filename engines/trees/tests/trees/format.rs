//! Golden bytes of format 1: a change of any of these is a new format.

use adamant_heap::access::Read;
use adamant_trees::slot::{Entry, KeyHash, Slot, write_entry};
use adamant_trees::{Bplus, Btree, Critbit, OrderedMap, Redblack};

use crate::common::mock::Mock;

fn upper_and_lowest(key: &[u8]) -> (u64, u8) {
    let hash = KeyHash::of(key);
    (Slot::new(hash, 0).0 >> 48, hash.fingerprint())
}

#[test]
fn hashes_of_keys() {
    let long: Vec<u8> = (0..=255).collect();
    let hashes: [(&[u8], (u64, u8)); 7] = [
        (b"a", (0x48ea, 0x8f)),
        (b"a\0", (0x0735, 0x07)),
        (b"1234567", (0x4c2f, 0x59)),
        (b"12345678", (0xe93f, 0x22)),
        (b"123456789", (0x92e3, 0x97)),
        (b"12345678901234567890", (0x889a, 0x1a)),
        (&long, (0x5769, 0x72)),
    ];
    for (key, expected) in hashes {
        assert_eq!(upper_and_lowest(key), expected, "hash of {key:?}");
    }
}

/// Similar keys spread over all fingerprints.
#[test]
fn hashes_spread() {
    let mut counts = [0u32; 256];
    for number in 0..25_600 {
        counts[usize::from(KeyHash::of(format!("user/{number:08}").as_bytes()).fingerprint())] += 1;
    }
    assert!(counts.iter().all(|count| (50..160).contains(count)), "{counts:?}");
}

#[test]
fn entries() {
    let mut heap = Mock::new();
    let small = write_entry(&mut heap, b"key", b"value").unwrap();
    assert_eq!(&heap.block(small).unwrap()[..10], b"\x03\x0akeyvalue");
    let value = vec![9; 4097];
    let large = write_entry(&mut heap, b"key", &value).unwrap();
    let entry = Entry::read(&heap, large).unwrap();
    let value_block = entry.value_block().unwrap();
    let mut expected = b"\x03\x83\x40key".to_vec();
    expected.extend_from_slice(&value_block.to_le_bytes());
    assert_eq!(heap.block(large).unwrap()[..expected.len()], expected);
    assert_eq!(heap.block(value_block).unwrap()[..4097], value);
}

/// The example of docs/format/bplus.md.
#[test]
fn a_tree_of_two_pairs() {
    let mut heap = Mock::new();
    let tree = Bplus::create(&mut heap).unwrap();
    tree.insert(&mut heap, b"b", b"2").unwrap();
    tree.insert(&mut heap, b"a", b"1").unwrap();
    let head = heap.block(tree.head()).unwrap();
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    assert_eq!(&head[..8], b"AdamBpl\x02");
    assert_eq!([16, 24, 32, 40].map(|at| word(head, at)), [0, 2, 1, 0]);
    let leaf = heap.block(word(head, 8)).unwrap();
    assert_eq!(word(leaf, 0), 3);
    for (index, key, entry) in [(0, b"b", b"\x01\x02b2"), (1, b"a", b"\x01\x02a1")] {
        let hash = upper_and_lowest(key);
        assert_eq!(leaf[8 + index], hash.1);
        let slot = word(leaf, 64 + 8 * index);
        assert_eq!(slot >> 48, u64::from(key[0]) << 8);
        assert_eq!(&heap.block(slot & 0xffff_ffff_ffff).unwrap()[..4], entry);
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// The examples of docs/format: `b` -> `2`, then `a` -> `1`. Returns the head and the root.
fn two_pairs<T: OrderedMap>(heap: &mut Mock, magic: &[u8; 8], order: u64) -> Vec<u8> {
    let tree = T::create(heap).unwrap();
    tree.insert(heap, b"b", b"2").unwrap();
    tree.insert(heap, b"a", b"1").unwrap();
    let head = heap.block(tree.head()).unwrap();
    assert_eq!(&head[..8], magic);
    assert_eq!([16, 24, 32, 40].map(|at| word(head, at)), [2, 0, order, 0]);
    heap.block(word(head, 8)).unwrap().to_vec()
}

fn assert_slot(heap: &Mock, slot: u64, key: &[u8], entry: &[u8]) {
    assert_eq!(slot >> 48, upper_and_lowest(key).0);
    assert_eq!(&heap.block(slot & 0xffff_ffff_ffff).unwrap()[..4], entry);
}

#[test]
fn a_critbit_tree_of_two_pairs() {
    let mut heap = Mock::new();
    let node = two_pairs::<Critbit>(&mut heap, b"AdamCri\x01", 0);
    assert_eq!(node[16..], [0, 0, 2, 0, 0, 0, 0, 0]);
    for (at, key, entry) in [(0, b"a", b"\x01\x02a1"), (8, b"b", b"\x01\x02b2")] {
        assert_eq!(word(&node, at) & 1, 1);
        assert_slot(&heap, word(&node, at) - 1, key, entry);
    }
}

#[test]
fn a_redblack_tree_of_two_pairs() {
    let mut heap = Mock::new();
    let root = two_pairs::<Redblack>(&mut heap, b"AdamRed\x01", 0);
    assert_slot(&heap, word(&root, 0), b"b", b"\x01\x02b2");
    assert_eq!([word(&root, 8), word(&root, 24)], [0x62 << 56, 0]);
    let lower = heap.block(word(&root, 16)).unwrap();
    assert_slot(&heap, word(lower, 0), b"a", b"\x01\x02a1");
    assert_eq!([8, 16, 24].map(|at| word(lower, at)), [0x61 << 56, 1, 0]);
}

#[test]
fn a_btree_of_two_pairs() {
    let mut heap = Mock::new();
    let root = two_pairs::<Btree>(&mut heap, b"AdamBtr\x01", 16);
    assert_eq!(root.len(), 256);
    assert_eq!([word(&root, 0), word(&root, 8), word(&root, 24)], [2, 0x61 << 56, 0x62 << 56]);
    assert_slot(&heap, word(&root, 16), b"a", b"\x01\x02a1");
    assert_slot(&heap, word(&root, 32), b"b", b"\x01\x02b2");
}

/// The examples of words: 2 -> 0x22, then 1 -> 0x11, both as in typed maps.
fn two_words<T: OrderedMap>(heap: &mut Mock, magic: &[u8; 8], order: u64) -> Vec<u8> {
    let tree = T::create_of_words(heap).unwrap();
    for number in [2, 1] {
        tree.insert(heap, &[0, 0, 0, 0, 0, 0, 0, number], &[number * 0x11, 0, 0, 0, 0, 0, 0, 0])
            .unwrap();
    }
    let head = heap.block(tree.head()).unwrap();
    assert_eq!(&head[..8], magic);
    assert_eq!([16, 24, 32, 40].map(|at| word(head, at)), [2, 0, order, 0]);
    heap.block(word(head, 8)).unwrap().to_vec()
}

#[test]
fn a_btree_of_two_words() {
    let root = two_words::<Btree>(&mut Mock::new(), b"AdamBtr\x02", 16);
    let words = [0, 8, 16, 24, 32].map(|at| word(&root, at));
    assert_eq!(words, [2, 1 << 56, 0x11, 2 << 56, 0x22]);
}

#[test]
fn a_redblack_tree_of_two_words() {
    let mut heap = Mock::new();
    let root = two_words::<Redblack>(&mut heap, b"AdamRed\x02", 0);
    assert_eq!([0, 8, 24].map(|at| word(&root, at)), [0x22, 2 << 56, 0]);
    let lower = heap.block(word(&root, 16)).unwrap();
    assert_eq!([0, 8, 16, 24].map(|at| word(lower, at)), [0x11, 1 << 56, 1, 0]);
}
