"""Multimaps for coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Generic, TypeVar

from adamant._native import Multimap
from adamant.aio._batch import AsyncBatch
from adamant.aio._threads import FETCHED_MAX, Place

K = TypeVar("K")
V = TypeVar("V")


class AsyncMultimap(Generic[K, V]):
    """A sorted set of pairs of a key and a value; snapshot[it] and transaction[it] are the same there.

    multimap: the one of adamant.
    """

    def __init__(self, place: Place, multimap: Multimap[K, V]) -> None:
        self._place, self.multimap = place, multimap

    @property
    def name(self) -> str:
        """The name of the keyspace."""
        return self.multimap.name

    def pair_of(self, row: bytes) -> tuple[K, V]:
        """The pair of a row, as the feed of changes has it for a key."""
        return self.multimap.pair_of(row)

    async def add(self, key: K, value: V) -> bool:
        """Gives a key one more value; whether it is new."""
        return await self._place.threads.call(self.multimap.add, key, value)

    async def discard(self, key: K, value: V) -> bool:
        """Takes a value from a key if it has it; whether it had."""
        return await self._place.threads.call(self.multimap.discard, key, value)

    async def discard_all(self, key: K) -> int:
        """Takes all values from a key; how many there were."""
        return await self._place.threads.call(self.multimap.discard_all, key)

    async def clear(self) -> None:
        """Takes all pairs out."""
        await self._place.threads.call(self.multimap.clear)

    async def update(self, pairs: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Adds pairs, in one commit. It walks over them in a thread."""
        await self._place.threads.call(self.multimap.update, pairs)

    def put_into(self, batch: AsyncBatch, key: K, value: V) -> None:
        """Will give a key one more value, at the commit of a batch."""
        self.multimap.put_into(batch.batch, key, value)

    def delete_from(self, batch: AsyncBatch, key: K, value: V) -> None:
        """Will take a value from a key, at the commit of a batch, if the key has it then."""
        self.multimap.delete_from(batch.batch, key, value)

    async def contains(self, key: K, value: V) -> bool:
        """Whether a key has a value."""
        return await self._place.read(self.multimap.__contains__, (key, value))

    async def has_key(self, key: K) -> bool:
        """Whether a key has any value."""
        return await self._place.read(self.multimap.has_key, key)

    async def count(self, *key: K) -> int:
        """How many pairs there are, or how many values a key has."""
        if not key:
            return await self._place.read(self.multimap.__len__)
        return await self._place.read(self.multimap.count, *key)

    async def first_value(self, key: K) -> V | None:
        """The lowest value of a key, None if it has none."""
        return await self._place.read(self.multimap.first_value, key)

    async def last_value(self, key: K) -> V | None:
        """The highest value of a key, None if it has none."""
        return await self._place.read(self.multimap.last_value, key)

    async def values(
        self, key: K, start: V | None = None, stop: V | None = None, *, reverse: bool = False
    ) -> AsyncIterator[V]:
        """The values of a key in their order, from start up to stop."""
        values = self.multimap.values
        async for value in self._place.walk(
            lambda: values(key, start, stop, reverse=reverse), FETCHED_MAX
        ):
            yield value

    async def keys(
        self, start: K | None = None, stop: K | None = None, *, reverse: bool = False
    ) -> AsyncIterator[K]:
        """The keys that have values, each once, from start up to stop."""
        keys = self.multimap.keys
        async for key in self._place.walk(lambda: keys(start, stop, reverse=reverse), FETCHED_MAX):
            yield key

    async def items(
        self, start: K | None = None, stop: K | None = None, *, reverse: bool = False
    ) -> AsyncIterator[tuple[K, V]]:
        """The pairs of keys from start up to stop."""
        items = self.multimap.items
        async for pair in self._place.walk(
            lambda: items(start, stop, reverse=reverse), FETCHED_MAX
        ):
            yield pair

    def __aiter__(self) -> AsyncIterator[tuple[K, V]]:
        return self.items()
