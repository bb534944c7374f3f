//! The skip list: the ordered index of a memtable.
//!
//! Purpose: the volatile index of a buffer on the heap (Pugh, "Skip lists: a probabilistic
//! alternative to balanced trees", 1990). Keys are copied into it, so that a search reads nothing
//! else; values are not.
//! Invariants: nodes are ordered by key, then by sequence number, the newest first. Nodes are never
//! freed before the list, so a reader that stands on a removed node still finds its way on.
//! Thread safety: any number of readers beside one writer. A node is filled before the stores with
//! `Release` that link it, the lowest level first.
//!
//! ```text
//! node   value chunk | value at | value length | sequence (2 words) | kind, height, key length
//!        next node of each level (height words) | key, 4 bytes a word, the first byte highest
//! ```
//! Keys are compared 4 bytes at a time, as numbers; the last one is padded with zeros, and of keys
//! that are equal so far the shorter one comes first.

use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::key_filter::KeyFilter;
use super::words::Words;
use crate::key::{EntryKind, key_hash};

/// Levels of the list: with a quarter of the nodes of one level on the next, enough for 4^12.
const LEVELS: usize = 12;
/// The level whose nodes begin the ranges of a backward walk: 64 nodes apart.
const STRETCH_LEVEL: usize = 3;
/// Words of a node before its links.
const HEAD_WORDS: usize = 6;

/// The location of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) kind: EntryKind,
    /// The chunk of the buffer that holds the value.
    pub(crate) chunk: u32,
    /// Offset in the chunk.
    pub(crate) at: u32,
    pub(crate) len: u32,
}

/// A key in the form in which the list compares it.
pub(crate) struct SearchKey<'k> {
    bytes: &'k [u8],
    /// Its first 8 words, usually all.
    words: [u32; 8],
}

impl<'k> SearchKey<'k> {
    pub(crate) fn new(bytes: &'k [u8]) -> Self {
        let mut padded = [0; 32];
        let len = bytes.len().min(padded.len());
        padded[..len].copy_from_slice(&bytes[..len]);
        let mut words = [0; 8];
        for (word, part) in words.iter_mut().zip(padded.as_chunks().0) {
            *word = u32::from_le_bytes(*part).swap_bytes();
        }
        Self { bytes, words }
    }

    fn word(&self, index: usize) -> u32 {
        match self.words.get(index) {
            Some(word) => *word,
            None => word_of(self.bytes.get(4 * index..).unwrap_or_default()),
        }
    }
}

/// The first 4 bytes as a number in byte order.
fn word_of(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    let len = bytes.len().min(4);
    word[..len].copy_from_slice(&bytes[..len]);
    u32::from_le_bytes(word).swap_bytes()
}

/// A node of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'l> {
    words: &'l [AtomicU32],
    index: u32,
}

impl Node<'_> {
    #[inline]
    fn get(&self, at: usize) -> u32 {
        self.words.get(at).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    #[inline]
    fn set(&self, at: usize, word: u32) {
        self.words[at].store(word, Ordering::Relaxed);
    }

    /// Whether it is the same node.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.index == other.index
    }

    fn key_len(&self) -> usize {
        (self.get(5) & 0xffff) as usize
    }

    fn height(&self) -> usize {
        (self.get(5) >> 16 & 0xff) as usize
    }

    pub(crate) fn sequence(&self) -> u64 {
        u64::from(self.get(3)) | u64::from(self.get(4)) << 32
    }

    /// The location of its version.
    pub(crate) fn place(&self) -> Place {
        let kind = EntryKind::from_number(u64::from(self.get(5) >> 24));
        Place {
            sequence: self.sequence(),
            kind: kind.unwrap_or(EntryKind::Tombstone),
            chunk: self.get(0),
            at: self.get(1),
            len: self.get(2),
        }
    }

    /// Appends its key.
    pub(crate) fn key_to(&self, key: &mut Vec<u8>) {
        let (start, len) = (HEAD_WORDS + self.height(), self.key_len());
        let end = key.len() + len;
        for at in start..start + len.div_ceil(4) {
            key.extend_from_slice(&self.get(at).swap_bytes().to_le_bytes());
        }
        key.truncate(end);
    }

    /// The order of its key relative to another.
    #[inline]
    pub(crate) fn compare(&self, key: &SearchKey<'_>) -> Order {
        let (start, len) = (HEAD_WORDS + self.height(), self.key_len());
        let common = len.min(key.bytes.len()).div_ceil(4);
        for index in 0..common {
            let order = self.get(start + index).cmp(&key.word(index));
            if order != Order::Equal {
                return order;
            }
        }
        len.cmp(&key.bytes.len())
    }

    /// Whether it comes before the versions of a key up to a sequence number.
    #[inline]
    fn is_before(&self, key: &SearchKey<'_>, sequence: u64) -> bool {
        match self.compare(key) {
            Order::Less => true,
            Order::Equal => self.sequence() > sequence,
            Order::Greater => false,
        }
    }
}

/// The list.
#[derive(Debug)]
pub(crate) struct SkipList {
    words: Words,
    /// Of the keys of all nodes that ever existed.
    filter: KeyFilter,
    /// The first node of each level.
    heads: [AtomicU32; LEVELS],
    /// Levels that have nodes. A reader that sees fewer finds the same below.
    height: AtomicUsize,
    /// State of the random heights: runs through all values.
    seed: AtomicU32,
}

impl SkipList {
    pub(crate) fn new() -> Self {
        Self {
            words: Words::new(),
            filter: KeyFilter::new(),
            heads: [const { AtomicU32::new(0) }; LEVELS],
            height: AtomicUsize::new(0),
            seed: AtomicU32::new(1),
        }
    }

    /// Bytes of memory taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.words.bytes() + self.filter.bytes()
    }

    /// Whether there may be versions of a key with that hash. O(log n), mostly two cache misses.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }

    fn levels(&self) -> usize {
        self.height.load(Ordering::Relaxed).clamp(1, LEVELS)
    }

    fn node(&self, index: u32) -> Option<Node<'_>> {
        (index != 0).then(|| Node { words: self.words.from(index), index })
    }

    /// The link of a node, or of the list's head, to the next node of a level.
    fn link<'l>(&'l self, node: Option<&Node<'l>>, level: usize) -> &'l AtomicU32 {
        node.and_then(|node| node.words.get(HEAD_WORDS + level)).unwrap_or(&self.heads[level])
    }

    fn next<'l>(&'l self, node: Option<&Node<'l>>, level: usize) -> Option<Node<'l>> {
        self.node(self.link(node, level).load(Ordering::Acquire))
    }

    /// The last node of each level before the versions of a key up to a sequence number; `None` for
    /// the list's head.
    fn before(&self, key: &SearchKey<'_>, sequence: u64) -> [Option<Node<'_>>; LEVELS] {
        let mut found = [None; LEVELS];
        let (mut node, mut not_before) = (None, 0);
        for level in (0..self.levels()).rev() {
            // A node that was too far on one level need not be compared again on the next.
            while let Some(next) = self.next(node.as_ref(), level) {
                if next.index == not_before || !next.is_before(key, sequence) {
                    not_before = next.index;
                    break;
                }
                node = Some(next);
            }
            found[level] = node;
        }
        found
    }

    /// The first node that is not before the versions of a key up to a sequence number. O(log n).
    pub(crate) fn seek(&self, key: &SearchKey<'_>, sequence: u64) -> Option<Node<'_>> {
        let (mut node, mut found) = (None, None);
        for level in (0..self.levels()).rev() {
            found = loop {
                match self.next(node.as_ref(), level) {
                    Some(next) if next.is_before(key, sequence) => node = Some(next),
                    other => break other,
                }
            };
        }
        found
    }

    /// The last nodes before the versions of a key up to a sequence number, or of all, in order.
    /// About 64, so that a backward walk takes O(1) for each.
    fn stretch_before(&self, end: Option<(&SearchKey<'_>, u64)>) -> Vec<Node<'_>> {
        let (mut last, mut start) = (None, None);
        for level in (0..self.levels()).rev() {
            while let Some(next) = self.next(last.as_ref(), level) {
                if end.is_some_and(|(key, sequence)| !next.is_before(key, sequence)) {
                    break;
                }
                last = Some(next);
            }
            if level == STRETCH_LEVEL {
                start = last;
            }
        }
        let Some(last) = last else { return Vec::new() };
        let mut nodes = Vec::new();
        let mut node = start.or_else(|| self.first());
        // The last one may have been removed since.
        let is_within = |at: &Node<'_>| end.is_none_or(|(key, at_most)| at.is_before(key, at_most));
        while let Some(at) = node.filter(is_within) {
            nodes.push(at);
            node = if at.is(&last) { None } else { self.after(&at) };
        }
        nodes
    }

    /// Walks backwards from the last node before the versions of a key up to a sequence number, or
    /// from the last one of all.
    pub(crate) fn back_from(&self, end: Option<(&SearchKey<'_>, u64)>) -> WayBack<'_> {
        WayBack { list: self, nodes: self.stretch_before(end) }
    }

    /// The node after another one.
    pub(crate) fn after<'l>(&'l self, node: &Node<'l>) -> Option<Node<'l>> {
        self.next(Some(node), 0)
    }

    /// The first node.
    pub(crate) fn first(&self) -> Option<Node<'_>> {
        self.next(None, 0)
    }

    /// Inserts a version and returns its index, or `None` when the list is full. By one thread at a
    /// time.
    pub(crate) fn insert(&self, key: &[u8], place: Place) -> Option<u32> {
        let search = SearchKey::new(key);
        let node = self.make(&search, place)?;
        let before = self.before(&search, place.sequence);
        for (level, before) in before.iter().enumerate().take(node.height()) {
            self.put_behind(before.as_ref(), level, &node);
        }
        Some(node.index)
    }

    /// The append position of an empty list.
    pub(super) fn end(&self) -> End<'_> {
        End { list: self, last: [None; LEVELS] }
    }

    /// Creates a node that is not linked yet.
    fn make(&self, key: &SearchKey<'_>, place: Place) -> Option<Node<'_>> {
        let height = self.height();
        let key_words = key.bytes.len().div_ceil(4);
        let len = u32::try_from(HEAD_WORDS + height + key_words).ok()?;
        let index = self.words.take(len)?;
        let node = Node { words: self.words.from(index), index };
        node.set(0, place.chunk);
        node.set(1, place.at);
        node.set(2, place.len);
        node.set(3, place.sequence as u32);
        node.set(4, (place.sequence >> 32) as u32);
        node.set(5, (place.kind as u32) << 24 | (height as u32) << 16 | key.bytes.len() as u32);
        for at in 0..key_words {
            node.set(HEAD_WORDS + height + at, key.word(at));
        }
        if height > self.levels() {
            self.height.store(height, Ordering::Relaxed);
        }
        self.filter.add(key_hash(key.bytes), Words::chunk_of(index));
        Some(node)
    }

    /// Links a node of a level after another one, or after the list's head.
    fn put_behind(&self, before: Option<&Node<'_>>, level: usize, node: &Node<'_>) {
        let link = self.link(before, level);
        node.set(HEAD_WORDS + level, link.load(Ordering::Relaxed));
        link.store(node.index, Ordering::Release);
    }

    /// Unlinks the node at that index; readers that stand on it find their way on. By one thread at
    /// a time.
    pub(crate) fn remove(&self, index: u32) {
        let Some(node) = self.node(index) else { return };
        let mut key = Vec::new();
        node.key_to(&mut key);
        let before = self.before(&SearchKey::new(&key), node.sequence());
        for level in (0..node.height()).rev() {
            let mut at = before[level];
            while let Some(next) = self.next(at.as_ref(), level) {
                if next.index == index {
                    let behind = self.link(Some(&node), level).load(Ordering::Relaxed);
                    self.link(at.as_ref(), level).store(behind, Ordering::Release);
                    break;
                }
                at = Some(next);
            }
        }
    }

    /// The height of the next node: a quarter of the nodes of each level reach the next one.
    fn height(&self) -> usize {
        // Marsaglia, "Xorshift RNGs", 2003: period 2^32 - 1.
        let mut seed = self.seed.load(Ordering::Relaxed);
        seed ^= seed << 13;
        seed ^= seed >> 17;
        seed ^= seed << 5;
        self.seed.store(seed, Ordering::Relaxed);
        (1 + seed.trailing_zeros() as usize / 2).min(LEVELS)
    }
}

/// The backward walk through a list, key by key.
#[derive(Debug)]
pub(crate) struct WayBack<'l> {
    list: &'l SkipList,
    /// The nodes that were not passed yet of the last range, in order. Empty when nothing is left.
    nodes: Vec<Node<'l>>,
}

impl<'l> WayBack<'l> {
    /// The next key, which replaces `key`, and the newest of its versions up to a sequence number;
    /// false when no key is left.
    pub(crate) fn next(
        &mut self,
        sequence: u64,
        key: &mut Vec<u8>,
        seen: &mut Option<Node<'l>>,
    ) -> bool {
        let Some(oldest) = self.nodes.last() else { return false };
        key.clear();
        oldest.key_to(key);
        let search = SearchKey::new(key);
        *seen = None;
        while let Some(node) = self.nodes.pop_if(|node| node.compare(&search).is_eq()) {
            if node.sequence() <= sequence {
                *seen = Some(node);
            }
        }
        if self.nodes.is_empty() {
            // Newer versions may lie before the range.
            *seen = self.list.seek(&search, sequence).filter(|seen| seen.compare(&search).is_eq());
            self.nodes = self.list.stretch_before(Some((&search, u64::MAX)));
        }
        true
    }
}

/// Appends versions in the list's order. O(1) each.
pub(super) struct End<'l> {
    list: &'l SkipList,
    /// The last node of each level.
    last: [Option<Node<'l>>; LEVELS],
}

impl End<'_> {
    /// As [`SkipList::insert`], for a version that is after all others.
    pub(super) fn add(&mut self, key: &[u8], place: Place) -> Option<()> {
        let node = self.list.make(&SearchKey::new(key), place)?;
        for (level, last) in self.last.iter_mut().enumerate().take(node.height()) {
            self.list.put_behind(last.as_ref(), level, &node);
            *last = Some(node);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn place(sequence: u64) -> Place {
        let (chunk, at, len) = (sequence as u32, 2, 3);
        Place { sequence, kind: EntryKind::Value, chunk, at, len }
    }

    fn key_of(node: &Node<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        node.key_to(&mut key);
        key
    }

    type Model = BTreeMap<(Vec<u8>, std::cmp::Reverse<u64>), u32>;

    fn assert_is(list: &SkipList, model: &Model, seed: u64) {
        let mut node = list.first();
        for ((key, sequence), index) in model {
            let found = node.expect("as many as the model has");
            let found = (key_of(&found), found.sequence(), found.index);
            assert_eq!(found, (key.clone(), sequence.0, *index), "seed {seed}");
            node = node.and_then(|node| list.after(&node));
        }
        assert!(node.is_none(), "seed {seed}");
        for at in [0, 700, u64::MAX] {
            let mut back = list.back_from(None);
            let (mut key, mut seen, mut found) = (Vec::new(), None, Vec::new());
            while back.next(at, &mut key, &mut seen) {
                found.push((key.clone(), seen.map(|node: Node<'_>| node.sequence())));
            }
            let mut expected = BTreeMap::new();
            for (key, sequence) in model.keys() {
                let seen: &mut Option<u64> = expected.entry(key.clone()).or_default();
                *seen = (*seen).or((sequence.0 <= at).then_some(sequence.0));
            }
            assert!(found.into_iter().rev().eq(expected), "seed {seed}, at {at}");
        }
    }

    #[test]
    fn it_agrees_with_a_map() {
        let seed = 11;
        let mut random = fastrand::Rng::with_seed(seed);
        let list = SkipList::new();
        let mut model = Model::new();
        for sequence in 1..3_000 {
            let key: Vec<u8> = (0..random.usize(0..40)).map(|_| random.u8(0..2)).collect();
            let index = list.insert(&key, place(sequence)).unwrap();
            model.insert((key, std::cmp::Reverse(sequence)), index);
            if random.u8(0..4) == 0 {
                // As when the last transaction is undone.
                let of_all = random.usize(0..model.len());
                let at = model.keys().nth(of_all).cloned().unwrap();
                list.remove(model.remove(&at).unwrap());
            }
        }
        assert_is(&list, &model, seed);
        for _ in 0..3_000 {
            let key: Vec<u8> = (0..random.usize(0..9)).map(|_| random.u8(0..2)).collect();
            let at = (key, std::cmp::Reverse(random.u64(0..3_000)));
            let search = SearchKey::new(&at.0);
            let found = list.seek(&search, at.1.0).map(|node| node.index);
            assert_eq!(found, model.range(&at..).next().map(|(_, index)| *index), "seed {seed}");
            let before = list.stretch_before(Some((&search, at.1.0)));
            let found = before.last().map(|node| node.index);
            let expected = model.range(..&at).next_back().map(|(_, index)| *index);
            assert_eq!(found, expected, "seed {seed}");
        }
    }

    #[test]
    fn keys_are_ordered_as_bytes_are() {
        let keys: [&[u8]; 8] = [
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"a\0\0\0\0",
            b"abcd",
            b"abcde",
            b"\xff\xff\xff\xff\xff",
        ];
        let list = SkipList::new();
        for key in keys.iter().rev() {
            list.insert(key, place(1)).unwrap();
        }
        let mut found = Vec::new();
        let mut node = list.first();
        while let Some(at) = node {
            found.push(key_of(&at));
            node = list.after(&at);
        }
        assert_eq!(found, keys);
    }

    #[test]
    fn readers_beside_a_writer_see_all_that_was_there() {
        let list = SkipList::new();
        let key = |number: u32| number.swap_bytes().to_le_bytes();
        for number in 0..500 {
            list.insert(&key(2 * number), place(1)).unwrap();
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..20 {
                        let mut even = 0;
                        let mut node = list.first();
                        let mut last = None;
                        while let Some(at) = node {
                            let found = key_of(&at);
                            assert!(last < Some(found.clone()), "round {round}");
                            even += u32::from(found[3].is_multiple_of(2));
                            last = Some(found);
                            node = list.after(&at);
                        }
                        assert_eq!(even, 500);
                    }
                });
            }
            for number in 0..2_000 {
                let index = list.insert(&key(2 * (number % 500) + 1), place(7)).unwrap();
                list.remove(index);
            }
        });
    }
}
