//! Values of many keys, and values for many keys, in one call.
//!
//! Thread safety: what is read is the caller's; the work runs detached from the interpreter.

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyMemoryView};

use crate::arrays::abi::{Array, Ours, Schema};
use crate::arrays::rows::{Bytes, Growing};
use crate::arrays::source::{invalid, pairs_of, rows_of};
use crate::arrays::target::Target;
use crate::convert::codec::Codec;
use crate::convert::lent::Lent;
use crate::errors::{self, Failure};
use crate::keyspace::Keyspace;
use crate::mapping::reader::Reader;
use crate::transaction::TransactionReader;

/// Rows that are read before they are copied into an array, which the interpreter waits for.
const PIECE_ROWS: usize = 16 << 10;

/// Rows of any length: an array of Arrow.
#[pyclass(frozen, module = "adamant._native")]
pub(crate) struct Column {
    is_text: bool,
    pub(crate) rows: usize,
    missing: usize,
    offsets: Bytes,
    data: Bytes,
    present: Bytes,
}

impl Column {
    pub(crate) fn new(rows: Growing, is_text: bool) -> Self {
        let [offsets, data, present] = rows.finish();
        let rows = present.as_ref().len();
        let missing = present.as_ref().iter().filter(|it| **it == 0).count();
        Self { is_text, rows, missing, offsets, data, present }
    }

    /// Arrow's type of it.
    pub(crate) fn schema(
        is_text: bool,
        name: &'static std::ffi::CStr,
        nulls: bool,
    ) -> Schema<Ours> {
        Schema::new(if is_text { c"U" } else { c"Z" }, name, nulls, Vec::new())
    }

    pub(crate) fn array(&self) -> Array<Ours> {
        let bitmap = (self.missing > 0).then(|| {
            let bits = self.present.as_ref().chunks(8);
            let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
            Bytes::new(bits.map(byte).collect::<Vec<u8>>())
        });
        let buffers = [bitmap.as_ref(), Some(&self.offsets), Some(&self.data)];
        Array::new(self.rows, self.missing, &buffers, Vec::new())
    }
}

/// Both capsules of an array.
pub(crate) type Capsules<'py> = (Bound<'py, PyCapsule>, Bound<'py, PyCapsule>);

#[pymethods]
impl Column {
    fn __len__(&self) -> usize {
        self.rows
    }

    /// The number of rows that are missing.
    #[getter]
    fn missing(&self) -> usize {
        self.missing
    }

    /// Where rows begin and end in the data: one number of 64 bits more than rows.
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        view(py, &self.offsets)
    }

    /// The bytes of all rows.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        view(py, &self.data)
    }

    /// Whether a row is there: a byte for each.
    #[getter]
    fn found<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        view(py, &self.present)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = Self::schema(self.is_text, c"", true);
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The type that is asked for is a wish, which consumers do without.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Capsules<'py>> {
        let _ = requested_schema;
        let array = PyCapsule::new_with_value(py, self.array(), c"arrow_array")?;
        Ok((self.__arrow_c_schema__(py)?, array))
    }
}

fn view<'py>(py: Python<'py>, bytes: &Bytes) -> PyResult<Bound<'py, PyMemoryView>> {
    let lent = adamant::Slice::from_owner(bytes.clone(), ..)
        .map_err(|error| invalid(format!("{error}; take the column as an array of Arrow")))?;
    Lent::view(py, lent)
}

/// Whether a codec is that of Arrow's strings.
///
/// # Errors
/// `InvalidArgument` for a codec that Arrow does not have.
pub(crate) fn is_text(codec: &Codec) -> PyResult<bool> {
    match codec {
        Codec::Bytes => Ok(false),
        Codec::Utf8 => Ok(true),
        Codec::Named(_) | Codec::Typed(..) => Err(invalid(format!(
            "expected a keyspace of bytes or of the codec utf-8 for arrays, found {}; open it \
             without a codec",
            codec.name().unwrap_or_default()
        ))),
    }
}

/// Checks that bytes are text where they are to be.
pub(crate) fn check_text(bytes: &[u8], is_text: bool) -> errors::Result<()> {
    if !is_text || std::str::from_utf8(bytes).is_ok() {
        return Ok(());
    }
    let found = bytes.escape_ascii();
    Err(Failure::Invalid(format!(
        "expected UTF-8, as the codec of the keyspace says, found \"{found}\"; open it without a \
         codec"
    )))
}

/// The values of keys, in their order.
#[pyfunction]
#[pyo3(signature = (reader, keys, /))]
pub(crate) fn get_many(reader: &Bound<'_, Reader>, keys: &Bound<'_, PyAny>) -> PyResult<Column> {
    let this = reader.get();
    is_text(&this.keys)?;
    let (is_text, keys) = (is_text(&this.values)?, rows_of(keys, "keys")?);
    let values = this.detached(reader.py(), |map, place| {
        let mut values = Growing::new(keys.len());
        for key in keys.iter() {
            let mut checked = Ok(());
            let is_there = place.read(map, key?, |value| {
                checked = check_text(value, is_text);
                values.push(value);
            })?;
            checked?;
            values.end(is_there);
        }
        Ok(values)
    })?;
    Ok(Column::new(values, is_text))
}

/// Writes the values of keys into an array, and whether they were found into another; returns how
/// many were.
#[pyfunction]
#[pyo3(signature = (reader, keys, out, found=None, /))]
pub(crate) fn get_many_into(
    reader: &Bound<'_, Reader>,
    keys: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    found: Option<&Bound<'_, PyAny>>,
) -> PyResult<usize> {
    let (py, this) = (reader.py(), reader.get());
    let (keys, out) = (rows_of(keys, "keys")?, Target::new(out, "out")?);
    if out.rows < keys.len() {
        let (room, rows) = (out.rows, keys.len());
        return Err(invalid(format!("expected room for {rows} rows in out, found {room}")));
    }
    let flags = found.map(|found| Target::flags(found, keys.len())).transpose()?;
    let (mut each, mut first, mut all) = (keys.iter(), 0, 0);
    while first < keys.len() {
        let rows = PIECE_ROWS.min(keys.len() - first);
        let (data, present) = this.detached(py, |map, place| {
            let (mut data, mut present) = (vec![0; rows * out.width], Vec::with_capacity(rows));
            for (row, key) in each.by_ref().take(rows).enumerate() {
                let (key, mut fits) = (key?, Ok(()));
                let is_there = place.read(map, key, |value| {
                    fits = out.check(value, first + row);
                    if fits.is_ok() {
                        data[row * out.width..][..out.width].copy_from_slice(value);
                    }
                })?;
                fits?;
                if !is_there && flags.is_none() {
                    return Err(Failure::NoKey(key.to_vec()));
                }
                present.push(u8::from(is_there));
            }
            Ok((data, present))
        })?;
        if let Some(flags) = &flags {
            flags.write(py, first, &present)?;
        }
        all += present.iter().filter(|it| **it == 1).count();
        let mut row = 0;
        // Rows of missing keys stay as they are.
        for run in present.chunk_by(|one, other| one == other) {
            let bytes = &data[row * out.width..(row + run.len()) * out.width];
            if run[0] == 1 {
                out.write(py, first + row, bytes)?;
            }
            row += run.len();
        }
        first += rows;
    }
    Ok(all)
}

/// Sets the values of keys: in one commit, or in several, which is faster; returns how many.
#[pyfunction]
#[pyo3(signature = (target, keys, values, atomic, /))]
pub(crate) fn put_many(
    target: &Bound<'_, Reader>,
    keys: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
    atomic: bool,
) -> PyResult<usize> {
    let (py, reader) = (target.py(), target.get());
    let (keys, values) = pairs_of(keys, values)?;
    let texts = (is_text(&reader.keys)?, is_text(&reader.values)?);
    let pair = |(key, value): (errors::Result<_>, errors::Result<_>)| {
        let (key, value) = (key?, value?);
        check_text(key, texts.0)?;
        check_text(value, texts.1)?;
        Ok((key, value))
    };
    let pairs = keys.iter().zip(values.iter()).map(pair);
    if let Ok(within) = target.cast::<TransactionReader>() {
        let pairs = pairs.collect::<errors::Result<Vec<_>>>()?;
        TransactionReader::write(within, |keyspace, transaction| {
            pairs.iter().try_for_each(|(key, value)| transaction.put(keyspace, key, value))
        })?;
        return Ok(keys.len());
    }
    let keyspace = target.cast::<Keyspace>()?;
    let mut batch = Keyspace::batch(keyspace)?;
    let store = reader.keyspace()?;
    py.detach(|| -> errors::Result<()> {
        if !atomic {
            let pairs = pairs.collect::<errors::Result<Vec<_>>>()?;
            store.extend(pairs)?;
            return Ok(());
        }
        for pair in pairs {
            let (key, value) = pair?;
            batch.put(store, key, value)?;
        }
        Ok(batch.commit()?)
    })?;
    Ok(keys.len())
}
