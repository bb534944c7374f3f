//! The source of a copy: a store on a machine or on objects, at one moment.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use adamant::{KeyspaceKind, Slice};

use super::error::CopyError;
use crate::keyspace::ends::{Ends, Pair};
use crate::keyspace::view::{entry, step};
use crate::layout::{OWN_ID, decode_keyspace, decode_keyspace_key, id_of, keyspace_key};
use crate::location::Location;
use crate::open;
use crate::options::Options;
use crate::shared::{Database, Shared};

/// How long a reader pins the objects that it has begun to read: a copy that takes longer may fail.
/// The pins of a killed copy expire after four times that.
const READING_MS_MAX: u64 = 6 * 60 * 60 * 1000;

/// Bytes of pages of a store on a machine that stay in memory.
pub(super) const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a cache, for which a copy has little use: it reads everything once, in order.
pub(super) const CACHE_BYTES_MAX: u64 = 8 << 20;

/// The entries of a keyspace, in order.
pub(super) type Entries<'s> = Box<dyn Iterator<Item = Result<(Slice, Slice), CopyError>> + 's>;

/// A keyspace's name, and the name of its engine; after a blank follows that of its kind, if its
/// entries are not plain: they expire, it holds their deadlines, or it is a multimap.
pub(super) type Named = (String, String);

/// A source.
pub(super) enum Source {
    Local(adamant::Store),
    Remote(Box<Objects>),
}

/// A store on objects: all of it is one scan, and so one moment. The catalogue comes first, and
/// then the keyspaces in the order of their numbers.
pub(super) struct Objects {
    shared: Arc<Shared>,
    rest: Ends,
    /// An entry that was read and belongs to a later keyspace.
    ahead: Option<Pair>,
    keyspaces: BTreeMap<u32, Named>,
}

impl Source {
    /// A store on a machine, which is not written meanwhile.
    pub(super) fn local(path: &Path, options: adamant::Options) -> Result<Self, CopyError> {
        let store = adamant::Store::open_with(path, options.read_only(true))?;
        if has_other_objects(&store)? {
            return Err(CopyError::OtherObjects { source: path.display().to_string() });
        }
        Ok(Self::Local(store))
    }

    /// A store on objects, which its writer may go on to write. `is_copy`: also one that is not
    /// finished.
    pub(super) fn remote(url: &str, is_copy: bool) -> Result<Self, CopyError> {
        let location = Location::parse(url, false)?;
        let options =
            Options::new().read_only(true).poll_ms(READING_MS_MAX).cache_bytes_max(CACHE_BYTES_MAX);
        let shared = open::open(location, &options, is_copy)?;
        let rest = Ends::new(Some((Bound::Unbounded, Bound::Unbounded)));
        let mut objects = Objects { shared, rest, ahead: None, keyspaces: BTreeMap::new() };
        objects.read_catalogue()?;
        Ok(Self::Remote(Box::new(objects)))
    }

    /// All keyspaces, in the order in which their entries are to be asked for. A history of changes
    /// is none of a copy: it is that of its store's own commits.
    pub(super) fn keyspaces(&self) -> Result<Vec<Named>, CopyError> {
        Ok(match self {
            Self::Local(store) => {
                let named = |info: adamant::KeyspaceInfo| match info.kind {
                    KeyspaceKind::Plain => (info.name, info.engine.name().to_owned()),
                    kind => (info.name, format!("{} {kind}", info.engine)),
                };
                let copied = |info: &adamant::KeyspaceInfo| info.kind != KeyspaceKind::Changes;
                store.keyspaces()?.into_iter().filter(copied).map(named).collect()
            }
            Self::Remote(objects) => objects.keyspaces.values().cloned().collect(),
        })
    }

    /// All entries of a keyspace, in the order of their keys.
    pub(super) fn entries(&mut self, name: &str) -> Result<Entries<'_>, CopyError> {
        Ok(match self {
            Self::Local(store) => {
                let keyspace = store.open_stored(name)?;
                Box::new(keyspace.iter().map(|entry| Ok(entry?)))
            }
            Self::Remote(objects) => objects.entries(name),
        })
    }

    /// Closes it.
    pub(super) fn close(self) -> Result<(), CopyError> {
        match self {
            Self::Local(store) => Ok(store.close()?),
            Self::Remote(objects) => Ok(objects.shared.close()?),
        }
    }
}

/// Whether a program has its own objects on the heap: all of those have names.
fn has_other_objects(store: &adamant::Store) -> adamant::Result<bool> {
    Ok(!store.heap()?.view()?.named_roots()?.is_empty())
}

impl Objects {
    fn read_catalogue(&mut self) -> Result<(), CopyError> {
        let names = keyspace_key("");
        while let Some((key, value)) = self.next()? {
            if key.starts_with(&names) {
                let (id, engine) = decode_keyspace(&value)?;
                self.keyspaces.insert(id, (decode_keyspace_key(&key)?, engine));
            } else if id_of(&key)? != OWN_ID {
                self.ahead = Some((key, value));
                break;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Pair>, CopyError> {
        if self.ahead.is_some() {
            return Ok(self.ahead.take());
        }
        match &self.shared.database {
            Database::Reader(reader) => {
                Ok(self.shared.wait(step(&**reader, &mut self.rest, true))?)
            }
            Database::Writer(db) => Ok(self.shared.wait(step(db, &mut self.rest, true))?),
        }
    }

    fn entries(&mut self, name: &str) -> Entries<'_> {
        let known = self.keyspaces.iter().find(|(_, (known, _))| known == name);
        let id = known.map_or(OWN_ID, |(id, _)| *id);
        let mut is_over = id == OWN_ID;
        Box::new(std::iter::from_fn(move || {
            while !is_over {
                match self.next_of(id) {
                    Ok(Some(Some(found))) => return Some(Ok(entry(found))),
                    // An entry of a dropped keyspace, not removed yet.
                    Ok(Some(None)) => {}
                    Ok(None) => is_over = true,
                    Err(error) => {
                        is_over = true;
                        return Some(Err(error));
                    }
                }
            }
            None
        }))
    }

    /// The next entry, if it is of this keyspace; `Some(None)` if it is of an earlier one, `None`
    /// if there are no more of it.
    fn next_of(&mut self, id: u32) -> Result<Option<Option<Pair>>, CopyError> {
        let Some(found) = self.next()? else { return Ok(None) };
        let of = id_of(&found.0)?;
        if of > id {
            self.ahead = Some(found);
            return Ok(None);
        }
        Ok(Some((of == id).then_some(found)))
    }
}
