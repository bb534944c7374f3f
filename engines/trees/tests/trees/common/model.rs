//! A tree against a `BTreeMap`, under the same random changes.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use adamant_heap::access::{Read, Write};
use adamant_trees::{Cursor, Moved, Moves, Operation, OrderedMap, Pair, Result, Seek, Walk};
use fastrand::Rng;

use super::shapes::{Shape, value};

#[derive(Clone)]
pub(crate) struct Model<T> {
    pub(crate) tree: T,
    pub(crate) map: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(crate) rng: Rng,
    pub(crate) shape: Shape,
    serial: u64,
}

impl<T: OrderedMap> Model<T> {
    pub(crate) fn new<W: Write>(tx: &mut W, shape: Shape, seed: u64) -> Result<Self> {
        println!("{shape:?} with seed {seed}");
        let is_of_words = shape == Shape::Words;
        let tree = if is_of_words { T::create_of_words(tx)? } else { T::create(tx)? };
        let rng = Rng::with_seed(seed);
        Ok(Self { tree, map: BTreeMap::new(), rng, shape, serial: 0 })
    }

    fn key(&mut self) -> Vec<u8> {
        self.serial += 1;
        self.shape.key(&mut self.rng, 8000, self.serial)
    }

    /// A key that is there, most of the time.
    fn present_key(&mut self) -> Vec<u8> {
        let key = self.key();
        let near = self.map.range(key.clone()..).next().or_else(|| self.map.iter().next_back());
        near.map_or(key, |(key, _)| key.clone())
    }

    /// Makes random changes; of 100 about `removes` are removes.
    pub(crate) fn change<W: Write>(&mut self, tx: &mut W, count: u64, removes: u32) -> Result<()> {
        for _ in 0..count {
            if self.rng.u32(..100) < removes {
                let key = self.present_key();
                let removed = self.tree.remove(tx, &key)?;
                assert_eq!(removed, self.map.remove(&key).is_some());
                assert!(self.tree.get(tx, &key)?.is_none());
            } else if self.rng.u8(..8) == 0 {
                self.move_one(tx)?;
            } else {
                let (key, value) = (self.key(), value(self.shape, &mut self.rng));
                let replaced = self.tree.insert(tx, &key, &value)?;
                assert_eq!(self.tree.get(tx, &key)?, Some(value.as_slice()));
                assert_eq!(replaced, self.map.insert(key, value).is_some());
            }
        }
        self.compare(tx)
    }

    /// Renames a key, or swaps the values of two.
    fn move_one<W: Write>(&mut self, tx: &mut W) -> Result<()> {
        let key = self.present_key();
        if self.rng.bool() {
            let other = self.present_key();
            let swapped = self.tree.swap(tx, &key, &self.tree, &other)?;
            assert_eq!(swapped, self.map.contains_key(&key) && self.map.contains_key(&other));
            if swapped && key != other {
                let value = self.map.remove(&key).unwrap();
                let other_value = self.map.insert(other, value).unwrap();
                self.map.insert(key, other_value);
            }
            return Ok(());
        }
        let new_key = self.key();
        let moved = self.tree.rename(tx, &key, &new_key)?;
        let value = self.map.remove(&key);
        assert_eq!(moved.is_moved(), value.is_some());
        if let Some(value) = value {
            assert_eq!(self.tree.get(tx, &new_key)?, Some(value.as_slice()));
            let replaced = self.map.insert(new_key, value).is_some();
            assert_eq!(moved == Moved::Replaced, replaced);
        }
        Ok(())
    }

    /// Makes random changes in one sorted batch.
    pub(crate) fn batch<W: Write>(&mut self, tx: &mut W, count: u64, removes: u32) -> Result<()> {
        let mut changes = Vec::new();
        for _ in 0..count {
            if self.rng.u32(..100) < removes {
                changes.push((self.present_key(), None));
            } else {
                changes.push((self.key(), Some(value(self.shape, &mut self.rng))));
            }
        }
        changes.sort_by(|left, right| left.0.cmp(&right.0));
        let operations: Vec<Operation<'_>> =
            changes.iter().map(|(key, value)| Operation { key, value: value.as_deref() }).collect();
        let mut present = Vec::new();
        self.tree.apply_sorted(tx, &operations, &mut present)?;
        assert_eq!(present.len(), changes.len());
        for ((key, value), present) in changes.into_iter().zip(present) {
            let before = match value {
                Some(value) => self.map.insert(key, value),
                None => self.map.remove(&key),
            };
            assert_eq!(present, before.is_some());
        }
        self.compare(tx)
    }

    /// Loads random or consecutive pairs, in key order.
    pub(crate) fn load<W: Write>(&mut self, tx: &mut W, count: u64) -> Result<()> {
        let mut pairs = BTreeMap::new();
        let run = self.rng.bool().then(|| self.key());
        for number in 0..count {
            let key = match &run {
                // All in the gap after a key.
                Some(start) if start.len() < 60_000 && self.shape != Shape::Words => {
                    [&start[..], &(number as u32).swap_bytes().to_le_bytes()].concat()
                }
                _ => self.key(),
            };
            pairs.insert(key, value(self.shape, &mut self.rng));
        }
        let lent: Vec<Pair<'_>> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        let replaced = self.tree.load_sorted(tx, &lent)?;
        let before = self.map.len() + pairs.len();
        self.map.append(&mut pairs);
        assert_eq!(replaced, (before - self.map.len()) as u64);
        self.compare(tx)
    }

    /// Removes everything, in a random, ascending or descending order.
    pub(crate) fn drain<W: Write>(&mut self, tx: &mut W) -> Result<()> {
        let mut keys: Vec<Vec<u8>> = self.map.keys().cloned().collect();
        match self.rng.u8(..3) {
            0 => self.rng.shuffle(&mut keys),
            1 => keys.reverse(),
            _ => {}
        }
        for (index, key) in keys.iter().enumerate() {
            assert!(self.tree.remove(tx, key)?);
            self.map.remove(key);
            if index % 1024 == 0 {
                self.compare(tx)?;
            }
        }
        let report = self.tree.check(tx)?;
        assert_eq!((report.pairs, report.inner_nodes, report.height), (0, 0, 0));
        assert!(report.leaves <= 1);
        Ok(())
    }

    /// Compares all of the tree, both ways, with the map.
    pub(crate) fn compare<R: Read>(&self, read: &R) -> Result<()> {
        let report = self.tree.check(read)?;
        assert_eq!(report.pairs, self.map.len() as u64);
        assert_eq!(self.tree.len(read)?, report.pairs);
        let mut cursor = self.tree.cursor(read);
        for (key, value) in &self.map {
            assert_eq!(cursor.next()?, Some((key.as_slice(), value.as_slice())));
        }
        assert!(cursor.next()?.is_none());
        for (key, value) in self.map.iter().rev() {
            assert_eq!(cursor.previous()?, Some((key.as_slice(), value.as_slice())));
        }
        assert!(cursor.previous()?.is_none());
        let ends = (self.map.first_key_value(), self.map.last_key_value());
        assert_eq!(self.tree.first(read)?, ends.0.map(|(key, value)| (&key[..], &value[..])));
        assert_eq!(self.tree.last(read)?, ends.1.map(|(key, value)| (&key[..], &value[..])));
        Ok(())
    }

    /// Compares random ranges, both ways, with those of the map.
    pub(crate) fn compare_ranges<R: Read>(&mut self, read: &R, count: u64) -> Result<()> {
        for _ in 0..count {
            let (mut low, mut high) = (self.key(), self.present_key());
            if low > high {
                std::mem::swap(&mut low, &mut high);
            }
            let included = self.rng.bool();
            let lower =
                if included { Bound::Included(&low[..]) } else { Bound::Excluded(&low[..]) };
            let upper = match self.rng.u8(..3) {
                0 => Bound::Included(&high[..]),
                1 if low != high => Bound::Excluded(&high[..]),
                _ => Bound::Unbounded,
            };
            let limit = self.rng.usize(..200);
            let mut cursor = self.tree.cursor(read);
            cursor.seek(Seek::lower(lower))?;
            for (key, value) in self.map.range::<[u8], _>((lower, upper)).take(limit) {
                assert_eq!(cursor.next()?, Some((key.as_slice(), value.as_slice())));
            }
            cursor.seek(Seek::upper(upper))?;
            for (key, value) in self.map.range::<[u8], _>((lower, upper)).rev().take(limit) {
                assert_eq!(cursor.previous()?, Some((key.as_slice(), value.as_slice())));
                // To and fro over the same gap.
                assert_eq!(cursor.next()?, Some((key.as_slice(), value.as_slice())));
                assert_eq!(cursor.previous()?, Some((key.as_slice(), value.as_slice())));
            }
            let expected = || self.map.range::<[u8], _>((lower, upper));
            cursor.seek(Seek::lower(lower))?;
            assert_walk(&mut cursor, true, upper, limit, expected())?;
            cursor.seek(Seek::upper(upper))?;
            assert_walk(&mut cursor, false, lower, limit, expected().rev())?;
        }
        Ok(())
    }
}

/// Walks over a range, pausing for a step to and fro at each edge, breaking after `limit` pairs and
/// then walking on to the end.
fn assert_walk<'r>(
    cursor: &mut impl Cursor<'r>,
    forward: bool,
    until: Bound<&[u8]>,
    limit: usize,
    mut expected: impl Iterator<Item = (&'r Vec<u8>, &'r Vec<u8>)>,
) -> Result<()> {
    let mut count = 0;
    loop {
        let mut last = None;
        let walk = cursor.walk(forward, until, &mut |pair| {
            assert_eq!(Some(pair), expected.next().map(|(key, value)| (&key[..], &value[..])));
            last = Some(pair);
            count += 1;
            if count == limit + 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match walk {
            Walk::Broken(key) => assert_eq!(last.map(|pair| pair.0), Some(key)),
            Walk::End => break,
            Walk::Edge => assert!(cursor.is_at_edge(forward)),
        }
        if last.is_some() {
            let back = if forward { cursor.previous()? } else { cursor.next()? };
            assert_eq!(back, last);
            assert_eq!(if forward { cursor.next()? } else { cursor.previous()? }, last);
        }
    }
    assert!(expected.next().is_none(), "a walk ended after {count} pairs");
    Ok(())
}
