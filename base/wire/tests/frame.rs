//! Frames round-trip, and no other bytes parse as one.

use adamant_wire::frame::{
    FRAME_HEADER_BYTES, FRAME_PAYLOAD_BYTES_MAX, FrameError, Kind, append, frame_bytes, log_seed,
    parse,
};

const KINDS: [Kind; 3] = [Kind::Part, Kind::Commit, Kind::Switch];

fn payload_of(random: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.u8(..)).collect()
}

#[test]
fn frames_come_back_one_after_another() {
    let mut random = fastrand::Rng::with_seed(11);
    let seed = log_seed(&[3; 16], 9);
    let lengths: Vec<usize> =
        (0..70).chain([4095, 4096, 65_537, FRAME_PAYLOAD_BYTES_MAX]).collect();
    let mut log = Vec::new();
    let mut written = Vec::new();
    let mut previous = 77;
    for (index, &len) in lengths.iter().enumerate() {
        let payload = payload_of(&mut random, len);
        let (left, right) = payload.split_at(random.usize(0..=len));
        let sequence = random.u64(..);
        let kind = KINDS[index % 3];
        let before = log.len();
        let crc = append(&mut log, seed, previous, kind, sequence, &[left, &[], right]);
        assert_eq!(log.len() - before, frame_bytes(len));
        assert_eq!(log.len() % 4, 0);
        written.push((previous, crc, kind, sequence, payload));
        previous = crc;
    }
    let mut rest = &log[..];
    for (previous, crc, kind, sequence, payload) in written {
        let (header, found, taken) = parse(seed, rest).unwrap();
        assert_eq!(header.previous, previous);
        assert_eq!(header.crc, crc);
        assert_eq!(header.kind, kind);
        assert_eq!(header.sequence, sequence);
        assert_eq!(header.len as usize, payload.len());
        assert_eq!(found, payload);
        rest = &rest[taken..];
    }
    assert!(rest.is_empty());
}

#[test]
fn the_bytes_are_those_of_the_format_page() {
    let mut log = Vec::new();
    let crc = append(&mut log, 5, 0x0403_0201, Kind::Commit, 0x0C0B_0A09_0807_0605, &[b"hello"]);
    assert_eq!(log.len(), 28);
    assert_eq!(log[..4], crc.to_le_bytes());
    assert_eq!(log[4..8], [1, 2, 3, 4]);
    assert_eq!(log[8..12], [5, 0, 0, 2]);
    assert_eq!(log[12..20], [5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(log[20..], *b"hello\0\0\0");
}

#[test]
fn every_flipped_bit_is_found() {
    let mut random = fastrand::Rng::with_seed(12);
    for len in (0..20).chain([100, 1000]) {
        let payload = payload_of(&mut random, len);
        let mut log = Vec::new();
        append(&mut log, 42, random.u32(..), Kind::Commit, random.u64(..), &[&payload]);
        // Bytes behind the frame, so that a longer length does not end the input.
        let frame_end = log.len();
        log.extend(payload_of(&mut random, 4096));
        for bit in 0..frame_end * 8 {
            log[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(42, &log).is_err(), "payload of {len}, bit {bit}");
            log[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(parse(42, &log).is_ok());
    }
}

#[test]
fn every_truncation_is_short_and_says_what_is_needed() {
    let mut log = Vec::new();
    append(&mut log, 1, 2, Kind::Part, 3, &[b"some payload with padding"]);
    for cut in 0..log.len() {
        let needed = if cut < FRAME_HEADER_BYTES { FRAME_HEADER_BYTES } else { log.len() };
        assert_eq!(parse(1, &log[..cut]), Err(FrameError::Short { needed }), "cut at {cut}");
    }
}

#[test]
fn padding_must_be_zero() {
    for len in 1..=8_usize {
        let mut log = Vec::new();
        append(&mut log, 1, 2, Kind::Part, 3, &[&[7; 8][..len]]);
        for at in FRAME_HEADER_BYTES + len..log.len() {
            log[at] = 1;
            assert_eq!(parse(1, &log), Err(FrameError::Padding));
            log[at] = 0;
        }
        assert!(parse(1, &log).is_ok());
    }
}

#[test]
fn hostile_kinds_and_lengths_are_refused_before_anything_is_read() {
    let mut log = Vec::new();
    append(&mut log, 1, 2, Kind::Part, 3, &[b"x"]);
    for kind in (0..=255).filter(|kind| !(1..=3).contains(kind)) {
        log[11] = kind;
        assert_eq!(parse(1, &log), Err(FrameError::Kind { found: kind }));
    }
    log[11] = 1;
    let longest = FRAME_PAYLOAD_BYTES_MAX as u32;
    for len in [longest + 1, 0x00FF_FFFF] {
        log[8..11].copy_from_slice(&len.to_le_bytes()[..3]);
        assert_eq!(parse(1, &log), Err(FrameError::Length { found: len as usize }));
    }
    log[8..11].copy_from_slice(&longest.to_le_bytes()[..3]);
    assert_eq!(parse(1, &log), Err(FrameError::Short { needed: 1 << 20 }));
}

#[test]
fn zeros_and_noise_are_no_frames() {
    assert_eq!(parse(0, &[0; 64]), Err(FrameError::Kind { found: 0 }));
    let mut random = fastrand::Rng::with_seed(13);
    for round in 0..2_000 {
        let mut noise = payload_of(&mut random, 256);
        noise[9] = 0;
        noise[10] = 0;
        noise[11] = 1 + (round % 3) as u8;
        assert!(parse(99, &noise).is_err(), "round {round} of seed 13");
    }
}

#[test]
fn a_frame_of_another_pool_or_generation_is_refused() {
    let uuid = [1; 16];
    let mut log = Vec::new();
    append(&mut log, log_seed(&uuid, 1), 0, Kind::Commit, 1, &[b"record"]);
    assert!(parse(log_seed(&uuid, 1), &log).is_ok());
    for seed in [log_seed(&uuid, 2), log_seed(&uuid, 0), log_seed(&[2; 16], 1)] {
        assert!(matches!(parse(seed, &log), Err(FrameError::Checksum { .. })));
    }
}

#[test]
#[should_panic(expected = "does not fit a frame")]
fn a_payload_beyond_the_maximum_is_the_callers_mistake() {
    append(&mut Vec::new(), 0, 0, Kind::Part, 0, &[&vec![0; FRAME_PAYLOAD_BYTES_MAX + 1]]);
}
