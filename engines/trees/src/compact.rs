//! Compaction of trees of single pairs: a part is removed and inserted again.
//!
//! Purpose: after inserts in any order, pairs and nodes lie all over the heap. In a transaction
//! that packs, the new blocks of neighbours lie side by side. The B+ tree has a way of its own
//! (`bplus/compact.rs`).
//! Invariants: the pairs are the same before and after. After any failure the transaction must
//! fail, too, and then nothing has moved.

use std::ops::{Bound, ControlFlow};

use adamant_heap::access::{Read, Write};

use crate::error::{Error, Result};
use crate::slot::VALUE_MOVED_BYTES_MAX;
use crate::tree::{COMPACTED_BYTES_MAX, Cursor, Operation, OrderedMap, Pair, Seek, Walk};

/// Keys and values of a part, one after the other.
#[derive(Default)]
struct Copied {
    bytes: Vec<u8>,
    /// The ends of the key and of the value of each pair.
    ends: Vec<(usize, usize)>,
    /// The key at which the next part begins.
    next: Option<Vec<u8>>,
}

impl Copied {
    /// The first pairs from a key on, up to the end of a node.
    fn new<R: Read>(
        read: &R,
        tree: &impl OrderedMap,
        from: &[u8],
        pairs_max: usize,
    ) -> Result<Self> {
        let (mut copied, mut seen) = (Self::default(), 0);
        let mut cursor = tree.cursor(read);
        cursor.seek(Seek::Before(from))?;
        while seen < pairs_max.max(1) && copied.bytes.len() < COMPACTED_BYTES_MAX {
            let walk = cursor.walk(true, Bound::Unbounded, &mut |(key, value)| {
                seen += 1;
                if value.len() <= VALUE_MOVED_BYTES_MAX {
                    copied.bytes.extend_from_slice(key);
                    let key_end = copied.bytes.len();
                    copied.bytes.extend_from_slice(value);
                    copied.ends.push((key_end, copied.bytes.len()));
                }
                ControlFlow::Continue(())
            })?;
            if walk == Walk::End {
                return Ok(copied);
            }
        }
        copied.next = cursor.resume_key(true)?.map(<[u8]>::to_vec);
        Ok(copied)
    }

    fn pairs(&self) -> Vec<Pair<'_>> {
        let mut start = 0;
        let pair = |&(key_end, end): &(usize, usize)| {
            let key = &self.bytes[std::mem::replace(&mut start, end)..key_end];
            (key, &self.bytes[key_end..end])
        };
        self.ends.iter().map(pair).collect()
    }
}

/// The key at which the part behind that from `from` on begins; refuses one in a damaged tree that
/// does not go on, or the parts would never end.
pub(crate) fn next_part(block: u64, from: &[u8], next: Option<Vec<u8>>) -> Result<Option<Vec<u8>>> {
    match next {
        Some(next) if next[..] <= *from => {
            Err(Error::Damaged { block, what: "has keys that do not ascend" })
        }
        next => Ok(next),
    }
}

/// [`OrderedMap::compact_part`]. Pairs with values that stay in place stay as a whole.
pub(crate) fn rewrite_part<W: Write>(
    tx: &mut W,
    tree: &impl OrderedMap,
    from: &[u8],
    pairs_max: usize,
) -> Result<Option<Vec<u8>>> {
    let copied = Copied::new(tx, tree, from, pairs_max)?;
    let pairs = copied.pairs();
    let removals: Vec<Operation<'_>> =
        pairs.iter().map(|&(key, _)| Operation { key, value: None }).collect();
    tree.apply_sorted(tx, &removals, &mut Vec::with_capacity(pairs.len()))?;
    tree.load_sorted(tx, &pairs)?;
    next_part(tree.head(), from, copied.next)
}
