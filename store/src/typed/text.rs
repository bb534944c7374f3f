//! Texts and byte strings as keys.
//!
//! Purpose: alone, or as the last part of a key, a text is its bytes. Before another part it ends
//! with two zeros, and a zero within it is followed by 0xff: so of two texts with the same
//! beginning the shorter sorts first, whatever follows it.

use adamant_slice::Slice;

use super::key::{Key, KeyFor, PrefixFor};
use super::malformed::Malformed;

/// Follows a zero that belongs to the text.
const WITHIN: u8 = 0xff;
/// Follows the zero that ends it.
const END: u8 = 0;

fn encode(text: &[u8], bytes: &mut Vec<u8>) {
    escape(text, bytes);
    bytes.extend_from_slice(&[0, END]);
}

/// Appends a text without its end.
fn escape(text: &[u8], bytes: &mut Vec<u8>) {
    for byte in text {
        bytes.push(*byte);
        if *byte == 0 {
            bytes.push(WITHIN);
        }
    }
}

fn decode(bytes: &mut &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut text = Vec::new();
    loop {
        let zero = bytes.iter().position(|byte| *byte == 0);
        let (before, behind) = bytes.split_at(zero.unwrap_or(bytes.len()));
        text.extend_from_slice(before);
        match behind {
            [0, WITHIN, rest @ ..] => {
                text.push(0);
                *bytes = rest;
            }
            [0, END, rest @ ..] => {
                *bytes = rest;
                return Ok(text);
            }
            _ => return Err(Malformed::new("two zeros at the end of a text")),
        }
    }
}

fn utf8(bytes: Vec<u8>) -> Result<String, Malformed> {
    String::from_utf8(bytes).map_err(|_| Malformed::new("UTF-8"))
}

macro_rules! bytes_for {
    ($($key:ty: $($lent:ty),*;)*) => {$($(
        impl KeyFor<$key> for $lent {
            fn encode(&self, bytes: &mut Vec<u8>) {
                encode(self.as_ref(), bytes);
            }

            fn encode_last(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(self.as_ref());
            }
        }

        impl PrefixFor<$key> for $lent {
            fn encode_prefix(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(self.as_ref());
            }

            fn encode_prefix_of_part(&self, bytes: &mut Vec<u8>) {
                escape(self.as_ref(), bytes);
            }
        }
    )*)*};
}

bytes_for! {
    String: String, str;
    Vec<u8>: Vec<u8>, [u8], Slice;
    Slice: Slice, [u8], Vec<u8>, str, String;
}

impl<const N: usize> KeyFor<Slice> for [u8; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        encode(self, bytes);
    }

    fn encode_last(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
}

impl Key for String {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        utf8(decode(bytes)?)
    }

    fn decode_last(bytes: &[u8]) -> Result<Self, Malformed> {
        utf8(bytes.to_vec())
    }
}

impl Key for Vec<u8> {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        decode(bytes)
    }

    fn decode_last(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(bytes.to_vec())
    }
}

impl Key for Slice {
    fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(decode(bytes)?.as_slice().into())
    }

    fn decode_last(bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(bytes.into())
    }
}
