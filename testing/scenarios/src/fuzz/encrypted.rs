//! Hostile encrypted files: changed, moved or truncated bytes.
//!
//! What is read without an error is what was written there. Every byte of a file is authenticated
//! but those that say nothing, so there is no way to correct anything.

use std::sync::Arc;

use adamant_medium::encrypted::directory::{EncryptedDirectory, KEY_NAME};
use adamant_medium::encrypted::key::EncryptionKey;
use adamant_medium::memory::MemoryDirectory;
use adamant_medium::storage::{Directory, File};

/// Bytes that the files hold.
const FILE_BYTES: usize = 6_000;
/// Bytes of one change: the file, the byte in it (2), the kind, a parameter.
const CHANGE_BYTES: usize = 5;
/// Maximum changes of a program, so that it ends soon.
const CHANGES_MAX: usize = 20;
/// Bytes that a move or a fill takes.
const PIECE_BYTES: u64 = 512;
const NAMES: [&str; 3] = ["one", "two", "once"];

/// None of them is zero, or 0xFF: what a lost byte or a hole is read as.
fn plain(file: usize) -> Vec<u8> {
    (0..FILE_BYTES).map(|at| (at * 7 + file * 11 + at / 251) as u8 % 253 + 1).collect()
}

fn length(file: &dyn File) -> u64 {
    file.len().unwrap_or(0)
}

/// Changes encrypted files as the program says and reads them. Returns how many were read whole.
///
/// # Panics
/// If a byte was read without an error that was never written there.
pub fn run(program: &[u8]) -> u32 {
    let inner: Arc<dyn Directory> = Arc::new(MemoryDirectory::new());
    let key = EncryptionKey::from_bytes(&[9; 32]);
    let directory = EncryptedDirectory::create(Arc::clone(&inner), &key).unwrap();
    for (number, name) in NAMES.iter().enumerate() {
        let file = match *name {
            "once" => directory.create_once(name).unwrap(),
            _ => directory.create(name).unwrap(),
        };
        file.write_at(&plain(number), 0).unwrap();
    }
    drop(directory);
    let (changes, _) = program.as_chunks::<CHANGE_BYTES>();
    for change in &changes[..changes.len().min(CHANGES_MAX)] {
        damage(&inner, *change);
    }
    let Ok(Some(directory)) = EncryptedDirectory::open(inner, &key) else { return 0 };
    let files = NAMES.iter().enumerate();
    files.map(|(number, name)| read(&directory, name, &plain(number))).sum()
}

/// Does one change to the files as they are.
fn damage(inner: &Arc<dyn Directory>, [which, low, high, what, value]: [u8; CHANGE_BYTES]) {
    let name = [NAMES[0], NAMES[1], NAMES[2], KEY_NAME][usize::from(which) % 4];
    let file = inner.open(name).unwrap().unwrap();
    let len = length(file.as_ref()).max(1);
    let at = u64::from(u16::from_le_bytes([low, high])) % len;
    let mut piece = [0; PIECE_BYTES as usize];
    let count = PIECE_BYTES.min(len - at);
    let piece = &mut piece[..count as usize];
    if file.read_at(piece, at).is_err() {
        return;
    }
    match what % 6 {
        0 => piece[0] = value,
        1 => piece[0] ^= value,
        2 => piece.fill(value),
        3 => return file.set_len(at).unwrap(),
        4 => {
            // A unit takes the place of another one, in this file or another.
            let target = inner.open(NAMES[usize::from(value) % NAMES.len()]).unwrap().unwrap();
            let place = at / PIECE_BYTES * PIECE_BYTES;
            let to = place ^ (u64::from(value / 3) * PIECE_BYTES);
            if file.read_at(piece, place).is_ok() && to < length(target.as_ref()) {
                target.write_at(piece, to).unwrap();
            }
            return;
        }
        _ => inner.rename(name, NAMES[usize::from(value) % NAMES.len()]).unwrap(),
    }
    if what % 6 < 3 {
        file.write_at(piece, at).unwrap();
    } else if inner.open(name).unwrap().is_none() {
        inner.create(name).unwrap();
    }
}

/// Reads a file in pieces and as a whole; 1 if it is as it was.
fn read(directory: &EncryptedDirectory, name: &str, expected: &[u8]) -> u32 {
    let Ok(Some(file)) = directory.open(name) else { return 0 };
    // Whole files may have changed names: each has what some file had.
    let all: Vec<Vec<u8>> = (0..NAMES.len()).map(plain).collect();
    let is_right = |at: usize, found: &[u8], or: u8| {
        let is = |(found, byte): (&u8, &u8)| found == byte || *found == 0 || *found == or;
        all.iter().any(|plain| found.iter().zip(&plain[at..]).all(is))
    };
    for at in (0..FILE_BYTES).step_by(40) {
        let mut piece = [0; 40];
        if file.read_at(&mut piece, at as u64).is_ok() {
            assert!(is_right(at, &piece, 0), "{name}: what nobody wrote, at {at}");
        }
        if file.read_with_lost_at(&mut piece, at as u64).is_ok() {
            assert!(is_right(at, &piece, 0xFF), "{name}: what nobody wrote, at {at}");
        }
    }
    let mut whole = vec![0; FILE_BYTES];
    u32::from(file.read_at(&mut whole, 0).is_ok() && whole == expected)
}
