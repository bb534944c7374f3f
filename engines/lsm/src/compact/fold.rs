//! Folding: operands of a key become one, or a value.
//!
//! Purpose: flushes and compactions fold the operands that all readers see together, so that the
//! next read has less to do.
//! Invariants: each reader sees the same before and after. A newer operand that stays and stands
//! for some of them is read together with what lies below its first commit, so nothing is folded
//! across that commit. What the operator fails to merge stays as it is.
//! Thread safety: one thread at a time.

use adamant_slice::Slice;

use crate::key::{Entry, EntryKind, Version};
use crate::merge_operator::{
    NamedOperator, OPERAND_FOLDED_BYTES_MAX, OperatorSlot, decode, encode,
};

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
}

/// A row of operands that become one.
struct Group<'c> {
    operator: &'c NamedOperator,
    entries: &'c [Entry],
}

impl OpenChain {
    pub(crate) fn new(newest: Entry, cuts: Vec<u64>) -> Self {
        Self { operands: vec![newest], cuts }
    }

    pub(crate) fn key(&self) -> &Slice {
        &self.operands[0].key
    }

    pub(crate) fn push(&mut self, operand: Entry) {
        self.operands.push(operand);
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
        let unregistered = || NamedOperator::new("", None);
        let operator = operator.get().map_or_else(|_| unregistered(), |found| (*found).clone());
        let mut left = Vec::new();
        let newest_of = |group: &[Entry]| group[0].version.sequence;
        let mut rest = &self.operands[..];
        while let Some(newest) = rest.first().map(|newest| newest.version.sequence) {
            let is_in = |entry: &&Entry| self.joins(newest, entry.version.sequence);
            let (group, behind) = rest.split_at(rest.iter().take_while(is_in).count().max(1));
            rest = behind;
            let group = Group { operator: &operator, entries: group };
            if !rest.is_empty() {
                left.extend(group.operand());
                continue;
            }
            let joins = |base: &Entry| self.joins(newest_of(group.entries), base.version.sequence);
            let base = match &below {
                Below::Nothing => {
                    left.extend(group.value(None).unwrap_or_else(|| group.unchanged()));
                    break;
                }
                Below::Other => {
                    left.extend(group.operand());
                    break;
                }
                Below::Base(base) => base,
            };
            let value = match base.version.kind {
                _ if !joins(base) => None,
                EntryKind::Tombstone => group.value(None),
                _ => value_of(base).and_then(|value| group.value(Some(&value))),
            };
            left.extend(value.unwrap_or_else(|| [group.operand(), vec![base.clone()]].concat()));
            break;
        }
        left
    }
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
        let folded = self.operands().and_then(|(operands, first)| {
            let folded = self.operator.fold(&self.entries[0].key, &operands, None).ok()?;
            Some(encode(self.entries[0].version.sequence, first, &folded))
        });
        match folded.filter(|folded| folded.len() <= OPERAND_FOLDED_BYTES_MAX) {
            Some(folded) => self.entry(EntryKind::Merge, folded.into()),
            None => self.unchanged(),
        }
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
mod tests {
    use super::*;
    use crate::merge_operator::{MergeError, MergeOperator, built_in};
    use crate::read::merge::tests::entry;

    fn operand(sequence: u64, first: u64, bytes: &[u8]) -> Entry {
        entry(b"key", sequence, EntryKind::Merge, &encode(sequence, first, bytes))
    }

    fn slot(name: &str) -> OperatorSlot {
        let slot = OperatorSlot::default();
        slot.set(NamedOperator::new(name, built_in(name)));
        slot
    }

    /// Operands of the commits 9 (from 8 on), 6 and 4 (from 3 on).
    fn chain(cuts: &[u64]) -> OpenChain {
        let mut chain = OpenChain::new(operand(9, 8, b"c"), cuts.to_vec());
        chain.push(operand(6, 6, b"b"));
        chain.push(operand(4, 3, b"a"));
        chain
    }

    fn folded(cuts: &[u64], below: Below) -> Vec<Entry> {
        let value_of = |base: &Entry| match base.version.kind {
            EntryKind::Value => Some(base.version.value.clone()),
            _ => None,
        };
        chain(cuts).fold(&slot("append"), below, value_of)
    }

    #[test]
    fn operands_become_one_or_a_value() {
        assert_eq!(folded(&[], Below::Other), [operand(9, 3, b"abc")]);
        let value = |bytes: &[u8]| entry(b"key", 9, EntryKind::Value, bytes);
        assert_eq!(folded(&[], Below::Nothing), [value(b"abc")]);
        let base = entry(b"key", 2, EntryKind::Value, b"0");
        assert_eq!(folded(&[], Below::Base(base)), [value(b"0abc")]);
        let removed = entry(b"key", 2, EntryKind::Tombstone, b"");
        assert_eq!(folded(&[], Below::Base(removed)), [value(b"abc")]);
        let elsewhere = entry(b"key", 2, EntryKind::Blob, &[1; 20]);
        let kept = [operand(9, 3, b"abc"), elsewhere.clone()];
        assert_eq!(folded(&[], Below::Base(elsewhere)), kept);
    }

    #[test]
    fn nothing_is_folded_across_what_a_newer_operand_goes_on_below() {
        let base = entry(b"key", 2, EntryKind::Value, b"0");
        // It goes on below 8, with the operand of commit 6.
        assert_eq!(folded(&[8], Below::Other), [operand(9, 8, b"c"), operand(6, 3, b"ab")]);
        let value = entry(b"key", 6, EntryKind::Value, b"0ab");
        assert_eq!(folded(&[8], Below::Base(base.clone())), [operand(9, 8, b"c"), value]);
        // Below 3: it stands for all of these, and not for the value.
        let kept = [operand(9, 3, b"abc"), base.clone()];
        assert_eq!(folded(&[3], Below::Base(base)), kept);
        let removed = entry(b"key", 2, EntryKind::Tombstone, b"");
        let kept = [operand(9, 3, b"abc"), removed.clone()];
        assert_eq!(folded(&[3], Below::Base(removed)), kept);
        let value = entry(b"key", 9, EntryKind::Value, b"abc");
        assert_eq!(folded(&[3], Below::Nothing), [value], "there is nothing below, for anyone");
        let all = [operand(9, 8, b"c"), operand(6, 6, b"b"), operand(4, 3, b"a")];
        assert_eq!(folded(&[8, 6], Below::Other), all);
    }

    #[test]
    fn what_cannot_be_merged_stays_with_what_is_below() {
        struct Never;
        impl MergeOperator for Never {
            fn merge(
                &self,
                _key: &[u8],
                _older: &[u8],
                _newer: &[u8],
                merged: &mut Vec<u8>,
            ) -> std::result::Result<(), MergeError> {
                merged.push(1);
                Err(MergeError::new("never"))
            }
        }
        let slots = [slot("no such name"), OperatorSlot::default(), slot("append")];
        slots[2].set(NamedOperator::new("never", Some(std::sync::Arc::new(Never))));
        for slot in &slots {
            for kind in [EntryKind::Value, EntryKind::Tombstone] {
                let base = entry(b"key", 2, kind, b"");
                let expected = chain(&[]).into_entries(Below::Base(base.clone()));
                let value_of = |base: &Entry| Some(base.version.value.clone());
                assert_eq!(chain(&[]).fold(slot, Below::Base(base), value_of), expected);
            }
            let expected = chain(&[]).into_entries(Below::Nothing);
            assert_eq!(chain(&[]).fold(slot, Below::Nothing, |_| None), expected);
            assert_eq!(chain(&[]).fold(slot, Below::Other, |_| None), expected);
        }
    }

    #[test]
    fn operands_that_would_be_too_long_together_stay_apart() {
        let half = vec![7; OPERAND_FOLDED_BYTES_MAX / 2];
        let mut chain = OpenChain::new(operand(9, 9, &half), Vec::new());
        chain.push(operand(5, 5, &half));
        let left = chain.fold(&slot("append"), Below::Other, |_| None);
        assert_eq!(left.iter().map(|entry| entry.version.sequence).collect::<Vec<_>>(), [9, 5]);
    }
}
