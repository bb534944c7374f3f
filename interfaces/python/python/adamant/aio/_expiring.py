"""Keyspaces of entries that end, for coroutines."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, TypeVar

from adamant._mapping import Expiring, SnapshotExpiring
from adamant.aio._reader import AsyncReader, AsyncWriter
from adamant.aio._threads import Place

K = TypeVar("K")
V = TypeVar("V")


class _Deadlines(AsyncReader[K, V]):
    """When entries end."""

    async def ttl(self, key: K) -> float | None:
        """Seconds until the value of a key is over, None for one that never is."""
        return await self._place.read(self._any.ttl, key)

    async def deadline(self, key: K) -> float | None:
        """When the value of a key is over, in seconds since 1970, None for one that never is."""
        return await self._place.read(self._any.deadline, key)


class AsyncSnapshotExpiring(_Deadlines[K, V]):
    """A keyspace of entries that end as a snapshot saw it, but for those over when it was asked for."""

    def __init__(self, place: Place, keyspace: SnapshotExpiring[K, V]) -> None:
        super().__init__(place, keyspace)


class AsyncExpiring(_Deadlines[K, V], AsyncWriter[K, V]):
    """An ordered mapping whose entries may end, also within a transaction, where every call is awaited too.

    expiring: the one of adamant.
    """

    def __init__(self, place: Place, expiring: Expiring[K, V]) -> None:
        super().__init__(place, expiring)
        self.expiring = expiring

    async def put(
        self,
        key: K,
        value: V,
        *,
        ttl: float | timedelta | None = None,
        deadline: float | datetime | None = None,
    ) -> None:
        """Sets the value of a key, and its expiry: after ttl, at a deadline, or never."""
        put = self.expiring.put
        await self._place.threads.call(lambda: put(key, value, ttl=ttl, deadline=deadline))

    async def delete(self, key: K) -> None:
        """Deletes a key and its expiry, whether it exists or not."""
        await self._place.threads.call(self.expiring.delete, key)

    async def set_deadline(
        self,
        key: K,
        *,
        ttl: float | timedelta | None = None,
        deadline: float | datetime | None = None,
    ) -> bool:
        """Gives a value another end; whether it is there."""
        set_deadline: Any = self.expiring.set_deadline
        return await self._place.threads.call(set_deadline, key, ttl=ttl, deadline=deadline)

    async def persist(self, key: K) -> bool:
        """Lets a value stay until it is taken out; whether it is there."""
        return await self._place.threads.call(self.expiring.persist, key)

    async def purge(self, entries_max: int | None = None) -> int:
        """Takes entries away that are over, at most so many, in one commit; how many."""
        return await self._place.threads.call(self.expiring.purge, entries_max)

    async def next_deadline(self) -> float | None:
        """When the next entry is over, or was, in seconds since 1970; None: none ever is."""
        return await self._place.read(self.expiring.next_deadline)
