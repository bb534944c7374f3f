//! Values of any type that `serde` knows.

use std::ops::{Deref, DerefMut};

use adamant_slice::Slice;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::malformed::Malformed;
use super::value::{Value, ValueFor};

/// A value that is encoded through `serde`, in the format of the `postcard` crate: compact, without
/// names of fields, so their order and number are part of the format of the data.
///
/// ```
/// use adamant::typed::Serde;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Person { name: String, born: u16 }
///
/// let store = adamant::Store::in_memory()?;
/// let people = store.keyspace("people")?.typed::<u64, Serde<Person>>();
/// people.insert(&1, &Serde(Person { name: "Ada".into(), born: 1815 }))?;
/// assert_eq!(people.get(&1)?.map(|person| person.born), Some(1815));
/// # Ok::<(), adamant::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serde<T>(pub T);

impl<T> Deref for Serde<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Serde<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Serialize> ValueFor<Self> for Serde<T> {
    fn encode_value<'b>(&'b self, spare: &'b mut Vec<u8>) -> Result<&'b [u8], Malformed> {
        *spare = postcard::to_extend(&self.0, std::mem::take(spare))
            .map_err(|error| Malformed::new(format!("a value that can be encoded ({error})")))?;
        Ok(spare)
    }
}

impl<T: Serialize + DeserializeOwned> Value for Serde<T> {
    fn decode_value(bytes: Slice) -> Result<Self, Malformed> {
        let name = std::any::type_name::<T>();
        let malformed = |error| Malformed::new(format!("a {name} ({error})"));
        let (value, rest) = postcard::take_from_bytes(&bytes).map_err(malformed)?;
        if rest.is_empty() { Ok(Self(value)) } else { Err(Malformed::new("nothing more")) }
    }
}
