//! A tree whose bytes on the heap are not what was written there: opening it, reading and merging fail
//! or say something wrong, but end, and nothing panics.

use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::{Directory, Durability, MemoryDirectory, Read, Write};
use adamant_lsm::{Error, Lsm, NEWEST};

use crate::store::{Store, TREE, small_options};

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Blocks of the tree, by what they are: see `docs/format/lsm.md`.
fn blocks(store: &Store) -> Vec<(&'static str, u64, usize)> {
    let view = store.heap.view().unwrap();
    let head = view.root(TREE);
    let mut blocks = vec![("head", head, 40)];
    let mut buffer = word(view.block(head).unwrap(), 24);
    while buffer != 0 {
        let bytes = view.block(buffer).unwrap();
        blocks.push(("buffer", buffer, 40));
        blocks.push(("chunk", word(bytes, 24), 400));
        buffer = word(bytes, 8);
    }
    let manifest = word(view.block(head).unwrap(), 32);
    let bytes = view.block(manifest).unwrap();
    let (tables, blobs) = (word(bytes, 8) as u32 as usize, (word(bytes, 8) >> 32) as usize);
    blocks.push(("manifest", manifest, 16 + 16 * tables + 8 * blobs));
    for table in 0..tables {
        blocks.push(("table", word(bytes, 16 + 16 * table), 110));
    }
    for blob in 0..blobs {
        blocks.push(("blob", word(bytes, 16 + 16 * tables + 8 * blob), 48));
    }
    blocks
}

fn fill(store: &Store) {
    let seen = || Ok(store.environment.sequences().visible());
    for round in 0..5_u8 {
        let done = store.heap.transaction(Durability::Buffered, |tx| {
            for at in 0..20_u8 {
                let value = vec![round; if at % 5 == 0 { 90 } else { 10 }];
                store.tree.write(tx, [(&[b'k', at * 7 % 50][..], Some(&value[..]))])?;
            }
            store.tree.remove_range(tx, &[b'k', round], &[b'k', round + 2])
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
    for seed in 0..150 {
        let mut random = fastrand::Rng::with_seed(seed);
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut store = Store::open(&directory, small_options()).unwrap();
        fill(&store);
        let blocks = blocks(&store);
        let others: Vec<u64> = blocks.iter().map(|(_, block, _)| *block).collect();
        let (kind, block, len) = blocks[random.usize(0..blocks.len())];
        let change = match random.u8(0..4) {
            0 => vec![0xff; 8],
            1 => random.choice(&others).unwrap().to_le_bytes().to_vec(),
            2 => vec![random.u8(..)],
            _ => (0..8).map(|_| random.u8(..)).collect(),
        };
        // Words begin at multiples of 8, but for those of 4 bytes.
        let unit = if change.len() == 8 { 8 } else { 1 };
        let at = random.usize(0..=(len - change.len()) / unit) * unit;
        println!("seed {seed}: {kind} at {at}: {change:?}");
        let done = store.heap.transaction(Durability::Buffered, |tx| {
            tx.write(block, at, change.len())?.copy_from_slice(&change);
            Ok::<(), Error>(())
        });
        done.unwrap();
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
        let seen = || Ok(store.environment.sequences().visible());
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
