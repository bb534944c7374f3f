//! The device is full at the first, the second, the third .. allocation of a change: the change is
//! undone, and the map is as before, in memory and after reopening.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use adamant_heap::access::{Read, Write};
use adamant_heap::error::{Error as HeapError, Result as HeapResult};
use adamant_heap::ptr::Ptr;
use adamant_heap::{Durability, Heap, Options, Transaction};
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::Directory;
use adamant_trees::{Critbit, Cursor, Error, Moves, OrderedMap, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::common::for_each_tree;

/// A transaction with a limited number of reserves.
struct Narrow<'t, 'h> {
    tx: &'t mut Transaction<'h>,
    reserves_left: u64,
}

impl Read for Narrow<'_, '_> {
    fn block(&self, block: u64) -> HeapResult<&[u8]> {
        self.tx.block(block)
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

fn open(directory: &Arc<dyn Directory>) -> Heap {
    let mut options = Options::default();
    options.background = false;
    options.address_bytes_max = 1 << 30;
    Heap::open(Arc::clone(directory), options).unwrap().0
}

/// A heap that can be reopened in place.
struct Place {
    directory: Arc<dyn Directory>,
    heap: Option<Heap>,
    failures: u64,
}

impl Place {
    fn new() -> Self {
        let directory: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
        let heap = Some(open(&directory));
        Self { directory, heap, failures: 0 }
    }

    fn heap(&self) -> &Heap {
        self.heap.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        drop(self.heap.take());
        self.heap = Some(open(&self.directory));
    }
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Panics unless the tree whose head is that root has exactly this content.
fn verify_tree<T: OrderedMap>(heap: &Heap, root: usize, map: &Map) {
    let view = heap.view().unwrap();
    let tree = T::open(&view, view.root(root)).unwrap();
    assert_eq!(tree.check(&view).unwrap().pairs, map.len() as u64);
    let mut cursor = tree.cursor(&view);
    for (key, value) in map {
        assert_eq!(cursor.next().unwrap(), Some((&key[..], &value[..])));
    }
    assert!(cursor.next().unwrap().is_none());
}

fn verify_whole<T: OrderedMap>(heap: &Heap, map: &Map, blocks: u64) {
    verify_tree::<T>(heap, 0, map);
    assert_eq!(heap.check().unwrap().blocks, blocks, "nothing leaks");
}

/// Makes a change with room for no block, one, two .. until it succeeds; returns how many it took.
/// `verify` panics unless everything is as before the change; it gets the number of blocks. It is
/// called twice after each failure: in memory, and after the heap was reopened.
fn change<R>(
    place: &mut Place,
    verify: impl Fn(&Heap, u64),
    work: impl Fn(&mut Narrow<'_, '_>) -> Result<R>,
) -> u64 {
    let blocks = place.heap().check().unwrap().blocks;
    for reserves_left in 0..200 {
        let outcome = place.heap().transaction(Durability::Buffered, |tx| {
            let mut narrow = Narrow { tx, reserves_left };
            work(&mut narrow)
        });
        match outcome {
            Ok(_) => return reserves_left,
            Err(error) => {
                assert!(matches!(error, Error::Heap(HeapError::TooLarge { .. })), "{error:?}");
                verify(place.heap(), blocks);
                place.failures += 1;
                place.reopen();
                verify(place.heap(), blocks);
            }
        }
    }
    panic!("no change takes two hundred blocks");
}

/// Creates a tree of either kind, whose heads are the first roots.
fn create<T: OrderedMap, U: OrderedMap>(heap: &Heap) -> (T, U) {
    heap.transaction(Durability::Buffered, |tx| {
        let trees = (T::create(tx)?, U::create(tx)?);
        tx.set_root(0, trees.0.head())?;
        tx.set_root(1, trees.1.head())?;
        Ok::<_, Error>(trees)
    })
    .unwrap()
}

for_each_tree! {
    every_allocation_may_fail
    every_allocation_of_a_move_may_fail
    every_allocation_of_a_load_may_fail
    every_allocation_of_a_compaction_may_fail
}

fn every_allocation_may_fail<T: OrderedMap>() {
    let mut place = Place::new();
    let mut map = Map::new();
    let (tree, _) = create::<T, T>(place.heap());
    let mut most = 0;
    for number in 0..260_u64 {
        let key = (number * 77 % 260).to_le_bytes().to_vec();
        let value = vec![number as u8; if number % 9 == 0 { 5000 } else { 20 }];
        most = most.max(change(
            &mut place,
            |heap, blocks| verify_whole::<T>(heap, &map, blocks),
            |tx| tree.insert(tx, &key, &value),
        ));
        map.insert(key, value);
        if number % 64 == 63 {
            place.reopen();
            let blocks = place.heap().check().unwrap().blocks;
            verify_whole::<T>(place.heap(), &map, blocks);
        }
    }
    assert!(most >= 3, "some insert takes a value, an entry and a node");
    while let Some((key, _)) = map.clone().iter().nth(map.len() / 2) {
        let verify = |heap: &Heap, blocks| verify_whole::<T>(heap, &map, blocks);
        let blocks = change(&mut place, verify, |tx| tree.remove(tx, key));
        assert_eq!(blocks, 0, "a remove needs no space");
        map.remove(key);
    }
    assert!(place.failures > 300, "{} failures", place.failures);
    place.heap.take().unwrap().close().unwrap();
}

/// Renames, swaps and moves between trees, of inline values and of values with blocks of their own,
/// in trees whose nodes split and merge on the way.
fn every_allocation_of_a_move_may_fail<T: OrderedMap>() {
    let mut place = Place::new();
    let (tree, other) = create::<T, Critbit>(place.heap());
    let mut maps = [Map::new(), Map::new()];
    let key = |number: u64| number.to_le_bytes().to_vec();
    let filled = place.heap().transaction(Durability::Buffered, |tx| {
        for number in 0..200 {
            let value = vec![number as u8; if number % 5 == 0 { 5000 } else { 20 }];
            tree.insert(tx, &key(number), &value)?;
            maps[0].insert(key(number), value);
        }
        Ok::<_, Error>(())
    });
    filled.unwrap();
    let mut most = [0; 4];
    for round in 0..200 {
        let [one, two] = &mut maps;
        let (from, to) = (key(round * 77 % 200), key(round * 31 % 200 + round / 4 % 2 * 500));
        let verify = |heap: &Heap, maps: [&Map; 2], blocks| {
            verify_tree::<T>(heap, 0, maps[0]);
            verify_tree::<Critbit>(heap, 1, maps[1]);
            assert_eq!(heap.check().unwrap().blocks, blocks, "nothing leaks");
        };
        let same = |heap: &Heap, blocks| verify(heap, [&*one, &*two], blocks);
        let place = &mut place;
        let kind = round as usize % 4;
        let took = match kind {
            0 => change(place, same, |tx| tree.rename(tx, &from, &to)),
            1 => change(place, same, |tx| tree.swap(tx, &from, &tree, &to)),
            2 => change(place, same, |tx| tree.move_to(tx, &from, &other, &from)),
            _ => {
                let range = (Bound::Included(&from[..]), Bound::Unbounded);
                change(place, same, |tx| other.move_range(tx, range, &tree, 3))
            }
        };
        most[kind] = most[kind].max(took);
        match kind {
            0 => drop(one.remove(&from).map(|value| one.insert(to, value))),
            1 if one.contains_key(&from) && one.contains_key(&to) && from != to => {
                let value = one.remove(&from).unwrap();
                let other_value = one.insert(to, value).unwrap();
                one.insert(from, other_value);
            }
            1 => {}
            2 => drop(one.remove(&from).map(|value| two.insert(from, value))),
            _ => {
                let keys: Vec<_> = two.range(from..).take(3).map(|it| it.0.clone()).collect();
                for key in keys {
                    let value = two.remove(&key).unwrap();
                    one.insert(key, value);
                }
            }
        }
        verify(place.heap(), [one, two], place.heap().check().unwrap().blocks);
        if round % 50 == 49 {
            place.reopen();
            verify_tree::<T>(place.heap(), 0, &maps[0]);
            verify_tree::<Critbit>(place.heap(), 1, &maps[1]);
        }
    }
    assert!(most[0] >= 1 && most[1] == 2 && most[2] >= 1, "blocks that moves took: {most:?}");
}

/// Runs of 60 pairs after all others and into gaps, some of them with values that have blocks.
fn every_allocation_of_a_load_may_fail<T: OrderedMap>() {
    let mut place = Place::new();
    let (tree, _) = create::<T, T>(place.heap());
    let mut map = Map::new();
    for start in [1000, 2000, 1500, 2020, 100, 1010] {
        let numbers = (start..start + 60).map(|number: u64| number.swap_bytes().to_le_bytes());
        let value = |byte: u8| vec![byte; if byte.is_multiple_of(20) { 5000 } else { 9 }];
        let pairs: Vec<_> = numbers.map(|key| (key.to_vec(), value(key[7]))).collect();
        let lent: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let verify = |heap: &Heap, blocks| verify_whole::<T>(heap, &map, blocks);
        let blocks = change(&mut place, verify, |tx| tree.load_sorted(tx, &lent));
        // A short value under an existing key is overwritten in place.
        let takes = |(key, value): &&(Vec<u8>, Vec<u8>)| value.len() > 9 || !map.contains_key(key);
        let takers = pairs.iter().filter(takes).count() as u64;
        assert!(blocks > takers, "each new pair takes a block, some two");
        map.extend(pairs);
        place.reopen();
        let blocks = place.heap().check().unwrap().blocks;
        verify_whole::<T>(place.heap(), &map, blocks);
    }
}

fn every_allocation_of_a_compaction_may_fail<T: OrderedMap>() {
    let mut place = Place::new();
    let (tree, _) = create::<T, T>(place.heap());
    let mut map = Map::new();
    let filled = place.heap().transaction(Durability::Buffered, |tx| {
        for number in 0..400_u64 {
            let key = (number * 77 % 400).swap_bytes().to_le_bytes().to_vec();
            let value = vec![number as u8; if number % 9 == 0 { 5000 } else { 20 }];
            tree.insert(tx, &key, &value)?;
            map.insert(key, value);
        }
        Ok::<_, Error>(())
    });
    filled.unwrap();
    let verify = |heap: &Heap, blocks| verify_whole::<T>(heap, &map, blocks);
    let mut next = Some(Vec::new());
    while let Some(from) = next {
        let part = Cell::new(None);
        let blocks = change(&mut place, verify, |tx| {
            part.set(tree.compact_part(tx, &from, 60)?);
            Ok(())
        });
        next = part.take();
        assert!(blocks > 0);
        verify_tree::<T>(place.heap(), 0, &map);
        place.reopen();
        verify_tree::<T>(place.heap(), 0, &map);
    }
}
