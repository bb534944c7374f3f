//! Named roots: names by which a program finds its objects again.
//!
//! Purpose: store each name with the layout of its object. A program that expects another type or
//! version gets an error instead of reading the bytes as its own.
//! Invariants: a change of the directory writes a new block and frees the old one (S2).

use crate::error::{Error, Result};
use crate::layout::{DIRECTORY_ROOT, NAMED_ROOT_COUNT_MAX};
use crate::objects::access::{Read, Write};
use crate::objects::directory::{NamedRoot, check_name, decode, encode};
use crate::objects::persistent::Persistent;
use crate::objects::typed::{TypedRead, TypedWrite};
use crate::ptr::Ptr;
use crate::transaction::tx::Transaction;
use crate::transaction::view::View;

impl View<'_> {
    /// The object with a name, if there is one. O(number of named roots): keep the pointer.
    ///
    /// # Errors
    /// `Error::WrongLayout` when it has another type, or another version of it; `Error::Misuse`
    /// when no root can have that name.
    pub fn named_root<T: Persistent>(&self, name: &str) -> Result<Option<Ptr<T>>> {
        find(&self.named_roots()?, name)
    }

    /// All named roots, in the order of their names.
    ///
    /// # Errors
    /// `Error::InvalidPointer` when the directory is damaged.
    pub fn named_roots(&self) -> Result<Vec<NamedRoot>> {
        load(self, self.root(DIRECTORY_ROOT))
    }
}

impl Transaction<'_> {
    /// The object with a name, if there is one. O(number of named roots): keep the pointer.
    ///
    /// # Errors
    /// As [`View::named_root`].
    pub fn named_root<T: Persistent>(&self, name: &str) -> Result<Option<Ptr<T>>> {
        find(&self.named_roots()?, name)
    }

    /// All named roots, in the order of their names.
    ///
    /// # Errors
    /// `Error::InvalidPointer` when the directory is damaged.
    pub fn named_roots(&self) -> Result<Vec<NamedRoot>> {
        load(self, self.root(DIRECTORY_ROOT))
    }

    /// The object with a name; `make` makes it if there is none.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use adamant_heap::{Durability, Error, Heap, MemoryDirectory, Options, Ptr, TypedRead};
    /// # let (heap, _) = Heap::open(Arc::new(MemoryDirectory::new()), Options::default())?;
    /// let limit = heap.transaction(Durability::Sync, |tx| {
    ///     tx.named_root_or_create("limit", |_| Ok(100_u64))
    /// })?;
    /// let view = heap.view()?;
    /// assert_eq!(view.named_root("limit")?, Some(limit));
    /// assert_eq!(*view.get(limit)?, 100);
    /// // Found, but of another type: an error that names both.
    /// let error = view.named_root::<i64>("limit").unwrap_err().to_string();
    /// assert!(error.contains("expected i64 version 1 of 8 bytes, found u64 version 1"));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Transaction::named_root`] and [`Transaction::set_named_root`], and what `make` returns.
    pub fn named_root_or_create<T: Persistent>(
        &mut self,
        name: &str,
        make: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Ptr<T>> {
        if let Some(found) = self.named_root(name)? {
            return Ok(found);
        }
        let value = make(self)?;
        let ptr = self.create(value)?;
        self.set_named_root(name, ptr)?;
        Ok(ptr)
    }

    /// Gives an object a name. Returns the object that had that name before; it is not destroyed.
    /// O(number of named roots): name a few objects that hold the pointers to all others.
    ///
    /// # Errors
    /// `Error::InvalidPointer` when `ptr` is no object; `Error::WrongLayout` when the name belongs
    /// to an object of another type or version: remove it first with
    /// [`Transaction::remove_named_root`]; `Error::Misuse` for a name that no root can have and for
    /// more than 1,024 roots.
    pub fn set_named_root<T: Persistent>(
        &mut self,
        name: &str,
        ptr: Ptr<T>,
    ) -> Result<Option<Ptr<T>>> {
        self.get(ptr)?;
        let mut roots = self.named_roots()?;
        let before = find(&roots, name)?;
        let root = NamedRoot::new(name, ptr.offset(), T::STORED);
        match position(&roots, name) {
            Ok(at) => roots[at] = root,
            Err(_) if roots.len() == NAMED_ROOT_COUNT_MAX => {
                return Err(Error::Misuse {
                    what: "a heap has at most 1024 named roots; keep pointers in an object",
                });
            }
            Err(at) => roots.insert(at, root),
        }
        self.store_named_roots(&roots)?;
        Ok(before)
    }

    /// Removes a name and returns the object that had it, which is not destroyed.
    ///
    /// # Errors
    /// As [`Transaction::named_root`].
    pub fn remove_named_root<T: Persistent>(&mut self, name: &str) -> Result<Option<Ptr<T>>> {
        let mut roots = self.named_roots()?;
        let before = find(&roots, name)?;
        if let Ok(at) = position(&roots, name) {
            roots.remove(at);
            self.store_named_roots(&roots)?;
        }
        Ok(before)
    }

    fn store_named_roots(&mut self, roots: &[NamedRoot]) -> Result<()> {
        let before = self.root(DIRECTORY_ROOT);
        let block = match roots {
            [] => 0,
            roots => {
                let bytes = encode(roots);
                let block = self.reserve(bytes.len() as u64)?;
                self.write(block, 0, bytes.len())?.copy_from_slice(&bytes);
                block
            }
        };
        self.set_root_word(DIRECTORY_ROOT, block)?;
        if before != 0 {
            self.free(before)?;
        }
        Ok(())
    }
}

fn load(read: &impl Read, directory: u64) -> Result<Vec<NamedRoot>> {
    match directory {
        0 => Ok(Vec::new()),
        offset => decode(read.block(offset)?, offset),
    }
}

fn position(roots: &[NamedRoot], name: &str) -> std::result::Result<usize, usize> {
    roots.binary_search_by(|root| root.name.as_str().cmp(name))
}

fn find<T: Persistent>(roots: &[NamedRoot], name: &str) -> Result<Option<Ptr<T>>> {
    check_name(name)?;
    let Ok(at) = position(roots, name) else { return Ok(None) };
    roots[at].expect(T::STORED)?;
    Ok(Some(Ptr::new(roots[at].offset)))
}
