"""Reads of keyspaces, wherever they are looked at, and the writes that keyspaces share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from adamant._arrays import ROWS, Rows
from adamant._mapping import _Part, _Readable
from adamant._native import Column
from adamant.aio._threads import FETCHED_MAX, Place

if TYPE_CHECKING:
    from typing_extensions import Buffer

K = TypeVar("K")
V = TypeVar("V")


class AsyncReader(Generic[K, V]):
    """What keyspaces have in common, wherever they are looked at. Each call costs a read."""

    def __init__(self, place: Place, reader: _Readable[K, V]) -> None:
        # What all readers have, which their common classes do not say.
        self._place, self._reader = place, reader
        self._any: Any = reader

    @property
    def name(self) -> str:
        """The name of the keyspace."""
        return str(self._any.name)

    @property
    def engine(self) -> str:
        """The engine that keeps it."""
        return str(self._any.engine)

    @property
    def key_codec(self) -> str | None:
        """By which codec keys are str, or their type; None: they are bytes."""
        codec: str | None = self._any.key_codec
        return codec

    @property
    def value_codec(self) -> str | None:
        """By which codec values are str, or their type; None: they are bytes."""
        codec: str | None = self._any.value_codec
        return codec

    async def types(self) -> tuple[str, str] | None:
        """The recorded types of keys and values, by name; None if none are."""
        return await self._place.read(lambda: self._any.types)

    async def get(self, key: K, default: Any = None) -> V | Any:
        """The value of a key, or the default."""
        return await self._place.read(self._reader.get, key, default)

    async def multi_get(self, keys: Iterable[K]) -> list[V | None]:
        """The values of many keys, in their order; None for one that is not there."""
        return await self._place.read(self._any.multi_get, keys)

    async def lend(self, key: K) -> memoryview | None:
        """The value of a key as a read-only view, None for a key that is not there."""
        return await self._place.read(self._any.lend, key)

    async def contains(self, key: K) -> bool:
        """Whether a key is there."""
        return await self._place.read(self._reader.__contains__, key)

    async def count(self, **part: Unpack[_Part[K]]) -> int:
        """How many entries keys() gives: of all O(1), with the engine lsm O(n); of a part O(n)."""
        return await self._place.read(lambda: len(self._reader.keys(**part)))

    async def first(self) -> tuple[K, V] | None:
        """The entry with the lowest key, or None."""
        return await self._place.read(self._any.first)

    async def last(self) -> tuple[K, V] | None:
        """The entry with the highest key, or None."""
        return await self._place.read(self._any.last)

    async def copy(self) -> dict[K, V]:
        """All entries, as a dict."""
        return await self._place.read(self._reader.copy)

    async def keys(self, **part: Unpack[_Part[K]]) -> AsyncIterator[K]:
        """The keys from start on, before stop, that begin with prefix, in order, or in reverse.

        FETCHED_MAX at a time, so others run in between; as of Store, what is written meanwhile may be
        seen or not.
        """
        async for key in self._place.walk(lambda: iter(self._reader.keys(**part)), FETCHED_MAX):
            yield key

    async def values(self, **part: Unpack[_Part[K]]) -> AsyncIterator[V]:
        """The values of the keys that keys() gives, in their order."""
        async for value in self._place.walk(lambda: iter(self._reader.values(**part)), FETCHED_MAX):
            yield value

    async def items(self, **part: Unpack[_Part[K]]) -> AsyncIterator[tuple[K, V]]:
        """The entries of the keys that keys() gives, in their order."""
        async for pair in self._place.walk(lambda: iter(self._reader.items(**part)), FETCHED_MAX):
            yield pair

    def __aiter__(self) -> AsyncIterator[K]:
        return self.keys()

    async def get_many(self, keys: Rows) -> Column:
        """The values of keys in their order, of any length; null for a key that is not there."""
        return await self._place.read(self._reader.get_many, keys)

    async def get_many_into(self, keys: Rows, out: Buffer, found: Buffer | None = None) -> int:
        """Writes the values of keys into the rows of an array; how many there were."""
        return await self._place.read(self._reader.get_many_into, keys, out, found)

    async def scan(
        self,
        *,
        start: K | None = None,
        stop: K | None = None,
        prefix: K | None = None,
        reverse: bool = False,
        rows: int = ROWS,
    ) -> AsyncIterator[tuple[Column, Column]]:
        """The entries that items() gives, so many rows at a time, as a column of keys and of values.

        As a stream of Arrow: call(pyarrow.table, keyspace.keyspace.scan()).
        """
        part = {"start": start, "stop": stop, "prefix": prefix, "reverse": reverse}
        scan: Any = self._reader.scan
        async for columns in self._place.walk(lambda: scan(rows=rows, **part), 1):
            yield columns


class AsyncWriter(AsyncReader[K, V]):
    """The same of those that can be written, as mappings are: what a call has to read counts as read."""

    async def update(self, entries: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets the values of many keys, in one commit. It walks over the entries in a thread."""
        await self._place.threads.call(self._any.update, entries)

    async def discard(self, key: K) -> bool:
        """Removes a key if it exists; whether it did."""
        return await self._place.threads.call(self._any.discard, key)

    async def pop(self, key: K, default: Any = None) -> V | Any:
        """Removes a key and gives its value, or the default."""
        return await self._place.threads.call(self._any.pop, key, default)

    async def popitem(self, last: bool = True) -> tuple[K, V]:
        """Removes and returns the entry with the highest key, or the lowest; KeyError if none is there."""
        return await self._place.threads.call(self._any.popitem, last)

    async def setdefault(self, key: K, default: V | None = None) -> V:
        """The value of a key; if it has none, it gets this one. Atomic."""
        return await self._place.threads.call(self._any.setdefault, key, default)

    async def clear(self) -> None:
        """Removes all entries."""
        await self._place.threads.call(self._any.clear)
