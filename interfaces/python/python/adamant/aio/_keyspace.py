"""Keyspaces for coroutines: by themselves, and within a transaction."""

from __future__ import annotations

from typing import Any, TypeVar

from adamant._arrays import Rows
from adamant._mapping import Keyspace, RangeEstimate, TransactionKeyspace
from adamant.aio._reader import AsyncWriter
from adamant.aio._threads import Place

K = TypeVar("K")
V = TypeVar("V")


class AsyncKeyspace(AsyncWriter[K, V]):
    """An ordered mapping in a store: each change is a commit, made in a thread.

    Commits of several coroutines wait for one sync of the device together. keyspace: the one of adamant.
    """

    def __init__(self, place: Place, keyspace: Keyspace[K, V]) -> None:
        super().__init__(place, keyspace)
        self.keyspace = keyspace

    @property
    def durability(self) -> str:
        """What commits through this handle wait for."""
        return self.keyspace.durability

    async def typed(self, *types: object) -> AsyncKeyspace[Any, Any]:
        """The same keyspace with types for its keys and values: as Keyspace.typed."""
        typed = await self._place.threads.call(lambda: self.keyspace.typed(*types))
        return AsyncKeyspace(self._place, typed)

    async def put(self, key: K, value: V) -> None:
        """Sets the value of a key. One commit."""
        await self._place.threads.call(self.keyspace.put, key, value)

    async def put_many(
        self, keys: Rows, values: Rows | None = None, *, atomic: bool = True
    ) -> int:
        """Sets the values of keys, row by row; how many. As Keyspace.put_many."""
        return await self._place.threads.call(self.keyspace.put_many, keys, values, atomic=atomic)

    async def merge(self, key: K, operand: V) -> None:
        """Merges an operand with the value of a key, by the merge operator of the keyspace. One commit."""
        await self._place.threads.call(self.keyspace.merge, key, operand)

    async def delete(self, key: K) -> None:
        """Deletes a key, whether it exists or not. One commit."""
        await self._place.threads.call(self.keyspace.delete, key)

    async def compare_and_swap(self, key: K, expected: V | None, value: V | None) -> bool:
        """Sets the value of a key, or removes it, if its value is the expected one; None: no value."""
        return await self._place.threads.call(self.keyspace.compare_and_swap, key, expected, value)

    async def rename(self, key: K, new_key: K) -> bool:
        """Moves the value of a key to another key, without copying it; whether there was one."""
        return await self._place.threads.call(self.keyspace.rename, key, new_key)

    async def move_to(self, key: K, target: AsyncKeyspace[Any, Any], new_key: Any) -> bool:
        """Moves the value of a key to another keyspace, without copying it; whether there was one."""
        return await self._place.threads.call(self.keyspace.move_to, key, target.keyspace, new_key)

    async def swap(self, key: K, other_key: K) -> bool:
        """Swaps the values of two keys, without copying them; False if one of them is not there."""
        return await self._place.threads.call(self.keyspace.swap, key, other_key)

    async def stats(self) -> dict[str, Any]:
        """Figures of the keyspace: its size, and what was done to it since the store was opened."""
        return await self._place.threads.call(self.keyspace.stats)

    async def estimate(
        self, *, start: K | None = None, stop: K | None = None, prefix: K | None = None
    ) -> RangeEstimate:
        """About how many entries there are from start on, before stop, that begin with prefix."""
        estimate = self.keyspace.estimate
        return await self._place.read(lambda: estimate(start=start, stop=stop, prefix=prefix))

    async def compact(self) -> None:
        """Makes the keyspace as small and as fast to read as it can be, while it is used."""
        await self._place.threads.call(self.keyspace.compact)


class AsyncTransactionKeyspace(AsyncWriter[K, V]):
    """A keyspace within a transaction: what was there when it began, and its own changes.

    Changes stay in memory until the commit, so those that read nothing are made at once and not awaited.
    """

    def __init__(self, place: Place, keyspace: TransactionKeyspace[K, V]) -> None:
        super().__init__(place, keyspace)
        self._keyspace = keyspace

    def put(self, key: K, value: V) -> None:
        """Sets the value of a key, without reading it, so it cannot conflict."""
        self._keyspace.put(key, value)

    async def put_many(
        self, keys: Rows, values: Rows | None = None, *, atomic: bool = True
    ) -> int:
        """Sets the values of keys, row by row; how many. It walks over the rows in a thread."""
        return await self._place.threads.call(self._keyspace.put_many, keys, values, atomic=atomic)

    def merge(self, key: K, operand: V) -> None:
        """Merges an operand with the value of a key, without reading it: so it cannot conflict."""
        self._keyspace.merge(key, operand)

    def delete(self, key: K) -> None:
        """Deletes a key, whether it exists or not, without reading it, so it cannot conflict."""
        self._keyspace.delete(key)
