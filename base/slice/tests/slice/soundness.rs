//! Soundness: known bugs of similar slice types, each of which must be impossible in safe code.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adamant_slice::{Builder, Lender, Slice};

/// More than fit inline.
const LONG: &[u8] = b"forty bytes, which need a block that is shared";

/// No builder may write bytes that another slice reads.
#[test]
fn a_builder_is_made_of_nothing_that_others_use() {
    let slice = Slice::new(LONG);
    let clone = slice.clone();
    let part = slice.slice(1..30);
    let slice = slice.into_builder().expect_err("a clone and a part read it");
    drop(clone);
    let slice = Builder::try_from(slice).expect_err("a part reads it");
    assert_eq!(part, LONG[1..30]);
    drop(part);
    let mut builder = slice.into_builder().expect("nobody reads it");
    builder.fill(b'x');
    assert_eq!(builder.freeze(), vec![b'x'; LONG.len()]);

    let lent = Slice::from_static(LONG);
    assert_eq!(lent.into_builder().expect_err("a static"), LONG);
    let owned = Slice::from_owner(LONG.to_vec(), ..).unwrap();
    assert_eq!(owned.into_builder().expect_err("an owner's bytes"), LONG);
}

#[test]
fn a_builder_of_a_part_keeps_its_bytes_and_a_copy_changes_alone() {
    let whole = Slice::new(LONG);
    let part = whole.slice(7..40);
    drop(whole);
    let address = part.as_ptr();
    let mut builder = part.into_builder().unwrap();
    assert_eq!(*builder, LONG[7..40]);
    assert!(builder.as_ptr() <= address, "the same block");
    builder.append(LONG).unwrap();
    assert_eq!(builder.freeze(), [&LONG[7..40], LONG].concat());

    let short = Slice::new(b"short");
    let mut builder = short.clone().into_builder().unwrap();
    builder[0] = b'S';
    builder.append(b" and then longer than twenty").unwrap();
    assert_eq!(short, "short");
    assert_eq!(builder.freeze(), "Short and then longer than twenty");
}

/// Reads the buffer that it is given to fill, as safe code may.
struct Nosy {
    seen: Vec<u8>,
}

impl Read for Nosy {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        self.seen.extend_from_slice(room);
        // And claims to have filled it without doing so.
        Ok(room.len())
    }
}

/// A reader that reads the buffer before it fills it, or never fills it, sees zeros: never bytes of
/// freed memory.
#[test]
fn a_reader_is_never_handed_memory_that_was_not_written() {
    let long = if cfg!(miri) { 2_000 } else { 100_000 };
    for len in [1, 20, 21, 64, 1024, long] {
        let secret = vec![0xA5_u8; len + 8];
        drop(secret);
        let mut reader = Nosy { seen: Vec::new() };
        let slice = Slice::from_reader(&mut reader, len).unwrap();
        assert_eq!(reader.seen, vec![0; len]);
        assert_eq!(slice, vec![0; len]);
        let mut builder = Builder::zeroed(len).unwrap();
        assert!(builder.iter().all(|&byte| byte == 0));
        builder.append(b"more").unwrap();
        assert_eq!(builder.freeze(), [&vec![0; len][..], b"more"].concat());
        let slice = Slice::from_buffered(&mut io::BufReader::new(io::repeat(7)), len).unwrap();
        assert_eq!(slice, vec![7; len]);
    }
}

/// Comparisons read the prefix first: it must be that of the current bytes.
#[test]
fn the_prefix_follows_every_change() {
    for len in [3, 4, 5, 20, 21, 64, 5_000] {
        let mut builder = Builder::zeroed(len).unwrap();
        builder.fill(b'a');
        let before = builder.freeze();
        let copy = Slice::new(&before);
        let mut builder = before.into_builder().unwrap();
        builder[0] = b'z';
        let after = builder.freeze();
        assert!(after > copy && after != copy, "{len}");
        assert_eq!(after[0], b'z');
        assert_eq!(after, [b"z", &vec![b'a'; len - 1][..]].concat());
        let mut builder = after.into_builder().unwrap();
        builder[0] = b'a';
        assert_eq!(builder.freeze(), copy, "{len}");
    }
}

/// Counts its drops.
struct Kept {
    bytes: Arc<[u8]>,
    drops: Arc<AtomicUsize>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        assert_eq!(*self.bytes, *LONG);
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_lender_keeps_its_owner_until_the_last_slice_is_gone() {
    let drops = Arc::new(AtomicUsize::new(0));
    let kept = Kept { bytes: LONG.into(), drops: Arc::clone(&drops) };
    let bytes = std::ptr::NonNull::from(&*kept.bytes);
    let lender = Lender::new(kept);
    // SAFETY: the owner counts as a user of the bytes, which never change.
    let slice = unsafe { lender.lend(bytes) }.unwrap();
    assert_eq!(slice.as_ptr(), bytes.as_ptr().cast());
    assert!(!lender.is_alone());
    let part = slice.slice(3..30);
    let slice = slice.into_builder().expect_err("lent");
    assert_eq!(slice.into_vec(), LONG);
    drop(lender);
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    assert_eq!(part, LONG[3..30]);
    std::thread::spawn(move || drop(part)).join().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}
