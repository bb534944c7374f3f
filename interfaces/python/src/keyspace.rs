//! The writable keyspace as a mapping: each call is one commit.
//!
//! Thread safety: any number of threads.

use adamant::KeyspaceTypes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};

use crate::convert::choices;
use crate::convert::codec::Codec;
use crate::convert::dynamic::Role;
use crate::convert::keyspace_options::keyspace_options;
use crate::convert::pairs::each_pair;
use crate::convert::stats;
use crate::errors;
use crate::mapping::map::Map;
use crate::mapping::place::Place;
use crate::mapping::reader::Reader;
use crate::store::Store;

/// A keyspace for reading and writing.
#[pyclass(frozen, subclass, generic, mapping, extends = Reader, module = "adamant._native")]
pub(crate) struct Keyspace {
    /// Makes batches for `update`.
    store: Py<Store>,
}

impl Keyspace {
    /// A batch that is as durable as this handle asks for.
    pub(crate) fn batch(slf: &Bound<'_, Self>) -> PyResult<adamant::Batch> {
        let mut batch = slf.get().store.get().store(slf.py())?.batch();
        batch.durability(slf.as_super().get().keyspace()?.durability());
        Ok(batch)
    }

    /// The same keyspace with types, which are recorded or compared.
    fn with_types(
        keyspace: &Bound<'_, Self>,
        types: &(String, String),
    ) -> PyResult<PyClassInitializer<Self>> {
        let (keys, key) = Codec::typed(&types.0, Role::Key)?;
        let (values, value) = Codec::typed(&types.1, Role::Value)?;
        let (py, this, reader) = (keyspace.py(), keyspace.get(), keyspace.as_super().get());
        let types = KeyspaceTypes { key, value };
        reader.on_keyspace(py, |it| it.declare_types(&types))?;
        let map = Map::Plain(reader.keyspace()?.clone());
        let reader = Reader::new(map, Place::Now, (keys, values));
        let this = Self { store: this.store.clone_ref(py) };
        Ok(PyClassInitializer::from(reader).add_subclass(this))
    }
}

#[pymethods]
impl Keyspace {
    /// The keyspace of a name in a store; or a keyspace with types, where one and these are given.
    #[new]
    #[pyo3(signature = (store, name, engine=None, durability=None, key_codec=None, value_codec=None, lsm=None, value_compression=None, types=None, default_durability=None, merge_operator=None))]
    #[expect(clippy::too_many_arguments, reason = "the constructor of a class of Python")]
    fn new(
        store: &Bound<'_, PyAny>,
        name: &str,
        engine: Option<&str>,
        durability: Option<&str>,
        key_codec: Option<&str>,
        value_codec: Option<&str>,
        lsm: Option<Bound<'_, PyDict>>,
        value_compression: Option<&str>,
        types: Option<(String, String)>,
        default_durability: Option<&str>,
        merge_operator: Option<&str>,
    ) -> PyResult<PyClassInitializer<Self>> {
        if let Some(types) = types {
            return Self::with_types(store.cast::<Self>()?, &types);
        }
        let store = store.cast::<Store>()?;
        let py = store.py();
        let codecs = (Codec::named(py, key_codec)?, Codec::named(py, value_codec)?);
        let options =
            keyspace_options(engine, lsm.as_ref(), value_compression, default_durability)?;
        let options =
            merge_operator.into_iter().fold(options, adamant::KeyspaceOptions::merge_operator);
        let durability = durability.map(choices::durability).transpose()?;
        let keyspace = store.get().open_keyspace(py, name, options, durability)?;
        let reader = Reader::new(Map::Plain(keyspace), Place::Now, codecs);
        let this = Self { store: store.clone().unbind() };
        Ok(PyClassInitializer::from(reader).add_subclass(this))
    }

    fn __setitem__(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        Self::put(slf, key, value)
    }

    /// Sets the value of a key, whether it had one or not: like `keyspace[key] = value`.
    #[pyo3(signature = (key, value, /))]
    fn put(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        let (key, value) = (reader.key(key)?, reader.value(value)?);
        reader.on_keyspace(slf.py(), |keyspace| keyspace.put(&key, &value))
    }

    /// Merges an operand with the value of a key, by the merge operator of the keyspace. The engine
    /// lsm does not read for it.
    #[pyo3(signature = (key, operand, /))]
    fn merge(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        operand: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let reader = slf.as_super().get();
        let (key, operand) = (reader.key(key)?, reader.value(operand)?);
        reader.on_keyspace(slf.py(), |keyspace| keyspace.merge(&key, &operand))
    }

    /// Deletes a key, whether it exists or not. The engine lsm does not read for it, as it does for
    /// discard() and del.
    #[pyo3(signature = (key, /))]
    fn delete(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let reader = slf.as_super().get();
        let bytes = reader.key(key)?;
        reader.on_keyspace(slf.py(), |keyspace| keyspace.delete(&bytes))
    }

    fn __delitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let reader = slf.as_super().get();
        if let Ok(slice) = key.cast::<PySlice>() {
            let span = reader.span_of(slice)?;
            return reader.on_keyspace(slf.py(), |keyspace| keyspace.delete_range(span.bounds()));
        }
        match reader.sought(key)? {
            Some(bytes) if reader.on_keyspace(slf.py(), |keyspace| keyspace.remove(&bytes))? => {
                Ok(())
            }
            Some(_) | None => Err(reader.missing(key)),
        }
    }

    /// Removes a key if it exists; returns whether it did, for which the engine lsm has to read.
    #[pyo3(signature = (key, /))]
    fn discard(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let reader = slf.as_super().get();
        let bytes = reader.key(key)?;
        reader.on_keyspace(slf.py(), |keyspace| keyspace.remove(&bytes))
    }

    #[pyo3(signature = (key, /, *default))]
    fn pop<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let reader = slf.as_super().get();
        reader.pop(key, default, |key| reader.on_keyspace(slf.py(), |it| it.take(key)))
    }

    /// Removes and returns the entry with the highest key, or the lowest.
    #[pyo3(signature = (last=true))]
    fn popitem<'py>(slf: &Bound<'py, Self>, last: bool) -> PyResult<Bound<'py, PyTuple>> {
        let reader = slf.as_super().get();
        let pop = if last { adamant::Keyspace::pop_last } else { adamant::Keyspace::pop_first };
        let entry = reader.on_keyspace(slf.py(), pop)?;
        reader.pair(slf.py(), entry)?.ok_or_else(errors::nothing_to_pop)
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
            // As durable as if it had been set.
            reader.on_keyspace(slf.py(), adamant::Keyspace::settle)?;
            return reader.values.decode(slf.py(), &value);
        }
        // Like dict: a missing default is None, which a keyspace refuses as a value.
        let default = default.unwrap_or_else(|| slf.py().None().into_bound(slf.py()));
        let (bytes, value) = (reader.key(key)?, reader.value(&default)?);
        let swapped = reader.on_keyspace(slf.py(), |keyspace| {
            keyspace.compare_and_swap(&bytes, None::<&[u8]>, Some(&value))
        })?;
        match swapped {
            Err(Some(found)) => reader.values.decode(slf.py(), &found),
            Ok(()) | Err(None) => reader.values.decode(slf.py(), &value),
        }
    }

    /// Sets or removes the value of a key if its value is the expected one; None means no value.
    #[pyo3(signature = (key, expected, value, /))]
    fn compare_and_swap(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        expected: Option<Bound<'_, PyAny>>,
        value: Option<Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let reader = slf.as_super().get();
        let key = reader.key(key)?;
        let expected = expected.as_ref().map(|it| reader.value(it)).transpose()?;
        let value = value.as_ref().map(|it| reader.value(it)).transpose()?;
        reader.on_keyspace(slf.py(), |keyspace| {
            Ok(keyspace.compare_and_swap(&key, expected.as_deref(), value.as_deref())?.is_ok())
        })
    }

    /// Removes all entries, in one commit.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().on_keyspace(slf.py(), adamant::Keyspace::clear)
    }

    /// Moves the value of a key to another key, without copying it; returns whether there was one.
    #[pyo3(signature = (key, new_key, /))]
    fn rename(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        new_key: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let reader = slf.as_super().get();
        let (key, new_key) = (reader.key(key)?, reader.key(new_key)?);
        reader.on_keyspace(slf.py(), |it| Ok(it.rename(&key, &new_key)?.is_moved()))
    }

    /// Moves the value of a key to a key of another keyspace, without copying it; returns whether
    /// there was one.
    #[pyo3(signature = (key, target, new_key, /))]
    fn move_to(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        target: &Bound<'_, Self>,
        new_key: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (reader, other) = (slf.as_super().get(), target.as_super().get());
        let (key, new_key) = (reader.key(key)?, other.key(new_key)?);
        let target = other.keyspace()?;
        reader.on_keyspace(slf.py(), |it| Ok(it.move_to(&key, target, &new_key)?.is_moved()))
    }

    /// Swaps the values of two keys, without copying them; false if one of them does not exist.
    #[pyo3(signature = (key, other_key, /))]
    fn swap(
        slf: &Bound<'_, Self>,
        key: &Bound<'_, PyAny>,
        other_key: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let reader = slf.as_super().get();
        let (key, other_key) = (reader.key(key)?, reader.key(other_key)?);
        reader.on_keyspace(slf.py(), |it| it.swap(&key, it, &other_key))
    }

    /// What commits through this handle wait for: what it was given, or what is recorded with the
    /// keyspace, or what the store was opened with.
    #[getter]
    fn durability(slf: &Bound<'_, Self>) -> PyResult<&'static str> {
        Ok(choices::durability_name(slf.as_super().get().keyspace()?.durability()))
    }

    /// Figures of the keyspace: its size, and what was done to it since the store was opened.
    fn stats<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let stats = slf.as_super().get().on_keyspace(slf.py(), adamant::Keyspace::stats)?;
        stats::keyspace_to_dict(slf.py(), &stats)
    }

    /// An estimate of the entries in a range and of their bytes, and whether they were counted.
    #[pyo3(signature = (start=None, stop=None, prefix=None))]
    fn _estimate(
        slf: &Bound<'_, Self>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        prefix: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(u64, u64, bool)> {
        let reader = slf.as_super().get();
        let span = reader.span(start.as_ref(), stop.as_ref(), prefix.as_ref())?;
        let found = reader.on_keyspace(slf.py(), |keyspace| keyspace.estimate(span.bounds()))?;
        Ok((found.entries, found.bytes, found.is_exact))
    }

    /// Makes the keyspace small and fast to read, while it is used.
    fn compact(slf: &Bound<'_, Self>) -> PyResult<()> {
        slf.as_super().get().on_keyspace(slf.py(), adamant::Keyspace::compact)
    }

    /// Sets the values of many keys, in one commit.
    #[pyo3(signature = (*sources))]
    fn _update(slf: &Bound<'_, Self>, sources: &Bound<'_, PyTuple>) -> PyResult<()> {
        let reader = slf.as_super().get();
        let keyspace = reader.keyspace()?;
        let mut batch = Self::batch(slf)?;
        for source in sources {
            each_pair(&source, |key, value| {
                let (key, value) = (reader.key(key)?, reader.value(value)?);
                batch.put(keyspace, &key, &value).map_err(errors::of_store)
            })?;
        }
        slf.py().detach(|| batch.commit()).map_err(errors::of_store)
    }
}
