//! What is persistent of a node: names of directories and keyspaces, keys, and the head of a snapshot's file.
//! See docs/format/replica.md.

use serde::{Deserialize, Serialize};

/// The format of all that is described here. Records hold openraft 0.9's types in postcard's format 1; a release of
/// either that encodes one of them in another way is another format.
pub(crate) const FORMAT: u32 = 2;

/// What a store's directory has for who has it open.
pub(crate) const LOCK: &str = "lock";

/// The store of the raft log.
pub(crate) const LOG: &str = "log";
/// Stores of state machines, with a number behind it.
pub(crate) const STATE: &str = "state-";
/// The copy of the state machine's store that becomes a snapshot's file.
pub(crate) const BUILDING: &str = "building";
/// The directory of the snapshots' files.
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// The snapshot that counts.
pub(crate) const CURRENT: &str = "current";
/// What is added to the name of a node while it is created.
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

/// The first sign of names of keyspaces that are not users'.
pub(crate) const RESERVED: char = '\0';
/// What the store adds to the name of a keyspace of entries that end for that of their deadlines.
pub(crate) const DEADLINES: &str = ".deadlines";
/// The keyspace of a state machine's store that says what was applied.
pub(crate) const APPLIED_META: &str = "\0replica";

/// Keys of `APPLIED_META`.
pub(crate) const APPLIED: &str = "applied";
pub(crate) const MEMBERSHIP: &str = "membership";
/// The first bytes of keys that have a keyspace's name behind them, and its kind as their value.
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
/// Bytes of a file that a frame holds at most, and of which those that are all zero are left out.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
/// Bytes of a frame's payload at most: a membership of some thousand nodes.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Kinds of frames.
pub(crate) const FRAME_META: u8 = 1;
pub(crate) const FRAME_DIRECTORY: u8 = 2;
pub(crate) const FRAME_FILE: u8 = 3;
pub(crate) const FRAME_PIECE: u8 = 4;
pub(crate) const FRAME_END: u8 = 5;

/// The key of an entry of the log: bytes in the order of numbers.
pub(crate) fn entry_key(index: u64) -> [u8; 8] {
    // Most significant byte first.
    index.swap_bytes().to_le_bytes()
}

/// The entry of a key, if it is one.
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
