//! The device is full at the first, the second, the third .. allocation of a change: the change is
//! undone, and the map is what it was, in memory and after reopening, by both journals.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use adamant_heap::access::{Read, Write};
use adamant_heap::error::{Error as HeapError, Result as HeapResult};
use adamant_heap::ptr::Ptr;
use adamant_heap::{Durability, Flushing, Heap, JournalKind, Options, Transaction};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_trees::{Cursor, Error, OrderedMap, Result};
use common::for_each_tree;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// A transaction in which only so many blocks can be reserved.
struct Narrow<'t, 'h> {
    tx: &'t mut Transaction<'h>,
    reserves_left: u64,
}

impl Read for Narrow<'_, '_> {
    fn block(&self, block: u64) -> HeapResult<&[u8]> {
        self.tx.block(block)
    }

    fn read<T: FromBytes + Immutable + KnownLayout>(&self, ptr: Ptr<T>) -> HeapResult<&T> {
        self.tx.read(ptr)
    }

    fn prefetch(&self, offset: u64) {
        self.tx.prefetch(offset);
    }
}

impl Write for Narrow<'_, '_> {
    fn reserve(&mut self, bytes: u64) -> HeapResult<u64> {
        match self.reserves_left.checked_sub(1) {
            Some(left) => self.reserves_left = left,
            None => return Err(HeapError::TooLarge { bytes, bytes_max: 0 }),
        }
        self.tx.reserve(bytes)
    }

    fn write(&mut self, block: u64, at: usize, len: usize) -> HeapResult<&mut [u8]> {
        self.tx.write(block, at, len)
    }

    fn write_as<T: FromBytes + IntoBytes + Immutable + KnownLayout>(
        &mut self,
        ptr: Ptr<T>,
    ) -> HeapResult<&mut T> {
        self.tx.write_as(ptr)
    }

    fn update_u64(&mut self, block: u64, at: usize, value: u64) -> HeapResult<()> {
        self.tx.update_u64(block, at, value)
    }

    fn free(&mut self, block: u64) -> HeapResult<()> {
        self.tx.free(block)
    }
}

fn open(directory: &Arc<dyn Directory>, journal: JournalKind) -> Heap {
    let mut options = Options::default();
    options.journal = journal;
    options.flushing = Flushing::Volatile;
    options.background = false;
    options.address_bytes_max = 1 << 30;
    Heap::open(Arc::clone(directory), options).unwrap().0
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn verify<T: OrderedMap>(heap: &Heap, map: &Map, blocks: u64) {
    {
        let view = heap.view().unwrap();
        let tree = T::open(&view, view.root(0)).unwrap();
        assert_eq!(tree.check(&view).unwrap().pairs, map.len() as u64);
        let mut cursor = tree.cursor(&view);
        for (key, value) in map {
            assert_eq!(cursor.next().unwrap(), Some((&key[..], &value[..])));
        }
        assert!(cursor.next().unwrap().is_none());
    }
    assert_eq!(heap.check().unwrap().blocks, blocks, "nothing leaks");
}

/// Makes a change with room for no block, one, two .. until it succeeds; returns how many it took.
fn change<T: OrderedMap>(
    heap: &Heap,
    map: &Map,
    work: impl Fn(&mut Narrow<'_, '_>) -> Result<bool>,
) -> u64 {
    let blocks = heap.check().unwrap().blocks;
    for reserves_left in 0..100 {
        let outcome = heap.transaction(Durability::Buffered, |tx| {
            let mut narrow = Narrow { tx, reserves_left };
            work(&mut narrow)
        });
        match outcome {
            Ok(_) => return reserves_left,
            Err(error) => {
                assert!(matches!(error, Error::Heap(HeapError::TooLarge { .. })), "{error:?}");
                verify::<T>(heap, map, blocks);
            }
        }
    }
    panic!("no change takes a hundred blocks");
}

for_each_tree! { every_allocation_may_fail }

fn every_allocation_may_fail<T: OrderedMap>() {
    for journal in [JournalKind::Redo, JournalKind::Undo] {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let mut heap = open(&directory, journal);
        let mut map = Map::new();
        let tree = heap
            .transaction(Durability::Buffered, |tx| {
                let tree = T::create(tx)?;
                tx.set_root(0, tree.head())?;
                Ok::<_, Error>(tree)
            })
            .unwrap();
        let mut most = 0;
        for number in 0..260_u64 {
            let key = (number * 77 % 260).to_le_bytes().to_vec();
            let value = vec![number as u8; if number % 9 == 0 { 5000 } else { 20 }];
            most = most.max(change::<T>(&heap, &map, |tx| tree.insert(tx, &key, &value)));
            map.insert(key, value);
            if number % 64 == 63 {
                drop(heap);
                heap = open(&directory, journal);
                let blocks = heap.check().unwrap().blocks;
                verify::<T>(&heap, &map, blocks);
            }
        }
        assert!(most >= 3, "some insert takes a value, an entry and a node");
        while let Some((key, _)) = map.clone().iter().nth(map.len() / 2) {
            let blocks = change::<T>(&heap, &map, |tx| tree.remove(tx, key));
            assert_eq!(blocks, 0, "a remove needs no space");
            map.remove(key);
        }
        heap.close().unwrap();
    }
}
