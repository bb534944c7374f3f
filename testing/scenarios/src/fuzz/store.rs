//! Hostile stores: small ones, closed or killed, with bytes of any of their files changed or
//! truncated, or with arbitrary bytes for a file.
//!
//! A plain read may return wrong data: pages of the pool are trusted by default, and several
//! changes may make a checksum correct. After one change, with verified pages, what is read without
//! an error is correct.

use std::sync::Arc;

use adamant_medium::storage::File;

use crate::fuzz::image::{Kept, LINE_BYTES, put};
use crate::fuzz::usage::Subject;

/// Bytes of one change: which file, which line that is not empty (2), the byte in it, the kind, a
/// parameter.
const CHANGE_BYTES: usize = 6;
/// Maximum changes of a program, so that it ends soon.
const CHANGES_MAX: usize = 40;
/// In the first byte of a program, beside the number of the store: pages are verified; a file's
/// number and its new bytes follow.
const VERIFY: u8 = 0x80;
const RAW: u8 = 0x40;
/// Seed of the stores' randomness.
const SEED: u64 = 1;
/// Maximum bytes that are all zeroed, or all set.
const RUN_BYTES: usize = 8;

/// The stores that are damaged.
pub struct Stores {
    subjects: [Subject; 2],
}

impl Stores {
    /// Creates them: takes a moment.
    ///
    /// # Panics
    /// If they cannot be created.
    #[expect(clippy::new_without_default, reason = "work, and not nothing")]
    pub fn new() -> Self {
        Self { subjects: [false, true].map(|is_closed| Subject::make(is_closed, SEED)) }
    }

    /// Changes a copy of one of the stores as the program says, and uses it. Returns whether it
    /// opened.
    ///
    /// # Panics
    /// If wrong data was read without an error.
    pub fn run(&self, program: &[u8]) -> bool {
        let Some((&choice, words)) = program.split_first() else { return false };
        let subject = &self.subjects[usize::from(choice) % self.subjects.len()];
        let kept = &subject.image.files;
        let (root, files) = put(kept);
        if choice & RAW != 0 {
            let Some((&number, bytes)) = words.split_first() else { return false };
            let file = &files[usize::from(number) % files.len()];
            file.set_len(0).unwrap();
            file.write_at(bytes, 0).unwrap();
            return subject.exercise(root, choice & VERIFY != 0, false);
        }
        let (changes, _) = words.as_chunks::<CHANGE_BYTES>();
        let changes = &changes[..changes.len().min(CHANGES_MAX)];
        for change in changes {
            let index = usize::from(change[0]) % files.len();
            apply(change, &kept[index], &files[index]);
        }
        let verify = choice & VERIFY != 0;
        subject.exercise(root, verify, verify && changes.len() <= 1)
    }
}

/// Makes one change to a file.
fn apply(change: &[u8; CHANGE_BYTES], kept: &Kept, file: &Arc<dyn File>) {
    let &[_, low, high, byte, what, value] = change;
    let line = kept.used[usize::from(u16::from_le_bytes([low, high])) % kept.used.len()];
    let at = line + u64::from(byte) % LINE_BYTES;
    let rest = file.len().unwrap().saturating_sub(at);
    if rest == 0 {
        return;
    }
    let mut found = [0];
    file.read_at(&mut found, at).unwrap();
    let run = RUN_BYTES.min(rest as usize);
    let zeros = usize::from(value).min(rest as usize);
    match what % 8 {
        0..4 => file.write_at(&[found[0] ^ value], at).unwrap(),
        4 => file.write_at(&[value], at).unwrap(),
        5 => file.write_at(&[0; 256][..zeros], at).unwrap(),
        6 => file.write_at(&[0xff; RUN_BYTES][..run], at).unwrap(),
        _ => file.set_len(at).unwrap(),
    }
}
