//! The writer of saved pairs.
//!
//! Purpose: decodes what the damaged store has of a keyspace, and writes it to the new one in
//! batches.
//! Thread safety: one thread.

use std::fmt;
use std::sync::Arc;

use adamant_heap::durability::Durability;
use adamant_trees::Salvaged;

use super::report::KeyspaceRepair;
use super::values::Stored;
use crate::batch::builder::Batch;
use crate::engine::value_codec::Shown;
use crate::error::Result;
use crate::keyspace::handle::Keyspace;

/// Pairs, or bytes, per commit of the new store.
pub(super) const BATCH_PAIRS: usize = 1000;
pub(super) const BATCH_BYTES: usize = 8 << 20;

/// Writes saved pairs to a keyspace of the new store, in batches.
pub(super) struct Writer {
    keyspace: Keyspace,
    pub(super) stored: Stored,
    pending: Vec<(Vec<u8>, Vec<u8>)>,
    pending_bytes: usize,
    /// Whether existing pairs stay.
    pub(super) only_absent: bool,
    report: KeyspaceRepair,
    outcome: Result<()>,
}

impl Writer {
    pub(super) fn new(keyspace: Keyspace, expected: Option<u64>) -> Self {
        let name = keyspace.name().into();
        Self {
            keyspace: keyspace.with_durability(Durability::Deferred),
            stored: Stored::As(Shown::Plain),
            pending: Vec::new(),
            pending_bytes: 0,
            only_absent: false,
            report: KeyspaceRepair { name, expected, ..KeyspaceRepair::default() },
            outcome: Ok(()),
        }
    }

    pub(super) fn take(&mut self, found: Salvaged<'_>) {
        let loss = match found {
            Salvaged::Pair((key, stored)) => match self.stored.value(key, stored) {
                Ok(value) => return self.add(key, &value),
                Err(why) => why,
            },
            Salvaged::LostValue { key, why } => {
                format!("the value of key {}: {why}", key.escape_ascii())
            }
            Salvaged::LostEntry { lower, upper, why } => {
                format!("a pair {}: {why}", Between(lower, upper))
            }
            Salvaged::LostNode { lower, upper, why } => {
                format!("the pairs {}: {why}", Between(lower, upper))
            }
            _ => return,
        };
        self.note(loss);
    }

    pub(super) fn note(&mut self, loss: String) {
        self.report.note(loss);
    }

    pub(super) fn add(&mut self, key: &[u8], value: &[u8]) {
        if self.outcome.is_err() {
            return;
        }
        self.pending_bytes += key.len() + value.len();
        self.pending.push((key.into(), value.into()));
        if self.pending.len() >= BATCH_PAIRS || self.pending_bytes >= BATCH_BYTES {
            self.outcome = self.write();
        }
    }

    fn write(&mut self) -> Result<()> {
        let mut batch = Batch::new(Arc::clone(&self.keyspace.shared));
        batch.durability(Durability::Deferred);
        for (key, value) in self.pending.drain(..) {
            if self.only_absent && self.keyspace.contains(&key)? {
                continue;
            }
            batch.put(&self.keyspace, &key, &value)?;
            self.report.saved += 1;
        }
        self.pending_bytes = 0;
        batch.commit()
    }

    pub(super) fn finish(mut self) -> Result<KeyspaceRepair> {
        std::mem::replace(&mut self.outcome, Ok(()))?;
        self.write()?;
        Ok(self.report)
    }
}

/// Bounds of keys, for messages.
pub(super) struct Between<'k>(pub(super) Option<&'k [u8]>, pub(super) Option<&'k [u8]>);

impl fmt::Display for Between<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, self.1) {
            (None, None) => f.write_str("of any key"),
            (Some(lower), None) => write!(f, "from key {} on", lower.escape_ascii()),
            (None, Some(upper)) => write!(f, "below key {}", upper.escape_ascii()),
            (Some(lower), Some(upper)) => {
                write!(f, "from key {} to {}", lower.escape_ascii(), upper.escape_ascii())
            }
        }
    }
}
