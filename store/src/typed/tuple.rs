//! Tuples as keys, and their prefixes.
//!
//! Purpose: a tuple is the concatenation of its parts, so tuples compare as they do in memory, and
//! its first parts are a prefix of exactly the tuples that begin with them.

use super::key::{Key, KeyFor, PrefixFor};
use super::malformed::Malformed;

macro_rules! tuples {
    ($(($($key:ident $part:ident $number:tt),*) $last:ident $last_part:ident $last_number:tt;)*) => {$(
        impl<$($key, $part: KeyFor<$key>,)* $last, $last_part: KeyFor<$last>>
            KeyFor<($($key,)* $last)> for ($($part,)* $last_part)
        {
            fn encode(&self, bytes: &mut Vec<u8>) {
                $(self.$number.encode(bytes);)*
                self.$last_number.encode(bytes);
            }

            fn encode_last(&self, bytes: &mut Vec<u8>) {
                $(self.$number.encode(bytes);)*
                self.$last_number.encode_last(bytes);
            }
        }

        impl<$($key: Key,)* $last: Key> Key for ($($key,)* $last) {
            fn decode(bytes: &mut &[u8]) -> Result<Self, Malformed> {
                Ok(($($key::decode(bytes)?,)* $last::decode(bytes)?))
            }

            fn decode_last(mut bytes: &[u8]) -> Result<Self, Malformed> {
                Ok(($($key::decode(&mut bytes)?,)* $last::decode_last(bytes)?))
            }
        }
    )*};
}

tuples! {
    (A P 0) B Q 1;
    (A P 0, B Q 1) C R 2;
    (A P 0, B Q 1, C R 2) D S 3;
    (A P 0, B Q 1, C R 2, D S 3) E T 4;
    (A P 0, B Q 1, C R 2, D S 3, E T 4) F U 5;
}

macro_rules! tuple_prefixes {
    ($(($($key:ident $part:ident $number:tt),*) $($rest:ident)*;)*) => {$(
        impl<$($key, $part: KeyFor<$key>,)* $($rest),*> PrefixFor<($($key,)* $($rest),*)>
            for ($($part,)*)
        {
            fn encode_prefix(&self, bytes: &mut Vec<u8>) {
                $(self.$number.encode(bytes);)*
            }
        }
    )*};
}

tuple_prefixes! {
    (A P 0) B;
    (A P 0) B C;
    (A P 0, B Q 1) C;
    (A P 0) B C D;
    (A P 0, B Q 1) C D;
    (A P 0, B Q 1, C R 2) D;
    (A P 0) B C D E;
    (A P 0, B Q 1) C D E;
    (A P 0, B Q 1, C R 2) D E;
    (A P 0, B Q 1, C R 2, D S 3) E;
    (A P 0) B C D E F;
    (A P 0, B Q 1) C D E F;
    (A P 0, B Q 1, C R 2) D E F;
    (A P 0, B Q 1, C R 2, D S 3) E F;
    (A P 0, B Q 1, C R 2, D S 3, E T 4) F;
}
