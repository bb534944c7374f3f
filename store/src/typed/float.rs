//! Order-preserving keys: floating-point numbers, characters.
//!
//! Purpose: the bits of a number of IEEE 754, with the sign bit flipped if it is 0, and all of them
//! otherwise, compare as `total_cmp` does: NaNs with a sign, minus infinity, negative numbers,
//! -0.0, 0.0, positive numbers, infinity, NaNs. A character is its code point.
//! Invariants: every bit is kept: -0.0 and 0.0 are two keys, as are NaNs of different bits.

use super::key::{Key, KeyFor};
use super::malformed::Malformed;

/// The order of `total_cmp`, see [`f64::total_cmp`]: -0.0 and 0.0 are two keys, and NaNs have their
/// places.
macro_rules! floats {
    ($($float:ty, $bits:ty, $sign:expr;)*) => {$(
        impl KeyFor<$float> for $float {
            fn encode(&self, bytes: &mut Vec<u8>) {
                let bits = self.to_bits();
                let ordered = if bits & $sign == 0 { bits | $sign } else { !bits };
                KeyFor::<$bits>::encode(&ordered, bytes);
            }
        }

        impl Key for $float {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                let ordered = <$bits>::decode(bytes)?;
                let bits = if ordered & $sign == 0 { !ordered } else { ordered ^ $sign };
                Ok(Self::from_bits(bits))
            }
        }
    )*};
}

floats! { f32, u32, 1 << 31; f64, u64, 1 << 63; }

impl KeyFor<char> for char {
    fn encode(&self, bytes: &mut Vec<u8>) {
        KeyFor::<u32>::encode(&u32::from(*self), bytes);
    }
}

impl Key for char {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        let found = u32::decode(bytes)?;
        Self::from_u32(found).ok_or_else(|| Malformed::new("a code point of Unicode"))
    }
}
