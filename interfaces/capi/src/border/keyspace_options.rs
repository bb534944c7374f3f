//! Options of a keyspace, by numbers like those of a store and by texts.

use std::ffi::{c_char, c_int};
use std::sync::Mutex;

use adamant::{KeyspaceOptions, LsmError, ValueCompression};

use crate::border::code::ADAMANT_OK;
use crate::border::failure::{Failure, Result, run};
use crate::border::hold::hold;
use crate::border::options::{compression_of, durability_of, switch};
use crate::border::pointers::{Changed, In, Opaque, Out, Taken};

/// Bytes of a data block before compression: 64 to 8 MiB.
pub const ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES: c_int = 1;
/// Bits of the filters per key: 0, for none, to 30.
pub const ADAMANT_KEYSPACE_OPTION_FILTER_BITS_PER_KEY: c_int = 2;
/// 0 or 1: whether data blocks have a hash index.
pub const ADAMANT_KEYSPACE_OPTION_HASH_INDEX: c_int = 3;
/// Bytes of a value from which on it is kept in a blob file. UINT64_MAX: never.
pub const ADAMANT_KEYSPACE_OPTION_BLOB_BYTES_MIN: c_int = 4;
/// ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED: what commits to the keyspace wait for that
/// do not say it themselves, of any engine. UINT64_MAX: what the options of the store say. A commit
/// that changes several keyspaces waits for the most that one of them asks for.
pub const ADAMANT_KEYSPACE_OPTION_DURABILITY: c_int = 5;
/// 0 or 1: whether data stays in the block cache after it was read.
pub const ADAMANT_KEYSPACE_OPTION_CACHES_DATA: c_int = 6;

/// Options of a keyspace: its durability, those of the engine lsm, and the compression of values in
/// the others. What is set is recorded with the keyspace that is opened with them, and holds from
/// then on, also after the store was opened again; what is not set stays as it is recorded, or else
/// as the options of the store say. To be freed by adamant_keyspace_options_free, also after a
/// keyspace was opened with them.
pub enum KeyspaceOptionsHandle {}

impl Opaque for KeyspaceOptionsHandle {
    type Content = Mutex<KeyspaceOptions>;
    const KIND: u32 = 0xADA1_000D;
    const NAME: &'static str = "options of a keyspace";
}

impl In<KeyspaceOptionsHandle> {
    /// The options; those of NULL set nothing.
    pub(crate) fn options(&self) -> Result<KeyspaceOptions> {
        match self.is_null() {
            true => Ok(KeyspaceOptions::new()),
            false => Ok(*hold(self.get()?)?),
        }
    }
}

/// Options of which none is set.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_options_new(options: Out<*mut KeyspaceOptionsHandle>) -> c_int {
    run(|| {
        options.need_handle()?;
        options.give(Mutex::default());
        Ok(ADAMANT_OK)
    })
}

/// Sets an option, ADAMANT_KEYSPACE_OPTION_..., to a number.
///
/// Fails with ADAMANT_INVALID for an option that this version does not know, or a number that no
/// option could have. Whether it can be used is verified when a keyspace is opened with it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_options_set(
    options: Changed<KeyspaceOptionsHandle>,
    option: c_int,
    value: u64,
) -> c_int {
    run(|| {
        let mut held = hold(options.get()?)?;
        let options = *held;
        *held = match option {
            ADAMANT_KEYSPACE_OPTION_BLOCK_BYTES => {
                options.block_bytes(u32::try_from(value).unwrap_or(u32::MAX))
            }
            ADAMANT_KEYSPACE_OPTION_FILTER_BITS_PER_KEY => {
                options.filter_bits_per_key(u8::try_from(value).unwrap_or(u8::MAX))
            }
            ADAMANT_KEYSPACE_OPTION_HASH_INDEX => options.hash_index(switch(value)?),
            ADAMANT_KEYSPACE_OPTION_BLOB_BYTES_MIN => {
                options.blob_bytes_min(u32::try_from(value).ok())
            }
            ADAMANT_KEYSPACE_OPTION_DURABILITY => options.durability(match value {
                u64::MAX => None,
                value => Some(durability_of(c_int::try_from(value).unwrap_or(c_int::MAX))?),
            }),
            ADAMANT_KEYSPACE_OPTION_CACHES_DATA => options.caches_data(switch(value)?),
            _ => {
                let text = format!("there is no option {option} of a keyspace in this version");
                return Err(Failure::invalid(text));
            }
        };
        Ok(ADAMANT_OK)
    })
}

/// Sets the compression, level by level, by a text as of adamant_options_set_compression.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_options_set_compression(
    options: Changed<KeyspaceOptionsHandle>,
    compression: In<c_char>,
) -> c_int {
    run(|| {
        let compression = compression_of(&compression)?;
        let mut held = hold(options.get()?)?;
        *held = held.compression(compression);
        Ok(ADAMANT_OK)
    })
}

/// Sets the compression of values in a keyspace of any engine but lsm: "none", "lz4", "zstd" or
/// "zstd:LEVEL", and then, where it is not 128, the bytes of the shortest value that is compressed,
/// as in "lz4, from 200". An existing keyspace with values that are stored plain is refused with
/// ADAMANT_INVALID: adamant_keyspace_compress_values converts it.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_options_set_value_compression(
    options: Changed<KeyspaceOptionsHandle>,
    compression: In<c_char>,
) -> c_int {
    run(|| {
        let compression = value_compression_of(&compression)?;
        let mut held = hold(options.get()?)?;
        *held = held.value_compression(compression);
        Ok(ADAMANT_OK)
    })
}

/// Sets the merge operator of the keyspace, of any engine, by its name, one of those of the
/// library: "add" (64-bit integers, little-endian, signed or not), "max_u64", "min_u64", "max_i64",
/// "min_i64", "append" (bytes) and "or" (bits). It is recorded for good: a keyspace that has
/// another one is refused with ADAMANT_INVALID.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_options_set_merge_operator(
    options: Changed<KeyspaceOptionsHandle>,
    name: In<c_char>,
) -> c_int {
    run(|| {
        let name = name.text("merge operator")?.to_string_lossy();
        let mut held = hold(options.get()?)?;
        *held = held.merge_operator(&name);
        Ok(ADAMANT_OK)
    })
}

/// The compression of values that a text names.
pub(crate) fn value_compression_of(text: &In<c_char>) -> Result<ValueCompression> {
    let text = text.text("compression of values")?.to_string_lossy();
    text.parse().map_err(|error: LsmError| Failure::invalid(error.to_string()))
}

/// Frees options; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_keyspace_options_free(options: Taken<KeyspaceOptionsHandle>) {
    run(|| options.free().map(|()| ADAMANT_OK));
}
