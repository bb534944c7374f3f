//! A tree whose bytes on the heap are damaged: reading them back finds every changed byte. If the
//! checksums were corrected, opening, reading and merging may fail or return wrong data, but they
//! end, and nothing panics.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory, Read, Write};
use adamant_lsm::{Error, Lsm, NEWEST};
use adamant_wire::checksum::crc32c;

use crate::store::{Store, TREE, small_options};

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn half(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()).into()
}

/// A block of the tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) kind: &'static str,
    at: u64,
    /// Bytes of it that are used.
    pub(crate) len: usize,
    /// Offset of its checksum, if it has one for all of it.
    sum_at: Option<usize>,
}

/// The end of the records of a chunk that is not the last one, and its end record. All numbers have
/// one byte.
fn records_end(chunk: &[u8]) -> usize {
    let mut at = 0;
    while at + 5 <= chunk.len() {
        if chunk[at + 4] == 0 {
            return at + 5;
        }
        let (key, value) = (chunk[at + 5], chunk[at + 6]);
        assert!(key < 128 && value < 128 && chunk[at + 7] < 128);
        at += 8 + usize::from(key) + usize::from(value);
    }
    at
}

/// Blocks of the tree: see `docs/format/lsm.md`.
pub(crate) fn blocks(store: &Store) -> Vec<Block> {
    let view = store.heap.view().unwrap();
    let mut blocks = Vec::new();
    let mut add = |kind, at, len, sum_at| blocks.push(Block { kind, at, len, sum_at });
    let head = view.root(TREE);
    add("head", head, 48, Some(40));
    let mut buffer = word(view.block(head).unwrap(), 24);
    while buffer != 0 {
        let bytes = view.block(buffer).unwrap();
        add("buffer", buffer, 992, None);
        let (used, chunks) = ((word(bytes, 24) >> 16 & 0xff_ffff) as usize, bytes[31].into());
        for chunk in 0..chunks {
            let at = word(bytes, 32 + 8 * chunk);
            let is_last = chunk + 1 == chunks;
            let len = if is_last { used } else { records_end(view.block(at).unwrap()) };
            add("chunk", at, len, None);
        }
        buffer = word(bytes, 8);
    }
    let manifest = word(view.block(head).unwrap(), 32);
    if manifest == 0 {
        return blocks;
    }
    let bytes = view.block(manifest).unwrap();
    let (tables, blobs) = (word(bytes, 8) as u32 as usize, (word(bytes, 8) >> 32) as usize);
    add("manifest", manifest, 24 + 16 * tables + 8 * blobs, Some(16));
    for table in 0..tables {
        let at = word(bytes, 24 + 16 * table);
        let record = view.block(at).unwrap();
        let uses = word(record, 72) >> 32;
        let len = 96 + half(record, 72) + half(record, 74) + 24 * uses as usize;
        add("table", at, len, Some(88));
    }
    for blob in 0..blobs {
        add("blob", word(bytes, 24 + 16 * tables + 8 * blob), 56, Some(48));
    }
    blocks
}

/// Writes bytes into a block; `fits` corrects its checksum.
pub(crate) fn change(store: &Store, block: Block, at: usize, bytes: &[u8], fits: bool) {
    let done = store.heap.transaction(Durability::Buffered, |tx| {
        tx.write(block.at, at, bytes.len())?.copy_from_slice(bytes);
        if let Some(sum_at) = block.sum_at.filter(|_| fits) {
            let all = &tx.block(block.at)?[..block.len];
            let sum = crc32c(crc32c(0, &block.at.to_le_bytes()), &all[..sum_at]);
            let sum = u64::from(crc32c(sum, &all[sum_at + 8..]));
            tx.write(block.at, sum_at, 8)?.copy_from_slice(&sum.to_le_bytes());
        }
        Ok::<(), Error>(())
    });
    done.unwrap();
}

fn fill(store: &Store) {
    let seen = || Ok(store.context.sequences().visible());
    for round in 0..5_u8 {
        let done = store.heap.transaction(Durability::Buffered, |tx| {
            for at in 0..20_u8 {
                let value = vec![round; if at % 5 == 0 { 90 } else { 10 }];
                store.tree.write(tx, [(&[b'k', at * 7 % 50][..], Some(&value[..]))])?;
            }
            store.tree.remove_range(tx, &[b'k', round], &[b'k', round + 2])?;
            let operands = [(&b"k\x09"[..], &[round; 9][..]), (b"kz", &[round; 100])];
            store.tree.merge(tx, operands)
        });
        done.unwrap();
        store.tree.rotate(&store.heap).unwrap();
        if round < 3 {
            store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap();
        }
        if round == 1 {
            store.tree.compact_all(&store.heap, &seen, &|_| Ok(())).unwrap();
        }
    }
}

#[test]
fn any_bytes_end_in_an_error_or_in_something() {
    let (mut refused, mut opened, mut found) = (0, 0, 0);
    for seed in 0..250 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut store = Store::open(&directory, small_options()).unwrap();
        fill(&store);
        let mut blocks = blocks(&store);
        blocks.retain(|block| block.len >= 8);
        let others: Vec<u64> = blocks.iter().map(|block| block.at).collect();
        let block = blocks[random.usize(0..blocks.len())];
        let bytes = match random.u8(0..4) {
            0 => vec![0xff; 8],
            1 => random.choice(&others).unwrap().to_le_bytes().to_vec(),
            2 => vec![random.u8(..)],
            _ => (0..8).map(|_| random.u8(..)).collect(),
        };
        // Words begin at multiples of 8, except those of 4 bytes.
        let unit = if bytes.len() == 8 { 8 } else { 1 };
        let at = random.usize(0..=(block.len.min(400) - bytes.len()) / unit) * unit;
        println!("seed {seed}: {block:?} at {at}: {bytes:?}");
        change(&store, block, at, &bytes, seed % 4 > 0);
        if store.reopen_tree().is_err() {
            refused += 1;
            continue;
        }
        opened += 1;
        let check = store.tree.check(&store.heap.view().unwrap());
        found += u32::from(check.is_err() || check.is_ok_and(|check| !check.finish().is_clean()));
        for at in 0..50 {
            let _ = store.get(&[b'k', at], NEWEST);
        }
        let all = (Bound::Unbounded, Bound::Unbounded);
        let _ = store.scan(all, random.bool(), NEWEST, 10);
        let seen = || Ok(store.context.sequences().visible());
        let _ = store.tree.flush(&store.heap, &seen, &|_| Ok(()));
        for _ in 0..20 {
            let done = store.tree.compact_once(&store.heap, &seen, &|_| Ok(()));
            if !done.is_ok_and(|is_done| is_done) {
                break;
            }
        }
        let _ = store.tree.compact_all(&store.heap, &seen, &|_| Ok(()));
        let tree: Arc<Lsm> = Arc::clone(&store.tree);
        let _ = store.heap.transaction(Durability::Buffered, |tx| tree.destroy(tx));
    }
    println!("{refused} refused, {opened} opened, of which a check found {found}");
    assert!(refused > 20 && found > 20);
}

/// Reading back verifies everything: a changed byte is an error, or belongs to no object.
#[test]
fn a_changed_byte_is_an_error_or_changes_nothing() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let mut store = Store::open(&directory, small_options()).unwrap();
    fill(&store);
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let expected = store.scan(all(), true, NEWEST, 1000).unwrap();
    let (mut random, mut noticed, mut tried) = (fastrand::Rng::with_seed(17), 0, 0);
    for block in blocks(&store) {
        let mut at = 0;
        while at < block.len {
            let was = store.heap.view().unwrap().block(block.at).unwrap()[at];
            let is = was ^ random.u8(1..);
            change(&store, block, at, &[is], false);
            let of = format!("{block:?} at {at}: {is} for {was}");
            tried += 1;
            match store.reopen_tree() {
                Err(error) => {
                    assert!(error.is_damage(), "{of}: {error}");
                    noticed += 1;
                }
                Ok(()) => {
                    let found = store.scan(all(), true, NEWEST, 1000).unwrap();
                    assert!(found == expected, "{of}: other content");
                }
            }
            change(&store, block, at, &[was], false);
            // Of the 120 chunk words one is used.
            at += if block.kind == "buffer" && at > 48 { 29 } else { 1 };
        }
    }
    store.reopen_tree().unwrap();
    assert_eq!(noticed, tried);
}

/// A flush does not write bytes with a new checksum that were damaged while the tree was open.
#[test]
fn a_flush_proves_what_it_writes() {
    let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let store = Store::open(&directory, small_options()).unwrap();
    let pairs: Vec<_> = (0..20_u8).map(|at| ([b'k', at], [at; 30])).collect();
    let done = store.heap.transaction(Durability::Buffered, |tx| {
        store.tree.write(tx, pairs.iter().map(|(key, value)| (&key[..], Some(&value[..]))))
    });
    done.unwrap();
    store.tree.rotate(&store.heap).unwrap();
    let chunks = blocks(&store).into_iter().filter(|block| block.kind == "chunk");
    // Those of the new buffer come first: it has one.
    let chunks: Vec<_> = chunks.skip(1).collect();
    let seen = || Ok(store.context.sequences().visible());
    assert!(chunks.len() > 1);
    assert_eq!(chunks.iter().map(|chunk| chunk.len / 40).sum::<usize>(), 20);
    for chunk in chunks {
        // The index has its own kind, lengths, number and key: these bytes are not read.
        let looked_at = |at: &usize| !(4..10).contains(&(at % 40));
        for at in (0..chunk.len / 40 * 40).filter(looked_at) {
            let was = store.heap.view().unwrap().block(chunk.at).unwrap()[at];
            change(&store, chunk, at, &[was ^ 0x20], false);
            let flushed = store.tree.flush(&store.heap, &seen, &|_| Ok(()));
            assert!(flushed.as_ref().is_err_and(Error::is_damage), "at {at}: {flushed:?}");
            change(&store, chunk, at, &[was], false);
        }
    }
    assert!(store.tree.flush(&store.heap, &seen, &|_| Ok(())).unwrap());
    for (key, value) in &pairs {
        assert_eq!(store.get(key, NEWEST).unwrap().as_deref(), Some(&value[..]));
    }
}
