//! Options of a keyspace: its engine, its durability, and a dict of those of the engine lsm.

use adamant::{KeyspaceOptions, LevelCompression, LsmError, ValueCompression};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::choices;
use crate::errors;

/// The options of a keyspace.
pub(crate) fn keyspace_options(
    engine: Option<&str>,
    lsm: Option<&Bound<'_, PyDict>>,
    values: Option<&str>,
    default_durability: Option<&str>,
) -> PyResult<KeyspaceOptions> {
    let engine = engine.map(choices::engine).transpose()?;
    let mut options = engine.into_iter().fold(KeyspaceOptions::new(), KeyspaceOptions::engine);
    if let Some(text) = values {
        options = options.value_compression(value_compression(text)?);
    }
    if let Some(name) = default_durability {
        options = options.durability(choices::default_durability(name)?);
    }
    for (name, value) in lsm.into_iter().flatten() {
        let name: String = name.extract()?;
        options = match name.as_str() {
            "compression" => options.compression(compression(&value)?),
            "block_bytes" => options.block_bytes(value.extract()?),
            "filter_bits_per_key" => options.filter_bits_per_key(value.extract()?),
            "hash_index" => options.hash_index(value.extract()?),
            "blob_bytes_min" => options.blob_bytes_min(value.extract()?),
            "caches_data" => options.caches_data(value.extract()?),
            _ => {
                let words = format!("there is no option {name:?} of the engine lsm");
                return Err(errors::named("InvalidArgument", words));
            }
        };
    }
    Ok(options)
}

/// The compression of values that a text names.
pub(crate) fn value_compression(text: &str) -> PyResult<ValueCompression> {
    let invalid = |error: LsmError| errors::named("InvalidArgument", error.to_string());
    text.parse().map_err(invalid)
}

/// One for all levels, or a list of those of the first levels.
fn compression(value: &Bound<'_, PyAny>) -> PyResult<LevelCompression> {
    let text = match value.extract::<String>() {
        Ok(text) => text,
        Err(_) => value.extract::<Vec<String>>()?.join(", "),
    };
    let invalid = |error: LsmError| errors::named("InvalidArgument", error.to_string());
    text.parse().map_err(invalid)
}
