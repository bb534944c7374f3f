//! Shapes of keys and values.

use fastrand::Rng;

/// The shape of a test's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Random20,
    SharedPrefix,
    Ascending,
    Descending,
    ZeroBytes,
    OneByte,
    /// Keys that differ in an early byte or two and then only after many equal ones.
    FarApart,
    Huge,
    /// Keys and values of 8 bytes, in a tree that was created for them.
    Words,
}

pub(crate) const SHAPES: [Shape; 9] = [
    Shape::Random20,
    Shape::SharedPrefix,
    Shape::Ascending,
    Shape::Descending,
    Shape::ZeroBytes,
    Shape::OneByte,
    Shape::FarApart,
    Shape::Huge,
    Shape::Words,
];

impl Shape {
    /// A key of this shape, one of about `space`.
    pub(crate) fn key(self, rng: &mut Rng, space: u64, serial: u64) -> Vec<u8> {
        let choice = rng.u64(..space);
        match self {
            Self::Random20 => {
                let mut rng = Rng::with_seed(choice);
                (0..20).map(|_| rng.u8(..)).collect()
            }
            Self::SharedPrefix => {
                let deep = "shared/".repeat(1 + choice as usize % 3 * 20);
                format!("{deep}user/{:06}/name", choice).into_bytes()
            }
            Self::Ascending => format!("{:012}", (serial / 2).min(choice + serial / 4)).into(),
            Self::Descending => format!("{:012}", 1_000_000 - serial / 2).into_bytes(),
            Self::ZeroBytes => {
                // Strings of 0 and 1 that are prefixes of one another, up to 18 bytes; some are
                // empty.
                let len = choice as usize % 19;
                (0..len).map(|bit| (choice >> (bit % 10)) as u8 & 1).collect()
            }
            Self::OneByte => [choice as u8][usize::from(choice % 256 == 7)..].to_vec(),
            Self::FarApart => {
                let mut key = vec![0x80 + choice as u8 % 3, choice as u8 / 3 % 2];
                key.resize(2 + (choice as usize >> 4) % 3 * 10, b'=');
                key.extend_from_slice(&(choice as u32).swap_bytes().to_le_bytes());
                key
            }
            Self::Huge => {
                let mut key = vec![b'k'; 59_990 + choice as usize % 20];
                key.extend_from_slice(&(choice % 200).to_le_bytes());
                key
            }
            Self::Words => Rng::with_seed(choice).u64(..).to_le_bytes().into(),
        }
    }

    /// The number of changes of a test with keys of this shape.
    pub(crate) fn changes(self) -> u64 {
        match self {
            Self::Huge => 600,
            _ => 20_000,
        }
    }
}

/// A value of a shape: mostly small, some of 10 KB, few of 100 KB.
pub(crate) fn value(shape: Shape, rng: &mut Rng) -> Vec<u8> {
    if shape == Shape::Words {
        return rng.u64(..).to_le_bytes().into();
    }
    let len = match rng.u32(..1000) {
        0 => 100_000,
        1..=10 => rng.usize(4000..10_000),
        11..=12 => rng.usize(4095..=4097),
        13..=30 => 0,
        _ => rng.usize(..120),
    };
    let byte = rng.u8(..);
    vec![byte; len]
}
