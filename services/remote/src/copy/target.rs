//! The target of a copy: no store, until the copy has ended.
//!
//! Invariants: on a machine the store has another name until all of it is durable and was read
//! again. On objects a mark says that it is incomplete, and only another copy opens it then. A copy
//! that was interrupted leaves either, and the next one begins anew.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use adamant::{Durability, Engine, KeyspaceKind, KeyspaceOptions, Slice};

use super::error::CopyError;
use super::options::CopyOptions;
use super::source::{CACHE_BYTES_MAX, Entries, Source};
use crate::location::Location;
use crate::open;
use crate::options::Options;
use crate::store::Store;

/// The name suffix of a directory that is to become a store.
const SUFFIX: &str = ".copying";
/// The names that may be in it.
const OUR_NAMES: [&str; 9] =
    ["blobs", "key", "key.new", "lock", "log", "log.new", "pool", "pool.new", "tables"];
/// Bytes of a commit on objects: a few times as many are in memory at once.
const BATCH_BYTES: usize = 4 << 20;

/// Bytes of a memtable, of which several may wait to be written.
const MEMTABLE_BYTES_MAX: u64 = 8 << 20;

/// A target.
pub(super) enum Target {
    Local { store: adamant::Store, unfinished: PathBuf, path: PathBuf, engine: Option<Engine> },
    Remote { store: Store, url: String },
}

impl Target {
    /// A new directory.
    pub(super) fn local(path: &Path, options: &CopyOptions) -> Result<Self, CopyError> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(CopyError::TargetExists { target: path.display().to_string() });
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(SUFFIX);
        let unfinished = PathBuf::from(unfinished);
        if unfinished.exists() {
            remove_left(&unfinished, options.local())?;
        }
        let store = adamant::Store::open_with(&unfinished, options.local())?;
        Ok(Self::Local { store, unfinished, path: path.to_owned(), engine: options.engine })
    }

    /// A store on objects that has no keyspaces, or whose keyspaces are to be replaced.
    pub(super) fn remote(url: &str, options: &CopyOptions) -> Result<Self, CopyError> {
        let location = Location::parse(url, true)?;
        let options_here =
            Options::new().memtable_bytes_max(MEMTABLE_BYTES_MAX).cache_bytes_max(CACHE_BYTES_MAX);
        let store = Store::of(open::open(location, &options_here, true)?);
        let keyspaces = store.keyspaces()?;
        if !keyspaces.is_empty() && !store.is_unfinished()? && !options.replace {
            store.close()?;
            return Err(CopyError::TargetExists { target: url.to_owned() });
        }
        store.mark_unfinished(true)?;
        for keyspace in keyspaces {
            store.drop_keyspace(&keyspace.name)?;
        }
        Ok(Self::Remote { store, url: url.to_owned() })
    }

    /// Adds a keyspace with all its entries. `engine`: the name of its engine in the source.
    pub(super) fn add(
        &self,
        name: &str,
        engine: &str,
        entries: Entries<'_>,
    ) -> Result<(), CopyError> {
        match self {
            Self::Local { store, engine: asked, .. } => {
                let (engine, kind) = engine.split_once(' ').unwrap_or((engine, ""));
                let kept = if engine.is_empty() { None } else { engine.parse().ok() };
                let engine = asked.or(kept).unwrap_or(Engine::Lsm);
                let options = KeyspaceOptions::new().engine(engine);
                if kind == KeyspaceKind::Expiring.name() {
                    return add_ending(store, name, options, entries);
                }
                if kind == KeyspaceKind::Multimap.name() {
                    return add_multimap(store, name, options, entries);
                }
                if kind == KeyspaceKind::Deadlines.name() {
                    // The keyspace to which they belong came before them.
                    return entries.into_iter().try_for_each(|entry| entry.map(drop));
                }
                let keyspace = store.create_keyspace_with(name, options)?;
                let mut failed = None;
                let entries =
                    entries.map_while(|entry| entry.map_err(|error| failed = Some(error)).ok());
                keyspace.with_durability(Durability::Deferred).load_sorted(entries)?;
                failed.map_or(Ok(()), Err)
            }
            Self::Remote { store, .. } => add_remote(store, name, engine, entries),
        }
    }

    /// Makes everything durable and closes it, to be read again.
    pub(super) fn seal(self) -> Result<Sealed, CopyError> {
        match self {
            Self::Local { store, unfinished, path, .. } => {
                store.sync()?;
                store.close()?;
                Ok(Sealed::Local { unfinished, path })
            }
            Self::Remote { store, url } => Ok(Sealed::Remote { store, url }),
        }
    }
}

/// Pairs of a multimap, each stored as a row (docs/format/multimap.md).
fn add_multimap(
    store: &adamant::Store,
    name: &str,
    options: KeyspaceOptions,
    entries: Entries<'_>,
) -> Result<(), CopyError> {
    let multimap = store.multimap_with(name, options)?.with_durability(Durability::Deferred);
    let mut failed = None;
    let rows = entries.map_while(|entry| entry.map_err(|error| failed = Some(error)).ok());
    multimap.load_stored(rows.map(|(row, _)| row))?;
    failed.map_or(Ok(()), Err)
}

/// Expiring entries, each stored after its deadline (docs/format/expiring.md).
fn add_ending(
    store: &adamant::Store,
    name: &str,
    options: KeyspaceOptions,
    mut entries: Entries<'_>,
) -> Result<(), CopyError> {
    let all = store.expiring_with(name, options)?;
    loop {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES
            && let Some(entry) = entries.next()
        {
            let (key, stored) = entry?;
            bytes += key.len() + stored.len();
            piece.push((key, stored));
        }
        if piece.is_empty() {
            return Ok(());
        }
        store.exclusive(|transaction| {
            transaction.durability(Durability::Deferred);
            let mut all = all.within(transaction);
            for (key, stored) in &piece {
                let (value, deadline) = all.split_stored(stored)?;
                all.put(key, value, deadline)?;
            }
            Ok::<(), adamant::Error>(())
        })?;
    }
}

fn add_remote(
    store: &Store,
    name: &str,
    engine: &str,
    entries: Entries<'_>,
) -> Result<(), CopyError> {
    let keyspace = store.create_copied(name, engine)?;
    let (mut batch, mut bytes) = (store.batch(), 0);
    for entry in entries {
        let (key, value): (Slice, Slice) = entry?;
        bytes += key.len() + value.len();
        batch.put(&keyspace, &key, &value)?;
        if bytes >= BATCH_BYTES {
            std::mem::replace(&mut batch, store.batch()).commit()?;
            bytes = 0;
        }
    }
    Ok(batch.commit()?)
}

/// The complete copy, durable under another name or a mark.
pub(super) enum Sealed {
    Local { unfinished: PathBuf, path: PathBuf },
    Remote { store: Store, url: String },
}

impl Sealed {
    /// The content, read from the disk or the objects and not from memory.
    pub(super) fn source(&self, local: adamant::Options) -> Result<Source, CopyError> {
        match self {
            Self::Local { unfinished, .. } => Source::local(unfinished, local),
            Self::Remote { url, .. } => Source::remote(url, true),
        }
    }

    /// The final place.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Local { path, .. } => path.display().to_string(),
            Self::Remote { url, .. } => url.clone(),
        }
    }

    /// Makes it a store.
    pub(super) fn finish(self) -> Result<(), CopyError> {
        match self {
            Self::Local { unfinished, path } => {
                let failed = |error: std::io::Error| CopyError::Directory {
                    path: path.clone(),
                    why: error.to_string(),
                };
                if fs::symlink_metadata(&path).is_ok() {
                    return Err(CopyError::TargetExists { target: path.display().to_string() });
                }
                fs::rename(&unfinished, &path).map_err(failed)?;
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                let parent = File::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
                parent.sync_all().map_err(failed)
            }
            Self::Remote { store, .. } => {
                store.mark_unfinished(false)?;
                Ok(store.close()?)
            }
        }
    }
}

/// Removes what an interrupted copy left: nothing else, and not while it is running.
fn remove_left(unfinished: &Path, options: adamant::Options) -> Result<(), CopyError> {
    let failed = |why: String| CopyError::Directory { path: unfinished.to_owned(), why };
    let listed = fs::read_dir(unfinished).map_err(|error| failed(error.to_string()))?;
    for entry in listed {
        let name = entry.map_err(|error| failed(error.to_string()))?.file_name();
        if !OUR_NAMES.iter().any(|ours| name.to_str() == Some(ours)) {
            return Err(failed(format!(
                "expected what a copy left, found {name:?} in it; take it away"
            )));
        }
    }
    use adamant::Error;
    let opened = adamant::Store::open_with(unfinished, options.create(false));
    // With another key nobody knows whether a copy is running.
    if let Err(
        error @ (Error::Locked { .. }
        | Error::KeyNeeded { .. }
        | Error::WrongKey { .. }
        | Error::NotEncrypted { .. }),
    ) = opened
    {
        return Err(error.into());
    }
    // It may be unusable: it was never to be opened.
    drop(opened);
    fs::remove_dir_all(unfinished).map_err(|error| failed(error.to_string()))
}
