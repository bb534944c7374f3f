//! Opening stores and keyspaces for subcommands.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use adamant::{
    Batch, EncryptionKey, Error, Expiring, KeyBounds, Keyspace, KeyspaceKind, Multimap, Options,
    Slice, Store,
};

use crate::failure::{Code, Failure, Result};
use crate::target::Target;

/// Opens stores, with the key if one was given.
pub(crate) struct Stores {
    key: Option<EncryptionKey>,
    /// Whether standard input had the key.
    input_taken: bool,
}

impl Stores {
    pub(crate) fn new(key: Option<EncryptionKey>, input_taken: bool) -> Self {
        Self { key, input_taken }
    }

    /// The key, if one was given.
    pub(crate) fn key(&self) -> Option<&EncryptionKey> {
        self.key.as_ref()
    }

    /// The options that all stores are opened with. Commands are short: none removes what has
    /// expired besides doing its work.
    pub(crate) fn options(&self) -> Options {
        let options = Options::new().sweep_expired(false);
        self.key.iter().cloned().fold(options, Options::encryption_key)
    }

    /// Opens an existing store.
    pub(crate) fn existing(&self, path: &Path) -> Result<Store> {
        Ok(Store::open_with(path, self.options().create(false))?)
    }

    /// Opens a store, or creates it if there is none.
    pub(crate) fn created(&self, path: &Path) -> Result<Store> {
        Ok(Store::open_with(path, self.options())?)
    }

    /// Opens an existing store for reading only: it may be on a read-only medium, and other
    /// processes may read it too. Beside a process that writes it, as it is now.
    pub(crate) fn readable(&self, path: &Path) -> Result<Store> {
        match Store::open_with(path, self.options().read_only(true)) {
            // Where that is not allowed, the first error is the one to act on.
            Err(locked @ Error::Locked { .. }) => self.beside(path).or(Err(locked.into())),
            opened => Ok(opened?),
        }
    }

    /// Opens an existing store for reading beside a process that writes it.
    pub(crate) fn beside(&self, path: &Path) -> Result<Store> {
        Ok(Store::open_with(path, self.options().beside_writer(true))?)
    }

    /// Opens an existing keyspace and its store, for reading only.
    pub(crate) fn readable_keyspace(&self, target: &Target) -> Result<(Store, Readable)> {
        let store = self.readable(&target.store)?;
        let stored = store.open_stored(&target.keyspace)?;
        let keyspace = match stored.kind() {
            KeyspaceKind::Expiring => Readable::Ending(store.open_expiring(&target.keyspace)?),
            KeyspaceKind::Multimap if has_texts(&store, &target.keyspace)? => {
                Readable::Pairs(store.open_multimap(&target.keyspace)?)
            }
            _ => Readable::Plain(stored),
        };
        Ok((store, keyspace))
    }

    /// Opens an existing keyspace and its store.
    pub(crate) fn existing_keyspace(&self, target: &Target) -> Result<(Store, Keyspace)> {
        let store = self.existing(&target.store)?;
        let keyspace = store.open_keyspace(&target.keyspace)?;
        Ok((store, keyspace))
    }

    /// Opens a keyspace and its store, or creates them if there are none.
    pub(crate) fn created_keyspace(&self, target: &Target) -> Result<(Store, Keyspace)> {
        let store = self.created(&target.store)?;
        let keyspace = store.keyspace(&target.keyspace)?;
        Ok((store, keyspace))
    }

    /// Opens a keyspace or a multimap and its store, or creates them if there are none.
    pub(crate) fn created_for_import(
        &self,
        target: &Target,
        multimap: bool,
    ) -> Result<(Store, Writable)> {
        let store = self.created(&target.store)?;
        let name = &*target.keyspace;
        let is_multimap = match store.open_stored(name) {
            Ok(stored) => stored.kind() == KeyspaceKind::Multimap,
            Err(Error::UnknownKeyspace { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        let keyspace = match multimap || is_multimap {
            true => Writable::Pairs(store.multimap(name)?),
            false => Writable::Plain(store.keyspace(name)?),
        };
        Ok((store, keyspace))
    }

    /// A program of ours that is to open the same stores.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(self.key.iter().flat_map(|_| ["--key-file", "-"]));
        command
    }

    /// Starts it. It gets the key by its standard input: others on the machine see arguments.
    pub(crate) fn start(&self, command: &mut Command) -> io::Result<Child> {
        let mut child = command.stdin(Stdio::piped()).spawn()?;
        if let (Some(mut input), Some(key)) = (child.stdin.take(), &self.key) {
            // One that ends without the key says itself why.
            let _ = input.write_all(key.to_text().as_bytes());
        }
        Ok(child)
    }

    /// Fails if standard input, which is to hold something else, had the key.
    pub(crate) fn need_input(&self) -> Result<()> {
        match self.input_taken {
            false => Ok(()),
            true => Err(Failure::new(
                Code::BadInput,
                "standard input cannot be both the key and what is stored: give the key in a file, or \
                 by --key-command",
            )),
        }
    }
}

/// The merge operator that a keyspace records, by name.
pub(crate) fn recorded_operator(store: &Store, name: &str) -> Result<Option<String>> {
    let info = store.keyspaces()?.into_iter().find(|info| info.name == name);
    Ok(info.and_then(|info| info.merge_operator))
}

/// Whether the keys of a multimap are texts or bytes, as far as its types are recorded: the command
/// does not know where others end.
fn has_texts(store: &Store, name: &str) -> Result<bool> {
    let info = store.keyspaces()?.into_iter().find(|info| info.name == name);
    let types = info.and_then(|info| info.types);
    Ok(types.is_none_or(|types| matches!(&*types.key.name, "String" | "bytes")))
}

/// A keyspace for imports.
pub(crate) enum Writable {
    Plain(Keyspace),
    Pairs(Multimap),
}

impl Writable {
    /// Puts an entry, or a pair of a multimap.
    pub(crate) fn put_into(
        &self,
        batch: &mut Batch,
        key: &[u8],
        value: &[u8],
    ) -> adamant::Result<()> {
        match self {
            Self::Plain(keyspace) => batch.put(keyspace, key, value),
            Self::Pairs(multimap) => multimap.put_into(batch, key, value),
        }
    }
}

/// A keyspace for reading: of an expiring one the entries that have not expired, without their
/// deadlines; of a multimap the pairs.
pub(crate) enum Readable {
    Plain(Keyspace),
    Ending(Expiring),
    Pairs(Multimap),
}

/// Entries in order, from both ends.
pub(crate) type Entries = Box<dyn DoubleEndedIterator<Item = adamant::Result<(Slice, Slice)>>>;

impl Readable {
    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> adamant::Result<Option<Slice>> {
        match self {
            Self::Plain(keyspace) => keyspace.get(key),
            Self::Ending(expiring) => expiring.get(key),
            Self::Pairs(multimap) => Err(Error::WrongKind {
                name: multimap.name().to_owned(),
                found: KeyspaceKind::Multimap,
            }),
        }
    }

    /// The entries of a range.
    pub(crate) fn range(&self, range: impl KeyBounds) -> Entries {
        match self {
            Self::Plain(keyspace) => Box::new(keyspace.range(range)),
            Self::Ending(expiring) => Box::new(
                expiring.range(range).map(|entry| entry.map(|(key, value, _)| (key, value))),
            ),
            Self::Pairs(multimap) => {
                let (lower, upper) = range.bounds();
                Box::new(multimap.range((lower.map(Slice::from), upper.map(Slice::from))))
            }
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> adamant::Result<u64> {
        match self {
            Self::Plain(keyspace) => keyspace.len(),
            Self::Ending(expiring) => expiring.len(),
            Self::Pairs(multimap) => multimap.len(),
        }
    }
}
