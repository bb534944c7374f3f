//! Changes of a memtable, by a transaction.
//!
//! Invariants: a transaction's writes are in the index at once, under a number that no reader sees.
//! They become visible with the commit, or are removed when the transaction is undone.
//! Thread safety: the holder of the write permit.

use std::sync::Arc;

use adamant_heap::access::{Read, Write};
use adamant_slice::Slice;

use super::super::buffer::Appender;
use super::super::index_entry::Place;
use super::super::record::Said;
use super::Memtable;
use crate::error::{Error, Result};
use crate::key::{EntryKind, Lookup, RangeTombstone};
use crate::merge_operator::{NOT_OPERAND, NamedOperator, OPERAND_FOLDED_BYTES_MAX, decode, encode};
use crate::sequence::Sequences;

/// What is shorter than this many bytes is merged with any operand.
const ABSORBED_BYTES_MIN: usize = 32;

/// A change of a memtable, by a transaction, under a number of its own.
#[derive(Debug)]
pub(crate) struct Change {
    appender: Appender,
    undo: Undo,
}

impl Change {
    pub(crate) fn begin<R: Read>(
        heap: &R,
        memtable: &Arc<Memtable>,
        sequences: &Arc<Sequences>,
    ) -> Result<Self> {
        let undo = Undo {
            memtable: Arc::clone(memtable),
            sequences: Arc::clone(sequences),
            sequence: sequences.assign(),
            indexed: Vec::new(),
            has_ranges: false,
            bytes: 0,
            entries: 0,
        };
        Ok(Self { appender: Appender::open(heap, memtable.buffer)?, undo })
    }

    /// The sequence number of the writes.
    pub(crate) fn sequence(&self) -> u64 {
        self.undo.sequence
    }

    /// The memtable.
    pub(crate) fn memtable(&self) -> &Memtable {
        &self.undo.memtable
    }

    /// Merges an operand with what its key has in this memtable, as long as that is at most twice
    /// as long: so the lengths of what is left at least double, and what is copied is, for all
    /// operands together, O(log n) times as long as they are. Returns what is to be written.
    pub(crate) fn absorb<R: Read>(
        &self,
        heap: &R,
        operator: &NamedOperator,
        key: &[u8],
        operand: &[u8],
    ) -> Result<(EntryKind, Vec<u8>)> {
        let Undo { memtable, sequence, .. } = &self.undo;
        let covered = memtable.emptied().over(key, u64::MAX);
        let (mut operand, mut first) = (Slice::new(operand), *sequence);
        let mut lookup = Lookup::new(key, first - 1);
        while let Some(version) = memtable.find(heap, &lookup)? {
            if version.sequence < covered || version.kind == EntryKind::Tombstone {
                return Ok((EntryKind::Value, operand.to_vec()));
            }
            let is_operand = version.kind == EntryKind::Merge;
            let (from, at) = match is_operand {
                true => decode(version.sequence, &version.value)
                    .ok_or(Error::NotOperand { what: NOT_OPERAND })?,
                false => (0, 0),
            };
            let older = &version.value[at..];
            if older.len() > 2 * operand.len().max(ABSORBED_BYTES_MIN) {
                break;
            }
            // What the operator refuses stays as it is, for the read to tell.
            let Ok(merged) = operator.merge(key, older, &operand) else { break };
            if !is_operand {
                return Ok((EntryKind::Value, merged));
            }
            if merged.len() > OPERAND_FOLDED_BYTES_MAX {
                break;
            }
            (operand, first) = (merged.into(), from);
            lookup.sequence_max = first - 1;
        }
        let is_empty = covered > 0 && first > covered && {
            let below = memtable.find(heap, &lookup)?;
            below.is_none_or(|below| below.sequence < covered)
        };
        match is_empty {
            true => Ok((EntryKind::Value, operand.to_vec())),
            false => Ok((EntryKind::Merge, encode(*sequence, first, &operand))),
        }
    }

    /// Writes an entry or a range tombstone.
    pub(crate) fn write<W: Write>(
        &mut self,
        heap: &mut W,
        said: Said,
        (key, value): (&[u8], &[u8]),
    ) -> Result<()> {
        let Self { appender, undo } = self;
        let sequence = undo.sequence;
        let (place, added) = appender.append(heap, said, sequence, (key, value))?;
        if let Some(chunk) = added {
            undo.memtable.note_chunk(place.chunk as usize, chunk);
        }
        match said {
            Said::Entry(kind) => {
                let version = Place { sequence, kind, value: place };
                let indexed = undo.memtable.index.insert(key, version);
                undo.indexed.push(indexed.ok_or(Error::TransactionTooLarge)?);
            }
            Said::Range => {
                let (start, end) = (Slice::new(key), Slice::new(value));
                let range = RangeTombstone { start, end, sequence };
                undo.memtable.emptied.add(range, &undo.sequences);
                undo.has_ranges = true;
            }
        }
        undo.bytes += (key.len() + value.len()) as u64;
        undo.entries += 1;
        Ok(())
    }

    /// Ends the change: what is left is to commit it, or to take it back. If this fails, or is not
    /// called, the transaction, or the savepoint, must be undone.
    pub(crate) fn finish<W: Write>(self, heap: &mut W) -> Result<Undo> {
        self.appender.finish(heap)?;
        Ok(self.undo)
    }
}

/// The writes of a transaction under one number: they become visible with its commit, or are taken
/// back when this is dropped before.
#[derive(Debug)]
pub(crate) struct Undo {
    memtable: Arc<Memtable>,
    sequences: Arc<Sequences>,
    sequence: u64,
    indexed: Vec<u32>,
    has_ranges: bool,
    bytes: u64,
    entries: u64,
}

impl Undo {
    /// The transaction has committed: readers see the change from now on.
    pub(crate) fn commit(mut self) {
        self.indexed.clear();
        self.memtable.count(self.sequence, self.bytes, self.entries);
        self.sequences.show(self.sequence);
        if std::mem::take(&mut self.has_ranges) {
            self.memtable.emptied.let_go(&self.sequences);
            if self.memtable.emptied.kept_bytes() > 0 {
                self.sequences.keep(&self.memtable);
            }
        }
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for entry in self.indexed.drain(..) {
            self.memtable.index.remove(entry);
        }
        if self.has_ranges {
            self.memtable.emptied.take_back(self.sequence, &self.sequences);
        }
    }
}
