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
    KeyspaceDropped,
    KeyspaceExists,
    Locked,
    Missing,
    NotAKey,
    NotExpiring,
    OutOfSpace,
    Poisoned,
    ReadOnly,
    Refused,
    SnapshotExpired,
    TargetExists,
    TimedOut,
    Undecodable,
    UnknownKeyspace,
    Unsupported,
    WrongEngine,
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
from adamant._native import restore
from adamant._native import __VERSION__ as __version__
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
    "Keyspace",
    "KeyspaceDropped",
    "KeyspaceExists",
    "KeyspaceInfo",
    "Locked",
    "LsmOptions",
    "Missing",
    "NotAKey",
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
    "Undecodable",
    "UnknownKeyspace",
    "Unsupported",
    "WrongEngine",
    "WrongKind",
    "__version__",
    "in_memory",
    "open",
    "restore",
]
