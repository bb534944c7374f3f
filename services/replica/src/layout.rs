//! On-disk layout of a node: names of directories and keyspaces, keys, and the head of a snapshot's
//! file. See docs/format/replica.md.

use serde::{Deserialize, Serialize};

/// The format of everything that is described here. Records hold openraft 0.9's types in postcard's
/// format 1; a release of either that encodes one of them differently is another format.
pub(crate) const FORMAT: u32 = 2;

/// The lock file in a store's directory.
pub(crate) const LOCK: &str = "lock";

/// The store of the raft log.
pub(crate) const LOG: &str = "log";
/// Name prefix of state machine stores; a number follows.
pub(crate) const STATE: &str = "state-";
/// The copy of the state machine's store that becomes a snapshot's file.
pub(crate) const BUILDING: &str = "building";
/// The directory of the snapshots' files.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// The current snapshot.
pub(crate) const CURRENT: &str = "current";
/// The name suffix of a node that is being created.
pub(crate) const CREATING: &str = ".creating";

/// Keyspaces of the log's store.
pub(crate) const ENTRIES: &str = "entries";
pub(crate) const META: &str = "meta";

/// Keys of `META`.
pub(crate) const IDENTITY: &str = "identity";
pub(crate) const DIRECTORY: &str = "directory";
pub(crate) const STATE_NUMBER: &str = "state";
pub(crate) const VOTE: &str = "vote";
pub(crate) const COMMITTED: &str = "committed";
pub(crate) const PURGED: &str = "purged";

/// The first character of internal keyspace names.
pub(crate) const RESERVED: char = '\0';
/// The suffix that the store adds to the name of a keyspace of expiring entries for that of their
/// deadlines.
pub(crate) const DEADLINES: &str = ".deadlines";
/// The keyspace of a state machine's store that records what was applied.
pub(crate) const APPLIED_META: &str = "\0replica";

/// Keys of `APPLIED_META`.
pub(crate) const APPLIED: &str = "applied";
pub(crate) const MEMBERSHIP: &str = "membership";
/// Key prefix of the kinds of keyspaces: the keyspace's name follows, and the value is the kind.
pub(crate) const KIND: &str = "kind ";

/// The record `identity`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) format: u32,
    pub(crate) node_id: u64,
}

/// The number of the first state machine's store.
pub(crate) const STATE_NUMBER_FIRST: u64 = 1;

/// Bytes of the checksum at the end of a record.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// The first bytes of a snapshot's file: the last of them is its format.
pub(crate) const SNAPSHOT_MAGIC: [u8; 8] = *b"ADAMSNP\x01";
/// Bytes of a frame's head: 1 kind, 4 bytes of its payload, 4 checksum.
pub(crate) const FRAME_HEAD_BYTES: usize = 9;
/// Maximum bytes of a file in a frame; pieces that are all zero are left out.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// Maximum bytes of a frame's payload: a membership of some thousand nodes.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Kinds of frames.
pub(crate) const FRAME_META: u8 = 1;
pub(crate) const FRAME_DIRECTORY: u8 = 2;
pub(crate) const FRAME_FILE: u8 = 3;
pub(crate) const FRAME_PIECE: u8 = 4;
pub(crate) const FRAME_END: u8 = 5;

/// The key of an entry of the log, in numeric order.
pub(crate) fn entry_key(index: u64) -> [u8; 8] {
    // Most significant byte first.
    index.swap_bytes().to_le_bytes()
}

/// Decodes the entry number of a key.
pub(crate) fn entry_index(key: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(key.try_into().ok()?).swap_bytes())
}

const _: () = assert!(PIECE_BYTES + 8 <= PAYLOAD_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_numbers() {
        let numbers = [0, 1, 255, 256, u64::from(u32::MAX), 1 << 40, u64::MAX];
        assert!(numbers.windows(2).all(|pair| entry_key(pair[0]) < entry_key(pair[1])));
        assert!(numbers.iter().all(|&number| entry_index(&entry_key(number)) == Some(number)));
        assert_eq!(entry_index(b"short"), None);
    }
}
