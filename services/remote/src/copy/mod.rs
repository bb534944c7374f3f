//! Copies of all keyspaces of a store to another one, between a machine and objects.
//!
//! Purpose: moves a store to objects when it has grown larger than a disk, and back when it fits
//! again. Entries are streamed, and what the stores keep in memory for that is bounded
//! (docs/remote.md). The source is read at one moment, and is not written; a store on objects is
//! read beside its writer.
//! Invariants: the target becomes a store when all of it is durable and, read again, has the digest
//! of the source; before that it does not open as a store. After any failure, the next run begins
//! anew.

mod digest;
mod error;
mod source;
mod options;
mod target;

use std::path::Path;

use crate::location::SCHEME_PREFIX;
use digest::Digester;
use source::Source;
use target::Target;

pub use digest::Digest;
pub use error::CopyError;
pub use options::CopyOptions;

/// Copies a store to an empty place. Source and target are directories of stores on a machine, or
/// URLs of stores on objects. Returns the digest of the copy, all of which was read again. O(n).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = |name: &str| directory.path().join(name).display().to_string();
/// use adamant_remote::{CopyOptions, copy};
///
/// adamant::Store::open(path("app.adamant"))?.keyspace("towns")?.put("Bern", "134,000")?;
/// let url = format!("slatedb+file://{}", path("objects"));
/// let there = copy(&path("app.adamant"), &url, &CopyOptions::new())?;
/// let back = copy(&url, &path("again.adamant"), &CopyOptions::new())?;
/// assert_eq!((there.entries, there), (1, back));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of reading the source and writing the target, and [`CopyError`]'s own. The target is no
/// store then.
pub fn copy(source: &str, target: &str, options: &CopyOptions) -> Result<Digest, CopyError> {
    let is_url = |place: &str| place.starts_with(SCHEME_PREFIX);
    let mut source = match is_url(source) {
        true => Source::remote(source, false)?,
        false => Source::local(Path::new(source), options.local())?,
    };
    let target = match is_url(target) {
        true => Target::remote(target, options)?,
        false => Target::local(Path::new(target), options)?,
    };
    let mut digester = Digester::default();
    for (name, engine) in source.keyspaces()? {
        digester.keyspace(&name);
        let entries = source.entries(&name)?.inspect(|entry| {
            if let Ok((key, value)) = entry {
                digester.entry(key, value);
            }
        });
        target.add(&name, &engine, Box::new(entries))?;
    }
    source.close()?;
    let sealed = target.seal()?;
    let (expected, found) = (digester.digest(), digest_of(sealed.source(options.local())?)?);
    if expected != found {
        return Err(CopyError::Differs { target: sealed.place(), expected, found });
    }
    sealed.finish()?;
    Ok(found)
}

/// Reads all of a store.
fn digest_of(mut source: Source) -> Result<Digest, CopyError> {
    let mut digester = Digester::default();
    for (name, _) in source.keyspaces()? {
        digester.keyspace(&name);
        for entry in source.entries(&name)? {
            let (key, value) = entry?;
            digester.entry(&key, &value);
        }
    }
    source.close()?;
    Ok(digester.digest())
}
