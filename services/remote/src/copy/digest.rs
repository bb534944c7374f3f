//! Digests of stores, for comparison.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

/// Counts, and a checksum of all names, keys and values: the sum of one for each keyspace. Equal
/// digests of stores mean equal keyspaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Digest {
    /// Keyspaces.
    pub keyspaces: u64,
    /// Entries of all of them.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// XXH3, 128 bits, of each keyspace, added.
    pub checksum: u128,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keyspaces, entries, bytes, checksum } = self;
        write!(
            f,
            "{keyspaces} keyspaces, {entries} entries, {bytes} bytes, checksum {checksum:032x}"
        )
    }
}

/// Computes a digest while a store is read, in any order of its keyspaces.
#[derive(Default)]
pub(super) struct Digester {
    digest: Digest,
    /// Of the current keyspace.
    hash: Option<Xxh3>,
}

impl Digester {
    /// Begins a keyspace.
    pub(super) fn keyspace(&mut self, name: &str) {
        self.end();
        self.digest.keyspaces += 1;
        let mut hash = Xxh3::new();
        field(&mut hash, name.as_bytes());
        self.hash = Some(hash);
    }

    pub(super) fn entry(&mut self, key: &[u8], value: &[u8]) {
        self.digest.entries += 1;
        self.digest.bytes += key.len() as u64 + value.len() as u64;
        if let Some(hash) = &mut self.hash {
            field(hash, key);
            field(hash, value);
        }
    }

    fn end(&mut self) {
        if let Some(hash) = self.hash.take() {
            self.digest.checksum = self.digest.checksum.wrapping_add(hash.digest128());
        }
    }

    pub(super) fn digest(mut self) -> Digest {
        self.end();
        self.digest
    }
}

fn field(hash: &mut Xxh3, bytes: &[u8]) {
    hash.update(&(bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_ends_and_the_next_begins_counts() {
        let digest = |work: &dyn Fn(&mut Digester)| {
            let mut digester = Digester::default();
            digester.keyspace("a");
            work(&mut digester);
            digester.digest()
        };
        let all = [
            digest(&|d| d.entry(b"ab", b"c")),
            digest(&|d| d.entry(b"a", b"bc")),
            digest(&|d| d.keyspace("b")),
            digest(&|d| {
                d.entry(b"ab", b"c");
                d.keyspace("b");
            }),
            digest(&|d| {
                d.keyspace("b");
                d.entry(b"ab", b"c");
            }),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other.checksum != one.checksum));
        }
        assert_eq!(all[0], digest(&|d| d.entry(b"ab", b"c")));
        let mut other_order = Digester::default();
        other_order.keyspace("b");
        other_order.keyspace("a");
        other_order.entry(b"ab", b"c");
        assert_eq!(other_order.digest(), all[3]);
        assert_eq!((all[3].keyspaces, all[3].entries, all[3].bytes), (2, 1, 3));
    }
}
