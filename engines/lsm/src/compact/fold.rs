//! Folding: operands of a key become one, or a value.
//!
//! Purpose: flushes and compactions fold the operands that all readers see together, so that the
//! next read has less to do.
//! Invariants: each reader sees the same before and after. A newer operand that stays and stands
//! for some of them is read together with what lies below its first commit, so nothing is folded
//! across that commit. What the operator fails to merge stays as it is, and is not gathered beyond
//! a bound.
//! Thread safety: one thread at a time.

use adamant_slice::Slice;

use crate::key::{Entry, EntryKind, Version};
use crate::merge_operator::{
    NamedOperator, OPERAND_FOLDED_BYTES_MAX, OperatorSlot, decode, encode,
};

/// Bytes of operands that are gathered before they are folded, or given up.
const GATHERED_BYTES_MAX: usize = OPERAND_FOLDED_BYTES_MAX;

/// What lies below the operands of a key.
#[derive(Debug)]
pub(crate) enum Below {
    /// Whatever other tables have.
    Other,
    /// Nothing that a reader sees.
    Nothing,
    /// This entry, which is no operand.
    Base(Entry),
}

/// Operands of a key that every reader at `oldest_seen` or later sees.
#[derive(Debug)]
pub(crate) struct OpenChain {
    /// The newest first.
    operands: Vec<Entry>,
    /// The first commits that newer operands of the key stand for, which only some readers see.
    cuts: Vec<u64>,
    /// Bytes of the operands, and those from which on they are folded before others come.
    bytes: usize,
    bytes_max: usize,
}

/// Memory that an operand takes.
fn bytes_of(operand: &Entry) -> usize {
    size_of::<Entry>() + operand.version.value.len()
}

/// A row of operands that become one.
struct Group<'c> {
    operator: &'c NamedOperator,
    entries: &'c [Entry],
}

impl OpenChain {
    pub(crate) fn new(newest: Entry, cuts: Vec<u64>) -> Self {
        let bytes = bytes_of(&newest);
        Self { operands: vec![newest], cuts, bytes, bytes_max: GATHERED_BYTES_MAX }
    }

    pub(crate) fn key(&self) -> &Slice {
        &self.operands[0].key
    }

    /// Adds the next older operand. What comes back is written as it is: operands that cannot be
    /// merged, of which there may be any number, and those that belong to no later ones.
    pub(crate) fn push(&mut self, operand: Entry, operator: &OperatorSlot) -> Vec<Entry> {
        let written = match self.bytes {
            bytes if bytes < self.bytes_max => Vec::new(),
            _ => self.fold_gathered(operator),
        };
        self.bytes += bytes_of(&operand);
        self.operands.push(operand);
        written
    }

    /// The same for a chain that is not to be folded: the operands before it.
    pub(crate) fn pass(&mut self, operand: Entry) -> Vec<Entry> {
        std::mem::replace(&mut self.operands, vec![operand])
    }

    /// Folds what was gathered, to go on with what is left in its place.
    fn fold_gathered(&mut self, operator: &OperatorSlot) -> Vec<Entry> {
        let operator = operator_in(operator);
        let (mut written, oldest) = self.fold_newer(&operator);
        self.operands = match oldest.merged() {
            // Nothing says that the operator ever merges them.
            None => {
                written.extend(oldest.unchanged());
                Vec::new()
            }
            Some(merged) if merged.len() <= OPERAND_FOLDED_BYTES_MAX => {
                oldest.entry(EntryKind::Merge, merged.into())
            }
            // They become a value that is as long.
            Some(_) => oldest.unchanged(),
        };
        self.bytes = self.operands.iter().map(bytes_of).sum();
        self.bytes_max = GATHERED_BYTES_MAX.max(self.bytes * 2);
        written
    }

    /// The operands that are read together, folded, but for the oldest group, which comes beside
    /// them.
    fn fold_newer<'c>(&'c self, operator: &'c NamedOperator) -> (Vec<Entry>, Group<'c>) {
        let joins = |newer: &Entry, older: &Entry| {
            self.joins(newer.version.sequence, older.version.sequence)
        };
        let mut groups = self.operands.chunk_by(joins).map(|entries| Group { operator, entries });
        let oldest = groups.next_back().expect("a chain has an operand");
        (groups.flat_map(|group| group.operand()).collect(), oldest)
    }

    /// Whether no newer operand is read together with what is at or below `older`, and not with
    /// `newer`.
    fn joins(&self, newer: u64, older: u64) -> bool {
        !self.cuts.iter().any(|cut| older < *cut && *cut <= newer)
    }

    /// The entries as they are.
    pub(crate) fn into_entries(self, below: Below) -> Vec<Entry> {
        let mut entries = self.operands;
        if let Below::Base(base) = below {
            entries.push(base);
        }
        entries
    }

    /// Folds the operands, and onto a base whose value `value_of` has. The entries that are left,
    /// the newest first; the base is among them, as it was, unless it was folded.
    pub(crate) fn fold(
        self,
        operator: &OperatorSlot,
        below: Below,
        value_of: impl FnOnce(&Entry) -> Option<Slice>,
    ) -> Vec<Entry> {
        let operator = operator_in(operator);
        let (mut left, oldest) = self.fold_newer(&operator);
        left.extend(match &below {
            Below::Nothing => oldest.value(None).unwrap_or_else(|| oldest.unchanged()),
            Below::Other => oldest.operand(),
            Below::Base(base) => {
                let value = match base.version.kind {
                    _ if !self.joins(oldest.entries[0].version.sequence, base.version.sequence) => {
                        None
                    }
                    EntryKind::Tombstone => oldest.value(None),
                    _ => value_of(base).and_then(|value| oldest.value(Some(&value))),
                };
                value.unwrap_or_else(|| [oldest.operand(), vec![base.clone()]].concat())
            }
        });
        left
    }
}

/// The operator of a tree; one that merges nothing where none is registered.
fn operator_in(operator: &OperatorSlot) -> NamedOperator {
    let unregistered = || NamedOperator::new("", None);
    operator.get().map_or_else(|_| unregistered(), |found| (*found).clone())
}

impl Group<'_> {
    fn unchanged(&self) -> Vec<Entry> {
        self.entries.to_vec()
    }

    /// Their operands, the newest first, and the first commit that they stand for.
    fn operands(&self) -> Option<(Vec<Slice>, u64)> {
        let (mut operands, mut first) = (Vec::new(), 0);
        for Entry { version, .. } in self.entries {
            let (from, at) = decode(version.sequence, &version.value)?;
            operands.push(version.value.slice(at..));
            first = from;
        }
        Some((operands, first))
    }

    /// One entry in place of these, the newest of which it takes the number of.
    fn entry(&self, kind: EntryKind, value: Slice) -> Vec<Entry> {
        let Entry { key, version } = &self.entries[0];
        let version = Version { sequence: version.sequence, kind, value };
        vec![Entry { key: key.clone(), version }]
    }

    /// One operand, if they can be merged and are not too long.
    fn operand(&self) -> Vec<Entry> {
        let bytes: usize = self.entries.iter().map(|entry| entry.version.value.len()).sum();
        if self.entries.len() == 1 || bytes > OPERAND_FOLDED_BYTES_MAX {
            return self.unchanged();
        }
        match self.merged().filter(|merged| merged.len() <= OPERAND_FOLDED_BYTES_MAX) {
            Some(merged) => self.entry(EntryKind::Merge, merged.into()),
            None => self.unchanged(),
        }
    }

    /// One operand, as it is stored, if they can be merged.
    fn merged(&self) -> Option<Vec<u8>> {
        if let [only] = self.entries {
            return Some(only.version.value.to_vec());
        }
        let (operands, first) = self.operands()?;
        let folded = self.operator.fold(&self.entries[0].key, &operands, None).ok()?;
        Some(encode(self.entries[0].version.sequence, first, &folded))
    }

    /// The value that they make on another one, or on nothing, if they can be merged.
    fn value(&self, base: Option<&[u8]>) -> Option<Vec<Entry>> {
        let (operands, _) = self.operands()?;
        let folded = self.operator.fold(&self.entries[0].key, &operands, base).ok()?;
        let is_value = u32::try_from(folded.len()).is_ok();
        is_value.then(|| self.entry(EntryKind::Value, folded))
    }
}

#[cfg(test)]
mod tests;
