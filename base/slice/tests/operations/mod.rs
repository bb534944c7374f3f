//! A program of operations on slices, read from bytes, beside the same on vectors. A difference
//! panics. Shared with the fuzz target in `testing/fuzz`.

use std::sync::Arc;

use adamant_slice::{Builder, Slice};

/// Strings that are kept at the same time.
const STRINGS_MAX: usize = 12;
/// Bytes of the longest string that is made at once.
const BYTES_MAX: usize = 6_000;

/// The bytes of a program, taken from the front; zeros when there are no more.
struct Input<'a> {
    left: &'a [u8],
}

impl Input<'_> {
    fn byte(&mut self) -> usize {
        let Some((&byte, left)) = self.left.split_first() else { return 0 };
        self.left = left;
        usize::from(byte)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.byte() << 8 | self.byte()) % end.max(1)
    }

    /// A string of few different bytes, most often a short one.
    fn string(&mut self) -> Vec<u8> {
        let len = match self.byte() {
            255 => self.below(BYTES_MAX),
            byte => byte % 70,
        };
        let (first, step) = (self.byte(), self.byte());
        (0..len).map(|at| (first + at / 3 * step) as u8).collect()
    }

    fn range(&mut self, len: usize) -> (usize, usize) {
        let start = self.below(len + 1);
        (start, start + self.below(len - start + 1))
    }
}

fn make(input: &mut Input<'_>) -> (Slice, Vec<u8>) {
    let bytes = input.string();
    let (start, end) = input.range(bytes.len());
    let slice = match input.byte() % 9 {
        0 => Slice::new(&bytes),
        1 => Slice::from(bytes.clone()),
        2 => Slice::fused(&bytes[..start], &bytes[start..]),
        3 => Slice::from_reader(&mut &bytes[..], bytes.len()).expect("there are as many"),
        4 => Slice::from_buffered(&mut &bytes[..], bytes.len()).expect("there are as many"),
        5 => bytes.iter().copied().collect(),
        6 => {
            let owner: Arc<[u8]> = bytes.as_slice().into();
            let slice = Slice::from_owner(owner, start..end).expect("within");
            return (slice, bytes[start..end].to_vec());
        }
        7 => {
            let mut builder = Builder::with_capacity(end).expect("short enough");
            builder.append(&bytes[..start]).expect("short enough");
            builder.extend(bytes[start..].iter().copied());
            builder.freeze()
        }
        _ => Slice::from_owner(bytes.clone(), ..).expect("within"),
    };
    (slice, bytes)
}

/// Writes through a builder, if the slice has no other user.
fn rewrite(input: &mut Input<'_>, slice: Slice, mut bytes: Vec<u8>) -> (Slice, Vec<u8>) {
    let mut builder = match slice.into_builder() {
        Ok(builder) => builder,
        Err(slice) => return (slice, bytes),
    };
    assert_eq!(*builder, *bytes);
    if !bytes.is_empty() {
        let (at, byte) = (input.below(bytes.len()), input.byte() as u8);
        builder[at] = byte;
        bytes[at] = byte;
    }
    let more = input.string();
    builder.append(&more).expect("short enough");
    bytes.extend(more);
    (builder.freeze(), bytes)
}

/// Runs the program that the bytes encode.
pub(crate) fn run(program: &[u8]) {
    let mut input = Input { left: program };
    let mut strings: Vec<(Slice, Vec<u8>)> = Vec::new();
    while !input.left.is_empty() {
        let operation = input.byte() % 8;
        if strings.is_empty() || operation == 0 {
            strings.push(make(&mut input));
        }
        if strings.len() > STRINGS_MAX {
            strings.remove(0);
        }
        let at = input.below(strings.len());
        let (slice, bytes) = &strings[at];
        match operation {
            0 => {}
            1 => strings.push((slice.clone(), bytes.clone())),
            2 => {
                let (start, end) = input.range(bytes.len());
                assert_eq!(slice.try_slice(start..bytes.len() + 1), None);
                strings.push((slice.slice(start..end), bytes[start..end].to_vec()));
            }
            3 => {
                let (start, end) = input.range(bytes.len());
                let part = slice.slice_ref(&slice[start..end]).expect("it is a part");
                strings.push((part, bytes[start..end].to_vec()));
            }
            4 => {
                let (slice, bytes) = strings.swap_remove(at);
                assert_eq!(slice.into_vec(), bytes);
            }
            5 => {
                let (slice, bytes) = strings.swap_remove(at);
                strings.push(rewrite(&mut input, slice, bytes));
            }
            6 => {
                let (other, other_bytes) = &strings[input.below(strings.len())];
                assert_eq!(slice.cmp(other), bytes.cmp(other_bytes));
                assert_eq!(slice == other, bytes == other_bytes);
                assert_eq!(slice.starts_with(other), bytes.starts_with(other_bytes));
                assert_eq!(slice.partial_cmp(other_bytes), bytes.partial_cmp(other_bytes));
            }
            _ => drop(strings.swap_remove(at)),
        }
        assert!(strings.iter().all(|(slice, bytes)| slice == bytes), "a string changed");
    }
}
