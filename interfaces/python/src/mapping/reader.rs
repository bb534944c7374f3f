//! The read side of a keyspace as a mapping.
//!
//! Purpose: the common part of all mappings: of the current state, of a snapshot, of a transaction.
//! Thread safety: any number of threads.

use std::borrow::Cow;

use adamant::Slice;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice, PyTuple};

use crate::convert::codec::Codec;
use crate::convert::lent::Lent;
use crate::convert::moment;
use crate::convert::span::Span;
use crate::errors;
use crate::fork::Kept;
use crate::mapping::cursor::{Cursor, Kind};
use crate::mapping::map::Map;
use crate::mapping::place::{Entry, Place};

/// A keyspace for reading.
#[pyclass(frozen, subclass, generic, mapping, module = "adamant._native")]
pub(crate) struct Reader {
    /// The keyspace, and the state to read.
    source: Kept<(Map, Place)>,
    pub(crate) keys: Codec,
    pub(crate) values: Codec,
    /// A Python clock that replaces the system's, for expiring keyspaces.
    clock: Option<Py<PyAny>>,
}

impl Reader {
    pub(crate) fn new(map: Map, place: Place, (keys, values): (Codec, Codec)) -> Self {
        Self { source: Kept::new((map, place)), keys, values, clock: None }
    }

    pub(crate) fn with_clock(self, clock: Option<Py<PyAny>>) -> Self {
        Self { clock, ..self }
    }

    /// The keyspace.
    pub(crate) fn keyspace(&self) -> PyResult<&adamant::Keyspace> {
        Ok(self.source.get()?.0.keyspace())
    }

    /// The map for a snapshot or a transaction; for an expiring keyspace with its clock fixed at
    /// now.
    ///
    /// # Errors
    /// `TypeError` for a keyspace that belongs to a snapshot or transaction already.
    pub(crate) fn map_now(&self, py: Python<'_>) -> PyResult<Map> {
        let (map, place) = self.source.get()?;
        if !matches!(place, Place::Now) {
            return Err(PyTypeError::new_err(
                "expected a keyspace of the store, found what a snapshot or transaction sees of one",
            ));
        }
        let asked = self.clock.as_ref().map(|clock| moment::asked(py, clock)).transpose()?;
        Ok(map.at_time(asked.unwrap_or_else(|| map.now())))
    }

    pub(crate) fn codecs(&self) -> (Codec, Codec) {
        (self.keys.clone(), self.values.clone())
    }

    /// The bytes of a key.
    pub(crate) fn key<'a>(&self, key: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        self.keys.encode(key, "a key")
    }

    /// The bytes of a key to look up; `None` for an object that cannot be a key.
    pub(crate) fn sought<'a>(&self, key: &'a Bound<'_, PyAny>) -> PyResult<Option<Cow<'a, [u8]>>> {
        self.keys.sought(key)
    }

    /// The exception for a missing key: it says so if such an object cannot be a key.
    pub(crate) fn missing(&self, key: &Bound<'_, PyAny>) -> PyErr {
        match self.key(key) {
            Err(error) if self.keys.refuses(key.py(), &error) => {
                errors::named("NotAKey", error.value(key.py()).to_string())
            }
            Ok(_) | Err(_) => errors::missing_key(key),
        }
    }

    /// `pop`: the value of a key, removed by `take`, or else the default.
    pub(crate) fn pop<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
        take: impl FnOnce(&[u8]) -> PyResult<Option<Slice>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let taken = self.sought(key)?.map_or(Ok(None), |bytes| take(&bytes))?;
        match taken {
            Some(value) => self.values.decode(key.py(), &value),
            None => self.default_of(key, default),
        }
    }

    /// The result of `pop` for a missing key: the default, if one is given.
    fn default_of<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: &Bound<'py, PyTuple>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match default.len() {
            0 => Err(self.missing(key)),
            1 => default.get_item(0),
            more => {
                let words = format!("pop expected at most 2 arguments, got {}", more + 1);
                Err(PyTypeError::new_err(words))
            }
        }
    }

    /// The bytes of a value.
    pub(crate) fn value<'a>(&self, value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        self.values.encode(value, "a value")
    }

    /// Calls a closure with the map and the state to read, detached from the interpreter.
    pub(crate) fn detached<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Map, &Place) -> errors::Result<T> + Send,
    ) -> PyResult<T> {
        let (map, place) = self.source.get()?;
        let Some(clock) = &self.clock else { return Ok(py.detach(|| work(map, place))?) };
        // Called before, since no Python code may run while a lock of the store is held.
        let map = map.at_time(moment::asked(py, clock)?);
        Ok(py.detach(|| work(&map, place))?)
    }

    /// Calls a closure with the keyspace, detached from the interpreter.
    pub(crate) fn on_keyspace<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&adamant::Keyspace) -> adamant::Result<T> + Send,
    ) -> PyResult<T> {
        let keyspace = self.keyspace()?;
        py.detach(|| work(keyspace)).map_err(errors::of_store)
    }

    /// The deadline of a key, and the time now, in milliseconds.
    ///
    /// # Errors
    /// `KeyError` if it does not exist.
    pub(crate) fn ends(&self, key: &Bound<'_, PyAny>) -> PyResult<(Option<u64>, u64)> {
        let Some(bytes) = self.sought(key)? else { return Err(self.missing(key)) };
        let found = self.detached(key.py(), |map, place| {
            let expiring = map.expiring()?;
            let now = expiring.now();
            let entry = place.ending(expiring, &bytes)?;
            Ok(entry.map(|(_, ends)| (ends.map(adamant::Deadline::millis), now)))
        })?;
        found.ok_or_else(|| self.missing(key))
    }

    /// Seconds until the value of a key expires; None: it never does.
    pub(crate) fn ttl(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let (ends, now) = self.ends(key)?;
        Ok(ends.map(|ends| moment::seconds(ends.saturating_sub(now))))
    }

    /// The time at which the value of a key expires, in seconds since 1970; None: it never does.
    pub(crate) fn deadline(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        Ok(self.ends(key)?.0.map(moment::seconds))
    }

    pub(crate) fn find(&self, key: &Bound<'_, PyAny>) -> PyResult<Option<Slice>> {
        let Some(bytes) = self.sought(key)? else { return Ok(None) };
        self.detached(key.py(), |map, place| place.get(map, &bytes))
    }

    /// A key and its value as Python objects.
    pub(crate) fn pair<'py>(
        &self,
        py: Python<'py>,
        entry: Option<Entry>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some((key, value)) = entry else { return Ok(None) };
        let pair = [self.keys.decode(py, &key)?, self.values.decode(py, &value)?];
        PyTuple::new(py, pair).map(Some)
    }

    /// The part of the keyspace for a Python slice.
    pub(crate) fn span_of(&self, slice: &Bound<'_, PySlice>) -> PyResult<Span> {
        let part = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let part = slice.getattr(name)?;
            Ok((!part.is_none()).then_some(part))
        };
        if part("step")?.is_some() {
            return Err(errors::named(
                "InvalidArgument",
                "a range of keys has no step; iterate backwards by reverse=True",
            ));
        }
        self.span(part("start")?.as_ref(), part("stop")?.as_ref(), None)
    }

    pub(crate) fn span(
        &self,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        prefix: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Span> {
        let bound = |key| self.keys.bound(key);
        let (start, stop) = (start.map(bound).transpose()?, stop.map(bound).transpose()?);
        let prefix = prefix.map(|key| self.keys.prefix(key)).transpose()?;
        Ok(Span::new(start.as_deref(), stop.as_deref(), prefix.as_deref()))
    }

    fn cursor(&self, py: Python<'_>, kind: Kind, span: Span, reverse: bool) -> PyResult<Cursor> {
        let with_values = kind != Kind::Keys;
        let walk = self.detached(py, |map, place| place.walk(map, span, with_values))?;
        Ok(Cursor::new(kind, reverse, self.codecs(), walk))
    }
}

/// A count as a Python size.
fn counted(entries: u64) -> PyResult<usize> {
    usize::try_from(entries)
        .map_err(|_| PyOverflowError::new_err("more entries than len() can say"))
}

#[pymethods]
impl Reader {
    fn __getitem__<'py>(
        slf: &Bound<'py, Self>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if key.is_instance_of::<PySlice>() {
            return slf.as_any().call_method1("_range", (key,));
        }
        let this = slf.get();
        match this.find(key)? {
            Some(value) => this.values.decode(slf.py(), &value),
            None => Err(this.missing(key)),
        }
    }

    #[pyo3(signature = (key, default=None, /))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.find(key)? {
            Some(value) => self.values.decode(key.py(), &value).map(Some),
            None => Ok(default),
        }
    }

    /// The values of many keys, in their order; None for a missing one.
    #[pyo3(signature = (keys, /))]
    fn multi_get<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let py = keys.py();
        let mut wanted: Vec<Vec<u8>> = Vec::new();
        for key in keys.try_iter()? {
            wanted.push(self.key(&key?)?.into_owned());
        }
        let found = self.detached(py, |map, place| place.multi_get(map, &wanted))?;
        let decode =
            |value: Option<Slice>| value.map(|value| self.values.decode(py, &value)).transpose();
        found.into_iter().map(decode).collect()
    }

    /// The value of a key as a read-only view, None for a missing key. A value of more than 4 KiB
    /// is not copied: its memory in the store is not reused while there is a view of it.
    #[pyo3(signature = (key, /))]
    fn lend<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        self.find(key)?.map(|value| Lent::view(key.py(), value)).transpose()
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(bytes) = self.sought(key)? else { return Ok(false) };
        self.detached(key.py(), |map, place| place.contains(map, &bytes))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        counted(self.detached(py, |map, place| place.len(map))?)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(!self.detached(py, |map, place| place.is_empty(map))?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Cursor> {
        self.cursor(py, Kind::Keys, Span::new(None, None, None), false)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Cursor> {
        self.cursor(py, Kind::Keys, Span::new(None, None, None), true)
    }

    /// The entry with the lowest key, or None.
    fn first<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.pair(py, self.detached(py, |map, place| place.end(map, false))?)
    }

    /// The entry with the highest key, or None.
    fn last<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.pair(py, self.detached(py, |map, place| place.end(map, true))?)
    }

    #[pyo3(signature = (kind, start=None, stop=None, prefix=None, reverse=false))]
    fn _iterate<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        start: Option<Bound<'py, PyAny>>,
        stop: Option<Bound<'py, PyAny>>,
        prefix: Option<Bound<'py, PyAny>>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        let span = self.span(start.as_ref(), stop.as_ref(), prefix.as_ref())?;
        self.cursor(py, Kind::named(kind)?, span, reverse)
    }

    #[pyo3(signature = (start=None, stop=None, prefix=None))]
    fn _count<'py>(
        &self,
        py: Python<'py>,
        start: Option<Bound<'py, PyAny>>,
        stop: Option<Bound<'py, PyAny>>,
        prefix: Option<Bound<'py, PyAny>>,
    ) -> PyResult<usize> {
        let span = self.span(start.as_ref(), stop.as_ref(), prefix.as_ref())?;
        counted(self.detached(py, |map, place| place.count(map, span))?)
    }

    /// Whether a key lies in a part of the keyspace.
    #[pyo3(signature = (key, start=None, stop=None, prefix=None))]
    fn _spans<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        start: Option<Bound<'py, PyAny>>,
        stop: Option<Bound<'py, PyAny>>,
        prefix: Option<Bound<'py, PyAny>>,
    ) -> PyResult<bool> {
        let span = self.span(start.as_ref(), stop.as_ref(), prefix.as_ref())?;
        Ok(self.sought(key)?.is_some_and(|key| span.contains(&key)))
    }

    /// The name of the keyspace.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.keyspace()?.name())
    }

    /// The engine.
    #[getter]
    fn engine(&self) -> PyResult<&'static str> {
        Ok(self.keyspace()?.engine().name())
    }

    /// The recorded types of keys and values, by name; None if none are.
    #[getter]
    fn types(&self, py: Python<'_>) -> PyResult<Option<(String, String)>> {
        let found = self.on_keyspace(py, adamant::Keyspace::types)?;
        Ok(found.map(|types| (types.key.to_string(), types.value.to_string())))
    }

    /// The codec by which keys are str, or their type; None: they are bytes.
    #[getter]
    fn key_codec(&self) -> Option<&str> {
        self.keys.name()
    }

    /// The codec by which values are str, or their type; None: they are bytes.
    #[getter]
    fn value_codec(&self) -> Option<&str> {
        self.values.name()
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}

/// The exception for pickling: handles belong to a process.
pub(crate) fn cannot_pickle(object: &Bound<'_, PyAny>) -> PyErr {
    let class = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "cannot pickle or copy {class}: it belongs to a store that this process has open; pass the \
         path and open it there, or pass keys and values"
    ))
}
