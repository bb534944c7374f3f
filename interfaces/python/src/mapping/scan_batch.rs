//! Copied entries, one behind the other in one buffer.
//!
//! Purpose: what a batch of an iteration is copied to while the store lends it, and Python's
//! objects are made of: no allocation and no reference count for an entry.
//! Thread safety: none of its own.

/// Bytes that a buffer keeps for the next batch, so that a long value does not stay.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Entries in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct ScanBatch {
    bytes: Vec<u8>,
    /// Where the key ends, and the value.
    ends: Vec<(usize, usize)>,
    /// How many were taken out again.
    taken: usize,
}

impl ScanBatch {
    /// Puts an entry behind the others; a value that is not wanted is empty.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    /// Takes the next entry out.
    pub(crate) fn pop(&mut self) -> Option<(&[u8], &[u8])> {
        let &(key_end, value_end) = self.ends.get(self.taken)?;
        let start = self.taken.checked_sub(1).map_or(0, |last| self.ends[last].1);
        self.taken += 1;
        Some((&self.bytes[start..key_end], &self.bytes[key_end..value_end]))
    }

    /// Whether all were taken out.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken == self.ends.len()
    }

    /// The last one, also if it was taken out.
    pub(crate) fn last(&self) -> Option<(&[u8], &[u8])> {
        let (&(key_end, value_end), before) = self.ends.split_last()?;
        let start = before.last().map_or(0, |end| end.1);
        Some((&self.bytes[start..key_end], &self.bytes[key_end..value_end]))
    }

    /// How many there are, with those that were taken out.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Makes room for the next batch.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.ends.clear();
        self.taken = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_as_they_went() {
        let mut entries = ScanBatch::default();
        assert_eq!(entries.pop(), None);
        assert_eq!(entries.last(), None);
        for round in 0..2 {
            let (key, value) = (vec![round; 3], vec![7; KEPT_BYTES_MAX]);
            let put: [(&[u8], &[u8]); 4] = [(b"", b""), (b"a", b""), (b"", b"1"), (&key, &value)];
            for (key, value) in put {
                entries.push(key, value);
                assert_eq!(entries.last(), Some((key, value)));
            }
            assert_eq!((entries.len(), entries.bytes()), (4, 5 + KEPT_BYTES_MAX));
            assert_eq!(
                put.map(|_| entries.pop().map(|(k, v)| (k.to_vec(), v.to_vec()))),
                put.map(|(k, v)| Some((k.to_vec(), v.to_vec())))
            );
            assert_eq!(entries.pop(), None);
            entries.clear();
            assert!(entries.bytes.capacity() <= 2 * KEPT_BYTES_MAX);
            assert_eq!(entries.len(), 0);
            assert_eq!(entries.pop(), None);
        }
    }
}
