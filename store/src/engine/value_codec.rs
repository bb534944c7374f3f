//! Compressed values: how a tree of a keyspace with compression stores each value.
//!
//! Purpose: a stored value ends with a byte that says how it is stored (`docs/format/store.md`), so
//! one that stays as it is begins where its block does, and is lent without a copy.
//! Invariants: what `encode` makes, `decode` of any codec with the same dictionary gives back. No
//! bytes make `decode` panic, or allocate more than a value may have.
//! Thread safety: any thread. Compressors are kept for the next caller, one for each that was busy
//! at once.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use adamant_lsm::Compression;
use adamant_lsm::compression::{
    Compressor, Dictionary, Method, Refused, decompress, zstd_plain_bytes,
};
use adamant_slice::Slice;
use adamant_wire::varint;
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::layout::{VALUE_LZ4, VALUE_PLAIN, VALUE_ZSTD, VALUE_ZSTD_DICTIONARY};
use crate::limits::VALUE_BYTES_MAX;
use crate::value_compression::ValueCompression;

/// Compressors kept for later callers, and bytes of output that each of them may keep.
const COMPRESSORS_MAX: usize = 8;
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A value that was found.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    Lent(&'a [u8]),
    Own(Slice),
}

impl Deref for Found<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Lent(bytes) => bytes,
            Self::Own(slice) => slice,
        }
    }
}

impl Found<'_> {
    /// The value as a slice of its own.
    pub(crate) fn into_slice(self) -> Slice {
        match self {
            Self::Lent(bytes) => Slice::from(bytes),
            Self::Own(slice) => slice,
        }
    }
}

/// Encodes and decodes the values of one keyspace.
pub(crate) struct ValueCodec {
    /// The keyspace when it was opened, for messages.
    name: Box<str>,
    values: ValueCompression,
    /// Also where another method is chosen by now, for what was written before.
    dictionary: Option<Dictionary>,
    compressors: Mutex<Vec<Compressor>>,
}

impl fmt::Debug for ValueCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut codec = f.debug_struct("ValueCodec");
        codec.field("values", &self.values).field("dictionary", &self.dictionary);
        codec.finish_non_exhaustive()
    }
}

impl ValueCodec {
    /// The codec of the keyspace with this name.
    ///
    /// # Errors
    /// [`Error::Lsm`]: this build is without the compression, or the bytes are no dictionary.
    pub(crate) fn new(
        name: &str,
        values: ValueCompression,
        dictionary: Option<&[u8]>,
    ) -> Result<Arc<Self>> {
        values.check().map_err(Error::of_lsm(name))?;
        let level = match values.compression() {
            zstd @ Compression::Zstd(_) => zstd,
            // Nothing more is written with it.
            _ => Compression::zstd(),
        };
        let dictionary = dictionary.map(|bytes| Dictionary::new(bytes, level)).transpose();
        let dictionary = dictionary.map_err(Error::of_lsm(name))?;
        Ok(Arc::new(Self { name: name.into(), values, dictionary, compressors: Mutex::default() }))
    }

    /// Whether it decodes whatever the other one has encoded.
    pub(crate) fn decodes_all_of(&self, other: &Self) -> bool {
        let (own, needed) = (self.dictionary.as_ref(), other.dictionary.as_ref());
        let is_same = || own.map(Dictionary::bytes) == needed.map(Dictionary::bytes);
        std::ptr::eq(self, other) || needed.is_none() || is_same()
    }

    /// Appends the stored form of a value.
    ///
    /// # Errors
    /// [`Error::ValueTooLong`] for one of the most bytes that a value may have, if it does not
    /// shrink: there is no room for another one.
    pub(crate) fn encode(&self, plain: &[u8], to: &mut Vec<u8>) -> Result<()> {
        if plain.len() as u64 >= u64::from(self.values.bytes_min()) && self.compress(plain, to) {
            return Ok(());
        }
        if plain.len() as u64 >= VALUE_BYTES_MAX {
            let (bytes, bytes_max) = (plain.len() as u64, VALUE_BYTES_MAX - 1);
            return Err(Error::ValueTooLong { bytes, bytes_max });
        }
        to.reserve(plain.len() + 1);
        to.extend_from_slice(plain);
        to.push(VALUE_PLAIN);
        Ok(())
    }

    /// Appends the compressed form, if that saves an eighth.
    fn compress(&self, plain: &[u8], to: &mut Vec<u8>) -> bool {
        let mut compressor = self.compressors.lock().pop().unwrap_or_default();
        let compression = self.values.compression();
        let dictionary = match compression {
            Compression::Zstd(_) => self.dictionary.as_ref(),
            _ => None,
        };
        let (stored, how) = match dictionary {
            Some(dictionary) => {
                (compressor.compress_with(plain, dictionary), VALUE_ZSTD_DICTIONARY)
            }
            None => match compressor.compress(plain, compression) {
                (_, Method::None) => (None, VALUE_PLAIN),
                (stored, Method::Lz4) => (Some(stored), VALUE_LZ4),
                (stored, Method::Zstd) => (Some(stored), VALUE_ZSTD),
            },
        };
        if let Some(stored) = stored {
            to.reserve(stored.len() + varint::len(plain.len() as u64) + 1);
            if how == VALUE_LZ4 {
                // A frame of zstd has it in itself.
                varint::put(to, plain.len() as u64);
            }
            to.extend_from_slice(stored);
            to.push(how);
        }
        let is_compressed = stored.is_some();
        if compressor.kept_bytes() <= KEPT_BYTES_MAX {
            let mut kept = self.compressors.lock();
            if kept.len() < COMPRESSORS_MAX {
                kept.push(compressor);
            }
        }
        is_compressed
    }

    /// The value of a key, given its stored form.
    ///
    /// # Errors
    /// Damage; [`Error::Lsm`] if this build is without the compression.
    pub(crate) fn decode<'a>(&self, key: &[u8], stored: &'a [u8]) -> Result<Found<'a>> {
        match plain_of(self.dictionary.as_ref(), stored) {
            Ok(found) => Ok(found),
            Err(Refused::Malformed) => Err(self.damaged(key, stored)),
            Err(Refused::NotBuilt) => {
                Err(Error::of_lsm(&self.name)(adamant_lsm::Error::InvalidOption {
                    option: "value_compression",
                    expected: "a value that is plain or compressed by lz4, since this program is \
                               built without the feature zstd"
                        .into(),
                    found: format!("one compressed by zstd under key {}", key.escape_ascii()),
                }))
            }
        }
    }

    #[cold]
    fn damaged(&self, key: &[u8], stored: &[u8]) -> Error {
        Error::Damaged {
            what: format!(
                "expected a stored value of keyspace {:?} under key {}, found {} bytes that do not \
                 decode as the last of them says; repair the store (`adamant repair`)",
                self.name,
                key.escape_ascii(),
                stored.len()
            ),
        }
    }
}

/// The value of a stored form, in a keyspace with that dictionary.
fn plain_of<'a>(
    dictionary: Option<&Dictionary>,
    stored: &'a [u8],
) -> std::result::Result<Found<'a>, Refused> {
    let (&how, mut bytes) = stored.split_last().ok_or(Refused::Malformed)?;
    let (method, dictionary, plain_bytes) = match how {
        VALUE_PLAIN => return Ok(Found::Lent(bytes)),
        VALUE_LZ4 => (Method::Lz4, None, varint::take(&mut bytes)),
        // Without zstd nothing is known of a frame, and `decompress` says so.
        VALUE_ZSTD | VALUE_ZSTD_DICTIONARY if !Compression::zstd().is_built() => {
            return Err(Refused::NotBuilt);
        }
        VALUE_ZSTD => (Method::Zstd, None, zstd_plain_bytes(bytes)),
        VALUE_ZSTD_DICTIONARY => {
            let dictionary = dictionary.ok_or(Refused::Malformed)?;
            (Method::Zstd, Some(dictionary), zstd_plain_bytes(bytes))
        }
        _ => return Err(Refused::Malformed),
    };
    let plain_bytes = plain_bytes.filter(|bytes| *bytes <= VALUE_BYTES_MAX);
    let plain_bytes = plain_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let plain_bytes = plain_bytes.ok_or(Refused::Malformed)?;
    decompress(method, bytes, plain_bytes, dictionary).map(Found::Own)
}

/// What a stored form shows of its keyspace, for a repair that knows nothing else of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// It is no stored form: values are plain.
    Plain,
    /// It is one that bytes practically never happen to be: values are compressed.
    Packed,
    /// It may be a plain value, or one that stayed plain in a compressed keyspace.
    Either,
}

/// What a stored form shows.
pub(crate) fn shown_by(stored: &[u8]) -> Shown {
    let frame = stored.split_last().map(|(_, frame)| frame);
    match stored.last() {
        Some(&VALUE_PLAIN) => Shown::Either,
        Some(&VALUE_ZSTD_DICTIONARY) if frame.and_then(zstd_plain_bytes).is_some() => Shown::Packed,
        Some(&(VALUE_LZ4 | VALUE_ZSTD)) if plain_of(None, stored).is_ok() => Shown::Packed,
        // Without zstd nothing is known of a frame.
        Some(&(VALUE_ZSTD | VALUE_ZSTD_DICTIONARY)) if !Compression::zstd().is_built() => {
            Shown::Either
        }
        _ => Shown::Plain,
    }
}

/// The value of a stored form in a keyspace that showed this.
///
/// # Errors
/// Why there is none.
pub(crate) fn value_as_shown(
    stored: &[u8],
    shown: Shown,
) -> std::result::Result<Found<'_>, &'static str> {
    match shown {
        Shown::Plain => Ok(Found::Lent(stored)),
        Shown::Packed => plain_of(None, stored).map_err(|_| {
            "it is compressed, and by a dictionary that is not known or what this program lacks"
        }),
        Shown::Either => Err("nothing says whether values of its keyspace are compressed"),
    }
}

/// A value that is about to be written, encoded before any lock is taken if its keyspace encodes:
/// writers do not hold the image while they compress.
pub(crate) struct Prepared<'v> {
    plain: &'v [u8],
    ahead: Option<(Arc<ValueCodec>, Vec<u8>)>,
}

impl<'v> Prepared<'v> {
    /// As [`ValueCodec::encode`], with the codec that the keyspace has at the moment.
    pub(crate) fn new(plain: &'v [u8], codec: Option<Arc<ValueCodec>>) -> Result<Self> {
        let Some(codec) = codec else { return Ok(plain.into()) };
        let mut stored = Vec::new();
        codec.encode(plain, &mut stored)?;
        Ok(Self { plain, ahead: Some((codec, stored)) })
    }

    /// The value.
    pub(crate) fn plain(&self) -> &'v [u8] {
        self.plain
    }

    /// What was stored ahead for this codec: none if the keyspace has got another one meanwhile.
    pub(crate) fn stored_for(&self, codec: &Arc<ValueCodec>) -> Option<&[u8]> {
        let (of, stored) = self.ahead.as_ref()?;
        Arc::ptr_eq(of, codec).then_some(&stored[..])
    }
}

impl<'v> From<&'v [u8]> for Prepared<'v> {
    fn from(plain: &'v [u8]) -> Self {
        Self { plain, ahead: None }
    }
}

/// The values of many writes to one keyspace, encoded as those of [`Prepared`] are.
pub(crate) struct PreparedRun {
    codec: Arc<ValueCodec>,
    bytes: Vec<u8>,
    /// The end of each in `bytes`; that of the one before for a removal.
    ends: Vec<usize>,
}

impl PreparedRun {
    /// `None` for a keyspace that does not encode.
    ///
    /// # Errors
    /// As [`ValueCodec::encode`].
    pub(crate) fn new<'v>(
        codec: Option<Arc<ValueCodec>>,
        values: impl Iterator<Item = Option<&'v [u8]>>,
    ) -> Result<Option<Self>> {
        let Some(codec) = codec else { return Ok(None) };
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for value in values {
            if let Some(value) = value {
                codec.encode(value, &mut bytes)?;
            }
            ends.push(bytes.len());
        }
        Ok(Some(Self { codec, bytes, ends }))
    }

    /// The stored form of the value at an index, if it is for this codec.
    pub(crate) fn stored_for(&self, codec: &Arc<ValueCodec>, index: usize) -> Option<&[u8]> {
        let start = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let stored = self.bytes.get(start?..*self.ends.get(index)?);
        stored.filter(|_| Arc::ptr_eq(&self.codec, codec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those that this build has, with and without a dictionary.
    fn codecs() -> Vec<Arc<ValueCodec>> {
        let dictionary = b"a dictionary has what values have in common: name, license, version";
        let zstd = Compression::zstd();
        let all = [
            (Compression::None, None),
            (Compression::Lz4, None),
            (zstd, None),
            (zstd, Some(&dictionary[..])),
        ];
        let built = all.into_iter().filter(|(compression, _)| compression.is_built());
        let codec = |(compression, dictionary)| {
            let values = ValueCompression::from(compression).with_bytes_min(20);
            ValueCodec::new("main", values, dictionary).unwrap()
        };
        built.map(codec).collect()
    }

    fn encoded(codec: &ValueCodec, plain: &[u8]) -> Vec<u8> {
        let mut stored = Vec::new();
        codec.encode(plain, &mut stored).unwrap();
        stored
    }

    #[test]
    fn values_of_all_lengths_come_back() {
        let mut random = fastrand::Rng::with_seed(3);
        for (number, codec) in codecs().into_iter().enumerate() {
            for bytes in [0, 1, 19, 20, 100, 4095, 4096, 70_000, 1 << 20] {
                let text = b"name: serde, license: MIT, version: 1.0.".iter().cycle();
                let text: Vec<u8> = text.copied().take(bytes).collect();
                let noise: Vec<u8> = (0..bytes).map(|_| random.u8(..)).collect();
                for plain in [&text, &noise] {
                    let stored = encoded(&codec, plain);
                    assert_eq!(codec.decode(b"key", &stored).unwrap()[..], plain[..]);
                    assert!(stored.len() <= plain.len() + 1);
                }
                let is_smaller = encoded(&codec, &text).len() < bytes;
                assert_eq!(is_smaller, number > 0 && bytes >= 100, "{codec:?}, {bytes} bytes");
                assert!(matches!(codec.decode(b"", &encoded(&codec, &noise)), Ok(Found::Lent(_))));
            }
        }
    }

    /// Bytes that were changed, cut off, or are none of ours give an error or another value, and
    /// never more than a value may have.
    #[test]
    fn no_bytes_make_it_panic_or_allocate_without_bound() {
        let mut random = fastrand::Rng::with_seed(5);
        let plain = b"name: serde, license: MIT, version: 1.0.".repeat(9);
        for codec in codecs() {
            let stored = encoded(&codec, &plain);
            for at in 0..stored.len() {
                for how in [1, 2, 3, 4, 0x80, 0xFF] {
                    let mut changed = stored.clone();
                    changed[at] ^= how;
                    let _ = codec.decode(b"key", &changed);
                }
                let _ = codec.decode(b"key", &stored[..at]);
            }
            for _ in 0..20_000 {
                let mut bytes: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
                if let Some(last) = bytes.last_mut() {
                    *last = random.u8(..5);
                }
                let _ = codec.decode(b"key", &bytes);
            }
            let error = codec.decode(b"a key", &[]).unwrap_err().to_string();
            assert!(error.contains("\"main\" under key a key"), "{error}");
            // The length of more than 4 GiB, and of 4 GiB out of ten bytes.
            for claim in [u64::MAX, VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX] {
                let mut bomb = Vec::new();
                varint::put(&mut bomb, claim);
                bomb.extend_from_slice(&[0; 10]);
                bomb.push(VALUE_LZ4);
                assert!(codec.decode(b"key", &bomb).unwrap_err().is_damaged());
            }
            assert!(codec.decode(b"key", b"bytes\x04").unwrap_err().is_damaged());
        }
    }

    #[test]
    fn what_was_prepared_counts_for_its_codec_alone() {
        let all = codecs();
        let plain = b"value ".repeat(20);
        let prepared = Prepared::new(&plain, Some(Arc::clone(&all[1]))).unwrap();
        assert_eq!(prepared.stored_for(&all[1]).unwrap(), encoded(&all[1], &plain));
        assert_eq!(prepared.stored_for(&all[0]), None);
        let values = [Some(&plain[..]), None, Some(b""), Some(&plain[..])];
        let run = PreparedRun::new(Some(Arc::clone(&all[1])), values.into_iter());
        let run = run.unwrap().unwrap();
        for (index, value) in values.iter().enumerate() {
            let expected = value.map_or(Vec::new(), |value| encoded(&all[1], value));
            assert_eq!(run.stored_for(&all[1], index).unwrap(), expected);
            assert_eq!(run.stored_for(&all[0], index), None);
        }
        assert_eq!(run.stored_for(&all[1], 4), None);
        assert!(PreparedRun::new(None, values.into_iter()).unwrap().is_none());
    }

    #[test]
    fn a_stored_form_shows_whether_values_are_compressed() {
        let long = b"name: serde, license: MIT, version: 1.0.".repeat(9);
        for (number, codec) in codecs().into_iter().enumerate() {
            assert_eq!(shown_by(&encoded(&codec, b"short")), Shown::Either);
            let stored = encoded(&codec, &long);
            let expected = if number == 0 { Shown::Either } else { Shown::Packed };
            assert_eq!(shown_by(&stored), expected);
            match value_as_shown(&stored, Shown::Packed) {
                Ok(found) => assert_eq!(&found[..], long),
                Err(why) => assert!(number == 3 && why.contains("dictionary"), "{why}"),
            }
            assert!(value_as_shown(&stored, Shown::Either).is_err());
        }
        for plain in [&b""[..], b"text", b"\x01", b"text\x01", b"more text\x04", &long] {
            assert_eq!(shown_by(plain), Shown::Plain);
            assert_eq!(&value_as_shown(plain, Shown::Plain).unwrap()[..], plain);
        }
    }

    /// Values move between keyspaces as they are only if none needs a dictionary that is not there.
    #[test]
    fn a_dictionary_is_needed_to_decode_all() {
        let all = codecs();
        let Some([zstd, dictionary]) = all.get(2..4) else { return };
        assert!(zstd.decodes_all_of(&all[0]) && all[0].decodes_all_of(zstd));
        assert!(dictionary.decodes_all_of(zstd) && !zstd.decodes_all_of(dictionary));
        assert!(dictionary.decodes_all_of(&codecs()[3]));
    }
}
