//! What a pop reads: blocks, counted, in trees of two sizes.

use std::cell::Cell;
use std::ops::{Bound, ControlFlow};

use adamant_heap::access::{Read, Write};
use adamant_heap::durability::Durability;
use adamant_heap::error::Result as HeapResult;
use adamant_heap::ptr::Ptr;
use adamant_heap::{Heap, MemoryDirectory, Options, Transaction};
use adamant_slice::Slice;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::bounds::Direction;
use crate::engine::tree::{Engine, Tree};
use crate::error::Result;

/// A transaction that counts the blocks that are looked at.
struct Counted<'t, 'h> {
    transaction: &'t mut Transaction<'h>,
    blocks: Cell<u64>,
}

impl Read for Counted<'_, '_> {
    fn block(&self, block: u64) -> HeapResult<&[u8]> {
        self.blocks.set(self.blocks.get() + 1);
        self.transaction.block(block)
    }

    fn prefetch(&self, offset: u64) {
        self.transaction.prefetch(offset);
    }
}

impl Write for Counted<'_, '_> {
    fn reserve(&mut self, bytes: u64) -> HeapResult<u64> {
        self.transaction.reserve(bytes)
    }

    fn write(&mut self, block: u64, at: usize, len: usize) -> HeapResult<&mut [u8]> {
        self.transaction.write(block, at, len)
    }

    fn write_as<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        ptr: Ptr<T>,
    ) -> HeapResult<&mut T> {
        self.transaction.write_as(ptr)
    }

    fn update_u64(&mut self, block: u64, at: usize, value: u64) -> HeapResult<()> {
        self.transaction.update_u64(block, at, value)
    }

    fn free(&mut self, block: u64) -> HeapResult<()> {
        self.transaction.free(block)
    }
}

/// Finds the first entry in a direction and removes it, as a pop does.
fn pop(heap: &mut Counted<'_, '_>, tree: Tree, direction: Direction) -> Result<Option<Slice>> {
    let all = (Bound::Unbounded, Bound::Unbounded);
    let mut found = None;
    tree.scan(heap, direction, all, 1, |(key, _)| {
        found = Some(Slice::from(key));
        ControlFlow::Break(())
    })?;
    if let Some(key) = &found {
        assert!(tree.remove(heap, key)?);
    }
    Ok(found)
}

/// The most blocks that one of many pops looks at, in a tree of so many entries.
fn blocks_of_pops(engine: Engine, entries: u32) -> u64 {
    let mut options = Options::default();
    options.background = false;
    let directory = std::sync::Arc::new(MemoryDirectory::new());
    let (heap, _) = Heap::open(directory, options).expect("a heap");
    let popped = heap.transaction(Durability::Deferred, |transaction| {
        let tree = Tree::create(engine, transaction)?;
        let keys: Vec<_> = (0..entries).map(|number| format!("{number:08}")).collect();
        for part in keys.chunks(1_000) {
            let pairs: Vec<_> = part.iter().map(|key| (key.as_bytes(), &b"value"[..])).collect();
            tree.load_sorted(transaction, &pairs)?;
        }
        let mut most = 0;
        for round in 0..300 {
            let (is_first, at) = (round % 2 == 0, round / 2);
            let direction = if is_first { Direction::Up } else { Direction::Down };
            let mut heap = Counted { transaction, blocks: Cell::new(0) };
            let key = pop(&mut heap, tree, direction)?.expect("an entry");
            assert_eq!(key, *keys[if is_first { at } else { keys.len() - 1 - at }]);
            most = most.max(heap.blocks.get());
        }
        Ok::<_, crate::error::Error>(most)
    });
    popped.expect("pops")
}

/// A hundred times the entries: a few more levels, and no more.
#[test]
fn a_pop_looks_at_a_few_blocks_of_a_large_tree() {
    for engine in [Engine::Bplus, Engine::Btree, Engine::Critbit, Engine::Redblack] {
        let (small, large) = (blocks_of_pops(engine, 1_000), blocks_of_pops(engine, 100_000));
        println!("{engine}: {small} and {large} blocks");
        assert!(large <= 3 * small && large < 400, "{engine}: {small} and {large} blocks");
    }
}
