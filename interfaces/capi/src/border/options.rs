//! Options for opening a store.
//!
//! One function with numbered options, so that a new option does not change the binary interface.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

use adamant::{
    Compression, Durability, EncryptionKey, Flushing, ImageKind, LevelCompression, LsmError,
    LsmOptions, Options,
};

use crate::border::code::{ADAMANT_BUFFERED, ADAMANT_DEFERRED, ADAMANT_OK, ADAMANT_SYNC};
use crate::border::failure::{Failure, Result, run};
use crate::border::hold::hold;
use crate::border::pointers::{Changed, In, Opaque, Out, Taken};

/// 0 or 1: whether a store is created where there is none. Default: 1.
pub const ADAMANT_OPTION_CREATE: c_int = 1;
/// 0 or 1: whether the store is opened for reading only, beside others that do. Default: 0.
pub const ADAMANT_OPTION_READ_ONLY: c_int = 2;
/// ADAMANT_SYNC, ADAMANT_BUFFERED, ADAMANT_DEFERRED: what commits wait for unless they say
/// otherwise.
pub const ADAMANT_OPTION_DURABILITY: c_int = 3;
// 4 was the choice of the journal, of which only one is left.
/// Which files are memory, written by stores of the processor: 0 those on persistent memory (the
/// default), 1 those on tmpfs, too, 2 either, without flushes.
pub const ADAMANT_OPTION_FLUSHING: c_int = 5;
/// Bytes of the log files. Default: 128 MiB.
pub const ADAMANT_OPTION_LOG_BYTES_MAX: c_int = 6;
/// Milliseconds that a deferred commit stays in memory at most. Default: 100.
pub const ADAMANT_OPTION_DEFERRED_MS_MAX: c_int = 7;
/// Bytes of deferred commits that stay in memory at most. Default: 4 MiB.
pub const ADAMANT_OPTION_DEFERRED_BYTES_MAX: c_int = 8;
/// 0 or 1: whether each page is verified when it is first touched. Default: 0.
pub const ADAMANT_OPTION_VERIFY_FIRST_TOUCH: c_int = 9;
/// Bytes of the process's own memory that the pool may take. Default: half of what the process may
/// have.
pub const ADAMANT_OPTION_MEMORY_BYTES_MAX: c_int = 10;
/// Bytes of memory for huge pages. Default: 0.
pub const ADAMANT_OPTION_HUGE_BYTES_MAX: c_int = 11;
/// Bytes of old values that are kept for open snapshots. Default: 1 GiB.
pub const ADAMANT_OPTION_SNAPSHOT_BYTES_MAX: c_int = 12;
/// Bytes of blocks of the engine lsm that are kept in memory. Default: 64 MiB.
pub const ADAMANT_OPTION_CACHE_BYTES_MAX: c_int = 13;
/// Files of the engine lsm that are open at once. Default: 256.
pub const ADAMANT_OPTION_OPEN_FILES_MAX: c_int = 14;
/// Bytes of keys and values in a memtable of the engine lsm. Default: 64 MiB.
pub const ADAMANT_OPTION_LSM_MEMTABLE_BYTES_MAX: c_int = 15;
/// 0 or 1: whether blocks of the engine lsm are compressed, by LZ4. Default: 1. See also
/// adamant_options_set_compression.
pub const ADAMANT_OPTION_LSM_COMPRESSION: c_int = 16;
/// Bytes of a table of the engine lsm. Default: 64 MiB.
pub const ADAMANT_OPTION_LSM_TABLE_BYTES_MAX: c_int = 17;
/// Bytes of a value from which on the engine lsm keeps it in a blob file. Default: 4 KiB.
/// UINT64_MAX: never.
pub const ADAMANT_OPTION_LSM_BLOB_BYTES_MIN: c_int = 18;
/// Bytes of addresses that the pool takes, which is how large it can become while the store is
/// open. Default: 64 GiB, or sixteen times what the pool has.
pub const ADAMANT_OPTION_ADDRESS_BYTES_MAX: c_int = 19;
/// Bytes of indexes and filters of the engine lsm that stay in memory beside the cache. Default: 64
/// MiB.
pub const ADAMANT_OPTION_PINNED_BYTES_MAX: c_int = 20;
/// How the pages of the pool get into memory: 0 the file is mapped (the default on Linux), 1 each
/// is read and verified when it is first asked for (the default elsewhere).
pub const ADAMANT_OPTION_IMAGE: c_int = 21;
/// 0 or 1: whether the store is opened for reading only, as it is at that moment, beside a process
/// that may write it. Default: 0.
pub const ADAMANT_OPTION_BESIDE_WRITER: c_int = 22;
/// Bytes that a writer keeps for such readers at most, of what it overwrites. Default: 1 GiB.
pub const ADAMANT_OPTION_READER_BYTES_MAX: c_int = 23;
/// 0 or 1: whether a thread removes expired entries of the keyspaces that were opened, by the
/// system's clock. Default: 1. With 0 they stay until adamant_expiring_remove_expired, though none
/// is shown.
pub const ADAMANT_OPTION_SWEEP_EXPIRED: c_int = 24;

/// Options of a store. To be freed by adamant_options_free, also after a store was opened with
/// them.
pub enum OptionsHandle {}

/// The options set so far.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    store: Options,
    lsm: LsmOptions,
    key: Option<EncryptionKey>,
}

impl Settings {
    /// The options for the store.
    pub(crate) fn options(&self) -> Options {
        let options = self.store.clone().lsm(self.lsm.clone());
        self.key.iter().cloned().fold(options, Options::encryption_key)
    }
}

impl Opaque for OptionsHandle {
    type Content = Mutex<Settings>;
    const KIND: u32 = 0xADA1_0002;
    const NAME: &'static str = "options";
}

/// The default options.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_options_new(options: Out<*mut OptionsHandle>) -> c_int {
    run(|| {
        options.need_handle()?;
        options.give(Mutex::default());
        Ok(ADAMANT_OK)
    })
}

/// Sets an option, ADAMANT_OPTION_..., to a number.
///
/// Fails with ADAMANT_INVALID for an option that this version does not know, or a number that it
/// cannot have.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_options_set(
    options: Changed<OptionsHandle>,
    option: c_int,
    value: u64,
) -> c_int {
    run(|| {
        let mut settings = hold(options.get()?)?;
        if set(&mut settings.store, option, value)? || set_lsm(&mut settings.lsm, option, value)? {
            return Ok(ADAMANT_OK);
        }
        Err(Failure::invalid(format!("there is no option {option} in this version")))
    })
}

/// Sets the compression of the engine lsm, level by level: "none", "lz4", "zstd" or "zstd:LEVEL"
/// (1 to 22; 3 is the default) for all of them; several, with commas in between, for the first
/// levels, of which the last one holds for all deeper levels; and at the end, after the word last,
/// that of the last level alone, where nine tenths of the data are: "none, lz4, last zstd".
///
/// Fails with ADAMANT_INVALID for another text.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_options_set_compression(
    options: Changed<OptionsHandle>,
    compression: In<c_char>,
) -> c_int {
    run(|| {
        hold(options.get()?)?.lsm.compression = compression_of(&compression)?;
        Ok(ADAMANT_OK)
    })
}

/// Sets the key of an encrypted store: 32 bytes from a good source of randomness, or the same as 64
/// hexadecimal digits; NULL for none. A store that is created is encrypted by it. The bytes are
/// copied, and the copy is overwritten when the options and the stores that have it are freed.
///
/// Fails with ADAMANT_INVALID for other bytes.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_options_set_encryption_key(
    options: Changed<OptionsHandle>,
    key: In<c_void>,
    len: usize,
) -> c_int {
    run(|| {
        let mut settings = hold(options.get()?)?;
        settings.key = match key.is_null() {
            true => None,
            false => Some(key_of(&key, len)?),
        };
        Ok(ADAMANT_OK)
    })
}

/// The key in bytes of C.
pub(crate) fn key_of(key: &In<c_void>, len: usize) -> Result<EncryptionKey> {
    EncryptionKey::parse(key.bytes(len).bytes()?).ok_or_else(|| {
        Failure::invalid(format!(
            "expected a key of 32 bytes or 64 hexadecimal digits, found {len}"
        ))
    })
}

/// The options of a handle; the default ones for NULL.
pub(crate) fn options_of(options: &In<OptionsHandle>) -> Result<Options> {
    match options.is_null() {
        true => Ok(Options::new()),
        false => Ok(hold(options.get()?)?.options()),
    }
}

/// The compressions that a text names.
pub(crate) fn compression_of(text: &In<c_char>) -> Result<LevelCompression> {
    let text = text.text("compression")?.to_string_lossy();
    text.parse().map_err(|error: LsmError| Failure::invalid(error.to_string()))
}

/// Frees options; NULL is none.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_options_free(options: Taken<OptionsHandle>) {
    run(|| options.free().map(|()| ADAMANT_OK));
}

/// Sets an option of the store; false if there is none with that number.
fn set(store: &mut Options, option: c_int, value: u64) -> Result<bool> {
    let options = store.clone();
    *store = match option {
        ADAMANT_OPTION_CREATE => options.create(switch(value)?),
        ADAMANT_OPTION_READ_ONLY => options.read_only(switch(value)?),
        ADAMANT_OPTION_DURABILITY => {
            options.durability(durability_of(c_int::try_from(value).unwrap_or(c_int::MAX))?)
        }
        ADAMANT_OPTION_FLUSHING => {
            options.flushing(one_of(value, &[Flushing::Auto, Flushing::Volatile, Flushing::None])?)
        }
        ADAMANT_OPTION_LOG_BYTES_MAX => options.log_bytes_max(value),
        ADAMANT_OPTION_DEFERRED_MS_MAX => options.deferred_ms_max(value),
        ADAMANT_OPTION_DEFERRED_BYTES_MAX => options.deferred_bytes_max(value),
        ADAMANT_OPTION_VERIFY_FIRST_TOUCH => options.verify_first_touch(switch(value)?),
        ADAMANT_OPTION_MEMORY_BYTES_MAX => options.memory_bytes_max(value),
        ADAMANT_OPTION_ADDRESS_BYTES_MAX => options.address_bytes_max(value),
        ADAMANT_OPTION_HUGE_BYTES_MAX => options.huge_bytes_max(value),
        ADAMANT_OPTION_SNAPSHOT_BYTES_MAX => options.snapshot_bytes_max(value),
        ADAMANT_OPTION_CACHE_BYTES_MAX => options.cache_bytes_max(value),
        ADAMANT_OPTION_PINNED_BYTES_MAX => options.pinned_bytes_max(value),
        ADAMANT_OPTION_IMAGE => {
            options.image(one_of(value, &[ImageKind::Mapped, ImageKind::Filled])?)
        }
        ADAMANT_OPTION_BESIDE_WRITER => options.beside_writer(switch(value)?),
        ADAMANT_OPTION_READER_BYTES_MAX => options.reader_bytes_max(value),
        ADAMANT_OPTION_SWEEP_EXPIRED => options.sweep_expired(switch(value)?),
        ADAMANT_OPTION_OPEN_FILES_MAX => {
            options.open_files_max(usize::try_from(value).unwrap_or(usize::MAX))
        }
        _ => return Ok(false),
    };
    Ok(true)
}

/// Sets an option of the engine lsm; false if there is none with that number.
fn set_lsm(lsm: &mut LsmOptions, option: c_int, value: u64) -> Result<bool> {
    match option {
        ADAMANT_OPTION_LSM_MEMTABLE_BYTES_MAX => lsm.memtable_bytes_max = value,
        ADAMANT_OPTION_LSM_TABLE_BYTES_MAX => lsm.table_bytes_max = value,
        ADAMANT_OPTION_LSM_COMPRESSION => {
            lsm.compression = one_of(value, &[Compression::None, Compression::Lz4])?.into();
        }
        ADAMANT_OPTION_LSM_BLOB_BYTES_MIN => {
            lsm.blob_bytes_min = u32::try_from(value).ok();
        }
        _ => return Ok(false),
    }
    Ok(true)
}

pub(crate) fn switch(value: u64) -> Result<bool> {
    one_of(value, &[false, true])
}

fn one_of<T: Copy>(value: u64, all: &[T]) -> Result<T> {
    let index = usize::try_from(value).unwrap_or(usize::MAX);
    let last = all.len() - 1;
    let none = || Failure::invalid(format!("expected a number from 0 to {last}, found {value}"));
    all.get(index).copied().ok_or_else(none)
}

/// The number of a durability in the header.
pub(crate) fn number_of(durability: Durability) -> c_int {
    match durability {
        Durability::Sync => ADAMANT_SYNC,
        Durability::Buffered => ADAMANT_BUFFERED,
        Durability::Deferred => ADAMANT_DEFERRED,
    }
}

/// The durability with a number of the header.
pub(crate) fn durability_of(number: c_int) -> Result<Durability> {
    match number {
        ADAMANT_SYNC => Ok(Durability::Sync),
        ADAMANT_BUFFERED => Ok(Durability::Buffered),
        ADAMANT_DEFERRED => Ok(Durability::Deferred),
        _ => Err(Failure::invalid(format!(
            "expected ADAMANT_SYNC, ADAMANT_BUFFERED or ADAMANT_DEFERRED, found {number}"
        ))),
    }
}
