//! The encoded options of a keyspace, behind its types in the catalogue.
//!
//! Purpose: options that hold for one keyspace stay with it. See `docs/format/store.md`.
//! Invariants: each is there once, in the order of tags, so equal options have equal bytes. An
//! option that this version does not know is never passed over: what it asks for would not be done.

use adamant_heap::durability::Durability;
use adamant_lsm::{Compression, LevelCompression};
use zerocopy::{FromBytes, IntoBytes};

use crate::layout::{
    DURABILITY_BUFFERED, DURABILITY_DEFERRED, DURABILITY_STORE, DURABILITY_SYNC,
    OPTION_BLOB_BYTES_MIN, OPTION_BLOCK_BYTES, OPTION_CACHES_DATA, OPTION_COMPRESSION,
    OPTION_DICTIONARY, OPTION_DURABILITY, OPTION_FILTER_BITS, OPTION_HASH_INDEX, OPTION_MERGE,
    OPTION_VALUES, OptionHead,
};
use crate::merge_operators::OperatorName;
use crate::own_options::{DictionaryPlace, OwnOptions};
use crate::value_compression::ValueCompression;

/// Stands for the absence of a minimum.
const NO_MINIMUM: u32 = u32::MAX;

/// Why encoded options cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This version does not know an option.
    Unknown {
        /// Its tag.
        tag: u16,
    },
    /// There is no durability with that number.
    Durability {
        /// What was found in its place.
        number: u8,
    },
    /// The bytes are no options, or have an impossible value.
    Malformed,
}

/// Encodes the options that are set.
pub(crate) fn to_bytes(own: &OwnOptions) -> Vec<u8> {
    let options = &own.lsm;
    let mut bytes = Vec::new();
    let mut put = |tag: u16, value: &[u8]| {
        let head = OptionHead { tag: tag.into(), bytes: (value.len() as u16).into() };
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(value);
    };
    if let Some(compression) = options.compression {
        put(OPTION_COMPRESSION, &compression.levels().map(Compression::to_bytes).concat());
    }
    if let Some(block_bytes) = options.block_bytes {
        put(OPTION_BLOCK_BYTES, &block_bytes.to_le_bytes());
    }
    if let Some(bits) = options.filter_bits_per_key {
        put(OPTION_FILTER_BITS, &[bits]);
    }
    if let Some(hash_index) = options.hash_index {
        put(OPTION_HASH_INDEX, &[hash_index.into()]);
    }
    if let Some(bytes_min) = options.blob_bytes_min {
        put(OPTION_BLOB_BYTES_MIN, &bytes_min.unwrap_or(NO_MINIMUM).to_le_bytes());
    }
    if let Some(values) = own.values {
        let [method, level] = values.compression().to_bytes();
        let [a, b, c, d] = values.bytes_min().to_le_bytes();
        put(OPTION_VALUES, &[method, level, a, b, c, d]);
    }
    if let Some(DictionaryPlace { block, bytes }) = own.dictionary {
        put(OPTION_DICTIONARY, &[&block.to_le_bytes()[..], &bytes.to_le_bytes()].concat());
    }
    if let Some(durability) = own.durability {
        put(OPTION_DURABILITY, &[number_of(durability)]);
    }
    if let Some(caches_data) = options.caches_data {
        put(OPTION_CACHES_DATA, &[caches_data.into()]);
    }
    if let Some(merge) = own.merge {
        put(OPTION_MERGE, merge.as_str().as_bytes());
    }
    bytes
}

/// The number that stands for a durability; `None`: that of the store.
pub(crate) fn number_of(durability: Option<Durability>) -> u8 {
    match durability {
        None => DURABILITY_STORE,
        Some(Durability::Sync) => DURABILITY_SYNC,
        Some(Durability::Buffered) => DURABILITY_BUFFERED,
        Some(Durability::Deferred) => DURABILITY_DEFERRED,
    }
}

/// The durability that a number stands for.
///
/// # Errors
/// There is none.
#[inline]
pub(crate) fn durability_of(number: u8) -> Result<Option<Durability>, Fault> {
    Ok(match number {
        DURABILITY_STORE => None,
        DURABILITY_SYNC => Some(Durability::Sync),
        DURABILITY_BUFFERED => Some(Durability::Buffered),
        DURABILITY_DEFERRED => Some(Durability::Deferred),
        number => return Err(Fault::Durability { number }),
    })
}

/// Decodes options.
///
/// # Errors
/// The first fault.
pub(crate) fn parse(bytes: &[u8]) -> Result<OwnOptions, Fault> {
    let mut options = OwnOptions::default();
    for record in records(bytes).ok_or(Fault::Malformed)? {
        set(&mut options, record)?;
    }
    // Whether this build has the compression is another question, and asked elsewhere.
    let mut values = options.lsm;
    values.compression = None;
    if options.dictionary.is_some() && options.values.is_none() {
        return Err(Fault::Malformed);
    }
    values.check().map_err(|_| Fault::Malformed)?;
    Ok(options)
}

/// Tags and values, if all bytes are options whose tags ascend, known or not.
pub(crate) fn records(mut bytes: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = OptionHead::read_from_prefix(bytes).ok()?;
        let (value, rest) = rest.split_at_checked(head.bytes.get().into())?;
        records.push((head.tag.get(), value));
        bytes = rest;
    }
    records.is_sorted_by(|(one, _), (next, _)| one < next).then_some(records)
}

fn set(own: &mut OwnOptions, (tag, value): (u16, &[u8])) -> Result<(), Fault> {
    let options = &mut own.lsm;
    let word = || value.try_into().map(u32::from_le_bytes).map_err(|_| Fault::Malformed);
    match (tag, value) {
        (OPTION_COMPRESSION, _) => {
            let (levels, rest) = value.as_chunks();
            let levels: Option<Vec<_>> =
                levels.iter().map(|bytes| Compression::from_bytes(*bytes)).collect();
            let levels = levels.filter(|levels| levels.len() == LevelCompression::LEVELS);
            let levels = levels.filter(|_| rest.is_empty());
            let levels = levels.and_then(|levels| LevelCompression::new(&levels));
            options.compression = Some(levels.ok_or(Fault::Malformed)?);
        }
        (OPTION_BLOCK_BYTES, _) => options.block_bytes = Some(word()?),
        (OPTION_FILTER_BITS, [bits]) => options.filter_bits_per_key = Some(*bits),
        (OPTION_HASH_INDEX, [has @ (0 | 1)]) => options.hash_index = Some(*has == 1),
        (OPTION_BLOB_BYTES_MIN, _) => {
            options.blob_bytes_min = Some(Some(word()?).filter(|bytes| *bytes != NO_MINIMUM));
        }
        (OPTION_VALUES, [method, level, bytes_min @ ..]) => {
            let compression = Compression::from_bytes([*method, *level]);
            let bytes_min = bytes_min.try_into().map(u32::from_le_bytes).ok();
            let values = compression.map(ValueCompression::from).zip(bytes_min);
            let values = values.map(|(values, bytes)| values.with_bytes_min(bytes));
            own.values = Some(values.ok_or(Fault::Malformed)?);
        }
        (OPTION_DICTIONARY, _) => {
            let place = value.split_first_chunk().map(|(block, rest)| (*block, rest.try_into()));
            let Some((block, Ok(bytes))) = place else { return Err(Fault::Malformed) };
            let (block, bytes) = (u64::from_le_bytes(block), u32::from_le_bytes(bytes));
            own.dictionary = Some(DictionaryPlace { block, bytes });
        }
        (OPTION_MERGE, name) => {
            own.merge = Some(OperatorName::from_bytes(name).ok_or(Fault::Malformed)?);
        }
        (OPTION_CACHES_DATA, [does @ (0 | 1)]) => options.caches_data = Some(*does == 1),
        (OPTION_DURABILITY, [number]) => own.durability = Some(durability_of(*number)?),
        (
            OPTION_FILTER_BITS | OPTION_HASH_INDEX | OPTION_VALUES | OPTION_DURABILITY
            | OPTION_CACHES_DATA,
            _,
        ) => return Err(Fault::Malformed),
        (tag, _) => return Err(Fault::Unknown { tag }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use adamant_lsm::TreeOptions;

    use super::*;

    fn all() -> OwnOptions {
        let mut options = TreeOptions::default();
        let levels = [Compression::None, Compression::Lz4, Compression::Zstd(9)];
        options.compression = Some(levels.into());
        options.block_bytes = Some(16 << 10);
        options.filter_bits_per_key = Some(12);
        options.hash_index = Some(true);
        options.blob_bytes_min = Some(Some(1000));
        options.caches_data = Some(false);
        let mut own = OwnOptions::from(options);
        own.values = Some(ValueCompression::from(Compression::Zstd(9)).with_bytes_min(200));
        own.dictionary = Some(DictionaryPlace { block: 0x0012_3456_7890, bytes: 60_000 });
        own.durability = Some(Some(Durability::Buffered));
        own.merge = Some(OperatorName::new("add"));
        own
    }

    #[test]
    fn options_come_back() {
        let mut none = OwnOptions::default();
        assert!(to_bytes(&none).is_empty());
        assert_eq!(parse(&[]), Ok(none));
        assert_eq!(parse(&to_bytes(&all())), Ok(all()));
        none.lsm.blob_bytes_min = Some(None);
        assert_eq!(to_bytes(&none), [5, 0, 4, 0, 255, 255, 255, 255]);
        assert_eq!(parse(&to_bytes(&none)), Ok(none));
    }

    #[test]
    fn durabilities_come_back_and_other_numbers_are_refused() {
        for number in 0..=u8::MAX {
            let bytes = [8, 0, 1, 0, number];
            match number {
                0..=3 => {
                    let own = parse(&bytes).unwrap();
                    assert_eq!(to_bytes(&own), bytes);
                    assert_eq!(own.durability.unwrap().is_none(), number == 0);
                }
                _ => assert_eq!(parse(&bytes), Err(Fault::Durability { number })),
            }
        }
        for wrong in [[8, 0, 0, 0].as_slice(), &[8, 0, 2, 0, 1, 1]] {
            assert_eq!(parse(wrong), Err(Fault::Malformed));
        }
    }

    #[test]
    fn other_bytes_are_refused_and_unknown_tags_are_named() {
        let bytes = to_bytes(&all());
        let starts: Vec<_> = [0, 18, 26, 31, 36, 44, 54, 70, 75, 80]
            .into_iter()
            .take_while(|at| *at <= bytes.len())
            .collect();
        for end in 0..bytes.len() {
            let found = parse(&bytes[..end]);
            assert_eq!(found.is_ok(), starts.contains(&end), "{end} bytes: {found:?}");
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let found = parse(&changed);
                assert!(found != Ok(all()), "bit {bit} of byte {at}");
            }
        }
        let later = [&bytes[..], &[99, 0, 1, 0, 9]].concat();
        assert_eq!(parse(&later), Err(Fault::Unknown { tag: 99 }));
        assert_eq!(records(&later).unwrap().len(), 11);
        assert_eq!(parse(&bytes[54..70]), Err(Fault::Malformed), "a dictionary of nothing");
        assert_eq!(parse(&[10, 0, 0, 0]), Err(Fault::Malformed), "an operator without a name");
        for twice in [[&bytes[..], &bytes].concat(), [&bytes[18..26], &bytes[..18]].concat()] {
            assert_eq!(parse(&twice), Err(Fault::Malformed));
        }
        let values = [[2, 0, 4, 0, 0, 0, 0, 0].as_slice(), &[2, 0, 4, 0, 0, 0, 0, 1]];
        let values = values.into_iter().chain([&[3, 0, 1, 0, 31][..]]);
        for wrong in
            [[3, 0, 0, 0].as_slice(), &[4, 0, 1, 0, 2], &[9, 0, 1, 0, 2], &[2, 0, 3, 0, 1, 1, 1]]
                .into_iter()
                .chain(values)
        {
            assert_eq!(parse(wrong), Err(Fault::Malformed));
        }
    }
}
