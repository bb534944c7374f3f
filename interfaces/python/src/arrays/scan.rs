//! Entries in the order of their keys, many at a time: a stream of Arrow, or into arrays.
//!
//! Invariants: holds no lock of the store between batches. After an error it yields nothing more.
//! Thread safety: threads that share one get entries in turn. A stream takes the rest of the scan.

use std::ffi::{CString, c_char, c_int};
use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrays::abi::{Array, Batches, Ours, Schema, Stream};
use crate::arrays::column::{Column, check_text, is_text};
use crate::arrays::rows::Growing;
use crate::arrays::source::invalid;
use crate::arrays::target::Target;
use crate::errors::Result;
use crate::fork::Kept;
use crate::mapping::place::{Walk, hold};
use crate::mapping::reader::Reader;
use crate::mapping::scan_batch::ScanBatch;

/// Entries that are taken from the store at once.
const BATCH_ENTRIES: usize = 1024;
/// What a failed call of a stream returns: an error of input and output.
const FAILED: c_int = 5;

/// A walk in batches.
struct Rest {
    walk: Option<Walk>,
    reverse: bool,
    rows: usize,
    /// Whether keys and values are text.
    texts: (bool, bool),
}

impl Rest {
    /// Passes on the next entries, at most so many; how many there were.
    fn each(
        &mut self,
        rows: usize,
        mut put: impl FnMut(usize, &[u8], &[u8]) -> Result<()>,
    ) -> Result<usize> {
        let Some(mut walk) = self.walk.take() else { return Ok(0) };
        let (mut batch, mut row) = (ScanBatch::default(), 0);
        while row < rows {
            batch.clear();
            walk.batch(self.reverse, BATCH_ENTRIES.min(rows - row), &mut batch)?;
            if batch.len() == 0 {
                return Ok(row);
            }
            while let Some((key, value)) = batch.pop() {
                put(row, key, value)?;
                row += 1;
            }
        }
        self.walk = Some(walk);
        Ok(row)
    }

    /// The next entries as columns; none at the end.
    fn columns(&mut self) -> Result<Option<(Column, Column)>> {
        let (mut keys, mut values) = (Growing::new(self.rows), Growing::new(self.rows));
        let texts = self.texts;
        let rows = self.each(self.rows, |_, key, value| {
            check_text(key, texts.0)?;
            check_text(value, texts.1)?;
            for (column, bytes) in [(&mut keys, key), (&mut values, value)] {
                column.push(bytes);
                column.end(true);
            }
            Ok(())
        })?;
        let columns = || (Column::new(keys, texts.0), Column::new(values, texts.1));
        Ok((rows > 0).then(columns))
    }
}

/// Entries of a part of a keyspace.
#[pyclass(frozen, module = "adamant._native")]
pub(crate) struct Scan {
    rest: Kept<Mutex<Rest>>,
}

#[pymethods]
impl Scan {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<(Column, Column)>> {
        let rest = self.rest.get()?;
        Ok(py.detach(|| hold(rest).columns())?)
    }

    /// Writes the next keys and values into arrays, until one is full; how many there were.
    #[pyo3(signature = (keys=None, values=None))]
    fn into(
        &self,
        py: Python<'_>,
        keys: Option<&Bound<'_, PyAny>>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let keys = keys.map(|it| Target::new(it, "keys")).transpose()?;
        let values = values.map(|it| Target::new(it, "values")).transpose()?;
        let Some(room) = [&keys, &values].into_iter().flatten().map(|it| it.rows).min() else {
            return Err(invalid("expected arrays for keys or values or both, found none".into()));
        };
        let (rest, mut all) = (self.rest.get()?, 0);
        while all < room {
            let rows = BATCH_ENTRIES.min(room - all);
            let (bytes, found) = py.detach(|| {
                let mut bytes = [Vec::new(), Vec::new()];
                let found = hold(rest).each(rows, |row, key, value| {
                    let parts = [(&keys, key), (&values, value)];
                    for (bytes, (target, part)) in bytes.iter_mut().zip(parts) {
                        if let Some(target) = target {
                            target.check(part, all + row)?;
                            bytes.extend_from_slice(part);
                        }
                    }
                    Ok(())
                });
                found.map(|found| (bytes, found))
            })?;
            for (bytes, target) in bytes.iter().zip([&keys, &values]) {
                target.as_ref().map_or(Ok(()), |target| target.write(py, all, bytes))?;
            }
            all += found;
            if found < rows {
                break;
            }
        }
        Ok(all)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let texts = hold(self.rest.get()?).texts;
        PyCapsule::new_with_value(py, table(texts), c"arrow_schema")
    }

    /// A stream of the rest; the type that is asked for is a wish, which consumers do without.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let rest = self.rest.get()?;
        let rest = py.detach(|| {
            let mut held = hold(rest);
            Rest { walk: held.walk.take(), ..*held }
        });
        let texts = rest.texts;
        let batches =
            Entries { texts, rest: Kept::new(Mutex::new(rest)), error: CString::default() };
        let stream = Stream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Arrow's type of entries.
fn table(texts: (bool, bool)) -> Schema<Ours> {
    let fields =
        vec![Column::schema(texts.0, c"key", false), Column::schema(texts.1, c"value", false)];
    Schema::new(c"+s", c"", false, fields)
}

/// The entries of a scan, for a consumer of Arrow.
struct Entries {
    texts: (bool, bool),
    rest: Kept<Mutex<Rest>>,
    error: CString,
}

impl Entries {
    fn batch(&self) -> PyResult<Array<Ours>> {
        let Some((keys, values)) = hold(self.rest.get()?).columns()? else {
            return Ok(Array::default());
        };
        Ok(Array::new(keys.rows, 0, &[None], vec![keys.array(), values.array()]))
    }
}

impl Batches for Entries {
    fn schema(&self) -> Schema<Ours> {
        table(self.texts)
    }

    fn next(&mut self) -> std::result::Result<Array<Ours>, c_int> {
        self.batch().map_err(|error| {
            self.error = CString::new(error.to_string()).unwrap_or_default();
            FAILED
        })
    }

    fn last_error(&self) -> *const c_char {
        self.error.as_ptr()
    }
}

/// A scan of a part of a keyspace, so many rows at a time.
#[pyfunction]
#[pyo3(signature = (reader, start, stop, prefix, reverse, rows, /))]
pub(crate) fn scan(
    reader: &Bound<'_, Reader>,
    start: Option<&Bound<'_, PyAny>>,
    stop: Option<&Bound<'_, PyAny>>,
    prefix: Option<&Bound<'_, PyAny>>,
    reverse: bool,
    rows: usize,
) -> PyResult<Scan> {
    let this = reader.get();
    let (span, texts) =
        (this.span(start, stop, prefix)?, (is_text(&this.keys)?, is_text(&this.values)?));
    if rows == 0 {
        return Err(invalid("expected at least one row at a time, found 0".into()));
    }
    let walk = this.detached(reader.py(), |map, place| place.walk(map, span, true))?;
    let rest = Rest { walk: Some(walk), reverse, rows, texts };
    Ok(Scan { rest: Kept::new(Mutex::new(rest)) })
}
