//! The block writer: builds a payload of entries.
//!
//! Purpose: appends entries, each key without the prefix that it shares with the previous key.
//! Invariants: at a fixed interval a key is stored whole: a restart. The restarts, and the hash
//! index if there is one, follow the entries.
//! Thread safety: one thread at a time.

use adamant_wire::key::common_len;
use adamant_wire::{le, varint};
use zerocopy::IntoBytes;

use super::entry::bucket_of;
use super::layout::{
    BUCKET_EMPTY, BUCKET_RESTARTS_MAX, BUCKET_SHARED, ENTRIES_TAIL_BYTES, EntriesTail,
    RESTART_INTERVAL_MAX,
};
use crate::key::EntryKind;

/// Four buckets for three keys: about half of the absent keys hash to an empty bucket.
const BUCKETS_OF_KEYS: (usize, usize) = (4, 3);

/// Builds one payload after the other and reuses its memory.
#[derive(Debug)]
pub(crate) struct EntriesWriter {
    restart_interval: usize,
    /// The entries so far, and in the end the payload.
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Entries since the last restart, including it.
    run: usize,
    entry_count: usize,
    last_key: Vec<u8>,
    /// For the hash index: hash and restart of each key.
    hashes: Option<Vec<(u64, u32)>>,
}

impl EntriesWriter {
    /// Stores a whole key every `restart_interval` entries, and a hash index if asked for.
    pub(crate) fn new(restart_interval: usize, has_hash_index: bool) -> Self {
        Self {
            restart_interval: restart_interval.clamp(1, RESTART_INTERVAL_MAX),
            bytes: Vec::new(),
            restarts: Vec::new(),
            run: 0,
            entry_count: 0,
            last_key: Vec::new(),
            hashes: has_hash_index.then(Vec::new),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entry_count == 0
    }

    /// The key that was added last; empty if there is none.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes that the payload would have now, without the hash index.
    pub(crate) fn payload_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + ENTRIES_TAIL_BYTES
    }

    /// Adds an entry, which is above the previous one. `hash` is the key's, for the hash index.
    pub(crate) fn add(
        &mut self,
        key: &[u8],
        hash: u64,
        sequence: u64,
        kind: EntryKind,
        value: &[u8],
    ) {
        let shared = if self.run == self.restart_interval || self.is_empty() {
            self.restarts.push(self.bytes.len() as u32);
            self.run = 0;
            0
        } else {
            common_len(key, &self.last_key)
        };
        self.run += 1;
        self.entry_count += 1;
        if let Some(hashes) = &mut self.hashes {
            hashes.push((hash, self.restarts.len() as u32 - 1));
        }
        varint::put(&mut self.bytes, shared as u64);
        varint::put(&mut self.bytes, (key.len() - shared) as u64);
        self.bytes.extend_from_slice(&key[shared..]);
        varint::put(&mut self.bytes, sequence << 2 | kind as u64);
        if kind != EntryKind::Tombstone {
            varint::put(&mut self.bytes, value.len() as u64);
            self.bytes.extend_from_slice(value);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
    }

    /// Completes the payload, of at least one entry, and begins the next.
    pub(crate) fn finish(&mut self, payload: &mut Vec<u8>) {
        assert!(!self.is_empty(), "a payload has an entry at least");
        let is_wide = self.bytes.len() > usize::from(u16::MAX);
        for &restart in &self.restarts {
            if is_wide {
                le::put_u32(&mut self.bytes, restart);
            } else {
                le::put_u16(&mut self.bytes, restart as u16);
            }
        }
        let bucket_count = self.put_buckets();
        let tail = EntriesTail {
            restart_count: (self.restarts.len() as u32).into(),
            bucket_count: bucket_count.into(),
            restart_width: if is_wide { 4 } else { 2 },
        };
        self.bytes.extend_from_slice(tail.as_bytes());
        payload.clear();
        std::mem::swap(payload, &mut self.bytes);
        self.restarts.clear();
        self.run = 0;
        self.entry_count = 0;
        self.last_key.clear();
    }

    /// Appends the buckets of the hash index, and returns how many; none if there are too many
    /// restarts for one byte each.
    fn put_buckets(&mut self) -> u16 {
        let Some(hashes) = &mut self.hashes else { return 0 };
        let wanted = hashes.len() * BUCKETS_OF_KEYS.0 / BUCKETS_OF_KEYS.1 + 1;
        let bucket_count = match u16::try_from(wanted) {
            Ok(count) if self.restarts.len() <= BUCKET_RESTARTS_MAX => count,
            _ => 0,
        };
        let start = self.bytes.len();
        self.bytes.resize(start + usize::from(bucket_count), BUCKET_EMPTY);
        for (hash, restart) in hashes.drain(..) {
            if bucket_count == 0 {
                continue;
            }
            let bucket = &mut self.bytes[start + bucket_of(hash, bucket_count)];
            *bucket = match *bucket {
                BUCKET_EMPTY => restart as u8,
                same if u32::from(same) == restart => same,
                _ => BUCKET_SHARED,
            };
        }
        bucket_count
    }
}
