//! JSON values of any type with `serde`.

use adamant_slice::Slice;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::malformed::Malformed;
use super::value::{Value, ValueFor};
use super::wrapper::wrapper;

wrapper! {
    /// A value that is encoded through `serde` as JSON: fields have their names, so they may be
    /// left out, come in any order, and be added later with `#[serde(default)]`. Larger and slower
    /// than `Serde`.
    ///
    /// A value that JSON cannot express, such as a NaN, is refused on insertion with
    /// [`Error::Encoding`](crate::Error::Encoding): each value is decoded once then.
    ///
    /// ```
    /// use adamant::typed::Json;
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Debug, PartialEq, Serialize, Deserialize)]
    /// #[serde(tag = "kind")]
    /// enum Event { Login { user: String }, Restart }
    ///
    /// let store = adamant::Store::in_memory()?;
    /// let events = store.keyspace("events")?.typed::<u64, Json<Event>>()?;
    /// events.put(&1, &Json(Event::Login { user: "ada".into() }))?;
    /// assert_eq!(events.get(&1)?, Some(Json(Event::Login { user: "ada".into() })));
    /// assert_eq!(events.untyped().first()?.map(|(_, value)| value),
    ///     Some(r#"{"kind":"Login","user":"ada"}"#.into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// A keyspace records the name that `serde` has for `T`, which `#[serde(rename = "..")]` sets,
    /// and `VERSION`, which distinguishes values that older programs cannot read.
    Json, is_text: true
}

impl<T: Serialize + DeserializeOwned, const VERSION: u32> ValueFor<Self> for Json<T, VERSION> {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        serde_json::to_writer(&mut *spare, &self.0)
            .map_err(|error| Malformed::new(format!("a value that JSON can say ({error})")))?;
        let read = serde_json::from_slice::<T>(spare);
        read.map_err(|error| {
            Malformed::new(format!("a value that can be read back from JSON ({error})"))
        })?;
        Ok(spare)
    }
}

impl<T: Serialize + DeserializeOwned, const VERSION: u32> Value for Json<T, VERSION> {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        let name = std::any::type_name::<T>();
        let read = serde_json::from_slice(&bytes);
        read.map(Self).map_err(|error| Malformed::new(format!("JSON of a {name} ({error})")))
    }
}
