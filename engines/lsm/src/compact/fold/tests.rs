//! Tests of folding: what is left of operands, and what they take while they are gathered.

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
        let mut left = chain.fold(&slot, Below::Base(base), |it| Some(it.version.value.clone()));
        (left.pop().unwrap().version.value, left.len())
    };
    let base = entry(b"key", 0, EntryKind::Value, &[0; 1000]);
    assert_eq!(of("or", base.clone()), (vec![0xFF; 1000].into(), 0));
    let (value, left) = of("append", base);
    assert_eq!((value.len() as u64, left), ((MANY + 1) * 1000, 0));
}
