"""The store, and what changes or sees several of its keyspaces as one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar, overload

from adamant import _native
from adamant._block import Block
from adamant._changes import Changes, ChangesInfo, Cursors
from adamant._errors import InvalidArgument
from adamant._mapping import (
    Expiring,
    Keyspace,
    SnapshotExpiring,
    SnapshotKeyspace,
    TransactionExpiring,
    TransactionKeyspace,
)
from adamant._native import Multimap

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Engine: TypeAlias = Literal["bplus", "lsm", "btree", "critbit", "redblack"]
Durability: TypeAlias = Literal["sync", "buffered", "deferred"]
DefaultDurability: TypeAlias = Literal["sync", "buffered", "deferred", "store"]

# A child of a fork must not even wait for a lock of the store, which a thread of its parent may have.
if sys.platform != "win32":
    os.register_at_fork(after_in_child=_native.after_fork_in_child)


def _codecs(
    both: str | None, keys: str | None, values: str | None
) -> tuple[str | None, str | None]:
    if both is not None and (keys is not None or values is not None):
        raise InvalidArgument("give codec, or key_codec and value_codec, not both")
    return keys or both, values or both


class LsmOptions(TypedDict, total=False):
    """Options of a keyspace of the engine lsm, in place of those of the store.

    compression: "none", "lz4", "zstd" or "zstd:LEVEL" for all levels; a list of those of the first
        levels, of which the last one holds for all deeper ones; "lz4, last zstd": another for the
        last level, where nine tenths of the data are.
    block_bytes: bytes of a data block before compression, 64 to 8 MiB.
    filter_bits_per_key: bits of the filters per key, 0, for none, to 30.
    hash_index: whether data blocks have a hash index.
    caches_data: whether data stays in the block cache after it was read.
    blob_bytes_min: bytes of a value from which on it is kept in a blob file; None: never.
    """

    compression: str | list[str]
    block_bytes: int
    filter_bits_per_key: int
    hash_index: bool
    blob_bytes_min: int | None
    caches_data: bool


class KeyspaceInfo(NamedTuple):
    """A keyspace in the list of them."""

    name: str
    engine: str
    entries: int
    kind: str = "plain"
    durability: str | None = None
    merge_operator: str | None = None


class SavepointInfo(NamedTuple):
    """A persistent savepoint, as Store.savepoints() lists it."""

    name: str
    commit: int
    """The number of the last commit that it shows."""
    made: float | None
    """When it was made: seconds since 1970."""
    size: int
    """Bytes on the device that it holds."""
    state: str
    """"whole", "lost" (given up for lack of space) or "damaged"."""


class Finding(NamedTuple):
    """Something that is wrong in a store: where, and what; or what the system refused to read."""

    place: str
    what: str
    is_unread: bool


class Store(_native.Store, Block):
    """A store that is open, from open() or in_memory(). As a context manager it closes itself."""

    __slots__ = ("_path",)

    _path: str | None

    def __init__(self, path: Path | None, options: dict[str, Any]) -> None:
        # It was opened when it was made.
        self._path = None if path is None else os.fsdecode(path)

    @property
    def path(self) -> str | None:
        """Where it is, as os.fsdecode has it; None for a store in memory."""
        return self._path

    @overload
    def keyspace(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: None = None,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
        merge_operator: str | None = None,
    ) -> Keyspace[bytes, bytes]: ...

    @overload
    def keyspace(
        self,
        name: str,
        *,
        codec: str,
        key_codec: None = None,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
        merge_operator: str | None = None,
    ) -> Keyspace[str, str]: ...

    @overload
    def keyspace(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: str,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
        merge_operator: str | None = None,
    ) -> Keyspace[str, bytes]: ...

    @overload
    def keyspace(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: None = None,
        value_codec: str,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
        merge_operator: str | None = None,
    ) -> Keyspace[bytes, str]: ...

    @overload
    def keyspace(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: str,
        value_codec: str,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
        merge_operator: str | None = None,
    ) -> Keyspace[str, str]: ...

    def keyspace(
        self,
        name: str,
        *,
        codec: str | None = None,
        key_codec: str | None = None,
        value_codec: str | None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
        merge_operator: str | None = None,
    ) -> Keyspace[Any, Any]:
        """The keyspace of that name, created if there is none.

        Keys and values are bytes; by a codec, such as "utf-8", they are str: both, or one of them.
        The order is that of the bytes. The engine is for one that is created, and a claim about one
        that exists. The durability is what commits through this handle wait for. The default
        durability is recorded with the keyspace: what commits to it wait for that do not say it
        themselves, "store" for what the store was opened with; a commit that changes several keyspaces
        waits for the most that one of them asks for. Options of the engine lsm are recorded with the
        keyspace, and hold until others are given; so is the compression of values in the other engines:
        "lz4", "zstd" or "zstd:LEVEL", for values of 128 bytes or more, or from other bytes on, as in
        "lz4, from 200". A keyspace with values that are stored plain is converted by compress_values().
        A merge operator is what merge() uses, and recorded for good: "add", "max_u64", "min_u64",
        "max_i64", "min_i64" (integers of 8 bytes, little-endian), "append" or "or".
        """
        keys, values = _codecs(codec, key_codec, value_codec)
        return Keyspace(
            self,
            name,
            engine,
            durability,
            keys,
            values,
            lsm,
            value_compression,
            default_durability=default_durability,
            merge_operator=merge_operator,
        )

    @overload
    def expiring(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: None = None,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        clock: Callable[[], float] | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
    ) -> Expiring[bytes, bytes]: ...

    @overload
    def expiring(
        self,
        name: str,
        *,
        codec: str,
        key_codec: None = None,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        clock: Callable[[], float] | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
    ) -> Expiring[str, str]: ...

    @overload
    def expiring(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: str,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        clock: Callable[[], float] | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
    ) -> Expiring[str, bytes]: ...

    @overload
    def expiring(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: None = None,
        value_codec: str,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        clock: Callable[[], float] | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
    ) -> Expiring[bytes, str]: ...

    @overload
    def expiring(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: str,
        value_codec: str,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        clock: Callable[[], float] | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
    ) -> Expiring[str, str]: ...

    def expiring(
        self,
        name: str,
        *,
        codec: str | None = None,
        key_codec: str | None = None,
        value_codec: str | None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        default_durability: DefaultDurability | None = None,
        clock: Callable[[], float] | None = None,
        lsm: LsmOptions | None = None,
        value_compression: str | None = None,
    ) -> Expiring[Any, Any]:
        """The keyspace of that name for entries that may end, created if there is none.

        Beside it is one that has their deadlines, called as it and ".deadlines". The clock gives seconds
        since 1970, as time.time, which is the default. The rest is as in keyspace().
        """
        keys, values = _codecs(codec, key_codec, value_codec)
        return Expiring(
            self,
            name,
            engine,
            durability,
            keys,
            values,
            clock,
            lsm,
            value_compression,
            default_durability,
        )

    @overload
    def multimap(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: None = None,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        lsm: LsmOptions | None = None,
    ) -> Multimap[bytes, bytes]: ...

    @overload
    def multimap(
        self,
        name: str,
        *,
        codec: str,
        key_codec: None = None,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        lsm: LsmOptions | None = None,
    ) -> Multimap[str, str]: ...

    @overload
    def multimap(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: str,
        value_codec: None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        lsm: LsmOptions | None = None,
    ) -> Multimap[str, bytes]: ...

    @overload
    def multimap(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: None = None,
        value_codec: str,
        engine: Engine | None = None,
        durability: Durability | None = None,
        lsm: LsmOptions | None = None,
    ) -> Multimap[bytes, str]: ...

    @overload
    def multimap(
        self,
        name: str,
        *,
        codec: None = None,
        key_codec: str,
        value_codec: str,
        engine: Engine | None = None,
        durability: Durability | None = None,
        lsm: LsmOptions | None = None,
    ) -> Multimap[str, str]: ...

    def multimap(
        self,
        name: str,
        *,
        codec: str | None = None,
        key_codec: str | None = None,
        value_codec: str | None = None,
        engine: Engine | None = None,
        durability: Durability | None = None,
        lsm: LsmOptions | None = None,
    ) -> Multimap[Any, Any]:
        """The multimap of that name, created if there is none: a key has any number of sorted values.

        The rest is as in keyspace().
        """
        keys, values = _codecs(codec, key_codec, value_codec)
        return Multimap(self, name, engine, durability, keys, values, lsm)

    def savepoints(self) -> list[SavepointInfo]:
        """All persistent savepoints, the oldest first, and behind them those that were given up."""
        return [SavepointInfo(*listed) for listed in self._savepoints()]

    def open_savepoint(self, name: str, /) -> Store:
        """What a persistent savepoint shows, as a store that is only read, while this one goes on.

        Closing this one ends it: what is not in memory by then cannot be read any more.
        """
        return Store(None, {"savepoint": (self, name)})

    def keyspaces(self) -> list[KeyspaceInfo]:
        """All keyspaces, by name."""
        return [KeyspaceInfo(*listed) for listed in self._keyspaces()]

    def batch(self, *, durability: Durability | None = None) -> Batch:
        """Changes that become one commit when the with block ends, or are let go if it fails."""
        return Batch(self, durability)

    def snapshot(self, *, durable: bool = False) -> Snapshot:
        """All keyspaces as they are now; durable: as they are once all that is durable."""
        return Snapshot(self, durable)

    def transaction(self, *, durability: Durability | None = None) -> Transaction:
        """Reads and writes that happen as one when the with block ends, or not at all if it fails.

        What another commit changed meanwhile makes it fail with Conflict: see run().
        """
        return Transaction(self, durability)

    def run(
        self,
        function: Callable[[Transaction], T],
        *,
        attempts: int | None = None,
        exclusive_after: int | None = 8,
        timeout: float | timedelta | None = None,
        durability: Durability | None = None,
    ) -> T:
        """What a function of a transaction returns, once that is committed.

        After a conflict it runs again, from the start: beside others exclusive_after times, then
        once while nobody else writes, which cannot conflict; None: never so. The last Conflict is
        raised after so many attempts, or 100, and where none can begin within the timeout.
        Transaction.attempt counts from 1. The function should do nothing beside that cannot be done
        twice, and write by its transaction only.
        """
        for name, given in (("attempts", attempts), ("exclusive_after", exclusive_after)):
            if given is not None and given < 1:
                raise InvalidArgument(f"{name} is at least 1, not {given}")

        def within(begun: _native.Begun) -> T:
            return function(Transaction(begun))

        return _native.run(self, within, attempts, exclusive_after, timeout, durability)

    def exclusive(
        self,
        function: Callable[[Transaction], T],
        *,
        timeout: float | timedelta | None = None,
        durability: Durability | None = None,
    ) -> T:
        """What a function of a transaction returns beside which nobody else writes, once that is
        committed.

        It runs once, and cannot conflict. Others that write wait for it, and it for them: TimedOut
        after the timeout, at once if that is 0. Its thread writes by the transaction only.
        """

        def within(begun: _native.Begun) -> T:
            return function(Transaction(begun))

        return _native.run_exclusive(self, within, timeout, durability)

    def changes(self, after: int = 0, *, timeout: float | timedelta | None = None) -> Changes:
        """The commits behind the one of a number, in order, of the past and to come: an iterator.

        Needs record_changes(). 0 begins with the first; last_change with the next one to come. It ends
        when no commit comes within the timeout: None never, 0 behind those that are there. Of a store
        that was opened beside a writer it gives what the other process commits, and follows by itself:
        the store may be closed then. ChangesUnknown if the history does not have the next commit.
        """
        return Changes(self, after, timeout)

    def changes_info(self) -> ChangesInfo:
        """Which commits the history of changes has, and the bytes that it takes and may take."""
        return ChangesInfo(*self._changes_info())

    @property
    def cursors(self) -> Cursors:
        """Durable positions in the feed of changes, by name: a mapping to numbers of commits."""
        return Cursors(self)

    def check(self) -> list[Finding]:
        """Verifies every checksum and structure, and lists what is wrong: nothing, if it is whole."""
        return [Finding(*finding) for finding in self._check()]

    def _end(self, failed: bool) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "in memory" if self._path is None else repr(self._path)
        state = " closed" if self.closed else " read-only" if self.read_only else ""
        return f"<adamant.Store {where}{state}>"


class Batch(_native.Batch, Block):
    """Changes of any keyspaces of a store that become one commit."""

    __slots__ = ()

    def _end(self, failed: bool) -> None:
        if failed:
            self.discard()
        elif not self.closed:
            self.commit()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{len(self)} operations"
        return f"<adamant.Batch {state}>"


class Snapshot(_native.Snapshot, Block):
    """All keyspaces of a store as one commit left them: snapshot[keyspace] is one of them."""

    __slots__ = ()

    @overload
    def __getitem__(self, keyspace: Keyspace[K, V]) -> SnapshotKeyspace[K, V]: ...

    @overload
    def __getitem__(self, keyspace: Expiring[K, V]) -> SnapshotExpiring[K, V]: ...

    @overload
    def __getitem__(self, keyspace: Multimap[K, V]) -> Multimap[K, V]: ...

    def __getitem__(
        self, keyspace: Keyspace[K, V] | Expiring[K, V] | Multimap[K, V]
    ) -> SnapshotKeyspace[K, V] | SnapshotExpiring[K, V] | Multimap[K, V]:
        if isinstance(keyspace, Multimap):
            return keyspace._at(self)
        if isinstance(keyspace, Expiring):
            return SnapshotExpiring(self, keyspace)
        return SnapshotKeyspace(self, keyspace)

    def _end(self, failed: bool) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<adamant.Snapshot{' closed' if self.closed else ''}>"


class Transaction(_native.Transaction, Block):
    """Reads and writes of any keyspaces that happen as one: transaction[keyspace] is one of them."""

    __slots__ = ()

    @overload
    def __getitem__(self, keyspace: Keyspace[K, V]) -> TransactionKeyspace[K, V]: ...

    @overload
    def __getitem__(self, keyspace: Expiring[K, V]) -> TransactionExpiring[K, V]: ...

    @overload
    def __getitem__(self, keyspace: Multimap[K, V]) -> Multimap[K, V]: ...

    def __getitem__(
        self, keyspace: Keyspace[K, V] | Expiring[K, V] | Multimap[K, V]
    ) -> TransactionKeyspace[K, V] | TransactionExpiring[K, V] | Multimap[K, V]:
        if isinstance(keyspace, Multimap):
            return keyspace._within(self)
        if isinstance(keyspace, Expiring):
            return TransactionExpiring(self, keyspace)
        return TransactionKeyspace(self, keyspace)

    def _end(self, failed: bool) -> None:
        if failed:
            self.rollback()
        elif not self.closed:
            self.commit()

    def __repr__(self) -> str:
        return f"<adamant.Transaction{' closed' if self.closed else ''}>"


def open(
    path: Path,
    *,
    create: bool = True,
    read_only: bool = False,
    beside_writer: bool = False,
    reader_bytes_max: int | None = None,
    durability: Durability = "sync",
    flushing: Literal["auto", "volatile", "none"] = "auto",
    log_bytes_max: int | None = None,
    deferred_ms_max: int | None = None,
    deferred_bytes_max: int | None = None,
    sweep_expired: bool = True,
    verify_first_touch: bool = False,
    memory_bytes_max: int | None = None,
    address_bytes_max: int | None = None,
    huge_bytes_max: int | None = None,
    image: Literal["mapped", "filled"] | None = None,
    snapshot_bytes_max: int | None = None,
    cache_bytes_max: int | None = None,
    pinned_bytes_max: int | None = None,
    open_files_max: int | None = None,
    encryption_key: bytes | str | None = None,
    key_file: Path | None = None,
) -> Store:
    """Opens the store at a path, which is a directory; creates it if there is nothing.

    create: whether to. read_only: beside other processes that only read. beside_writer: for reading, as
    the store is now, beside a process that may write it. durability: what commits wait for: "sync",
    survives power loss; "buffered", survives the process; "deferred", may be lost with it.
    sweep_expired: whether a thread removes expired entries of the expiring keyspaces that were opened, by
    the system's clock; without it they take room until purge().
    encryption_key: of an encrypted store, 32 random bytes or as many in hexadecimal digits; key_file: a
    file of either. A store that is created is encrypted by it.
    The other options are those of the Rust crate, with the same defaults.
    """
    options = {
        "create": create,
        "read_only": read_only,
        "beside_writer": beside_writer,
        "reader_bytes_max": reader_bytes_max,
        "durability": durability,
        "flushing": flushing,
        "log_bytes_max": log_bytes_max,
        "deferred_ms_max": deferred_ms_max,
        "deferred_bytes_max": deferred_bytes_max,
        "sweep_expired": sweep_expired,
        "verify_first_touch": verify_first_touch,
        "memory_bytes_max": memory_bytes_max,
        "address_bytes_max": address_bytes_max,
        "huge_bytes_max": huge_bytes_max,
        "image": image,
        "snapshot_bytes_max": snapshot_bytes_max,
        "cache_bytes_max": cache_bytes_max,
        "pinned_bytes_max": pinned_bytes_max,
        "open_files_max": open_files_max,
        **_key(encryption_key, key_file),
    }
    return Store(path, options)


def go_back(
    path: Path,
    name: str,
    /,
    *,
    encryption_key: bytes | str | None = None,
    key_file: Path | None = None,
) -> None:
    """Makes a store that is closed what one of its savepoints shows; all savepoints stay.

    Takes as much space as the file pool. A crash leaves the store as it was, or as it is to be.
    """
    _native.go_back(path, name, _key(encryption_key, key_file))


def restore(
    backup: Path,
    path: Path,
    /,
    *,
    encryption_key: bytes | str | None = None,
    key_file: Path | None = None,
) -> None:
    """Verifies a backup and copies it to a path where nothing is, encrypted by the same key if it is."""
    _native.restore(backup, path, _key(encryption_key, key_file))


def _key(key: bytes | str | None, file: Path | None) -> dict[str, Any]:
    if key is not None and file is not None:
        raise InvalidArgument("give encryption_key or key_file, not both")
    return {"encryption_key": key, "key_file": file}


def in_memory() -> Store:
    """A store in memory, gone when it is closed: for tests."""
    return Store(None, {})
