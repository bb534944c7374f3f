//! JSON values, by the module `json` of Python.
//!
//! Purpose: the text that `adamant::typed::Json` writes and reads: UTF-8, without spaces.
//! Invariants: what is written can be read by the parser of Rust programs, `serde_json`: it has no
//! `NaN`, no integer outside 64 bits, which would lose digits, and is not nested deeper than that
//! follows.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use crate::convert::objects::undecodable;

/// The depth to which `serde_json` reads.
const DEPTH_MAX: usize = 127;

/// The functions that write and read.
static FUNCTIONS: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();

fn functions(py: Python<'_>) -> PyResult<&(Py<PyAny>, Py<PyAny>)> {
    FUNCTIONS.get_or_try_init(py, || {
        let module = PyModule::import(py, "json")?;
        let options = PyDict::new(py);
        options.set_item("ensure_ascii", false)?;
        options.set_item("allow_nan", false)?;
        options.set_item("separators", (",", ":"))?;
        let encoder = module.getattr("JSONEncoder")?.call((), Some(&options))?;
        Ok((encoder.getattr("encode")?.unbind(), module.getattr("loads")?.unbind()))
    })
}

/// The text of an object.
///
/// # Errors
/// Those of `json.dumps`: `TypeError` for an object that is none of JSON, `ValueError` for NaN;
/// `OverflowError` for an integer outside 64 bits, `ValueError` for what is nested too deep.
pub(crate) fn encode(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let encoded = functions(object.py())?.0.bind(object.py()).call1((object,))?;
    let text = encoded.cast::<PyString>()?.to_str()?.as_bytes();
    check(text)?;
    Ok(text.to_vec())
}

/// The object of a text.
///
/// # Errors
/// `Undecodable`, for what is no JSON.
pub(crate) fn decode<'py>(
    py: Python<'py>,
    bytes: &[u8],
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let malformed = |why: &str| undecodable("a value", &format!("JSON ({why})"), bytes, name);
    // As bytes, `loads` guesses the encoding.
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("UTF-8"))?;
    functions(py)?.1.bind(py).call1((text,)).map_err(|error| {
        match error.is_instance_of::<PyValueError>(py) {
            true => malformed(&error.value(py).to_string()),
            false => error,
        }
    })
}

/// Checks that a text, which is JSON, can be read by others.
fn check(text: &[u8]) -> PyResult<()> {
    let (mut depth, mut rest) = (0, text);
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'"' => rest = behind_string(behind),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    let words = format!("expected at most {DEPTH_MAX} levels of JSON, found more");
                    return Err(PyValueError::new_err(words));
                }
            }
            b']' | b'}' => depth -= 1,
            b'-' | b'0'..=b'9' => {
                let is_more =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                let more = behind.iter().take_while(is_more).count();
                let number = &text[text.len() - behind.len() - 1..text.len() - behind.len() + more];
                check_number(number)?;
                rest = &behind[more..];
            }
            _ => {}
        }
    }
    Ok(())
}

/// What follows a string whose first quote was taken.
fn behind_string(mut rest: &[u8]) -> &[u8] {
    loop {
        rest = match rest {
            [b'\\', _, rest @ ..] => rest,
            [b'"', rest @ ..] => return rest,
            [_, rest @ ..] => rest,
            [] => return rest,
        };
    }
}

fn check_number(number: &[u8]) -> PyResult<()> {
    let is_whole = number.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'-'));
    let number = String::from_utf8_lossy(number);
    if !is_whole || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() {
        return Ok(());
    }
    let words = format!(
        "expected integers of JSON from {} to {}, found {number}; use a float, or a str",
        i64::MIN,
        u64::MAX
    );
    Err(PyOverflowError::new_err(words))
}
