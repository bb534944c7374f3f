"""Batches for coroutines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from adamant._store import Batch
from adamant.aio._keyspace import AsyncKeyspace
from adamant.aio._threads import Kind, Threads

K = TypeVar("K")
V = TypeVar("V")


class AsyncBatch:
    """Changes of any keyspaces of a store that become one commit, from AsyncStore.batch().

    They stay in memory until then, so only the commit is awaited. batch: the one of adamant.
    """

    def __init__(self, threads: Threads, batch: Batch) -> None:
        self._threads, self.batch = threads, batch

    def put(self, keyspace: AsyncKeyspace[K, V], key: K, value: V) -> None:
        """Sets the value of a key at the commit."""
        self.batch.put(keyspace.keyspace, key, value)

    def merge(self, keyspace: AsyncKeyspace[K, V], key: K, operand: V) -> None:
        """Merges an operand with the value of a key at the commit."""
        self.batch.merge(keyspace.keyspace, key, operand)

    def delete(self, keyspace: AsyncKeyspace[K, Any], key: K) -> None:
        """Deletes a key at the commit, if it exists then."""
        self.batch.delete(keyspace.keyspace, key)

    def update(
        self, keyspace: AsyncKeyspace[K, V], pairs: Mapping[K, V] | Iterable[tuple[K, V]]
    ) -> None:
        """Sets the values of keys at the commit: of a mapping, or of an iterable of pairs."""
        self.batch.update(keyspace.keyspace, pairs)

    def rename(self, keyspace: AsyncKeyspace[K, Any], key: K, new_key: K) -> None:
        """Will move the value of a key to another key, without copying it, if it is there."""
        self.batch.rename(keyspace.keyspace, key, new_key)

    def move_to(
        self,
        keyspace: AsyncKeyspace[K, Any],
        key: K,
        target: AsyncKeyspace[Any, Any],
        new_key: Any,
    ) -> None:
        """Will move the value of a key to another keyspace, without copying it, if it is there."""
        self.batch.move_to(keyspace.keyspace, key, target.keyspace, new_key)

    def set_cursor(self, name: str, number: int) -> None:
        """Sets a cursor of the feed of changes at the commit: see AsyncStore.cursors()."""
        self.batch.set_cursor(name, number)

    async def commit(self) -> None:
        """Makes all changes in one commit."""
        await self._threads.call(self.batch.commit)

    def discard(self) -> None:
        """Discards all changes."""
        self.batch.discard()

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def closed(self) -> bool:
        """Whether it was committed or discarded."""
        return self.batch.closed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: Kind, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        elif not self.closed:
            await self.commit()
