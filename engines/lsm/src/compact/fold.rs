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
        let operands = std::mem::take(&mut self.operands);
        let (mut written, mut rest) = (Vec::new(), &operands[..]);
        while let Some(newest) = rest.first().map(|newest| newest.version.sequence) {
            let is_in = |entry: &&Entry| self.joins(newest, entry.version.sequence);
            let (group, behind) = rest.split_at(rest.iter().take_while(is_in).count().max(1));
            rest = behind;
            let group = Group { operator: &operator, entries: group };
            if !rest.is_empty() {
                written.extend(group.operand());
                continue;
            }
            match group.merged() {
                // Nothing says that the operator ever merges them.
                None => written.extend(group.unchanged()),
                Some(merged) if merged.len() <= OPERAND_FOLDED_BYTES_MAX => {
                    self.operands = group.entry(EntryKind::Merge, merged.into());
                }
                // They become a value that is as long.
                Some(_) => self.operands = group.unchanged(),
            }
        }
        self.bytes = self.operands.iter().map(bytes_of).sum();
        self.bytes_max = GATHERED_BYTES_MAX.max(self.bytes * 2);
        written
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
        for older in [operand(6, 6, b"b"), operand(4, 3, b"a")] {
            assert!(chain.push(older, &slot("append")).is_empty(), "they are few");
        }
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
        assert!(chain.push(operand(5, 5, &half), &slot("append")).is_empty());
        let left = chain.fold(&slot("append"), Below::Other, |_| None);
        assert_eq!(left.iter().map(|entry| entry.version.sequence).collect::<Vec<_>>(), [9, 5]);
    }

    /// Merges as `append` does, once it may.
    struct Later(std::sync::atomic::AtomicBool);

    impl MergeOperator for Later {
        fn merge(
            &self,
            _key: &[u8],
            older: &[u8],
            newer: &[u8],
            merged: &mut Vec<u8>,
        ) -> std::result::Result<(), MergeError> {
            if !self.0.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(MergeError::new("not yet"));
            }
            merged.extend_from_slice(older);
            merged.extend_from_slice(newer);
            Ok(())
        }
    }

    const MANY: u64 = 60_000;

    fn many(number: u64) -> Entry {
        operand(number, number, &[number as u8; 1000])
    }

    #[test]
    fn operands_that_cannot_be_merged_are_not_gathered() {
        for slot in [OperatorSlot::default(), slot("no such name")] {
            let mut chain = OpenChain::new(many(MANY), vec![MANY / 2]);
            let mut written = Vec::new();
            for number in (1..MANY).rev() {
                written.extend(chain.push(many(number), &slot));
                let held = chain.operands.len() as u64 * 1000;
                assert!(held <= GATHERED_BYTES_MAX as u64 + 2000, "{held} bytes at {number}");
            }
            let base = entry(b"key", 0, EntryKind::Value, b"0");
            written.extend(chain.fold(&slot, Below::Base(base.clone()), |_| None));
            let expected = (1..=MANY).rev().map(many).chain([base]);
            assert!(written.into_iter().eq(expected), "all, in their order");
        }
    }

    /// Some operands were written as they are; the rest becomes the value below them.
    #[test]
    fn what_is_merged_later_is_below_what_was_not() {
        let later = std::sync::Arc::new(Later(false.into()));
        let slot = OperatorSlot::default();
        slot.set(NamedOperator::new("later", Some(later.clone())));
        let mut chain = OpenChain::new(many(MANY), Vec::new());
        let mut written = Vec::new();
        for number in (1..MANY).rev() {
            written.extend(chain.push(many(number), &slot));
        }
        later.0.store(true, std::sync::atomic::Ordering::Relaxed);
        let base = entry(b"key", 0, EntryKind::Value, b"0");
        let base = Below::Base(base);
        written.extend(chain.fold(&slot, base, |base| Some(base.version.value.clone())));
        let (value, operands) = written.split_last().unwrap();
        assert!(operands.iter().cloned().eq((1..=MANY).rev().map(many).take(operands.len())));
        let folded = value.version.sequence;
        assert_eq!((value.version.kind, operands.len() as u64), (EntryKind::Value, MANY - folded));
        let expected: Vec<u8> = (1..=folded).flat_map(|number| [number as u8; 1000]).collect();
        assert!(value.version.value[1..] == expected[..], "up to {folded}");
    }

    /// Operands that stay short together are one at any time; long ones become a value.
    #[test]
    fn operands_that_can_be_merged_are_folded_on_the_way() {
        let of = |name: &str, base: Entry| {
            let slot = slot(name);
            let mut chain = OpenChain::new(many(MANY), Vec::new());
            for number in (1..MANY).rev() {
                assert!(chain.push(many(number), &slot).is_empty());
                let held = chain.bytes <= GATHERED_BYTES_MAX + 2000;
                assert!(held || name == "append", "{} bytes at {number}", chain.bytes);
            }
            let mut left =
                chain.fold(&slot, Below::Base(base), |it| Some(it.version.value.clone()));
            (left.pop().unwrap().version.value, left.len())
        };
        let base = entry(b"key", 0, EntryKind::Value, &[0; 1000]);
        assert_eq!(of("or", base.clone()), (vec![0xFF; 1000].into(), 0));
        let (value, left) = of("append", base);
        assert_eq!((value.len() as u64, left), ((MANY + 1) * 1000, 0));
    }
}
