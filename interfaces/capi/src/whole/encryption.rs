//! Encryption at rest: whether a store is encrypted, other keys, encryption of what is there.

use std::ffi::{c_char, c_int, c_void};

use crate::border::code::ADAMANT_OK;
use crate::border::failure::run;
use crate::border::options::{OptionsHandle, key_of, options_of};
use crate::border::pointers::{Changed, In, Out};
use crate::whole::store::{StoreHandle, path_of};

/// Whether the files of a store are encrypted: 1, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_is_encrypted(store: In<StoreHandle>, encrypted: Out<c_int>) -> c_int {
    run(|| {
        encrypted.need("encrypted")?;
        encrypted.set(c_int::from(store.store()?.is_encrypted()));
        Ok(ADAMANT_OK)
    })
}

/// Has another key open an encrypted store from now on, instead of the one that did, at once: the
/// files stay as they are. The key is as of adamant_options_set_encryption_key. Backups that were
/// made before keep theirs. Somebody who has the old key and an old copy of the file "key" can read
/// the files of today: if that may be, use adamant_encrypt.
///
/// Fails with ADAMANT_NOT_ENCRYPTED for a store that is not.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_rekey(store: Changed<StoreHandle>, key: In<c_void>, len: usize) -> c_int {
    run(|| {
        store.store()?.rekey(&key_of(&key, len)?)?;
        Ok(ADAMANT_OK)
    })
}

/// Writes a store that nobody has open anew, encrypted by the key of the new options; not encrypted
/// if they have none. The options open it as it is; NULL for the default ones. It takes as much
/// space again as all entries. A crash leaves the one or the other. The old files are removed,
/// which does not erase them from a device.
#[unsafe(no_mangle)]
pub extern "C" fn adamant_encrypt(
    path: In<c_char>,
    options: In<OptionsHandle>,
    new_options: In<OptionsHandle>,
) -> c_int {
    run(|| {
        let path = path_of(path.text("path")?)?;
        adamant::encrypt(path, options_of(&options)?, options_of(&new_options)?)?;
        Ok(ADAMANT_OK)
    })
}
