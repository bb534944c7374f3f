//! `adamant encrypt|decrypt|rekey STORE`, `adamant key new FILE`.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use adamant::{EncryptionKey, Options};
use serde_json::json;

use crate::failure::{Code, Failure, Result};
use crate::key_args::{DecryptArgs, EncryptArgs, KeyAction, KeyVerbArgs};
use crate::opening::Stores;
use crate::output::Output;
use crate::progress;

/// Writes a store anew, encrypted by the new key.
pub(crate) fn encrypt(args: &EncryptArgs, stores: &Stores, output: &Output) -> Result<()> {
    let encrypted = Options::new().encryption_key(args.new_key()?);
    write_anew(&args.store, stores, encrypted, "encrypting")?;
    let store = args.store.display().to_string();
    output.result(&json!({"encrypted": store}), &format!("{store} is encrypted by the new key"))
}

/// Writes an encrypted store anew, as one that is not.
pub(crate) fn decrypt(args: &DecryptArgs, stores: &Stores, output: &Output) -> Result<()> {
    let store = args.store.display().to_string();
    // Else one that is not encrypted would be written anew for nothing.
    if stores.key().is_none() && !stores.readable(&args.store)?.is_encrypted() {
        return Err(Failure::new(Code::Key, format!("{store} is not encrypted")));
    }
    write_anew(&args.store, stores, Options::new(), "decrypting")?;
    output.result(&json!({"decrypted": store}), &format!("{store} is not encrypted any more"))
}

fn write_anew(path: &Path, stores: &Stores, new: Options, words: &'static str) -> Result<()> {
    let bar = progress::spinner(words);
    let written = adamant::encrypt(path, stores.options(), new);
    bar.finish_and_clear();
    written?;
    Ok(())
}

/// Has another key open a store.
pub(crate) fn rekey(args: &EncryptArgs, stores: &Stores, output: &Output) -> Result<()> {
    let Some(old) = stores.key() else {
        let words = "expected the key that opens the store, found none; give it (--key-file)";
        return Err(Failure::new(Code::Key, words));
    };
    adamant::rekey(&args.store, old, &args.new_key()?)?;
    let store = args.store.display().to_string();
    output.result(&json!({"rekeyed": store}), &format!("the new key opens {store} now"))
}

/// Makes a file with a random key.
pub(crate) fn key(args: &KeyVerbArgs, output: &Output) -> Result<()> {
    let KeyAction::New { file } = &args.action;
    let key = EncryptionKey::random().map_err(adamant::Error::from)?;
    write_new(file, &key).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let words = format!("{} is there already; nothing was changed", file.display());
            Failure::new(Code::BadInput, words)
        }
        _ => Failure::file(file, &error),
    })?;
    let file = file.display().to_string();
    let words = format!("{file} is a new key; without it what it encrypts is lost, so keep a copy");
    output.result(&json!({"key_file": file}), &words)
}

/// Writes a file that only its owner can read, durably.
fn write_new(path: &Path, key: &EncryptionKey) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(key.to_text().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    sync_folder_of(path)
}

/// Syncs the name of a file, too.
#[cfg(unix)]
fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Folders cannot be synced there.
#[cfg(not(unix))]
fn sync_folder_of(_: &Path) -> io::Result<()> {
    Ok(())
}
