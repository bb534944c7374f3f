//! What keeps a keyspace: a tree on the heap, or a log-structured merge tree.
//!
//! Purpose: the difference between the two. A tree on the heap lends what it holds, under the heap's
//! lock; a log-structured one looks at memtables under that lock and at tables without it, for that may
//! wait for the device. The first keeps one version of each key, and old ones are kept beside it for
//! snapshots (`versions.rs`); the second keeps versions itself, by the sequence numbers of all such trees.
//! Invariants: a view looks at a moment that is complete; a transaction sees its own writes.
//! Thread safety: reading takes a view (shared lock), writing a transaction (exclusive lock).

use std::ops::{Bound, ControlFlow, Deref};
use std::sync::Arc;

use adamant_heap::access::Read;
use adamant_heap::{Transaction, View};
use adamant_lsm::{CopyLimits, Error as LsmError, Glance, Lsm, LsmCheck, NEWEST, Scanned};
use adamant_slice::Slice;
use adamant_trees::slot::VALUE_INLINE_BYTES_MAX;
use adamant_trees::{Moved, Operation, Pair, Piece};

use crate::bounds::Direction;
use crate::engine::{Engine, FILL_PAIRS, Tree};
use crate::error::{Error, Result};
use crate::forest::Forest;
use crate::layout::KeyspaceEntry;
use crate::limits::KEY_BYTES_MAX;
use crate::met::{Met, Reach};
use crate::pulse::Pulse;
use crate::reserved::ReservedValue;

/// Bytes that a scan copies out of each memtable under one hold of the lock.
const COPIED_BYTES: usize = 64 << 10;

/// What keeps a keyspace.
#[derive(Clone, Debug)]
pub(crate) enum Map {
    Tree(Tree),
    Lsm(Log),
}

/// A log-structured merge tree, and the keyspace that it is, for messages.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) tree: Arc<Lsm>,
    name: Arc<str>,
    pulse: Arc<Pulse>,
}

impl Log {
    fn new(forest: &Forest, tree: Arc<Lsm>, name: &str) -> Self {
        Self { tree, name: name.into(), pulse: Arc::clone(forest.pulse()) }
    }

    fn wrong(&self) -> impl Fn(LsmError) -> Error {
        Error::of_lsm(&self.name)
    }

    /// The last moment that is complete.
    fn visible(&self) -> u64 {
        self.tree.environment().sequences().visible()
    }

    fn find<R: Read>(&self, heap: &R, key: &[u8], at: u64) -> Result<Option<Slice>> {
        self.tree.look(heap, key, at).and_then(|look| look.finish(key)).map_err(self.wrong())
    }

    /// As a transaction sees it that did nothing yet: what was foreseen, unless somebody came between.
    fn find_foreseen(
        &self,
        heap: &Transaction<'_>,
        key: &[u8],
        foreseen: Option<Foreseen>,
    ) -> Result<Option<Slice>> {
        let at = (Bound::Included(key), Bound::Included(key));
        let holds = |seen: &Foreseen| {
            Arc::ptr_eq(&seen.tree, &self.tree) && self.tree.is_as_seen(&seen.glance, at)
        };
        match foreseen.filter(holds) {
            Some(seen) => Ok(seen.found),
            None => self.find(heap, key, NEWEST),
        }
    }

    fn write<'w>(
        &self,
        heap: &mut Transaction<'_>,
        changes: impl IntoIterator<Item = (&'w [u8], Option<&'w [u8]>)>,
    ) -> Result<()> {
        let mut bytes = 0;
        let counted = changes.into_iter().inspect(|(key, value)| {
            bytes += (key.len() + value.map_or(0, <[u8]>::len)) as u64;
        });
        self.tree.write(heap, counted).map_err(self.wrong())?;
        self.note(heap, bytes);
        Ok(())
    }

    /// Has the background told of so many bytes, with the commit.
    fn note(&self, heap: &mut Transaction<'_>, bytes: u64) {
        let (tree, pulse) = (Arc::clone(&self.tree), Arc::clone(&self.pulse));
        heap.on_commit(move |_| pulse.note(bytes, tree.is_full()));
    }

    /// Removes all keys within bounds by one range tombstone; without an upper bound those up to `last`, if
    /// there is one. O(log n).
    pub(crate) fn remove_range(
        &self,
        heap: &mut Transaction<'_>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        last: Option<Slice>,
    ) -> Result<()> {
        let start = match range.0 {
            Bound::Unbounded => Some(vec![0]),
            Bound::Included(key) => Some(key.to_vec()),
            Bound::Excluded(key) => next_key(key),
        };
        let last = match range.1 {
            Bound::Excluded(key) => {
                return self.remove_between(heap, start, Some(key.to_vec()), key);
            }
            Bound::Included(key) => Some(Slice::from(key)),
            Bound::Unbounded => last,
        };
        match last {
            Some(last) => self.remove_between(heap, start, next_key(&last), &last),
            None => Ok(()),
        }
    }

    /// Removes the keys from `start` on and below `end`; no `end`: up to `last`, which no key is above.
    fn remove_between(
        &self,
        heap: &mut Transaction<'_>,
        start: Option<Vec<u8>>,
        end: Option<Vec<u8>>,
        last: &[u8],
    ) -> Result<()> {
        let Some(start) = start else { return Ok(()) };
        if end.is_none() {
            self.write(heap, [(last, None)])?;
        }
        let end = end.as_deref().unwrap_or(last);
        if start[..] >= *end {
            return Ok(());
        }
        self.tree.remove_range(heap, &start, end).map_err(self.wrong())?;
        self.note(heap, (start.len() + end.len()) as u64);
        Ok(())
    }

    /// How many of these keys, which ascend, have a value. Looked for only where there may be some: who loads
    /// behind all there is pays nothing.
    fn count_there(&self, heap: &Transaction<'_>, pairs: &[Pair<'_>]) -> Result<u64> {
        let (Some((first, _)), Some((last, _))) = (pairs.first(), pairs.last()) else {
            return Ok(0);
        };
        if !self.tree.may_hold((Bound::Included(*first), Bound::Included(*last))) {
            return Ok(0);
        }
        let mut count = 0;
        for (key, _) in pairs {
            let look = self.tree.look(heap, key, NEWEST);
            let is_there = look.and_then(|look| look.is_there(key));
            count += u64::from(is_there.map_err(self.wrong())?);
        }
        Ok(count)
    }

    /// Begins a check of all that it has; what it says of the heap is known at once.
    pub(crate) fn check<R: Read>(&self, heap: &R) -> Result<LsmCheck> {
        self.tree.check(heap).map_err(self.wrong())
    }

    /// What a closure makes of the first entries of a range, at most so many, as of a moment; with or without
    /// their values.
    fn first<R: Read, T>(
        &self,
        heap: &R,
        at: u64,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        (entries_max, with_values): (usize, bool),
        mut reader: impl FnMut(&[u8], &[u8]) -> T,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        let limits = CopyLimits { entries_max, bytes_max: COPIED_BYTES, with_values };
        let walked = self.tree.walk(heap, range, true, at, limits, |key, value| {
            found.push(reader(key, value));
            let is_full = found.len() >= entries_max;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        walked.map_err(self.wrong())?;
        Ok(found)
    }

    /// The first entries of a range, at most so many, as of a moment.
    fn entries<R: Read>(
        &self,
        heap: &R,
        at: u64,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<(Slice, Slice)>> {
        let pair = |key: &[u8], value: &[u8]| (Slice::from(key), Slice::from(value));
        self.first(heap, at, range, (entries_max, true), pair)
    }

    /// Their keys.
    fn keys<R: Read>(
        &self,
        heap: &R,
        at: u64,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<Slice>> {
        self.first(heap, at, range, (entries_max, false), |key, _| Slice::from(key))
    }
}

/// What a log-structured tree was found to hold under a key, by somebody who is going to write and waits for
/// the device before the turn to write is there.
pub(crate) struct Foreseen {
    tree: Arc<Lsm>,
    glance: Glance,
    found: Option<Slice>,
}

/// The lowest key above another one; `None` above the highest of all.
fn next_key(key: &[u8]) -> Option<Vec<u8>> {
    let mut next = key.to_vec();
    if next.len() < KEY_BYTES_MAX {
        next.push(0);
        return Some(next);
    }
    // No key is longer, so what begins with it is no key.
    while let Some(last) = next.pop() {
        if last < u8::MAX {
            next.push(last + 1);
            return Some(next);
        }
    }
    None
}

/// A value that was found.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Lent(&'a [u8]),
    Own(Slice),
}

impl Deref for Found<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Own(slice) => slice,
        }
    }
}

impl Found<'_> {
    /// The value by itself.
    pub(crate) fn into_slice(self) -> Slice {
        match self {
            Self::Lent(bytes) => Slice::from(bytes),
            Self::Own(slice) => slice,
        }
    }
}

impl Map {
    /// Makes an empty one.
    pub(crate) fn create(
        forest: &Arc<Forest>,
        name: &str,
        engine: Engine,
        heap: &mut Transaction<'_>,
    ) -> Result<Self> {
        match engine {
            Engine::Lsm => Ok(Self::Lsm(Log::new(forest, forest.create(heap)?, name))),
            engine => Ok(Self::Tree(Tree::create(engine, heap)?)),
        }
    }

    /// The one that an entry of the catalogue names, of the store with a head.
    pub(crate) fn open<R: Read>(
        (forest, store): (&Forest, u64),
        heap: &R,
        name: &str,
        entry: &KeyspaceEntry,
    ) -> Result<Self> {
        let (engine, format) = (entry.engine.get(), entry.format.get());
        match Engine::numbered(engine, format) {
            Some(Engine::Lsm) => {
                let tree = forest.tree(heap, store, name, entry.head.get())?;
                Ok(Self::Lsm(Log::new(forest, tree, name)))
            }
            Some(engine) => Ok(Self::Tree(Tree::open_as(heap, engine, entry.head.get())?)),
            None => Err(Error::UnknownEngine { name: name.into(), engine, format }),
        }
    }

    /// Heap offset of the head.
    pub(crate) fn head(&self) -> u64 {
        match self {
            Self::Tree(tree) => tree.head(),
            Self::Lsm(log) => log.tree.head(),
        }
    }

    /// Which engine this is.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Tree(tree) => tree.engine(),
            Self::Lsm(_) => Engine::Lsm,
        }
    }

    /// What the catalogue says of it.
    pub(crate) fn entry(&self, id: u64) -> KeyspaceEntry {
        self.engine().entry(id, self.head())
    }

    /// The tree of which versions are kept beside it; `None` if it keeps them itself.
    pub(crate) fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Tree(tree) => Some(tree),
            Self::Lsm(_) => None,
        }
    }

    /// The log-structured tree, if it is one.
    pub(crate) fn lsm(&self) -> Option<&Arc<Lsm>> {
        match self {
            Self::Tree(_) => None,
            Self::Lsm(log) => Some(&log.tree),
        }
    }

    /// The value of a key, as of a moment; `None`: the last one that is complete. The lock is given back
    /// before the device is waited for.
    #[inline]
    pub(crate) fn get(&self, view: View<'_>, key: &[u8], at: Option<u64>) -> Result<Option<Slice>> {
        match self {
            Self::Tree(tree) => tree.get(&view, key),
            Self::Lsm(log) => {
                let at = at.unwrap_or_else(|| log.visible());
                let look = log.tree.look(&view, key, at);
                drop(view);
                look.and_then(|look| look.finish(key)).map_err(log.wrong())
            }
        }
    }

    /// As [`Map::get`], lent to a closure where that can be.
    pub(crate) fn get_with<T>(
        &self,
        view: View<'_>,
        key: &[u8],
        at: Option<u64>,
        reader: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        match self {
            Self::Tree(tree) => Ok(tree.find(&view, key)?.map(reader)),
            Self::Lsm(_) => Ok(self.get(view, key, at)?.map(|value| reader(&value))),
        }
    }

    /// Whether the key has a value. As [`Map::get`].
    pub(crate) fn contains(&self, view: View<'_>, key: &[u8], at: Option<u64>) -> Result<bool> {
        match self {
            Self::Tree(tree) => Ok(tree.find(&view, key)?.is_some()),
            Self::Lsm(log) => {
                let at = at.unwrap_or_else(|| log.visible());
                let look = log.tree.look(&view, key, at);
                drop(view);
                look.and_then(|look| look.is_there(key)).map_err(log.wrong())
            }
        }
    }

    /// As [`Tree::scan`], as of a moment; the lock is given back before the device is waited for, and blob
    /// files are not looked at.
    pub(crate) fn scan(
        &self,
        view: View<'_>,
        reach: &Reach<'_>,
        at: Option<u64>,
        mut each: impl FnMut(&[u8], Met<'_, '_>) -> ControlFlow<()>,
    ) -> Result<Option<Bound<Slice>>> {
        let Reach { direction, bounds, entries_min, with_values } = *reach;
        match self {
            Self::Tree(tree) => {
                let each =
                    |(key, value): Pair<'_>| each(key, Met::Tree { value, tree, view: &view });
                let rest = tree.scan(&view, direction, bounds, entries_min, each)?;
                Ok(rest.map(|bound| bound.map(Slice::from)))
            }
            Self::Lsm(log) => {
                let at = at.unwrap_or_else(|| log.visible());
                let forward = direction == Direction::Up;
                let (entries_max, bytes_max) = (entries_min, COPIED_BYTES);
                let limits = CopyLimits { entries_max, bytes_max, with_values };
                let scan = log.tree.scan(&view, bounds, forward, at, limits);
                drop(view);
                let each =
                    |key: &[u8], value: Scanned<'_>| each(key, Met::Log { value, name: &log.name });
                scan.and_then(|scan| scan.finish(entries_min, each)).map_err(log.wrong())
            }
        }
    }

    /// Entries, counted if need be, without the lock.
    pub(crate) fn count(&self, view: View<'_>) -> Result<u64> {
        match self {
            Self::Tree(tree) => tree.len(&view),
            Self::Lsm(log) => {
                let count = log.tree.count();
                drop(view);
                count.finish().map_err(log.wrong())
            }
        }
    }

    /// Entries, if that is known without counting them.
    pub(crate) fn len<R: Read>(&self, heap: &R) -> Result<Option<u64>> {
        match self {
            Self::Tree(tree) => tree.len(heap).map(Some),
            Self::Lsm(_) => Ok(None),
        }
    }

    /// Whether there is no entry, as a transaction sees it.
    pub(crate) fn is_empty(&self, heap: &Transaction<'_>) -> Result<bool> {
        match self {
            Self::Tree(tree) => Ok(tree.len(heap)? == 0),
            Self::Lsm(log) => {
                Ok(log.keys(heap, NEWEST, (Bound::Unbounded, Bound::Unbounded), 1)?.is_empty())
            }
        }
    }

    /// The value of a key, as a transaction sees it.
    pub(crate) fn find<'a>(
        &self,
        heap: &'a Transaction<'_>,
        key: &[u8],
    ) -> Result<Option<Found<'a>>> {
        match self {
            Self::Tree(tree) => Ok(tree.find(heap, key)?.map(Found::Lent)),
            Self::Lsm(log) => Ok(log.find(heap, key, NEWEST)?.map(Found::Own)),
        }
    }

    /// Looks before the turn to write for what a change of a key will ask for; `with_value`: not only
    /// whether it is there. Nothing for a tree on the heap, which finds it there.
    pub(crate) fn foresee(
        &self,
        view: View<'_>,
        key: &[u8],
        with_value: bool,
    ) -> Result<Option<Foreseen>> {
        let Self::Lsm(log) = self else { return Ok(None) };
        let glance = log.tree.glance();
        let look = glance.look(&view, key);
        drop(view);
        let found = look.and_then(|look| match with_value {
            true => look.finish(key),
            false => Ok(look.is_there(key)?.then(Slice::default)),
        });
        let (tree, found) = (Arc::clone(&log.tree), found.map_err(log.wrong())?);
        Ok(Some(Foreseen { tree, glance, found }))
    }

    /// Sets the value of a key; true if the key had one, which a log-structured tree has to look for, if it
    /// was not foreseen.
    pub(crate) fn insert(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: &[u8],
        foreseen: Option<Foreseen>,
    ) -> Result<bool> {
        match self {
            Self::Tree(tree) => tree.insert(heap, key, value),
            Self::Lsm(log) => {
                let was_there = log.find_foreseen(heap, key, foreseen)?.is_some();
                log.write(heap, [(key, Some(value))])?;
                Ok(was_there)
            }
        }
    }

    /// Takes a key out; true if it was there. As [`Map::insert`].
    pub(crate) fn remove(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        foreseen: Option<Foreseen>,
    ) -> Result<bool> {
        match self {
            Self::Tree(tree) => tree.remove(heap, key),
            Self::Lsm(log) => {
                let was_there = log.find_foreseen(heap, key, foreseen)?.is_some();
                if was_there {
                    log.write(heap, [(key, None)])?;
                }
                Ok(was_there)
            }
        }
    }

    /// Takes a key out; its value if it was there, which is to be foreseen with its value or not at all.
    pub(crate) fn take(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        foreseen: Option<Foreseen>,
    ) -> Result<Option<Slice>> {
        let found = match self {
            Self::Tree(tree) => tree.find(heap, key)?.map(Slice::from),
            Self::Lsm(log) => log.find_foreseen(heap, key, foreseen)?,
        };
        if found.is_some() {
            self.write(heap, key, None)?;
        }
        Ok(found)
    }

    /// Sets the value of a key, or takes it out, whatever it was.
    pub(crate) fn write(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        match (self, value) {
            (Self::Tree(tree), Some(value)) => tree.insert(heap, key, value).map(|_| ()),
            (Self::Tree(tree), None) => tree.remove(heap, key).map(|_| ()),
            (Self::Lsm(log), value) => log.write(heap, [(key, value)]),
        }
    }

    /// Sets the value of a key to one that lies where it will be. In a tree it stays there, unless it is so
    /// short that its entry holds it.
    pub(crate) fn insert_reserved(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        value: ReservedValue,
    ) -> Result<()> {
        match self {
            Self::Tree(tree) if value.len() > VALUE_INLINE_BYTES_MAX => {
                let bytes = value.len();
                let block = heap.publish(value.into_reservation())?;
                tree.insert_block(heap, key, block, bytes)
            }
            _ => self.write(heap, key, Some(&value)),
        }
    }

    /// Moves the entry of a key to a key of a map of the same heap, which may be this one.
    pub(crate) fn move_to(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        target: &Self,
        new_key: &[u8],
    ) -> Result<Moved> {
        if let (Self::Tree(source), Self::Tree(target)) = (self, target) {
            return source.move_to(heap, key, target, new_key);
        }
        let Some(value) = self.find(heap, key)?.map(Found::into_slice) else {
            return Ok(Moved::Absent);
        };
        let is_same = self.head() == target.head() && key == new_key;
        if !is_same {
            self.write(heap, key, None)?;
        }
        let replaced = target.insert(heap, new_key, &value, None)?;
        Ok(if replaced && !is_same { Moved::Replaced } else { Moved::Placed })
    }

    /// Swaps the values of two keys; false if one of them is not there.
    pub(crate) fn swap(
        &self,
        heap: &mut Transaction<'_>,
        key: &[u8],
        other: &Self,
        other_key: &[u8],
    ) -> Result<bool> {
        if let (Self::Tree(one), Self::Tree(other)) = (self, other) {
            return one.swap(heap, key, other, other_key);
        }
        let Some(value) = self.find(heap, key)?.map(Found::into_slice) else { return Ok(false) };
        let Some(other_value) = other.find(heap, other_key)?.map(Found::into_slice) else {
            return Ok(false);
        };
        self.write(heap, key, Some(&other_value))?;
        other.write(heap, other_key, Some(&value))?;
        Ok(true)
    }

    /// The first keys of a range, at most so many.
    pub(crate) fn keys<R: Read>(
        &self,
        heap: &R,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<Slice>> {
        match self {
            Self::Tree(tree) => tree.keys(heap, range, entries_max),
            Self::Lsm(log) => log.keys(heap, log.visible(), range, entries_max),
        }
    }

    /// Moves the first entries of a range, about so many of them, to another map of the same heap.
    pub(crate) fn move_range(
        &self,
        heap: &mut Transaction<'_>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        target: &Self,
        entries_max: usize,
    ) -> Result<Piece> {
        if let (Self::Tree(source), Self::Tree(target)) = (self, target) {
            return source.move_range(heap, range, target, entries_max);
        }
        if self.head() == target.head() {
            return Ok(Piece::default());
        }
        let entries = self.entries(heap, range, entries_max)?;
        let mut piece = Piece::default();
        for (key, value) in &entries {
            self.write(heap, key, None)?;
            piece.replaced += u64::from(target.insert(heap, key, value, None)?);
            piece.moved += 1;
        }
        let is_full = entries.len() >= entries_max;
        piece.last = entries.last().filter(|_| is_full).map(|(key, _)| key.to_vec());
        Ok(piece)
    }

    /// The first entries of a range, at most so many, as a transaction sees them.
    fn entries(
        &self,
        heap: &Transaction<'_>,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        entries_max: usize,
    ) -> Result<Vec<(Slice, Slice)>> {
        let tree = match self {
            Self::Lsm(log) => return log.entries(heap, NEWEST, range, entries_max),
            Self::Tree(tree) => tree,
        };
        let mut found = Vec::new();
        tree.scan(heap, Direction::Up, range, entries_max, |(key, value)| {
            if found.len() == entries_max {
                return ControlFlow::Break(());
            }
            found.push((Slice::from(key), Slice::from(value)));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Copies all entries of another map to this one, which is empty; from tree to tree they are moved, their
    /// blocks stay where they are. O(n log n).
    pub(crate) fn fill(&self, heap: &mut Transaction<'_>, source: &Self) -> Result<()> {
        if let (Self::Tree(target), Self::Tree(source)) = (self, source) {
            return target.fill(heap, source);
        }
        let mut lower = Bound::Unbounded;
        loop {
            let range = (lower.as_ref().map(|key: &Slice| &key[..]), Bound::Unbounded);
            let entries = source.entries(heap, range, FILL_PAIRS)?;
            let Some((last, _)) = entries.last() else { return Ok(()) };
            let pairs: Vec<Pair<'_>> =
                entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            self.load_sorted(heap, &pairs)?;
            lower = Bound::Excluded(last.clone());
        }
    }

    /// Makes the changes of a batch, whose keys ascend strictly. `present` is room to work in.
    pub(crate) fn apply(
        &self,
        heap: &mut Transaction<'_>,
        operations: &[Operation<'_>],
        present: &mut Vec<bool>,
    ) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.apply(heap, operations, present),
            Self::Lsm(log) => {
                let changes = operations.iter().map(|operation| (operation.key, operation.value));
                log.write(heap, changes)
            }
        }
    }

    /// Inserts pairs whose keys ascend strictly; how many replaced one.
    pub(crate) fn load_sorted(
        &self,
        heap: &mut Transaction<'_>,
        pairs: &[Pair<'_>],
    ) -> Result<u64> {
        match self {
            Self::Tree(tree) => tree.load_sorted(heap, pairs),
            Self::Lsm(log) => {
                let replaced = log.count_there(heap, pairs)?;
                log.write(heap, pairs.iter().map(|&(key, value)| (key, Some(value))))?;
                Ok(replaced)
            }
        }
    }

    /// Whether a commit after a moment changed a key between bounds; what is kept beside the map is not
    /// looked at.
    pub(crate) fn has_changed(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        since: u64,
    ) -> Result<bool> {
        match self {
            Self::Tree(_) => Ok(false),
            Self::Lsm(log) => log.tree.has_changed(bounds, since).map_err(log.wrong()),
        }
    }

    /// Frees all that it holds, and its head.
    pub(crate) fn destroy(self, forest: &Arc<Forest>, heap: &mut Transaction<'_>) -> Result<()> {
        match self {
            Self::Tree(tree) => tree.destroy(heap),
            Self::Lsm(log) => forest.destroy(heap, &log.tree),
        }
    }
}
