//! Expiring keyspaces as mappings: each call is one commit, or a part of a transaction.
//!
//! Thread safety: any number of threads.

use adamant::expiring::ExpiringTransaction;
use adamant::{Deadline, Slice};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};

use crate::convert::choices;
use crate::convert::codec::Codec;
use crate::convert::keyspace_options::keyspace_options;
use crate::convert::moment::{self, Ends};
use crate::convert::pairs::each_pair;
use crate::convert::span::Span;
use crate::errors;
use crate::mapping::map::Map;
use crate::mapping::place::{Place, with_transaction};
use crate::mapping::reader::Reader;
use crate::store::Store;
use crate::transaction::Transaction;

/// An expiring keyspace for reading and writing.
#[pyclass(frozen, subclass, generic, mapping, extends = Reader, module = "adamant._native")]
pub(crate) struct Expiring {
    store: Py<Store>,
}

impl Expiring {
    /// Changes entries: in a commit of its own, unless this belongs to a transaction.
    fn change<T: Send>(
        slf: &Bound<'_, Self>,
        work: impl FnOnce(&adamant::Expiring, &mut ExpiringTransaction<'_>) -> adamant::Result<T> + Send,
    ) -> PyResult<T> {
        let store = slf.get().store.get().store(slf.py())?;
        slf.as_super().get().detached(slf.py(), move |map, place| {
            let expiring = map.expiring()?;
            match place {
                Place::Within(transaction) => {
                    with_transaction(transaction, |it| work(expiring, &mut expiring.within(it)))
                }
                Place::Now | Place::At(_) => Ok(store.exclusive(|it| {
                    it.durability(expiring.keyspaces().0.durability());
                    work(expiring, &mut expiring.within(it))
                })?),
            }
        })
    }

    /// Waits until what was read is as durable as a write would be.
    fn settle(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().detached(slf.py(), |map, place| match place {
            Place::Within(_) => Ok(()),
            Place::Now | Place::At(_) => Ok(map.expiring()?.settle()?),
        })
    }
}

/// Removes the entries in a part of it.
fn remove_span(all: &mut ExpiringTransaction<'_>, span: &Span) -> adamant::Result<()> {
    all.retain(span.bounds(), |_, _, _| false).map(drop)
}

#[pymethods]
impl Expiring {
    #[new]
    #[pyo3(signature = (store, name, engine=None, durability=None, key_codec=None, value_codec=None, clock=None, lsm=None, value_compression=None, default_durability=None))]
    #[expect(clippy::too_many_arguments, reason = "the constructor of a class of Python")]
    fn new(
        store: &Bound<'_, Store>,
        name: &str,
        engine: Option<&str>,
        durability: Option<&str>,
        key_codec: Option<&str>,
        value_codec: Option<&str>,
        clock: Option<Py<PyAny>>,
        lsm: Option<Bound<'_, PyDict>>,
        value_compression: Option<&str>,
        default_durability: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let py = store.py();
        let codecs = (Codec::named(py, key_codec)?, Codec::named(py, value_codec)?);
        let options =
            keyspace_options(engine, lsm.as_ref(), value_compression, default_durability)?;
        let durability = durability.map(choices::durability).transpose()?;
        let expiring = store.get().open_expiring(py, name, options, durability)?;
        let reader = Reader::new(Map::Ending(expiring), Place::Now, codecs).with_clock(clock);
        let this = Self { store: store.clone().unbind() };
        Ok(PyClassInitializer::from(reader).add_subclass(this))
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Self::put(slf, key, value, None, None)
    }

    /// Sets the value of a key, and its expiry: after ttl, at a deadline, or never. A number counts
    /// seconds, for a deadline since 1970.
    #[pyo3(signature = (key, value, /, *, ttl=None, deadline=None))]
    fn put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        deadline: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        let (key, value, ends) = (reader.key(key)?, reader.value(value)?, Ends::of(ttl, deadline)?);
        Self::change(slf, |expiring, all| all.put(&key, &value, ends.by(expiring)))
    }

    /// Changes the expiry of a value; returns whether the key exists.
    #[pyo3(signature = (key, /, *, ttl=None, deadline=None))]
    fn set_deadline(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        deadline: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (key, ends) = (slf.as_super().get().key(key)?, Ends::of(ttl, deadline)?);
        if matches!(ends, Ends::Never) {
            let words = "give ttl or deadline; persist() takes a deadline away";
            return Err(errors::named("InvalidArgument", words));
        }
        Self::change(slf, |expiring, all| all.set_deadline(&key, ends.by(expiring)))
    }

    /// Removes the expiry of a value; returns whether the key exists.
    #[pyo3(signature = (key, /))]
    fn persist(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = slf.as_super().get().key(key)?;
        Self::change(slf, |_, all| all.set_deadline(&key, None))
    }

    /// Seconds until the value of a key expires, None if it never does.
    #[pyo3(signature = (key, /))]
    fn ttl(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        slf.as_super().get().ttl(key)
    }

    /// The time at which the value of a key expires, in seconds since 1970, None if it never does.
    #[pyo3(signature = (key, /))]
    fn deadline(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        slf.as_super().get().deadline(key)
    }

    /// Removes expired entries, at most so many, in one commit; returns how many.
    #[pyo3(signature = (entries_max=None))]
    fn purge(slf: &Bound<'_, Self>, entries_max: Option<usize>) -> PyResult<u64> {
        // Most calls find nothing: they do not take the writer lock.
        let is_due = slf.as_super().get().detached(slf.py(), |map, place| {
            let expiring = map.expiring()?;
            let due = Deadline::from_millis(expiring.now());
            Ok(matches!(place, Place::Within(_))
                || expiring.next_deadline()?.is_some_and(|next| next <= due))
        })?;
        if !is_due {
            return Self::settle(slf).map(|()| 0);
        }
        Self::change(slf, |_, all| all.remove_expired(entries_max.unwrap_or(usize::MAX)))
    }

    /// The earliest deadline, which may have passed, in seconds since 1970; None: there is none.
    fn next_deadline(slf: &Bound<'_, Self>) -> PyResult<Option<f64>> {
        let next = slf.as_super().get().detached(slf.py(), |map, place| {
            let expiring = map.expiring()?;
            match place {
                Place::Within(transaction) => {
                    with_transaction(transaction, |it| expiring.within(it).next_deadline())
                }
                Place::Now | Place::At(_) => Ok(expiring.next_deadline()?),
            }
        })?;
        Ok(next.map(|next| moment::seconds(next.millis())))
    }

    /// Deletes a key and its expiry, whether it exists or not.
    #[pyo3(signature = (key, /))]
    fn delete(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = slf.as_super().get().key(key)?;
        Self::change(slf, |_, all| all.delete(&key))
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(slice) = key.cast::<PySlice>() {
            let span = slf.as_super().get().span_of(slice)?;
            return Self::change(slf, |_, all| remove_span(all, &span));
        }
        let reader = slf.as_super().get();
        match reader.sought(key)? {
            Some(bytes) if Self::change(slf, |_, all| all.remove(&bytes))? => Ok(()),
            Some(_) | None => Err(reader.missing(key)),
        }
    }

    /// Removes a key if it exists; returns whether it did.
    #[pyo3(signature = (key, /))]
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = slf.as_super().get().key(key)?;
        Self::change(slf, |_, all| all.remove(&key))
    }

    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let take = |key: &[u8]| Self::change(slf, |_, all| all.take(key));
        slf.as_super().get().pop(key, default, take)
    }

    /// Removes and returns the entry with the highest key, or the lowest.
    #[pyo3(signature = (last=true))]
    fn popitem<'py>(slf: &Bound<'py, Self>, last: bool) -> PyResult<Bound<'py, PyTuple>> {
        let entry = Self::change(slf, |_, all| {
            let entry = if last { all.pop_last() } else { all.pop_first() }?;
            Ok(entry.map(|(key, value, _)| (key, value)))
        })?;
        slf.as_super().get().pair(slf.py(), entry)?.ok_or_else(errors::nothing_to_pop)
    }

    /// The value of a key; a key without one gets the default.
    #[pyo3(signature = (key, default=None, /))]
    fn setdefault<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = slf.as_super().get();
        if let Some(value) = reader.find(key)? {
            Self::settle(slf)?;
            return reader.values.decode(slf.py(), &value);
        }
        // Like dict: a missing default is None, which a keyspace refuses as a value.
        let default = default.unwrap_or_else(|| slf.py().None().into_bound(slf.py()));
        let (key, value) = (reader.key(key)?, reader.value(&default)?);
        let found = Self::change(slf, |_, all| {
            let found = all.get(&key)?;
            if found.is_none() {
                all.put(&key, &value, None)?;
            }
            Ok(found)
        })?;
        reader.values.decode(slf.py(), found.as_deref().unwrap_or(&value))
    }

    #[pyo3(signature = (*sources))]
    fn _update(slf: &Bound<'_, Self>, sources: &Bound<'_, PyTuple>) -> PyResult<()> {
        let reader = slf.as_super().get();
        // Collected before, since no Python code may run while a lock of the store is held.
        let mut pairs: Vec<(Slice, Slice)> = Vec::new();
        for source in sources {
            each_pair(&source, |key, value| {
                pairs
                    .push((reader.key(key)?.as_ref().into(), reader.value(value)?.as_ref().into()));
                Ok(())
            })?;
        }
        Self::change(slf, |_, all| {
            pairs.iter().try_for_each(|(key, value)| all.put(key, value, None))
        })
    }
}

/// An expiring keyspace within a transaction, at the time of each call.
#[pyclass(frozen, subclass, generic, mapping, extends = Expiring, module = "adamant._native")]
pub(crate) struct TransactionExpiring;

#[pymethods]
impl TransactionExpiring {
    #[new]
    fn new(
        transaction: &Bound<'_, Transaction>,
        expiring: &Bound<'_, Expiring>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let py = transaction.py();
        let (this, reader) = (expiring.get(), expiring.as_super().get());
        let place = Place::Within(transaction.get().open()?.clone());
        let reader = Reader::new(reader.map_now(py)?, place, reader.codecs());
        let this = Expiring { store: this.store.clone_ref(py) };
        Ok(PyClassInitializer::from(reader).add_subclass(this).add_subclass(Self))
    }
}
