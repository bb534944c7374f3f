//! Slices and texts from the bytes of a fuzzer.

use arbitrary::{Arbitrary, Result, Unstructured};

use crate::slice::Slice;
use crate::text::Text;

impl<'a> Arbitrary<'a> for Slice {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        input.arbitrary::<&[u8]>().map(Self::new)
    }

    fn arbitrary_take_rest(input: Unstructured<'a>) -> Result<Self> {
        Ok(Self::new(input.take_rest()))
    }

    fn size_hint(depth: usize) -> (usize, Option<usize>) {
        <&[u8]>::size_hint(depth)
    }
}

impl<'a> Arbitrary<'a> for Text {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        input.arbitrary::<&str>().map(Self::new)
    }

    fn arbitrary_take_rest(input: Unstructured<'a>) -> Result<Self> {
        <&str>::arbitrary_take_rest(input).map(Self::new)
    }

    fn size_hint(depth: usize) -> (usize, Option<usize>) {
        <&str>::size_hint(depth)
    }
}
