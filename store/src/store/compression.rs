//! Compression of the values of keyspaces that are there.

use std::ops::ControlFlow;

use adamant_lsm::compression;

use crate::engine::tree::Engine;
use crate::error::{Error, Result};
use crate::store::handle::Store;
use crate::value_compression::ValueCompression;

/// Values that a dictionary is trained from at most, bytes of them for each byte that it may get,
/// and bytes that are taken of each: the sizes that zstd recommends.
const SAMPLES_MAX: u64 = 50_000;
const SAMPLED_BYTES: usize = 100;
const SAMPLE_BYTES_MAX: usize = 16 << 10;

impl Store {
    /// Has a keyspace store its values compressed, or plain again ([`Compression::None`]): those
    /// that are there and all later ones, in one commit; false if it does so already. Its handles
    /// stay valid, and readers get plain values as before.
    ///
    /// With a dictionary, which only zstd takes, short values that resemble one another become much
    /// smaller: see [`Store::train_dictionary`]. It has 64 KiB at most and stays with the keyspace.
    /// Without one, a dictionary that the keyspace has is given up.
    ///
    /// Every value is written anew: readers and writers wait, and until it is done there is room
    /// for both, in memory and in the pool. O(bytes of all values), some 300 MB/s with LZ4. For a
    /// new keyspace see [`KeyspaceOptions::value_compression`]. In a keyspace of the engine `lsm`
    /// it is noted for the day when another engine keeps it, and has no effect before.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Compression;
    ///
    /// let notes = store.keyspace("notes")?;
    /// notes.put("1", "all work and no play ".repeat(40))?;
    /// assert!(store.compress_values("notes", Compression::Lz4, None)?);
    /// assert_eq!(notes.get("1")?.map(|note| note.len()), Some(840));
    /// assert_eq!(store.keyspaces()?[0].values, Some(Compression::Lz4.into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Lsm`] for a compression that this build is without, bytes that are no dictionary,
    /// or one without zstd; otherwise as [`Store::convert_keyspace`]. Then nothing was changed.
    ///
    /// [`Compression::None`]: crate::Compression::None
    /// [`KeyspaceOptions::value_compression`]: crate::KeyspaceOptions::value_compression
    pub fn compress_values(
        &self,
        name: &str,
        values: impl Into<ValueCompression>,
        dictionary: Option<&[u8]>,
    ) -> Result<bool> {
        let values = values.into();
        if let Some(bytes) = dictionary {
            // Before the lock is taken, and before it is recorded.
            let checked = compression::Dictionary::new(bytes, values.compression());
            checked.map_err(Error::of_lsm(name))?;
        }
        self.shared.convert_values(name, (values, dictionary))
    }

    /// Trains a dictionary of at most so many bytes, 256 to 65,536, from values of a keyspace, for
    /// [`Store::compress_values`]. Some 16 KiB are a good size. Takes values from all of the
    /// keyspace, up to 100 bytes for each byte of the dictionary: O(n) in its entries, and some 0.1
    /// s a MB of the values taken, under no lock.
    ///
    /// ```
    /// # let store = adamant::Store::in_memory()?;
    /// use adamant::Compression;
    ///
    /// let people = store.keyspace("people")?;
    /// let person = |n| format!("{{\"name\": \"person {n}\", \"town\": \"Bern\", \"age\": {}}}", n % 90);
    /// people.extend((0..1000).map(|n| (format!("{n}"), person(n))))?;
    /// match store.train_dictionary("people", 4096) {
    ///     Ok(bytes) => {
    ///         store.compress_values("people", Compression::zstd(), Some(&bytes))?;
    ///     }
    ///     // Without the feature `zstd`.
    ///     Err(_) => assert!(!Compression::zstd().is_built()),
    /// }
    /// assert_eq!(people.get("7")?, Some(person(7).into()));
    /// # Ok::<(), adamant::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Lsm`] for too few values, values that have nothing in common, another size, or a
    /// build without the feature `zstd`; otherwise as [`Keyspace::get`](crate::Keyspace::get).
    pub fn train_dictionary(&self, name: &str, bytes_max: usize) -> Result<Vec<u8>> {
        let keyspace = self.open_stored(name)?;
        let budget = bytes_max.saturating_mul(SAMPLED_BYTES);
        let step = match keyspace.engine() {
            // It would have to count them.
            Engine::Lsm => 1,
            _ => keyspace.len()?.div_ceil(SAMPLES_MAX).max(1),
        };
        let (mut samples, mut bytes, mut number) = (Vec::new(), 0, 0_u64);
        keyspace.iter().lend(|_, value| {
            if number.is_multiple_of(step) && !value.is_empty() {
                let sample = &value[..value.len().min(SAMPLE_BYTES_MAX)];
                bytes += sample.len();
                samples.push(sample.to_vec());
            }
            number += 1;
            if bytes < budget { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        compression::train(&samples, bytes_max).map_err(Error::of_lsm(name))
    }
}
