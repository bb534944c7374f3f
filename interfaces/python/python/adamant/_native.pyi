"""The native half. What is not private here is used through the classes of adamant."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import GenericAlias
from typing import Any, Final, Generic, Self, TypeAlias, TypeVar, final, overload

from typing_extensions import Buffer, CapsuleType, disjoint_base

from adamant._arrays import Rows
from adamant._mapping import Range

_K = TypeVar("_K")
_V = TypeVar("_V")
_D = TypeVar("_D")
_T = TypeVar("_T")
_Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

__all__ = [
    "Batch",
    "Begun",
    "Changes",
    "Column",
    "Cursor",
    "Expiring",
    "Keyspace",
    "Multimap",
    "Reader",
    "Scan",
    "Snapshot",
    "SnapshotExpiring",
    "SnapshotReader",
    "Store",
    "Transaction",
    "TransactionExpiring",
    "TransactionReader",
    "__VERSION__",
    "after_fork_in_child",
    "encrypt",
    "get_many",
    "get_many_into",
    "go_back",
    "put_many",
    "rekey",
    "restore",
    "run",
    "run_exclusive",
    "scan",
]

__VERSION__: Final[str]

def after_fork_in_child() -> None: ...
def run(
    store: Store,
    function: Callable[[Begun], _T],
    attempts: int | None,
    exclusive_after: int | None,
    timeout: float | timedelta | None,
    durability: str | None,
    /,
) -> _T:
    """What a function of a transaction returns, once that is committed; again after a conflict."""

def run_exclusive(
    store: Store,
    function: Callable[[Begun], _T],
    timeout: float | timedelta | None,
    durability: str | None,
    /,
) -> _T:
    """What a function of a transaction returns beside which nobody else writes, once that is
    committed."""

def restore(backup: _Path, path: _Path, options: dict[str, Any], /) -> None: ...
def go_back(path: _Path, name: str, options: dict[str, Any], /) -> None: ...
def rekey(path: _Path, old: bytes | str, new: bytes | str, /) -> None:
    """Has another key open an encrypted store, or an increment, that is closed, at once.

    The files stay as they are. Somebody who has the old key and an old copy of the file key can read
    them: if that may be, use encrypt().
    """

def encrypt(path: _Path, new: bytes | str | None, /, *, old: bytes | str | None = None) -> None:
    """Writes a store that is closed anew, encrypted by a key; None: not encrypted.

    old: the key that opens it as it is, if it is encrypted. Takes as much space again as its contents.
    The old files are removed, which does not erase them from a device.
    """

def get_many(reader: Reader[Any, Any], keys: Rows, /) -> Column: ...
def get_many_into(
    reader: Reader[Any, Any], keys: Rows, out: Buffer, found: Buffer | None = None, /
) -> int: ...
def put_many(
    target: Reader[Any, Any], keys: Rows, values: Rows | None, atomic: bool, /
) -> int: ...
def scan(
    reader: Reader[_K, Any],
    start: _K | None,
    stop: _K | None,
    prefix: _K | None,
    reverse: bool,
    rows: int,
    /,
) -> Scan: ...
@final
class Column:
    """Rows of bytes of any length: an array of Arrow, and memory for numpy.frombuffer."""

    def __len__(self) -> int: ...
    @property
    def missing(self) -> int:
        """How many rows are missing: null in Arrow."""

    @property
    def offsets(self) -> memoryview:
        """Where rows begin and end in the data: one int64 more than rows."""

    @property
    def data(self) -> memoryview:
        """The bytes of all rows, one after the other."""

    @property
    def found(self) -> memoryview:
        """Whether a row is there: a byte for each, 0 or 1."""

    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_array__(
        self, requested_schema: object | None = None
    ) -> tuple[CapsuleType, CapsuleType]: ...

@final
class Scan:
    """The entries of a part of a keyspace, in order: a stream of Arrow, columns, or into arrays.

    Each entry is given once, whichever way it is asked for.
    """

    def __iter__(self) -> Scan: ...
    def __next__(self) -> tuple[Column, Column]: ...
    def into(self, keys: Buffer | None = None, values: Buffer | None = None) -> int:
        """Writes the next keys and values into the rows of arrays until one is full; how many."""

    def __arrow_c_schema__(self) -> CapsuleType: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> CapsuleType: ...

@final
class Begun:
    """A transaction that was begun for a function."""

@final
class Cursor(Generic[_V]):
    """An iterator over keys, values or entries."""

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __iter__(self) -> Cursor[_V]: ...
    def __next__(self) -> _V: ...

@disjoint_base
class Store:
    def __new__(
        cls, path: _Path | None, options: dict[str, Any]
    ) -> Self: ...
    def _keyspaces(self) -> list[tuple[str, str, int, str, str | None, str | None]]: ...
    def _check(self) -> list[tuple[str, str, bool]]: ...
    def drop_keyspace(self, name: str, /) -> bool:
        """Drops a keyspace and all that it holds, in one commit; whether there was one."""

    def drop_expiring(self, name: str, /) -> bool:
        """Drops a keyspace of entries that end, and their deadlines; whether there was one."""

    def rename_keyspace(self, name: str, new_name: str, /) -> None:
        """Gives a keyspace another name, in one commit."""

    def convert_keyspace(self, name: str, engine: str, /) -> bool:
        """Makes a keyspace one of another engine, in one commit; False if it is one already."""

    def compress_values(
        self, name: str, compression: str, /, *, dictionary: bytes | None = None
    ) -> bool:
        """Has a keyspace store its values by another compression, those that are there and all later
        ones, in one commit; False if it does so already.

        compression: "none", "lz4", "zstd" or "zstd:LEVEL", for values of 128 bytes or more, or from
            other bytes on, as in "lz4, from 200".
        dictionary: one for zstd, from train_dictionary(); 64 KiB at most.
        """

    def value_compression(self, name: str, /) -> str | None:
        """The compression of the values of a keyspace; None for none."""

    def train_dictionary(self, name: str, bytes_max: int = 16384, /) -> bytes:
        """A dictionary of at most so many bytes, 256 to 65536, from the values of a keyspace."""

    def sync(self) -> None:
        """Makes everything committed so far survive power loss, whatever its commit waited for."""

    def backup(
        self, path: _Path, /, *, link: bool = False, since: _Path | None = None
    ) -> None:
        """Copies the store to a path where nothing is, while it is used.

        link: share the files of keyspaces of the engine lsm by hard links, if the copy is on the same
        file system. That takes no time and no space for them; damage of the device hits both stores.

        since: a backup in the same folder, full or made with this. Only what the store has otherwise
        is copied; the new one is read, restored and used as a parent together with those that it
        stands on, so all of them must stay where they are.
        """

    def create_savepoint(self, name: str, /) -> None:
        """Makes a persistent savepoint: the store as it is now, under a name of 1 to 255 bytes.

        It is durable when this returns, and survives a restart: read it by open_savepoint(), or go
        back to it by adamant.go_back(). It costs room for what changes; where there is none, the
        oldest savepoint is given up, and commits go on.
        """

    def delete_savepoint(self, name: str, /) -> bool:
        """Deletes a persistent savepoint, and gives back what only it held. Needs no space."""

    def _savepoints(self) -> list[tuple[str, int, float | None, int, str]]: ...
    def compact(self) -> None:
        """Compacts all keyspaces, and gives free space back to the file system."""

    def shrink(self) -> None:
        """Gives free space of the pool file back to the file system."""

    def stats(self) -> dict[str, Any]:
        """Figures of the store."""

    def close(self) -> None:
        """Brings all commits to the device and lets the store go. Again: does nothing."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def refresh(self) -> bool:
        """Has a store that was opened beside a writer show its last commit.

        False if it does already, as all other stores do. Keyspaces, snapshots and iterators that were
        made before keep what they show: take them from the store again. It is much faster if there are
        none left.
        """

    def wait_for_change(self, timeout: float | timedelta | None = None) -> bool:
        """Waits until refresh() would show a later commit; whether it would within the timeout.

        None: waits for ever. False at once for a store that was not opened beside a writer.
        """

    def record_changes(self, bytes_max: int | None, /) -> None:
        """Records what each commit changes from now on, in the store, for changes().

        At most so many bytes of history are kept: the oldest commits make room for new ones. None ends
        it, and removes the history and the cursors.
        """

    def _changes_info(self) -> tuple[int, int, int, int]: ...
    @property
    def last_change(self) -> int:
        """The number of the last commit in the feed of changes; 0 before the first."""

    @property
    def own_change(self) -> int | None:
        """The number of the last commit in the feed that this thread made; None if it made none."""

    def wait_durable(self, number: int, /) -> None:
        """Waits until the commit of a number survives power loss."""

    def _cursor(self, name: str, /) -> int | None: ...
    def _set_cursor(self, name: str, number: int | None, /) -> None: ...
    def _cursors(self) -> list[tuple[str, int]]: ...
    @property
    def is_encrypted(self) -> bool:
        """Whether its files are encrypted."""

    def rekey(self, new: bytes | str, /) -> None:
        """Has another key open the store from now on, at once: the files stay as they are.

        Backups that were made before keep their key.
        """

    @property
    def beside_writer(self) -> bool:
        """Whether it was opened for reading beside a writer."""

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading only."""

@disjoint_base
class Changes:
    def __new__(
        cls, store: Store, after: int = 0, timeout: float | timedelta | None = None
    ) -> Self: ...
    def _next(self, timeout: float | timedelta | None) -> tuple[int, list[tuple[Any, ...]]] | None: ...
    @property
    def after(self) -> int:
        """The number of the last commit that was given, or behind which it began."""

    def close(self) -> None:
        """Ends it. Again: does nothing."""

    @property
    def closed(self) -> bool:
        """Whether it was ended."""

@disjoint_base
class Reader(Generic[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    @overload
    def __getitem__(self, key: _K, /) -> _V: ...
    @overload
    def __getitem__(self, key: slice, /) -> Range[_K, _V]: ...
    @overload
    def get(self, key: _K, default: None = None, /) -> _V | None: ...
    @overload
    def get(self, key: _K, default: _V | _D, /) -> _V | _D: ...
    def multi_get(self, keys: Iterable[_K], /) -> list[_V | None]:
        """The values of many keys, in their order; None for one that is not there.

        Each 64 keys are read as of one moment, in a snapshot and a transaction all of them.
        """

    def lend(self, key: _K, /) -> memoryview | None:
        """The value of a key as a read-only view, None for a key that is not there.

        A value of more than 4 KiB is not copied: its memory in the store is not used again while there
        is a view of it.
        """

    def __contains__(self, key: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[_K]: ...
    def __reversed__(self) -> Iterator[_K]: ...
    def first(self) -> tuple[_K, _V] | None:
        """The entry with the lowest key, or None."""

    def last(self) -> tuple[_K, _V] | None:
        """The entry with the highest key, or None."""

    def _iterate(
        self,
        kind: str,
        start: Any = None,
        stop: Any = None,
        prefix: Any = None,
        reverse: bool = False,
    ) -> Iterator[Any]: ...
    def _count(self, start: Any = None, stop: Any = None, prefix: Any = None) -> int: ...
    def _spans(self, key: Any, start: Any = None, stop: Any = None, prefix: Any = None) -> bool: ...
    @property
    def name(self) -> str:
        """The name of the keyspace."""

    @property
    def engine(self) -> str:
        """The engine that keeps it."""

    @property
    def types(self) -> tuple[str, str] | None:
        """The recorded types of keys and values, by name; None if none are."""

    @property
    def key_codec(self) -> str | None:
        """By which codec keys are str, or their type; None: they are bytes."""

    @property
    def value_codec(self) -> str | None:
        """By which codec values are str, or their type; None: they are bytes."""

@disjoint_base
class Keyspace(Reader[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(
        cls,
        store: Store | Keyspace[Any, Any],
        name: str,
        engine: str | None = None,
        durability: str | None = None,
        key_codec: str | None = None,
        value_codec: str | None = None,
        lsm: Mapping[str, object] | None = None,
        value_compression: str | None = None,
        types: tuple[str, str] | None = None,
        default_durability: str | None = None,
        merge_operator: str | None = None,
    ) -> Self: ...
    @property
    def durability(self) -> str:
        """What commits through this handle wait for.

        What it was given, or what is recorded with the keyspace, or what the store was opened with.
        """

    def stats(self) -> dict[str, Any]:
        """Figures of the keyspace: its size, and what was done to it since the store was opened.

        Entries; bytes on the medium, heap_bytes (of a tree an estimate), table_bytes, blob_bytes;
        lookups of keys, entries that were scanned, writes; of the engine lsm also cache_hits,
        cache_misses and levels.
        """

    def _estimate(
        self, start: Any = None, stop: Any = None, prefix: Any = None
    ) -> tuple[int, int, bool]: ...
    def __setitem__(self, key: _K, value: _V, /) -> None: ...
    def put(self, key: _K, value: _V, /) -> None:
        """Sets the value of a key, whether it had one or not: like `keyspace[key] = value`."""

    def merge(self, key: _K, operand: _V, /) -> None:
        """Merges an operand with the value of a key, by the merge operator of the keyspace.

        A key without a value gets the operand as its value. The engine lsm does not read for it.
        """

    def delete(self, key: _K, /) -> None:
        """Deletes a key, whether it exists or not.

        The engine lsm does not read for it, as it does for discard() and del.
        """

    def __delitem__(self, key: _K | slice, /) -> None: ...
    def discard(self, key: _K, /) -> bool:
        """Removes a key if it exists; returns whether it did, for which the engine lsm has to read."""

    @overload
    def pop(self, key: _K, /) -> _V: ...
    @overload
    def pop(self, key: _K, default: _V | _D, /) -> _V | _D: ...
    def popitem(self, last: bool = True) -> tuple[_K, _V]:
        """Removes and returns the entry with the highest key, or the lowest."""

    def setdefault(self, key: _K, default: _V | None = None, /) -> _V:
        """The value of a key; if it has none, it gets this one."""

    def compare_and_swap(self, key: _K, expected: _V | None, value: _V | None, /) -> bool:
        """Sets the value of a key, or takes it out, if its value is the expected one; None: no value."""

    def clear(self) -> None:
        """Takes all entries out, in one commit."""

    def rename(self, key: _K, new_key: _K, /) -> bool:
        """Moves the value of a key to another key, without copying it; whether there was one."""

    def move_to(self, key: _K, target: Keyspace[Any, Any], new_key: Any, /) -> bool:
        """Moves the value of a key to another keyspace, without copying it; whether there was one."""

    def swap(self, key: _K, other_key: _K, /) -> bool:
        """Swaps the values of two keys, without copying them; False if one of them is not there."""

    def compact(self) -> None:
        """Makes the keyspace as small and as fast to read as it can be, while it is used."""

    def _update(self, *sources: Any) -> None: ...

@final
class Multimap(Generic[_K, _V]):
    """A sorted set of pairs of a key and a value: a key has any number of values, each once.

    snapshot[multimap] and transaction[multimap] are the same, as these see it.
    """

    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(
        cls,
        store: Store,
        name: str,
        engine: str | None = None,
        durability: str | None = None,
        key_codec: str | None = None,
        value_codec: str | None = None,
        lsm: Mapping[str, object] | None = None,
    ) -> Self: ...
    @property
    def name(self) -> str:
        """The name of the keyspace."""

    def _at(self, snapshot: Snapshot, /) -> Multimap[_K, _V]: ...
    def _within(self, transaction: Transaction, /) -> Multimap[_K, _V]: ...
    def add(self, key: _K, value: _V, /) -> bool:
        """Gives a key one more value; returns whether it is new."""

    def discard(self, key: _K, value: _V, /) -> bool:
        """Takes a value from a key if it has it; returns whether it had."""

    def discard_all(self, key: _K, /) -> int:
        """Takes all values from a key; returns how many there were."""

    def clear(self) -> None:
        """Takes all pairs out."""

    def update(self, *sources: Mapping[_K, _V] | Iterable[tuple[_K, _V]]) -> None:
        """Adds pairs, in one commit: of an iterable, or of a mapping of keys to values."""

    def put_into(self, batch: Batch, key: _K, value: _V, /) -> None:
        """Will give a key one more value, at the commit of a batch."""

    def delete_from(self, batch: Batch, key: _K, value: _V, /) -> None:
        """Will take a value from a key, at the commit of a batch, if the key has it then."""

    def __contains__(self, pair: object, /) -> bool: ...
    def has_key(self, key: _K, /) -> bool:
        """Whether a key has a value."""

    def count(self, key: _K, /) -> int:
        """The number of values of a key, which are counted."""

    def first_value(self, key: _K, /) -> _V | None:
        """The lowest value of a key, None if it has none."""

    def last_value(self, key: _K, /) -> _V | None:
        """The highest value of a key, None if it has none."""

    def __len__(self) -> int: ...
    def __bool__(self) -> bool: ...
    def __iter__(self) -> Iterator[tuple[_K, _V]]: ...
    def __reversed__(self) -> Iterator[tuple[_K, _V]]: ...
    def values(
        self, key: _K, /, start: _V | None = None, stop: _V | None = None, *, reverse: bool = False
    ) -> Iterator[_V]:
        """The values of a key in their order, from start up to stop."""

    def keys(
        self, start: _K | None = None, stop: _K | None = None, *, reverse: bool = False
    ) -> Iterator[_K]:
        """The keys that have values, each once, from start up to stop."""

    def items(
        self, start: _K | None = None, stop: _K | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[_K, _V]]:
        """The pairs of keys from start up to stop."""

    def pair_of(self, row: bytes, /) -> tuple[_K, _V]:
        """The pair of a row, as the feed of changes has it for a key."""

@disjoint_base
class Expiring(Reader[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(
        cls,
        store: Store,
        name: str,
        engine: str | None = None,
        durability: str | None = None,
        key_codec: str | None = None,
        value_codec: str | None = None,
        clock: Callable[[], float] | None = None,
        lsm: Mapping[str, object] | None = None,
        value_compression: str | None = None,
        default_durability: str | None = None,
    ) -> Self: ...
    def __setitem__(self, key: _K, value: _V, /) -> None: ...
    def __delitem__(self, key: _K | slice, /) -> None: ...
    def put(
        self,
        key: _K,
        value: _V,
        /,
        *,
        ttl: float | timedelta | None = None,
        deadline: float | datetime | None = None,
    ) -> None:
        """Sets the value of a key, and its expiry: after ttl, at a deadline, or never.

        A number counts seconds, for a deadline since 1970.
        """

    def delete(self, key: _K, /) -> None:
        """Deletes a key and its expiry, whether it exists or not."""

    def set_deadline(
        self,
        key: _K,
        /,
        *,
        ttl: float | timedelta | None = None,
        deadline: float | datetime | None = None,
    ) -> bool:
        """Gives a value another end; whether it is there."""

    def persist(self, key: _K, /) -> bool:
        """Lets a value stay until it is taken out; whether it is there."""

    def ttl(self, key: _K, /) -> float | None:
        """Seconds until the value of a key is over, None for one that never is."""

    def deadline(self, key: _K, /) -> float | None:
        """When the value of a key is over, in seconds since 1970, None for one that never is."""

    def purge(self, entries_max: int | None = None) -> int:
        """Takes entries away that are over, at most so many, in one commit; how many."""

    def next_deadline(self) -> float | None:
        """When the next entry is over, or was, in seconds since 1970; None: none ever is."""

    def discard(self, key: _K, /) -> bool:
        """Removes a key if it exists; returns whether it did."""

    @overload
    def pop(self, key: _K, /) -> _V: ...
    @overload
    def pop(self, key: _K, default: _V | _D, /) -> _V | _D: ...
    def popitem(self, last: bool = True) -> tuple[_K, _V]:
        """Removes and returns the entry with the highest key, or the lowest."""

    def setdefault(self, key: _K, default: _V | None = None, /) -> _V:
        """The value of a key; if it has none, it gets this one."""

    def _update(self, *sources: Any) -> None: ...

@disjoint_base
class Batch:
    def __new__(cls, store: Store, durability: str | None = None) -> Self: ...
    def put(self, keyspace: Keyspace[_K, _V], key: _K, value: _V, /) -> None:
        """Sets the value of a key at the commit."""

    def merge(self, keyspace: Keyspace[_K, _V], key: _K, operand: _V, /) -> None:
        """Merges an operand with the value of a key at the commit."""

    def delete(self, keyspace: Keyspace[_K, Any], key: _K, /) -> None:
        """Deletes a key at the commit, if it exists then."""

    def update(self, keyspace: Keyspace[_K, _V], pairs: Any, /) -> None:
        """Sets the values of keys at the commit: of a mapping, or of an iterable of pairs."""

    def rename(self, keyspace: Keyspace[_K, Any], key: _K, new_key: _K, /) -> None:
        """Will move the value of a key to another key, without copying it, if it is there."""

    def move_to(
        self, keyspace: Keyspace[_K, Any], key: _K, target: Keyspace[Any, Any], new_key: Any, /
    ) -> None:
        """Will move the value of a key to another keyspace, without copying it, if it is there."""

    def set_cursor(self, name: str, number: int, /) -> None:
        """Sets a cursor of the feed of changes at the commit: see Store.cursors."""

    def commit(self) -> None:
        """Makes all changes in one commit."""

    def discard(self) -> None:
        """Discards all changes."""

    def __len__(self) -> int: ...
    @property
    def closed(self) -> bool:
        """Whether it was committed or discarded."""

@disjoint_base
class Snapshot:
    def __new__(cls, store: Store, durable: bool = False) -> Self: ...
    def close(self) -> None:
        """Lets it go. Again: does nothing."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

class SnapshotReader(Reader[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(
        cls, snapshot: Snapshot, keyspace: Keyspace[_K, _V]
    ) -> Self: ...

class SnapshotExpiring(SnapshotReader[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(cls, snapshot: Snapshot, expiring: Expiring[_K, _V]) -> Self: ...
    def ttl(self, key: _K, /) -> float | None:
        """Seconds until the value of a key is over, None for one that never is."""

    def deadline(self, key: _K, /) -> float | None:
        """When the value of a key is over, in seconds since 1970, None for one that never is."""

@disjoint_base
class Transaction:
    def __new__(cls, store: Store | Begun, durability: str | None = None) -> Self: ...
    def set_cursor(self, name: str, number: int, /) -> None:
        """Sets a cursor of the feed of changes at the commit: see Store.cursors."""

    def commit(self) -> None:
        """Makes all its writes in one commit, unless something that it read has changed."""

    def rollback(self) -> None:
        """Lets its writes go. Again: does nothing."""

    @property
    def attempt(self) -> int:
        """How often the function that it was begun for was run, this time counted; else 1."""

    @property
    def closed(self) -> bool:
        """Whether it was committed or rolled back."""

@disjoint_base
class TransactionReader(Reader[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(
        cls, transaction: Transaction, keyspace: Keyspace[_K, _V]
    ) -> Self: ...
    def __setitem__(self, key: _K, value: _V, /) -> None: ...
    def put(self, key: _K, value: _V, /) -> None:
        """Sets the value of a key, without reading it: like `keyspace[key] = value`.

        So it cannot conflict.
        """

    def merge(self, key: _K, operand: _V, /) -> None:
        """Merges an operand with the value of a key, without reading it: so it cannot conflict."""

    def delete(self, key: _K, /) -> None:
        """Deletes a key, whether it exists or not, without reading it, so it cannot conflict."""

    def __delitem__(self, key: _K | slice, /) -> None: ...
    def discard(self, key: _K, /) -> bool:
        """Removes a key if it exists; returns whether it did, for which it is read."""

    @overload
    def pop(self, key: _K, /) -> _V: ...
    @overload
    def pop(self, key: _K, default: _V | _D, /) -> _V | _D: ...
    def popitem(self, last: bool = True) -> tuple[_K, _V]:
        """Removes and returns the entry with the highest key, or the lowest."""

    def _update(self, *sources: Any) -> None: ...

class TransactionExpiring(Expiring[_K, _V]):
    def __class_getitem__(cls, key: Any) -> GenericAlias: ...
    def __new__(cls, transaction: Transaction, expiring: Expiring[_K, _V]) -> Self: ...
