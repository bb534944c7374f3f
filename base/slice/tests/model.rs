//! A slice behaves as the bytes that it was made of, however it was made.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use adamant_slice::{Builder, Error, INLINE_BYTES_MAX, SLICE_BYTES_MAX, Slice};

/// Lengths around every edge: empty, prefix, inline, block, kept vectors.
const LENGTHS: [usize; 17] =
    [0, 1, 3, 4, 5, 8, 19, 20, 21, 22, 24, 64, 255, 1024, 4095, 4096, 10_000];

fn bytes_of(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    // Few different bytes, so that equal prefixes are common.
    (0..len).map(|_| [0, 0, 1, b'a', 255][random.usize(..5)]).collect()
}

/// The same bytes as a slice, made by a random constructor.
fn slice_of(random: &mut fastrand::Rng, bytes: &[u8]) -> Slice {
    let cut = random.usize(0..=bytes.len());
    let (left, right) = bytes.split_at(cut);
    match random.usize(..11) {
        0 => Slice::new(bytes),
        1 => Slice::from(bytes.to_vec()),
        2 => Slice::fused(left, right),
        3 => Slice::from_owner(bytes.to_vec(), ..).unwrap(),
        4 => Slice::from_owner([left, bytes, right].concat(), cut..cut + bytes.len()).unwrap(),
        5 => bytes.iter().copied().collect(),
        6 => Slice::from_owner(Arc::<[u8]>::from(bytes), ..).unwrap(),
        7 => {
            let mut builder = Builder::new();
            builder.append(left).unwrap();
            builder.append(right).unwrap();
            builder.freeze()
        }
        8 => {
            let mut builder = Slice::new(left).into_builder().unwrap();
            builder.append(right).unwrap();
            builder.freeze()
        }
        9 => Slice::from_buffered(&mut &bytes[..], bytes.len()).unwrap(),
        _ => Slice::from_reader(&mut &bytes[..], bytes.len()).unwrap(),
    }
}

fn check(slice: &Slice, bytes: &[u8]) {
    assert_eq!(slice.as_bytes(), bytes);
    assert_eq!(slice.len(), bytes.len());
    assert_eq!(slice.is_empty(), bytes.is_empty());
    assert_eq!(slice.is_inline(), bytes.len() <= INLINE_BYTES_MAX);
    assert_eq!(slice, bytes);
    assert_eq!(bytes, *slice);
    assert_eq!(*slice, bytes.to_vec());
    assert_eq!(slice.to_vec(), bytes);
}

#[test]
fn random_operations_agree_with_vectors() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        println!("seed {seed}");
        let mut pairs: Vec<(Slice, Vec<u8>)> = vec![(Slice::EMPTY, Vec::new())];
        for _ in 0..400 {
            let from = random.usize(..pairs.len());
            let (slice, bytes) = pairs[from].clone();
            match random.usize(..7) {
                0 | 1 => {
                    let len = LENGTHS[random.usize(..LENGTHS.len())];
                    let bytes = bytes_of(&mut random, len);
                    pairs.push((slice_of(&mut random, &bytes), bytes));
                }
                2 => pairs.push((slice, bytes)),
                3 => {
                    let start = random.usize(0..=bytes.len());
                    let end = random.usize(start..=bytes.len());
                    pairs.push((slice.slice(start..end), bytes[start..end].to_vec()));
                }
                4 => {
                    let start = random.usize(0..=bytes.len());
                    let part = slice.slice_ref(&slice[start..]).unwrap();
                    pairs.push((part, bytes[start..].to_vec()));
                }
                5 => assert_eq!(pairs.swap_remove(from).0.into_vec(), bytes),
                _ => drop(pairs.swap_remove(from)),
            }
            if pairs.is_empty() {
                pairs.push((Slice::default(), Vec::new()));
            }
        }
        for (slice, bytes) in &pairs {
            check(slice, bytes);
        }
    }
}

#[test]
fn order_equality_and_hash_are_those_of_the_bytes() {
    let mut random = fastrand::Rng::with_seed(3);
    let mut all: Vec<Vec<u8>> = Vec::new();
    for len in (0..70).chain([200]) {
        all.extend((0..4).map(|_| bytes_of(&mut random, len)));
    }
    let slices: Vec<Slice> = all.iter().map(|bytes| slice_of(&mut random, bytes)).collect();
    for (left, left_bytes) in slices.iter().zip(&all) {
        for (right, right_bytes) in slices.iter().zip(&all) {
            assert_eq!(left.cmp(right), left_bytes.cmp(right_bytes), "{left:?} {right:?}");
            assert_eq!(left == right, left_bytes == right_bytes);
            assert_eq!(left.partial_cmp(right_bytes), left_bytes.partial_cmp(right_bytes));
            assert_eq!(left_bytes.partial_cmp(right), left_bytes.partial_cmp(right_bytes));
        }
    }
    let hashed: HashMap<Slice, usize> = slices.iter().cloned().zip(0..).collect();
    let sorted: BTreeMap<Slice, usize> = slices.iter().cloned().zip(0..).collect();
    for bytes in &all {
        assert_eq!(all[hashed[bytes.as_slice()]], *bytes);
        assert_eq!(all[sorted[bytes.as_slice()]], *bytes);
    }
}

#[test]
fn comparisons_with_text_arrays_and_strings() {
    let slice = Slice::from("text");
    assert_eq!(slice, "text");
    assert_eq!("text", slice);
    assert_eq!(slice, b"text");
    assert_eq!(slice, *b"text");
    assert_eq!(slice, String::from("text"));
    assert!(slice < *"texu" && slice > b"tex" && b"u" > slice);
    assert!(slice.starts_with(b"te") && !slice.starts_with(b"text+"));
    assert_eq!(format!("{:?}", Slice::from(b"a\"\n\x00\xFF")), r#"b"a\"\n\x00\xff""#);
}

#[test]
fn parts_share_memory_beyond_20_bytes() {
    let whole = Slice::from((0..100).collect::<Vec<u8>>());
    let part = whole.slice(10..=60);
    assert_eq!(part.as_ptr(), whole[10..].as_ptr());
    let part_of_part = part.slice(5..);
    assert_eq!(part_of_part.as_ptr(), whole[15..].as_ptr());
    assert!(whole.slice(..20).is_inline());
    drop(whole);
    assert_eq!(part_of_part, (15..=60).collect::<Vec<u8>>());
}

#[test]
fn ranges_and_parts_from_elsewhere_are_refused() {
    let whole = Slice::from((0..100).collect::<Vec<u8>>());
    let other = whole.to_vec();
    assert!(whole.try_slice(50..101).is_none());
    assert!(whole.try_slice(..=usize::MAX).is_none());
    assert!(whole.try_slice((std::ops::Bound::Excluded(usize::MAX), 3.into_bound())).is_none());
    assert!(whole.slice(..60).slice_ref(&whole[50..70]).is_none());
    assert!(whole.slice_ref(&other[3..90]).is_none());
    assert_eq!(whole.slice_ref(&[]), Some(Slice::EMPTY));
    let error = Slice::from_owner(other, 90..101).unwrap_err();
    assert_eq!(error, Error::OutOfRange { bytes: 100 });
}

trait IntoBound {
    fn into_bound(self) -> std::ops::Bound<usize>;
}

impl IntoBound for usize {
    fn into_bound(self) -> std::ops::Bound<usize> {
        std::ops::Bound::Excluded(self)
    }
}

#[test]
#[should_panic(expected = "the range leaves the 3 bytes")]
fn a_range_beyond_the_slice_panics_like_indexing() {
    let _ = Slice::from(b"abc").slice(2..4);
}

#[test]
fn statics_are_lent_in_constants() {
    static LONG: &[u8] = b"thirty bytes that live forever";
    const SHORT: Slice = Slice::from_static(b"short");
    const LENT: Slice = Slice::from_static(LONG_COPY);
    const LONG_COPY: &[u8] = b"thirty bytes that live forever";
    assert_eq!(SHORT, b"short");
    assert_eq!(LENT, LONG);
    let lent = Slice::from_static(LONG);
    assert_eq!(lent.as_ptr(), LONG.as_ptr());
    assert_eq!(lent.slice(3..28).as_ptr(), LONG[3..].as_ptr());
    assert_eq!(lent.clone().into_vec(), LONG);
}

#[test]
fn a_long_vector_goes_in_and_out_without_a_copy() {
    let vec = vec![7_u8; 10_000];
    let address = vec.as_ptr();
    let slice = Slice::from(vec);
    assert_eq!(slice.as_ptr(), address);
    let clone = slice.clone();
    let copy = slice.into_vec();
    assert_ne!(copy.as_ptr(), address, "in use by the clone");
    let back = clone.into_vec();
    assert_eq!(back.as_ptr(), address);
    let mut part = Slice::from(back).slice(100..9_000).into_vec();
    part[0] = 8;
    assert_eq!(part.len(), 8_900);
    assert_eq!(part[1..], [7; 8_899]);
    let mut loose = Vec::with_capacity(100_000);
    loose.extend_from_slice(&[1; 5_000]);
    let address = loose.as_ptr();
    assert_ne!(Slice::from(loose).as_ptr(), address, "a loosely filled vector is copied");
}

#[test]
fn a_builder_lends_zeros_and_takes_the_prefix_when_frozen() {
    for len in LENGTHS {
        let mut builder = Builder::zeroed(len).unwrap();
        assert!(builder.iter().all(|&byte| byte == 0));
        builder.fill(b'x');
        let slice = builder.freeze();
        assert_eq!(slice, Slice::from(vec![b'x'; len]));
        let smaller = Slice::from(vec![b'w'; len]);
        assert!(slice > smaller || len == 0);
    }
    let mut builder = Builder::with_capacity(1000).unwrap();
    assert!(builder.is_empty());
    builder.extend(0..100);
    assert_eq!(builder.freeze(), (0..100).collect::<Vec<u8>>());
}

#[test]
fn lengths_beyond_the_maximum_are_errors() {
    if usize::BITS == 64 {
        let error = Builder::zeroed(SLICE_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error, Error::TooLong { bytes: 1 << 32, bytes_max: (1 << 32) - 1 });
        assert!(Builder::with_capacity(usize::MAX).is_err());
        let mut empty = std::io::empty();
        let error = Slice::from_reader(&mut empty, SLICE_BYTES_MAX + 1).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    let error = Slice::from_reader(&mut &b"abc"[..], 4).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
}
