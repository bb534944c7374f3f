//! Values that the caller owns.

use std::ffi::{c_char, c_void};

use crate::border::code::ADAMANT_OK;
use crate::border::failure::{run, run_or};
use crate::border::pointers::{In, Lent, Opaque, Slice, Taken};

/// A value of the caller's own: a copy, which depends on nothing. To be freed by
/// adamant_value_free.
pub enum Value {}

/// The bytes of a value, and a zero byte.
#[derive(Debug)]
pub struct Content(Box<[u8]>);

impl Content {
    /// Copies the bytes.
    pub(crate) fn copy(bytes: &[u8]) -> Self {
        let mut copy = Vec::with_capacity(bytes.len() + 1);
        copy.extend_from_slice(bytes);
        copy.push(0);
        Self(copy.into_boxed_slice())
    }

    /// Without the zero byte.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.0.len() - 1]
    }
}

impl Opaque for Value {
    type Content = Content;
    const KIND: u32 = 0xADA1_0001;
    const NAME: &'static str = "a value";
}

/// The bytes of a value, until it is freed. Behind the last one is a zero byte that does not count,
/// so that text can be used as text. No bytes (NULL) for what is no value.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_value_bytes(value: In<Value>) -> Lent {
    run_or(Lent::none(), || Ok(Lent::new(value.get()?.bytes())))
}

/// Frees a value; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_value_free(value: Taken<Value>) {
    run(|| value.free().map(|()| ADAMANT_OK));
}

/// The bytes of text up to its zero byte: adamant_text("ada"). No bytes for NULL.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_text(text: In<c_char>) -> Slice {
    text.slice()
}

/// So many bytes: adamant_bytes(&number, sizeof number).
#[unsafe(no_mangle)]
pub extern "C" fn adamant_bytes(data: In<c_void>, len: usize) -> Slice {
    data.bytes(len)
}
