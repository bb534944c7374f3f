"""Adamant: an embedded, transactional, ordered key-value store.

    import adamant

    with adamant.open("app.adamant") as db:
        users = db.keyspace("users", codec="utf-8")
        users["ada"] = "Ada Lovelace"

A store holds named keyspaces, each an ordered mapping of bytes, or of str where it is given a codec.
Every change is a commit of its own, unless a batch or a transaction makes one of many.
"""

from adamant._changes import Change, Changes, ChangesInfo, Commit, Cursors
from adamant._errors import (
    ChangesNotRecorded,
    ChangesUnknown,
    Closed,
    Conflict,
    Damaged,
    Denied,
    Error,
    Forked,
    InvalidArgument,
    KeyNeeded,
    KeyspaceDropped,
    KeyspaceExists,
    Locked,
    Missing,
    NotAKey,
    NotEncrypted,
    NotExpiring,
    OutOfSpace,
    Poisoned,
    ReadOnly,
    Refused,
    SnapshotExpired,
    TargetExists,
    TimedOut,
    UnknownKeyspace,
    Unsupported,
    WrongEngine,
    WrongKey,
    WrongKind,
)
from adamant._mapping import (
    Expiring,
    Keyspace,
    Range,
    SnapshotExpiring,
    SnapshotKeyspace,
    TransactionExpiring,
    TransactionKeyspace,
)
from adamant._native import __VERSION__ as __version__
from adamant._native import encrypt, rekey
from adamant._store import (
    Batch,
    Finding,
    KeyspaceInfo,
    LsmOptions,
    Snapshot,
    Store,
    Transaction,
    in_memory,
    open,
    restore,
)

__all__ = [
    "Batch",
    "Change",
    "Changes",
    "ChangesInfo",
    "ChangesNotRecorded",
    "ChangesUnknown",
    "Closed",
    "Commit",
    "Conflict",
    "Cursors",
    "Damaged",
    "Denied",
    "Error",
    "Expiring",
    "Finding",
    "Forked",
    "InvalidArgument",
    "KeyNeeded",
    "Keyspace",
    "KeyspaceDropped",
    "KeyspaceExists",
    "KeyspaceInfo",
    "Locked",
    "LsmOptions",
    "Missing",
    "NotAKey",
    "NotEncrypted",
    "NotExpiring",
    "OutOfSpace",
    "Poisoned",
    "Range",
    "ReadOnly",
    "Refused",
    "Snapshot",
    "SnapshotExpired",
    "SnapshotExpiring",
    "SnapshotKeyspace",
    "Store",
    "TargetExists",
    "TimedOut",
    "Transaction",
    "TransactionExpiring",
    "TransactionKeyspace",
    "UnknownKeyspace",
    "Unsupported",
    "WrongEngine",
    "WrongKey",
    "WrongKind",
    "__version__",
    "encrypt",
    "in_memory",
    "open",
    "rekey",
    "restore",
]
