//! The fixture of `maps`: one structure, with values of one kind and transactions of one size.
//!
//! Invariants: works in a directory of its own, and verifies the map after the inserts and after
//! the removes.

use adamant_heap::{Heap, Ptr, Read, Transaction, TypedRead, TypedWrite};
use adamant_trees::OrderedMap;

use super::settings::{Settings, Value};
use super::table::Cell;
use crate::commands::heap::Costs;
use crate::harness::error::{Result, ensure};
use crate::harness::measure::thread_seconds;
use crate::harness::place::{self, DURABILITY};

/// Odd, so that different numbers give different keys.
const SCRAMBLER: u64 = 0x9e37_79b9_7f4a_7c15;

pub(super) struct Ground<'a> {
    settings: &'a Settings,
    value: Value,
    batch: Option<u64>,
    random: fastrand::Rng,
    pub(super) cell: Cell,
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        (value, batch): (Value, Option<u64>),
        seed: u64,
    ) -> Self {
        let random = fastrand::Rng::with_seed(seed);
        Self { settings, value, batch, random, cell: Cell::default() }
    }

    /// Inserts, gets and removes all keys, each in an order of its own.
    pub(super) fn measure<T: OrderedMap>(
        &mut self,
        create: &dyn Fn(&mut Transaction<'_>) -> adamant_trees::Result<T>,
    ) -> Result<()> {
        let directory = place::work(self.settings.path.as_deref())?;
        let heap = place::open(&directory.path().join("heap"))?;
        let map = heap.transaction(DURABILITY, |tx| create(tx))?;
        let pairs = self.settings.pairs;
        let mut keys: Vec<u64> = (1..=pairs).map(|number| number.wrapping_mul(SCRAMBLER)).collect();
        let value = self.value;

        self.random.shuffle(&mut keys);
        let insert = |tx: &mut Transaction<'_>, key: u64| insert(tx, map, value, key);
        [self.cell.insert, self.cell.insert_fences, self.cell.insert_lines, self.cell.insert_log] =
            self.change(&heap, &keys, insert)?;
        ensure(map.len(&heap.view()?)? == pairs, || "pairs are missing".into())?;

        self.random.shuffle(&mut keys);
        let start = thread_seconds();
        let view = heap.view()?;
        for key in &keys {
            ensure(get(&view, map, value, *key)? == Some(*key), || "a value is wrong".into())?;
        }
        drop(view);
        self.cell.get = (thread_seconds() - start) * 1e9 / pairs as f64;

        self.random.shuffle(&mut keys);
        let remove = |tx: &mut Transaction<'_>, key: u64| remove(tx, map, value, key);
        [self.cell.remove, self.cell.remove_fences, self.cell.remove_lines, self.cell.remove_log] =
            self.change(&heap, &keys, remove)?;
        ensure(map.is_empty(&heap.view()?)?, || "pairs are left".into())?;
        map.check(&heap.view()?)?;
        Ok(heap.close()?)
    }

    /// Makes a change for each key; returns nanoseconds, fences, flushed lines and bytes of log for
    /// one.
    fn change(
        &self,
        heap: &Heap,
        keys: &[u64],
        work: impl Fn(&mut Transaction<'_>, u64) -> Result<()>,
    ) -> Result<[f64; 4]> {
        heap.checkpoint()?;
        let batch = self.batch.map_or(keys.len(), |batch| batch as usize);
        let (before, start) = (Costs::of(heap), thread_seconds());
        for some in keys.chunks(batch) {
            heap.transaction(DURABILITY, |tx| some.iter().try_for_each(|key| work(tx, *key)))?;
        }
        let seconds = thread_seconds() - start;
        let costs = Costs::of(heap).since(before, keys.len() as u64);
        Ok([seconds * 1e9 / keys.len() as f64, costs.fences, costs.lines, costs.log_bytes])
    }
}

/// Encodes a key in its order.
pub(super) fn bytes_of(key: u64) -> [u8; 8] {
    key.swap_bytes().to_le_bytes()
}

fn insert<T: OrderedMap>(tx: &mut Transaction<'_>, map: T, value: Value, key: u64) -> Result<()> {
    let word = match value {
        Value::Word => key,
        Value::Object => tx.create(key)?.offset(),
    };
    let replaced = map.insert(tx, &bytes_of(key), &word.to_le_bytes())?;
    ensure(!replaced, || "a key was there".into())
}

fn remove<T: OrderedMap>(tx: &mut Transaction<'_>, map: T, value: Value, key: u64) -> Result<()> {
    if value == Value::Object {
        let object = word(tx, map, key)?.ok_or("a key is missing")?;
        tx.destroy(Ptr::<u64>::new(object))?;
    }
    let removed = map.remove(tx, &bytes_of(key))?;
    ensure(removed, || "a key is missing".into())
}

fn get<T: OrderedMap>(read: &impl Read, map: T, value: Value, key: u64) -> Result<Option<u64>> {
    let word = word(read, map, key)?;
    Ok(match (value, word) {
        (Value::Object, Some(object)) => Some(*read.get(Ptr::<u64>::new(object))?),
        (_, word) => word,
    })
}

fn word<T: OrderedMap>(read: &impl Read, map: T, key: u64) -> Result<Option<u64>> {
    let bytes = map.get(read, &bytes_of(key))?;
    Ok(bytes.and_then(|bytes| bytes.first_chunk()).map(|word| u64::from_le_bytes(*word)))
}
