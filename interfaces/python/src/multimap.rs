//! Multimaps as sorted sets of pairs: each call is one commit, or a part of a transaction.
//!
//! Purpose: one class for the current state, for snapshots and for transactions, since all of them
//! read by the same methods.
//! Thread safety: any number of threads.

use std::ops::Bound as End;
use std::sync::Arc;

use adamant::Slice;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::batch::Batch;
use crate::convert::choices;
use crate::convert::codec::Codec;
use crate::convert::keyspace_options::keyspace_options;
use crate::convert::pairs::each_pair;
use crate::errors;
use crate::fork::Kept;
use crate::mapping::cursor::{Cursor, Kind};
use crate::mapping::place::{
    Batches, Entry, Place, Walk, alone, gather, with_snapshot, with_transaction,
};
use crate::mapping::reader::cannot_pickle;
use crate::mapping::scan_batch::ScanBatch;
use crate::snapshot::Snapshot;
use crate::store::Store;
use crate::transaction::Transaction;

type Pairs = adamant::Multimap<Slice, Slice>;
type Bounds = (End<Slice>, End<Slice>);

/// Evaluates reads of a multimap in a place: the views have the same methods, and no trait.
macro_rules! read_in {
    ($place:expr, $multimap:expr, |$view:ident| $body:expr) => {
        match $place {
            Place::Now => {
                let $view = &mut &*$multimap;
                Ok($body?)
            }
            Place::At(snapshot) => with_snapshot(snapshot, |it| {
                let $view = &mut $multimap.at(it);
                $body
            }),
            Place::Within(transaction) => with_transaction(transaction, |it| {
                let $view = &mut $multimap.within(it);
                $body
            }),
        }
    };
}

/// Evaluates a write, in a commit of its own or as a part of a transaction.
macro_rules! write_in {
    ($this:expr, $py:expr, |$view:ident| $body:expr) => {{
        let (multimap, place) = $this.source.get()?;
        let written = match place {
            Place::At(_) => {
                return Err(errors::named("InvalidArgument", "a snapshot is only read"));
            }
            Place::Now => $py.detach(|| {
                let $view = multimap;
                Ok::<_, errors::Failure>($body?)
            }),
            Place::Within(transaction) => $py.detach(|| {
                with_transaction(transaction, |it| {
                    let $view = &mut multimap.within(it);
                    $body
                })
            }),
        };
        Ok(written?)
    }};
}

/// What a walk has not passed yet.
enum Left {
    /// Pairs whose keys lie in a range; of the first key in the direction only values behind one.
    Pairs(Bounds, Option<Entry>),
    /// Keys in a range.
    Keys(Bounds),
    /// Values of a key in a range.
    Values(Slice, Bounds),
}

/// Moves the bound at which a walk begins behind what it has passed.
fn pass(bounds: &mut Bounds, reverse: bool, passed: &Slice) {
    let bound = if reverse { &mut bounds.1 } else { &mut bounds.0 };
    *bound = End::Excluded(passed.clone());
}

/// A walk over a multimap. Each batch searches anew: a transaction is not borrowed between two.
struct PairsWalk {
    multimap: Pairs,
    place: Place,
    left: Left,
}

impl Batches for PairsWalk {
    fn batch(
        &mut self,
        reverse: bool,
        entries_max: usize,
        into: &mut ScanBatch,
    ) -> errors::Result<()> {
        let (multimap, place) = (&self.multimap, &self.place);
        let full = (reverse, entries_max);
        match &self.left {
            Left::Keys(keys) => {
                read_in!(place, multimap, |view| {
                    gather(&mut view.keys(keys.clone()).map(alone), full, into)
                })
            }
            Left::Values(key, values) => read_in!(place, multimap, |view| {
                let values = view.values_range(key, values.clone());
                gather(&mut values.map(|value| Ok((key.clone(), value?))), full, into)
            }),
            Left::Pairs(keys, None) => {
                read_in!(place, multimap, |view| gather(&mut view.range(keys.clone()), full, into))
            }
            Left::Pairs(keys, Some((key, value))) => read_in!(place, multimap, |view| {
                let (mut values, mut keys) = ((End::Unbounded, End::Unbounded), keys.clone());
                pass(&mut values, reverse, value);
                pass(&mut keys, reverse, key);
                let rest = view.values_range(key, values);
                gather(&mut rest.map(|value| Ok((key.clone(), value?))), full, into)?;
                gather(&mut view.range(keys), full, into)
            }),
        }?;
        if let Some((key, value)) = into.last() {
            let (key, value) = (Slice::from(key), Slice::from(value));
            match &mut self.left {
                Left::Keys(keys) => pass(keys, reverse, &key),
                Left::Values(_, values) => pass(values, reverse, &value),
                Left::Pairs(_, behind) => *behind = Some((key, value)),
            }
        }
        Ok(())
    }
}

/// A multimap, to be read and written: what the store has now, what a snapshot saw, or what a
/// transaction sees.
#[pyclass(frozen, generic, module = "adamant._native")]
pub(crate) struct Multimap {
    source: Kept<(Pairs, Place)>,
    /// Makes batches for `update`.
    store: Py<Store>,
    durability: Option<adamant::Durability>,
    keys: Codec,
    values: Codec,
}

impl Multimap {
    fn seen(&self, py: Python<'_>, place: Place) -> PyResult<Self> {
        let multimap = self.source.get()?.0.clone();
        Ok(Self {
            source: Kept::new((multimap, place)),
            store: self.store.clone_ref(py),
            durability: self.durability,
            keys: self.keys.clone(),
            values: self.values.clone(),
        })
    }

    fn pair(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<(Slice, Slice)> {
        let value = self.values.encode(value, "a value")?.as_ref().into();
        Ok((self.key(key)?, value))
    }

    /// What a batch changes: neither what a snapshot saw, nor what a transaction sees.
    fn written_now(&self) -> PyResult<&Pairs> {
        let what = match self.source.get()? {
            (multimap, Place::Now) => return Ok(multimap),
            (_, Place::At(_)) => "a snapshot",
            (_, Place::Within(_)) => "a transaction",
        };
        let words = format!("expected the multimap of the store in a batch, found that of {what}");
        Err(errors::named("InvalidArgument", words))
    }

    fn key(&self, key: &Bound<'_, PyAny>) -> PyResult<Slice> {
        Ok(self.keys.encode(key, "a key")?.as_ref().into())
    }

    /// A cursor over a part of the multimap.
    fn walk(&self, kind: Kind, left: Left, reverse: bool) -> PyResult<Cursor> {
        let (multimap, place) = self.source.get()?.clone();
        let walk = Walk::Other(Box::new(PairsWalk { multimap, place, left }));
        Ok(Cursor::new(kind, reverse, (self.keys.clone(), self.values.clone()), walk))
    }
}

/// The bounds from one object up to another one, which does not belong to it.
fn bounds(
    codec: &Codec,
    what: &str,
    (start, stop): (Option<Bound<'_, PyAny>>, Option<Bound<'_, PyAny>>),
) -> PyResult<Bounds> {
    let bytes = |object: &Bound<'_, PyAny>| -> PyResult<Slice> {
        Ok(codec.encode(object, what)?.as_ref().into())
    };
    let start = start.as_ref().map(bytes).transpose()?;
    let stop = stop.as_ref().map(bytes).transpose()?;
    Ok((start.map_or(End::Unbounded, End::Included), stop.map_or(End::Unbounded, End::Excluded)))
}

#[pymethods]
impl Multimap {
    #[new]
    #[pyo3(signature = (store, name, engine=None, durability=None, key_codec=None, value_codec=None, lsm=None))]
    fn new(
        store: &Bound<'_, Store>,
        name: &str,
        engine: Option<&str>,
        durability: Option<&str>,
        key_codec: Option<&str>,
        value_codec: Option<&str>,
        lsm: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = store.py();
        let (keys, values) = (Codec::named(py, key_codec)?, Codec::named(py, value_codec)?);
        let options = keyspace_options(engine, lsm.as_ref(), None, None)?;
        let durability = durability.map(choices::durability).transpose()?;
        let multimap = store.get().open_multimap(py, name, options, durability)?;
        let source = Kept::new((multimap, Place::Now));
        Ok(Self { source, store: store.clone().unbind(), durability, keys, values })
    }

    /// The name of the keyspace.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.source.get()?.0.name())
    }

    /// The multimap as a snapshot saw it.
    #[pyo3(signature = (snapshot, /))]
    fn _at(&self, snapshot: &Bound<'_, Snapshot>) -> PyResult<Self> {
        self.seen(snapshot.py(), Place::At(Arc::clone(snapshot.get().open()?)))
    }

    /// The multimap within a transaction.
    #[pyo3(signature = (transaction, /))]
    fn _within(&self, transaction: &Bound<'_, Transaction>) -> PyResult<Self> {
        self.seen(transaction.py(), Place::Within(Arc::clone(transaction.get().open()?)))
    }

    /// Gives a key one more value; returns whether it is new.
    #[pyo3(signature = (key, value, /))]
    fn add(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (row_key, row_value) = self.pair(key, value)?;
        write_in!(self, key.py(), |view| view.insert(&row_key, &row_value))
    }

    /// Takes a value from a key if it has it; returns whether it had.
    #[pyo3(signature = (key, value, /))]
    fn discard(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (row_key, row_value) = self.pair(key, value)?;
        write_in!(self, key.py(), |view| view.remove(&row_key, &row_value))
    }

    /// Takes all values from a key; returns how many there were.
    #[pyo3(signature = (key, /))]
    fn discard_all(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let row_key = self.key(key)?;
        write_in!(self, key.py(), |view| view.remove_all(&row_key))
    }

    /// Takes all pairs out.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        write_in!(self, py, |view| view.clear())
    }

    /// Adds pairs, in one commit: of an iterable, or of a mapping of keys to values.
    #[pyo3(signature = (*sources))]
    fn update(&self, sources: &Bound<'_, PyTuple>) -> PyResult<()> {
        let py = sources.py();
        // Collected before, since no Python code may run while a lock of the store is held.
        let mut pairs: Vec<(Slice, Slice)> = Vec::new();
        for source in sources {
            each_pair(&source, |key, value| {
                pairs.push(self.pair(key, value)?);
                Ok(())
            })?;
        }
        if !matches!(self.source.get()?.1, Place::Now) {
            return write_in!(self, py, |view| {
                pairs.iter().try_for_each(|(key, value)| view.put(key, value))
            });
        }
        let (multimap, _) = self.source.get()?;
        let mut batch = self.store.get().store(py)?.batch();
        if let Some(durability) = self.durability {
            batch.durability(durability);
        }
        let commit = move || {
            let mut put = |(key, value): &(Slice, Slice)| multimap.put_into(&mut batch, key, value);
            pairs.iter().try_for_each(&mut put)?;
            batch.commit()
        };
        py.detach(commit).map_err(errors::of_store)
    }

    /// Will give a key one more value, at the commit of a batch.
    #[pyo3(signature = (batch, key, value, /))]
    fn put_into(
        &self,
        batch: &Bound<'_, Batch>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let ((key, value), multimap) = (self.pair(key, value)?, self.written_now()?);
        batch.get().with(|batch| multimap.put_into(batch, &key, &value))
    }

    /// Will take a value from a key, at the commit of a batch, if the key has it then.
    #[pyo3(signature = (batch, key, value, /))]
    fn delete_from(
        &self,
        batch: &Bound<'_, Batch>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let ((key, value), multimap) = (self.pair(key, value)?, self.written_now()?);
        batch.get().with(|batch| multimap.delete_from(batch, &key, &value))
    }

    /// Whether a pair of a key and a value is there.
    fn __contains__(&self, pair: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(pair) = pair.cast::<PyTuple>() else { return Ok(false) };
        if pair.len() != 2 {
            return Ok(false);
        }
        let (key, value) = self.pair(&pair.get_item(0)?, &pair.get_item(1)?)?;
        let (multimap, place) = self.source.get()?;
        Ok(pair.py().detach(|| read_in!(place, multimap, |view| view.contains(&key, &value)))?)
    }

    /// Whether a key has a value.
    #[pyo3(signature = (key, /))]
    fn has_key(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let row_key = self.key(key)?;
        let (multimap, place) = self.source.get()?;
        Ok(key.py().detach(|| read_in!(place, multimap, |view| view.contains_key(&row_key)))?)
    }

    /// The number of values of a key, which are counted.
    #[pyo3(signature = (key, /))]
    fn count(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let row_key = self.key(key)?;
        let (multimap, place) = self.source.get()?;
        Ok(key.py().detach(|| read_in!(place, multimap, |view| view.count(&row_key)))?)
    }

    /// The lowest value of a key, None if it has none.
    #[pyo3(signature = (key, /))]
    fn first_value<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, row_key) = (key.py(), self.key(key)?);
        let (multimap, place) = self.source.get()?;
        let found = py.detach(|| read_in!(place, multimap, |view| view.first_value(&row_key)))?;
        found.map(|value| self.values.decode(py, &value)).transpose()
    }

    /// The highest value of a key, None if it has none.
    #[pyo3(signature = (key, /))]
    fn last_value<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (py, row_key) = (key.py(), self.key(key)?);
        let (multimap, place) = self.source.get()?;
        let found = py.detach(|| read_in!(place, multimap, |view| view.last_value(&row_key)))?;
        found.map(|value| self.values.decode(py, &value)).transpose()
    }

    /// The number of pairs.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let (multimap, place) = self.source.get()?;
        let pairs = py.detach(|| read_in!(place, multimap, |view| view.len()))?;
        usize::try_from(pairs)
            .map_err(|_| PyOverflowError::new_err("more pairs than an int of len"))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let (multimap, place) = self.source.get()?;
        Ok(!py.detach(|| read_in!(place, multimap, |view| view.is_empty()))?)
    }

    fn __iter__(&self) -> PyResult<Cursor> {
        self.walk(Kind::Items, Left::Pairs((End::Unbounded, End::Unbounded), None), false)
    }

    fn __reversed__(&self) -> PyResult<Cursor> {
        self.walk(Kind::Items, Left::Pairs((End::Unbounded, End::Unbounded), None), true)
    }

    /// The values of a key in their order, from start up to stop.
    #[pyo3(signature = (key, /, start=None, stop=None, *, reverse=false))]
    fn values(
        &self,
        key: &Bound<'_, PyAny>,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        let values = bounds(&self.values, "a value", (start, stop))?;
        self.walk(Kind::Values, Left::Values(self.key(key)?, values), reverse)
    }

    /// The keys that have values, each once, from start up to stop.
    #[pyo3(signature = (start=None, stop=None, *, reverse=false))]
    fn keys(
        &self,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        self.walk(Kind::Keys, Left::Keys(bounds(&self.keys, "a key", (start, stop))?), reverse)
    }

    /// The pairs of keys from start up to stop.
    #[pyo3(signature = (start=None, stop=None, *, reverse=false))]
    fn items(
        &self,
        start: Option<Bound<'_, PyAny>>,
        stop: Option<Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Cursor> {
        let keys = bounds(&self.keys, "a key", (start, stop))?;
        self.walk(Kind::Items, Left::Pairs(keys, None), reverse)
    }

    /// The pair of a row, as the feed of changes has it for a key.
    #[pyo3(signature = (row, /))]
    fn pair_of<'py>(&self, py: Python<'py>, row: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
        let (key, value) = self.source.get()?.0.pair_of(row).map_err(errors::of_store)?;
        PyTuple::new(py, [self.keys.decode(py, &key)?, self.values.decode(py, &value)?])
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<adamant.Multimap {:?}>", self.name()?))
    }

    #[pyo3(signature = (protocol, /))]
    fn __reduce_ex__(slf: &Bound<'_, Self>, protocol: &Bound<'_, PyAny>) -> PyResult<()> {
        let _ = protocol;
        Err(cannot_pickle(slf.as_any()))
    }
}
