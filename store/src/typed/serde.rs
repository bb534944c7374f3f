//! Postcard values of any type with `serde`.

use adamant_slice::Slice;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

use super::malformed::Malformed;
use super::skipped::check_fields;
use super::value::{Value, ValueFor};
use super::wrapper::wrapper;

wrapper! {
    /// A value that is encoded through `serde`, in the format of the `postcard` crate: compact,
    /// without names of fields, so their order and number are part of the format of the data.
    ///
    /// That format does not describe itself. So a value is refused, with
    /// [`Error::Encoding`](crate::Error::Encoding), if it leaves out a field
    /// (`skip_serializing_if`), or if its encoding cannot be decoded, as with untagged or
    /// internally tagged enums, `flatten` and `serde_json::Value`: `Json` (feature `json`) takes
    /// all of these. To find that out, each inserted value is traversed once more and decoded once.
    ///
    /// ```
    /// use adamant::typed::Serde;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Person { name: String, born: u16 }
    ///
    /// let store = adamant::Store::in_memory()?;
    /// let people = store.keyspace("people")?.typed::<u64, Serde<Person>>()?;
    /// people.put(&1, &Serde(Person { name: "Ada".into(), born: 1815 }))?;
    /// assert_eq!(people.get(&1)?.map(|person| person.born), Some(1815));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// A keyspace records the name that `serde` has for `T`, which `#[serde(rename = "..")]` sets,
    /// and `VERSION`, which distinguishes structures whose fields have changed.
    Serde, is_text: false
}

impl<T: Serialize + DeserializeOwned, const VERSION: u32> ValueFor<Self> for Serde<T, VERSION> {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        check_fields(&self.0).map_err(|error| unread(&error))?;
        *spare = postcard::to_extend(&self.0, std::mem::take(spare))
            .map_err(|error| Malformed::new(format!("a value that can be encoded ({error})")))?;
        match postcard::take_from_bytes::<T>(spare).map(|(_, rest)| rest.len()) {
            Ok(0) => Ok(spare),
            Ok(_) => Err(unread(&"it is read as a shorter one")),
            Err(error) => Err(unread(&error)),
        }
    }
}

/// The error for a value that its encoding does not give back.
fn unread(why: &dyn fmt::Display) -> Malformed {
    Malformed::new(format!(
        "a value that can be read back from the format of postcard, which names no fields and no types \
         ({why}; `Json` can keep it)"
    ))
}

impl<T: Serialize + DeserializeOwned, const VERSION: u32> Value for Serde<T, VERSION> {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        let name = std::any::type_name::<T>();
        let malformed = |error| Malformed::new(format!("a {name} ({error})"));
        let (value, rest) = postcard::take_from_bytes(&bytes).map_err(malformed)?;
        if rest.is_empty() { Ok(Self(value)) } else { Err(Malformed::new("nothing more")) }
    }
}
