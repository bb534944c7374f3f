//! Columns from Python: buffers, pairs of offsets and data, arrays and streams of Arrow.

use std::sync::Arc;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyMemoryView, PyString, PyTuple};

use crate::arrays::abi::{Array, Schema, Stream, Theirs};
use crate::arrays::border::{self, Part, Shared};
use crate::arrays::rows::{Bytes, Chunk, Layout, Rows};
use crate::convert::objects::has_pointers;
use crate::errors;

/// The rows of one column.
///
/// # Errors
/// `TypeError` for other objects and types of elements, `InvalidArgument` for other shapes.
pub(crate) fn rows_of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Rows> {
    if let Some(mut columns) = arrow_columns(object, what)? {
        return match columns.len() {
            1 => Ok(columns.swap_remove(0)),
            more => Err(invalid(format!(
                "expected one column as {what}, found a table of {more}; give one of them"
            ))),
        };
    }
    let chunk = match object.cast::<PyTuple>() {
        Ok(pair) if pair.len() == 2 => between(&pair.get_item(0)?, &pair.get_item(1)?, what)?,
        Ok(_) | Err(_) => fixed(object, what)?,
    };
    Ok(Rows { chunks: vec![chunk] })
}

/// The rows of keys and of values: two columns, or a table of two.
///
/// # Errors
/// As above, and `InvalidArgument` for columns of different lengths.
pub(crate) fn pairs_of(
    keys: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Rows, Rows)> {
    let Some(values) = values else {
        let columns = arrow_columns(keys, "keys and values")?;
        let found = columns.as_ref().map_or(1, Vec::len);
        let both = columns.and_then(|columns| <[Rows; 2]>::try_from(columns).ok());
        return both.map(<(Rows, Rows)>::from).ok_or_else(|| {
            invalid(format!(
                "expected a table of two columns, keys and values, found {found}; give both"
            ))
        });
    };
    let (keys, values) = (rows_of(keys, "keys")?, rows_of(values, "values")?);
    if keys.len() == values.len() {
        return Ok((keys, values));
    }
    let (keys, values) = (keys.len(), values.len());
    Err(invalid(format!("expected a value for each key, found {keys} keys and {values} values")))
}

pub(crate) fn invalid(words: String) -> PyErr {
    errors::named("InvalidArgument", words)
}

/// The rows of a buffer: its first axis counts them.
fn fixed(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Chunk> {
    let (rows, width) = shape_of(&buffer_of(object, what)?, what)?;
    Ok(Chunk {
        layout: Layout::Fixed(width),
        first: 0,
        rows,
        offsets: Bytes::new([]),
        data: bytes_of(object)?,
    })
}

/// The rows of a buffer, and the bytes of each.
pub(crate) fn shape_of(buffer: &PyUntypedBuffer, what: &str) -> PyResult<(usize, usize)> {
    let (shape, item) = (buffer.shape(), buffer.item_size());
    // Single bytes, as of `bytes`, are the contents of rows and not meant as rows.
    let is_flat = shape.len() < 2 && matches!(buffer.format().to_bytes(), b"B" | b"b" | b"c");
    let Some((rows, others)) = shape.split_first().filter(|_| !is_flat) else {
        return Err(invalid(format!(
            "expected an array of rows as {what}, found bytes in a row; give it a second axis for \
             the bytes of each row, or elements of as many bytes"
        )));
    };
    Ok((*rows, others.iter().product::<usize>() * item))
}

/// A buffer of elements that are no pointers.
pub(crate) fn buffer_of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<PyUntypedBuffer> {
    let expected = "an array with a buffer, a pair of offsets and data, or an array of Arrow";
    let found = || object.get_type().name().map_or_else(|_| "?".into(), |it| it.to_string());
    // Before buffers, as for single keys.
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("expected {expected} as {what}, found str")));
    }
    let buffer = PyUntypedBuffer::get(object).map_err(|error| {
        let found = found();
        PyTypeError::new_err(format!("expected {expected} as {what}, found {found}: {error}"))
    })?;
    if has_pointers(&buffer.format().to_string_lossy()) {
        let found = found();
        return Err(PyTypeError::new_err(format!(
            "expected elements of bytes as {what}, found {found} of pointers to objects; make them \
             of a fixed size, or an array of Arrow"
        )));
    }
    Ok(buffer)
}

/// The bytes of a buffer, in the order of its elements. Copied, unless they cannot change.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if object.is_instance_of::<PyBytes>() {
        return Ok(Bytes::new(object.extract::<PyBackedBytes>()?));
    }
    let copied = PyMemoryView::from(object)?.call_method0("tobytes")?;
    Ok(Bytes::new(copied.extract::<PyBackedBytes>()?))
}

/// The rows between offsets, of which there is one more.
fn between(offsets: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>, what: &str) -> PyResult<Chunk> {
    let buffer = buffer_of(offsets, what)?;
    let format = buffer.format().to_string_lossy();
    let layout = match (buffer.item_size(), format.trim_start_matches(['<', '=', '@'])) {
        (4, "i" | "I" | "l" | "L") => Layout::Short,
        (8, "l" | "L" | "q" | "Q") => Layout::Long,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "expected offsets of {what} of int32 or int64, found the format {format:?}"
            )));
        }
    };
    let ([places], 1..) = (buffer.shape(), buffer.item_count()) else {
        return Err(invalid(format!(
            "expected one axis of offsets of {what}, one more than rows, found the shape {:?}",
            buffer.shape()
        )));
    };
    buffer_of(data, what)?;
    let (offsets, data) = (bytes_of(offsets)?, bytes_of(data)?);
    Ok(Chunk { layout, first: 0, rows: places - 1, offsets, data })
}

/// The columns of an object of Arrow: one, or those of its fields; None for other objects.
fn arrow_columns(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Vec<Rows>>> {
    let py = object.py();
    if object.hasattr("__arrow_c_array__")? {
        let pair = object.call_method0("__arrow_c_array__")?;
        let schema = border::moved::<Schema<Theirs>>(&pair.get_item(0)?)?;
        let mut columns = Columns::of(&schema, what)?;
        columns.add(border::moved::<Array<Theirs>>(&pair.get_item(1)?)?, what)?;
        return Ok(Some(columns.rows));
    }
    if !object.hasattr("__arrow_c_stream__")? {
        return Ok(None);
    }
    let mut stream = border::moved::<Stream<Theirs>>(&object.call_method0("__arrow_c_stream__")?)?;
    let failed = |words: String| invalid(format!("expected a stream of {what}, found {words}"));
    // Detached, since a source may wait; it attaches itself if it has to.
    let schema = py.detach(|| border::schema_of(&mut stream)).map_err(failed)?;
    let mut columns = Columns::of(&schema, what)?;
    loop {
        let array = py.detach(|| border::next_of(&mut stream)).map_err(failed)?;
        if array.release.is_none() {
            return Ok(Some(columns.rows));
        }
        columns.add(array, what)?;
    }
}

/// The columns of arrays of one type.
struct Columns {
    is_table: bool,
    layouts: Vec<Layout>,
    rows: Vec<Rows>,
}

impl Columns {
    fn of(schema: &Schema<Theirs>, what: &str) -> PyResult<Self> {
        let is_table = border::format_of(schema) == "+s";
        let layouts = match is_table {
            true => border::fields(schema, |field| layout_of(field, what)),
            false => vec![layout_of(schema, what)],
        };
        let layouts = layouts.into_iter().collect::<PyResult<Vec<_>>>()?;
        let rows = layouts.iter().map(|_| Rows::default()).collect();
        Ok(Self { is_table, layouts, rows })
    }

    fn add(&mut self, array: Array<Theirs>, what: &str) -> PyResult<()> {
        let array: Shared = Arc::new(array);
        let (parent, length) = (array.offset, array.length);
        if self.is_table && has_nulls(&array, Part::Whole, parent, length) {
            return Err(nulls(what));
        }
        for (at, (layout, rows)) in self.layouts.iter().zip(&mut self.rows).enumerate() {
            let part = if self.is_table { Part::Child(at) } else { Part::Whole };
            let own = border::part(&array, part, |it| it.offset).unwrap_or(0);
            let first = if self.is_table { parent + own } else { parent };
            if has_nulls(&array, part, first, length) {
                return Err(nulls(what));
            }
            let chunk = chunk_of(&array, part, *layout, (first, length));
            rows.chunks.push(chunk.ok_or_else(|| {
                invalid(format!("expected the buffers of {what}, found an array without them"))
            })?);
        }
        Ok(())
    }
}

fn nulls(what: &str) -> PyErr {
    invalid(format!("expected no nulls as {what}, found some; drop or fill them"))
}

fn layout_of(schema: &Schema<Theirs>, what: &str) -> PyResult<Layout> {
    let format = border::format_of(schema);
    let layout = match &format[..] {
        _ if border::has_dictionary(schema) => None,
        "z" | "u" => Some(Layout::Short),
        "Z" | "U" => Some(Layout::Long),
        "c" | "C" => Some(Layout::Fixed(1)),
        "s" | "S" | "e" => Some(Layout::Fixed(2)),
        "i" | "I" | "f" => Some(Layout::Fixed(4)),
        "l" | "L" | "g" => Some(Layout::Fixed(8)),
        other => other.strip_prefix("w:").and_then(|it| it.parse().ok()).map(Layout::Fixed),
    };
    layout.ok_or_else(|| {
        PyTypeError::new_err(format!(
            "expected binary, string, fixed_size_binary or numbers as {what}, found Arrow's type \
             {format:?}, or a dictionary; cast it to large_binary"
        ))
    })
}

/// Whether one of the rows is null.
fn has_nulls(array: &Shared, part: Part, first: i64, rows: i64) -> bool {
    let count = border::part(array, part, |it| it.null_count).unwrap_or(0);
    let (Ok(first), Ok(rows)) = (usize::try_from(first), usize::try_from(rows)) else {
        return false;
    };
    if count == 0 || rows == 0 {
        return false;
    }
    // It may be unknown, or count rows that a table leaves out.
    let bits = border::buffer(array, part, 0, (first + rows).div_ceil(8));
    let Some(bits) = bits else { return false };
    (first..first + rows).any(|row| bits.as_ref()[row / 8] >> (row % 8) & 1 == 0)
}

/// The rows of an array from one on; none if it is not what its type says.
fn chunk_of(
    array: &Shared,
    part: Part,
    layout: Layout,
    (first, rows): (i64, i64),
) -> Option<Chunk> {
    let (first, rows) = (usize::try_from(first).ok()?, usize::try_from(rows).ok()?);
    let end = if rows == 0 { 0 } else { first + rows };
    let buffer = |at, len| border::buffer(array, part, at, len);
    let places = |bytes| buffer(1, if rows == 0 { 0 } else { (end + 1) * bytes });
    let mut chunk = Chunk { layout, first, rows, offsets: Bytes::new([]), data: Bytes::new([]) };
    match layout {
        Layout::Fixed(width) => chunk.data = buffer(1, end * width)?,
        Layout::Short => chunk.offsets = places(4)?,
        Layout::Long => chunk.offsets = places(8)?,
    }
    if !matches!(layout, Layout::Fixed(_)) && rows > 0 {
        chunk.data = buffer(2, chunk.end_of_data()?)?;
    }
    Some(chunk)
}
