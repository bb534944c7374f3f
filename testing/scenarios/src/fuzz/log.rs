//! Hostile logs: changed, with or without corrected checksums, old ones, those of another store, or
//! of two stores at once.
//!
//! With correct checksums, a log may contain anything, so the content of the store may then be
//! wrong, but the store continues or returns an error. Otherwise, what is read without an error is
//! correct.

use crate::fuzz::image::{Image, Kept, put};
use crate::fuzz::seals::Sealed;
use crate::fuzz::usage::Subject;

/// Bytes of one change: which checksummed span, the byte in it (2), the kind, a parameter.
const CHANGE_BYTES: usize = 5;
/// Maximum changes of a program, so that it ends soon.
const CHANGES_MAX: usize = 40;
/// In the first byte of a program, beside the numbers of the store and of its log's source.
const SEALED: u8 = 0x10;
const BELONGS: u8 = 0x20;
const SOURCE_SHIFT: u32 = 2;
/// Seeds of the stores' randomness.
const SEED: u64 = 1;
const OTHER_SEED: u64 = 2;
/// The name of a log file that none of the stores has.
const ANOTHER_NAME: &str = "0009";

/// Stores with logs to replay, and others whose logs may replace them.
pub struct Logs {
    subjects: [Subject; 2],
    other: Subject,
}

impl Logs {
    /// Creates them: takes a moment.
    ///
    /// # Panics
    /// If they cannot be created.
    #[expect(clippy::new_without_default, reason = "work, and not nothing")]
    pub fn new() -> Self {
        Self {
            subjects: [false, true].map(|is_closed| Subject::make(is_closed, SEED)),
            other: Subject::make(false, OTHER_SEED),
        }
    }

    /// Opens one of the stores with a log as the program says, and uses it. Returns whether it
    /// opened.
    ///
    /// # Panics
    /// If wrong data was read without an error.
    pub fn run(&self, program: &[u8]) -> bool {
        let Some((&choice, words)) = program.split_first() else { return false };
        let subject = &self.subjects[usize::from(choice & 3) % self.subjects.len()];
        let other = &self.other.image;
        let logs = match choice >> SOURCE_SHIFT & 3 {
            0 => logs(&subject.image),
            1 => logs(&subject.earlier),
            2 => logs(other),
            _ => {
                let others = logs(other).into_iter().map(|kept| kept.renamed(ANOTHER_NAME));
                logs(&subject.image).into_iter().chain(others.take(1)).collect()
            }
        };
        let (changes, _) = words.as_chunks::<CHANGE_BYTES>();
        let changes = &changes[..changes.len().min(CHANGES_MAX)];
        let own = subject.image.files.iter().find(|kept| kept.is_log());
        let own = own.map(|kept| Sealed::of(kept.bytes()));
        let elsewhere = subject.image.files.iter().filter(|kept| !kept.is_log());
        let (root, files) = put(logs.iter().chain(elsewhere));
        for (number, (kept, file)) in logs.iter().zip(&files).enumerate() {
            let mut log = Sealed::of(kept.bytes());
            for change in changes {
                if usize::from(change[0]) % logs.len() == number {
                    apply(change, usize::from(change[0]) / logs.len(), &mut log);
                }
            }
            if choice & SEALED != 0 {
                let own = own.as_ref().filter(|_| choice & BELONGS != 0);
                own.into_iter().for_each(|own| log.belong_to(own));
                log.seal();
            }
            if log.is_cut() {
                file.set_len(0).unwrap();
            }
            file.write_at(&log.bytes, 0).unwrap();
        }
        let is_verified = choice & SEALED == 0 && changes.len() <= 1;
        subject.exercise(root, true, is_verified)
    }
}

fn logs(image: &Image) -> Vec<Kept> {
    image.files.iter().filter(|kept| kept.is_log()).cloned().collect()
}

/// Makes one change, in a span or right after it.
fn apply(change: &[u8; CHANGE_BYTES], span: usize, log: &mut Sealed) {
    let &[_, low, high, what, value] = change;
    if log.spans.is_empty() {
        return;
    }
    let (start, end) = log.spans[span % log.spans.len()];
    let at = start + usize::from(u16::from_le_bytes([low, high])) % (end - start);
    match what % 8 {
        0..3 => log.bytes[at] = value,
        3 => log.bytes[at] ^= value,
        4 => log.bytes[at] = log.bytes[at].wrapping_add(1),
        5 => log.bytes[at..end].fill(0),
        // Another one in its place, as far as there is room.
        6 => {
            let (first, last) = log.spans[usize::from(value) % log.spans.len()];
            let len = (last - first).min(log.bytes.len() - start);
            log.bytes.copy_within(first..first + len, start);
        }
        _ => log.cut(at),
    }
}
