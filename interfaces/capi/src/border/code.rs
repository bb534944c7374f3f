//! Return codes of functions, and other numbers of the header.
//!
//! Invariants: a number never changes its meaning, and is never reused.

use std::ffi::c_int;

/// The number of this binary interface, see adamant_abi.
pub const ADAMANT_ABI: u32 = 1;

/// Done.
pub const ADAMANT_OK: c_int = 0;
/// There is no such key or keyspace; not an error.
pub const ADAMANT_NOT_FOUND: c_int = 1;
/// A cursor has come to the end of its range; not an error.
pub const ADAMANT_END: c_int = 2;

/// A null pointer where none may be, a handle of another kind, a length or a number that cannot be.
pub const ADAMANT_INVALID: c_int = -1;
/// A defect of the library: it panicked. The call may have been done or not; the store goes on.
pub const ADAMANT_PANIC: c_int = -2;
/// The store was closed, or the batch or transaction was committed.
pub const ADAMANT_CLOSED: c_int = -3;
/// The handle is for one thread at a time, and another one is using it.
pub const ADAMANT_BUSY: c_int = -4;
/// A key has up to 65,535 bytes: only what writes refuses a longer one.
pub const ADAMANT_KEY_LENGTH: c_int = -5;
/// A value has at most 4 GiB - 1.
pub const ADAMANT_VALUE_LENGTH: c_int = -6;
/// The name of a keyspace has 1 to 255 bytes of UTF-8.
pub const ADAMANT_NAME: c_int = -7;
/// There is no keyspace of that name.
pub const ADAMANT_UNKNOWN_KEYSPACE: c_int = -8;
/// There is a keyspace of that name already.
pub const ADAMANT_KEYSPACE_EXISTS: c_int = -9;
/// The keyspace of the handle was dropped.
pub const ADAMANT_KEYSPACE_DROPPED: c_int = -10;
/// The keyspace is of another store.
pub const ADAMANT_OTHER_STORE: c_int = -11;
/// There is no engine of that name, or not in this version.
pub const ADAMANT_UNKNOWN_ENGINE: c_int = -12;
/// The keyspace is kept by another engine than the one asked for.
pub const ADAMANT_WRONG_ENGINE: c_int = -13;
/// What is at the path is no store, or not one that this version can open.
pub const ADAMANT_NOT_A_STORE: c_int = -14;
/// There is no store at the path, and none was to be created.
pub const ADAMANT_MISSING: c_int = -15;
/// Something is where a copy was to be made, or that would lie within the store.
pub const ADAMANT_TARGET: c_int = -16;
/// Somebody has the store open.
pub const ADAMANT_LOCKED: c_int = -17;
/// Another commit changed what the transaction read: it did nothing, run it again.
pub const ADAMANT_CONFLICT: c_int = -18;
/// The snapshot was ended because what was kept for snapshots took too much memory.
pub const ADAMANT_SNAPSHOT_EXPIRED: c_int = -19;
/// The store was opened for reading only.
pub const ADAMANT_READ_ONLY: c_int = -20;
/// No space on the device. Nothing was changed; reads and removes still work.
pub const ADAMANT_OUT_OF_SPACE: c_int = -21;
/// A write or sync failed before: no writes until the store is opened again. Reads go on.
pub const ADAMANT_POISONED: c_int = -22;
/// Something durable is not what was written: run a check, restore a copy.
pub const ADAMANT_DAMAGED: c_int = -23;
/// A reader used the store that lends to it.
pub const ADAMANT_REENTRANT: c_int = -24;
// -25 was an error of the undo journal, which was removed.
/// The buffer is too small for the value.
pub const ADAMANT_TOO_SMALL: c_int = -26;
/// The call cannot be made here, as in the child of a fork.
pub const ADAMANT_MISUSE: c_int = -27;
/// The system failed: files, memory, threads.
pub const ADAMANT_SYSTEM: c_int = -28;
/// Anything else; the text says what.
pub const ADAMANT_OTHER: c_int = -29;
/// The keyspace of that name holds entries that were not made to end.
pub const ADAMANT_NOT_EXPIRING: c_int = -30;
/// The keyspace of that name holds entries that end, or their deadlines: adamant_expiring_open
/// opens it. Or it is the history of changes, which adamant_changes_open reads.
pub const ADAMANT_WRONG_KIND: c_int = -31;
/// Others wrote for longer than was to be waited: nothing was done, try again later.
pub const ADAMANT_TIMED_OUT: c_int = -32;
/// The store does not record changes: adamant_record_changes begins.
pub const ADAMANT_CHANGES_NOT_RECORDED: c_int = -33;
/// The history of changes does not have all commits behind that one: adamant_changes_info tells
/// those that it has.
pub const ADAMANT_CHANGES_UNKNOWN: c_int = -34;
/// The store is encrypted, and no key was given: adamant_options_set_encryption_key.
pub const ADAMANT_KEY_NEEDED: c_int = -35;
/// The store is encrypted by another key than was given. Nothing was changed.
pub const ADAMANT_WRONG_KEY: c_int = -36;
/// A key was given, and the store is not encrypted.
pub const ADAMANT_NOT_ENCRYPTED: c_int = -37;

/// A commit survives power loss: the default.
pub const ADAMANT_SYNC: c_int = 0;
/// A commit survives the death of the process.
pub const ADAMANT_BUFFERED: c_int = 1;
/// A commit may be lost with the process for a bounded time, but never in part.
pub const ADAMANT_DEFERRED: c_int = 2;

/// A key has a value.
pub const ADAMANT_CHANGE_PUT: c_int = 1;
/// A key has no value.
pub const ADAMANT_CHANGE_REMOVED: c_int = 2;
/// The value of a key became that of the target key, and the key has none.
pub const ADAMANT_CHANGE_MOVED: c_int = 3;
/// A key and the target key have exchanged their values.
pub const ADAMANT_CHANGE_SWAPPED: c_int = 4;
/// No key of a range has a value.
pub const ADAMANT_CHANGE_RANGE_REMOVED: c_int = 5;
/// A keyspace has no entries.
pub const ADAMANT_CHANGE_CLEARED: c_int = 6;
/// A keyspace was made.
pub const ADAMANT_CHANGE_CREATED: c_int = 7;
/// A keyspace is gone, with its entries.
pub const ADAMANT_CHANGE_DROPPED: c_int = 8;
/// A keyspace has the new name.
pub const ADAMANT_CHANGE_RENAMED: c_int = 9;
/// A keyspace and the target keyspace have exchanged their names.
pub const ADAMANT_CHANGE_EXCHANGED: c_int = 10;
/// Entries of a range were loaded, where there were none. They are not listed: read them.
pub const ADAMANT_CHANGE_LOADED: c_int = 11;

/// The deadline of an entry that has none: it stays until it is taken out. Later than all others.
pub const ADAMANT_NEVER: u64 = u64::MAX;
