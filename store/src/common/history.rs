//! The history of changes: what each commit did, in the order of the commits.
//!
//! Purpose: a commit records its changes in a keyspace of the kind `changes`, in the same
//! transaction, so the history is that of the commits that the store has, after a crash, too. See
//! `docs/format/changes.md` and docs/decisions/0135-feed-of-changes.md.
//! Invariants: commits are numbered one by one, in the order in which they become visible; a commit
//! that shares a transaction with others has a number of its own. The history has all commits from
//! its first one on. It takes some bytes at most, but for the newest commit.
//! Thread safety: recorded within transactions, read within views. The number of the commit that a
//! closure recorded is a thread's own until its caller takes it.

use std::cell::Cell;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adamant_heap::Transaction;
use adamant_heap::access::Read;
use adamant_slice::Slice;
use parking_lot::{Condvar, Mutex, RwLock};
use zerocopy::{FromBytes, IntoBytes, big_endian};

use crate::common::catalogue::Catalogue;
use crate::common::change::ChangedKeyspace;
use crate::common::change_codec::ChangeEncoder;
use crate::common::state::KeyspaceState;
use crate::engine::map::Map;
use crate::error::{Error, Result};
use crate::kind::KeyspaceKind;
use crate::layout::ChangesHead;

/// The name of the keyspace.
pub(crate) const HISTORY_NAME: &str = "adamant.changes";
/// First bytes of its keys: the head, cursors by name, and parts of commits by number.
const HEAD_KEY: &[u8] = &[0];
const CURSOR: u8 = 1;
const COMMIT: u8 = 2;
/// Bytes of a part of a commit from which on the next one begins.
const PART_BYTES: usize = if cfg!(test) { 64 } else { 256 << 10 };
/// Bytes of a part at most: the length of a value has four bytes, and what is said of a value of
/// nearly that length has more.
const PART_BYTES_MAX: usize = if cfg!(test) { 256 } else { 1 << 30 };
/// Parts that a commit removes at most because there are too many, unless it takes more bytes than
/// these gave back.
const PRUNED_PARTS_MAX: usize = 16;

/// The head of the history, in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HistoryHead {
    /// The first commit that is there; `next` if there is none.
    pub(crate) first: u64,
    /// The number of the next commit.
    pub(crate) next: u64,
    /// Bytes of all parts, with their keys.
    pub(crate) bytes: u64,
    pub(crate) bytes_max: u64,
}

impl HistoryHead {
    /// That of a history without a commit, whose first one has a number.
    pub(crate) fn new(first: u64, bytes_max: u64) -> Self {
        Self { first, next: first, bytes: 0, bytes_max }
    }

    fn stored(&self) -> ChangesHead {
        let Self { first, next, bytes, bytes_max } = *self;
        let (first, next) = (first.into(), next.into());
        ChangesHead { first, next, bytes: bytes.into(), bytes_max: bytes_max.into() }
    }

    fn parse(bytes: Option<&[u8]>) -> Result<Self> {
        let stored = bytes.and_then(|bytes| ChangesHead::read_from_bytes(bytes).ok());
        let head = stored.map(|ChangesHead { first, next, bytes, bytes_max }| Self {
            first: first.get(),
            next: next.get(),
            bytes: bytes.get(),
            bytes_max: bytes_max.get(),
        });
        let is_valid = |head: &Self| (1..=head.next).contains(&head.first) && head.next < u64::MAX;
        head.filter(is_valid).ok_or_else(|| Error::Damaged {
            what: "expected the head of the history of changes, found other bytes; have changes \
                   recorded anew"
                .into(),
        })
    }
}

/// The key of a part of a commit.
pub(crate) fn part_key(number: u64, part: u32) -> [u8; 13] {
    let mut key = [COMMIT; 13];
    key[1..9].copy_from_slice(big_endian::U64::new(number).as_bytes());
    key[9..].copy_from_slice(big_endian::U32::new(part).as_bytes());
    key
}

/// The commit and the part of a key.
pub(crate) fn part_of(key: &[u8]) -> Option<(u64, u32)> {
    let (number, part) = key.strip_prefix(&[COMMIT])?.split_at_checked(8)?;
    let number = big_endian::U64::read_from_bytes(number).ok()?;
    Some((number.get(), big_endian::U32::read_from_bytes(part).ok()?.get()))
}

/// The key of a cursor.
pub(crate) fn cursor_key(name: &str) -> Vec<u8> {
    [&[CURSOR], name.as_bytes()].concat()
}

thread_local! {
    /// The commit that the last closure of this thread recorded; 0: none.
    static RECORDED: Cell<u64> = const { Cell::new(0) };
}

/// Takes the number of the commit that this thread's closure has recorded; 0: none.
pub(crate) fn take_recorded() -> u64 {
    RECORDED.take()
}

/// Whether a store records changes, and where; and what readers of the history wait for.
#[derive(Debug, Default)]
pub(crate) struct History {
    is_on: AtomicBool,
    state: RwLock<Option<Arc<KeyspaceState>>>,
    /// Counts what ends waits: commits, and the end of the store.
    count: Mutex<u64>,
    changed: Condvar,
}

impl History {
    /// Records in this keyspace from now on; `None`: nothing.
    pub(crate) fn set(&self, state: Option<Arc<KeyspaceState>>) {
        let mut now = self.state.write();
        self.is_on.store(state.is_some(), Ordering::Release);
        *now = state;
        drop(now);
        self.notify();
    }

    /// Whether changes are recorded.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Its keyspace.
    pub(crate) fn state(&self) -> Option<Arc<KeyspaceState>> {
        self.state.read().clone()
    }

    /// Begins to record a commit; `None` if changes are not recorded.
    #[inline]
    pub(crate) fn begin<'c>(
        &self,
        transaction: &Transaction<'_>,
        catalogue: &'c Catalogue,
    ) -> Result<Option<Recording<'c>>> {
        if !self.is_on() {
            return Ok(None);
        }
        let Some(state) = self.state() else { return Ok(None) };
        let map = state.map(transaction, catalogue)?.into_owned();
        let head = read_head(transaction, &map)?;
        let (encoder, keyspaces) = (ChangeEncoder::default(), Vec::new());
        Ok(Some(Recording { map, head, catalogue, encoder, keyspaces, parts: 0, bytes: 0 }))
    }

    /// What ends waits has happened.
    pub(crate) fn notify(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
    }

    /// The count of what ends waits.
    pub(crate) fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Waits until the count is another one, for no longer than that; whether it is.
    pub(crate) fn wait(&self, seen: u64, longest: Duration) -> bool {
        let mut count = self.count.lock();
        let _ = self.changed.wait_while_for(&mut count, |count| *count == seen, longest);
        *count != seen
    }
}

/// The head of the history in a map.
pub(crate) fn read_head<R: Read>(heap: &R, map: &Map) -> Result<HistoryHead> {
    let tree = map.tree();
    let bytes = tree.map(|tree| tree.find(heap, HEAD_KEY)).transpose()?.flatten();
    HistoryHead::parse(bytes.as_deref())
}

/// Gives a history its head.
pub(crate) fn write_head(
    transaction: &mut Transaction<'_>,
    map: &Map,
    head: &HistoryHead,
) -> Result<()> {
    map.write(transaction, HEAD_KEY, Some(head.stored().as_bytes()))
}

/// A commit that is being recorded.
pub(crate) struct Recording<'c> {
    map: Map,
    head: HistoryHead,
    catalogue: &'c Catalogue,
    encoder: ChangeEncoder,
    /// The keyspaces that were looked up.
    keyspaces: Vec<ChangedKeyspace>,
    parts: u32,
    /// Bytes of them, with their keys.
    bytes: u64,
}

impl Recording<'_> {
    /// A keyspace, as it is called now; `None` if its changes are not recorded.
    fn keyspace(
        &mut self,
        transaction: &Transaction<'_>,
        state: &KeyspaceState,
    ) -> Result<Option<ChangedKeyspace>> {
        if !is_recorded(state.kind) {
            return Ok(None);
        }
        if let Some(known) = self.keyspaces.iter().find(|known| known.id == state.id) {
            return Ok(Some(known.clone()));
        }
        let (name, _) = state.find(transaction, self.catalogue)?;
        let found = ChangedKeyspace { id: state.id, name: name.into(), kind: state.kind };
        self.keyspaces.push(found.clone());
        Ok(Some(found))
    }

    /// A key of a keyspace has the value that the transaction sees, or none.
    pub(crate) fn key(
        &mut self,
        transaction: &mut Transaction<'_>,
        state: &KeyspaceState,
        key: &[u8],
    ) -> Result<()> {
        let Some(keyspace) = self.keyspace(transaction, state)? else { return Ok(()) };
        let map = state.map(transaction, self.catalogue)?;
        let value = map.find(transaction, key)?;
        self.encoder.entry(&keyspace, key, value.as_deref());
        drop(value);
        self.flush_if_full(transaction)
    }

    /// A value moved, or was swapped with another one.
    pub(crate) fn pair(
        &mut self,
        transaction: &mut Transaction<'_>,
        is_swap: bool,
        (state, key): (&KeyspaceState, &[u8]),
        (target, target_key): (&KeyspaceState, &[u8]),
    ) -> Result<()> {
        let source = self.keyspace(transaction, state)?;
        if let (Some(source), Some(target)) = (source, self.keyspace(transaction, target)?) {
            self.encoder.pair(is_swap, (&source, key), (&target, target_key));
        }
        self.flush_if_full(transaction)
    }

    /// Something that is said of a keyspace in a few bytes.
    pub(crate) fn say(
        &mut self,
        transaction: &mut Transaction<'_>,
        state: &KeyspaceState,
        say: impl FnOnce(&mut ChangeEncoder, &ChangedKeyspace),
    ) -> Result<()> {
        if let Some(keyspace) = self.keyspace(transaction, state)? {
            say(&mut self.encoder, &keyspace);
        }
        Ok(())
    }

    /// The same of a keyspace of that number and name.
    pub(crate) fn say_of(
        &mut self,
        keyspace: &ChangedKeyspace,
        say: impl FnOnce(&mut ChangeEncoder, &ChangedKeyspace),
    ) {
        if is_recorded(keyspace.kind) {
            say(&mut self.encoder, keyspace);
        }
    }

    fn flush_if_full(&mut self, transaction: &mut Transaction<'_>) -> Result<()> {
        if self.encoder.bytes.len() < PART_BYTES { Ok(()) } else { self.flush(transaction) }
    }

    fn flush(&mut self, transaction: &mut Transaction<'_>) -> Result<()> {
        for part in self.encoder.bytes.chunks(PART_BYTES_MAX) {
            let key = part_key(self.head.next, self.parts);
            self.map.write(transaction, &key, Some(part))?;
            self.bytes += (key.len() + part.len()) as u64;
            self.parts += 1;
        }
        self.encoder.bytes.clear();
        Ok(())
    }

    /// The commit has no more changes; one without any is not recorded.
    pub(crate) fn finish(mut self, transaction: &mut Transaction<'_>) -> Result<()> {
        self.flush(transaction)?;
        if self.parts == 0 {
            return Ok(());
        }
        let number = self.head.next;
        self.head.next += 1;
        self.head.bytes = self.head.bytes.saturating_add(self.bytes);
        prune(transaction, &self.map, &mut self.head, (number, self.bytes))?;
        write_head(transaction, &self.map, &self.head)?;
        RECORDED.set(number);
        Ok(())
    }
}

/// Removes the oldest parts while there are too many bytes, but none of the commit of a number,
/// which took so many of them: some, and until they come to as many.
pub(crate) fn prune(
    transaction: &mut Transaction<'_>,
    map: &Map,
    head: &mut HistoryHead,
    (number, added): (u64, u64),
) -> Result<()> {
    let (mut parts, mut removed) = (0, 0);
    while head.bytes > head.bytes_max && (parts < PRUNED_PARTS_MAX || removed < added) {
        let (first, end) = (part_key(0, 0), part_key(number, 0));
        let range = (Bound::Included(&first[..]), Bound::Excluded(&end[..]));
        let oldest: Option<(Slice, Slice)> = map.entries(transaction, range, 1)?.pop();
        let Some((key, value)) = oldest else {
            head.first = number;
            return Ok(());
        };
        map.write(transaction, &key, None)?;
        let bytes = (key.len() + value.len()) as u64;
        head.bytes = head.bytes.saturating_sub(bytes);
        (parts, removed) = (parts + 1, removed + bytes);
        // Without one of its parts it is none.
        head.first = part_of(&key).map_or(head.first, |(number, _)| number + 1);
    }
    Ok(())
}

/// Whether changes of keyspaces of a kind are recorded: deadlines are those of entries that are.
fn is_recorded(kind: KeyspaceKind) -> bool {
    !matches!(kind, KeyspaceKind::Deadlines | KeyspaceKind::Changes)
}
