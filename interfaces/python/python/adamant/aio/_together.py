"""What changes or sees several keyspaces as one, for coroutines: batches, snapshots, transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, cast, overload

from adamant._errors import InvalidArgument
from adamant._store import Batch, Durability, Snapshot, Store, Transaction
from adamant.aio._expiring import AsyncExpiring, AsyncSnapshotExpiring
from adamant.aio._keyspace import AsyncKeyspace, AsyncTransactionKeyspace
from adamant.aio._multimap import AsyncMultimap
from adamant.aio._reader import AsyncReader
from adamant.aio._threads import Threads

K = TypeVar("K")
V = TypeVar("V")
# The class of what a block failed by, that, and where; or None of all.
Kind: TypeAlias = type[BaseException] | None


class AsyncBatch:
    """Changes of any keyspaces of a store that become one commit, from AsyncStore.batch().

    They stay in memory until then, so only the commit is awaited.
    """

    def __init__(self, threads: Threads, batch: Batch) -> None:
        self._threads, self._batch = threads, batch

    def put(self, keyspace: AsyncKeyspace[K, V], key: K, value: V) -> None:
        """Sets the value of a key at the commit."""
        self._batch.put(keyspace.keyspace, key, value)

    def merge(self, keyspace: AsyncKeyspace[K, V], key: K, operand: V) -> None:
        """Merges an operand with the value of a key at the commit."""
        self._batch.merge(keyspace.keyspace, key, operand)

    def delete(self, keyspace: AsyncKeyspace[K, Any], key: K) -> None:
        """Deletes a key at the commit, if it exists then."""
        self._batch.delete(keyspace.keyspace, key)

    def update(
        self, keyspace: AsyncKeyspace[K, V], pairs: Mapping[K, V] | Iterable[tuple[K, V]]
    ) -> None:
        """Sets the values of keys at the commit: of a mapping, or of an iterable of pairs."""
        self._batch.update(keyspace.keyspace, pairs)

    def rename(self, keyspace: AsyncKeyspace[K, Any], key: K, new_key: K) -> None:
        """Will move the value of a key to another key, without copying it, if it is there."""
        self._batch.rename(keyspace.keyspace, key, new_key)

    def move_to(
        self,
        keyspace: AsyncKeyspace[K, Any],
        key: K,
        target: AsyncKeyspace[Any, Any],
        new_key: Any,
    ) -> None:
        """Will move the value of a key to another keyspace, without copying it, if it is there."""
        self._batch.move_to(keyspace.keyspace, key, target.keyspace, new_key)

    def set_cursor(self, name: str, number: int) -> None:
        """Sets a cursor of the feed of changes at the commit: see AsyncStore.cursors()."""
        self._batch.set_cursor(name, number)

    async def commit(self) -> None:
        """Makes all changes in one commit."""
        await self._threads.call(self._batch.commit)

    def discard(self) -> None:
        """Discards all changes."""
        self._batch.discard()

    def __len__(self) -> int:
        return len(self._batch)

    @property
    def closed(self) -> bool:
        """Whether it was committed or discarded."""
        return self._batch.closed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: Kind, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.discard()
        elif not self.closed:
            await self.commit()


class AsyncSnapshot:
    """All keyspaces of a store as one commit left them: snapshot[keyspace] is one of them."""

    def __init__(self, threads: Threads, snapshot: Snapshot) -> None:
        self._threads, self._snapshot = threads, snapshot

    @overload
    def __getitem__(self, keyspace: AsyncKeyspace[K, V]) -> AsyncReader[K, V]: ...

    @overload
    def __getitem__(self, keyspace: AsyncExpiring[K, V]) -> AsyncSnapshotExpiring[K, V]: ...

    @overload
    def __getitem__(self, keyspace: AsyncMultimap[K, V]) -> AsyncMultimap[K, V]: ...

    def __getitem__(
        self, keyspace: AsyncKeyspace[K, V] | AsyncExpiring[K, V] | AsyncMultimap[K, V]
    ) -> AsyncReader[K, V] | AsyncMultimap[K, V]:
        place = keyspace._place
        if isinstance(keyspace, AsyncMultimap):
            return AsyncMultimap(place, self._snapshot[keyspace.multimap])
        if isinstance(keyspace, AsyncExpiring):
            return AsyncSnapshotExpiring(place, self._snapshot[keyspace.expiring])
        return AsyncReader(place, self._snapshot[keyspace.keyspace])

    async def close(self) -> None:
        """Lets it go. Again: does nothing."""
        await self._threads.call(self._snapshot.close)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._snapshot.closed

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: Kind, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()


class AsyncTransaction:
    """Reads and writes that happen as one: transaction[keyspace] is one of its keyspaces.

    It begins with its block.
    """

    def __init__(
        self, threads: Threads, store: Store, durability: Durability | None, attempt: int = 1
    ) -> None:
        self._threads, self._store = threads, store
        self._durability, self._attempt = durability, attempt
        self._transaction: Transaction | None = None

    def _begun(self) -> Transaction:
        if self._transaction is None:
            raise InvalidArgument("a transaction begins with its block: async with db.transaction() as it")
        return self._transaction

    @overload
    def __getitem__(self, keyspace: AsyncKeyspace[K, V]) -> AsyncTransactionKeyspace[K, V]: ...

    @overload
    def __getitem__(self, keyspace: AsyncExpiring[K, V]) -> AsyncExpiring[K, V]: ...

    @overload
    def __getitem__(self, keyspace: AsyncMultimap[K, V]) -> AsyncMultimap[K, V]: ...

    def __getitem__(
        self, keyspace: AsyncKeyspace[K, V] | AsyncExpiring[K, V] | AsyncMultimap[K, V]
    ) -> AsyncTransactionKeyspace[K, V] | AsyncExpiring[K, V] | AsyncMultimap[K, V]:
        begun, place = self._begun(), keyspace._place
        if isinstance(keyspace, AsyncMultimap):
            return AsyncMultimap(place, begun[keyspace.multimap])
        if isinstance(keyspace, AsyncExpiring):
            return AsyncExpiring(place, begun[keyspace.expiring])
        return AsyncTransactionKeyspace(place, begun[keyspace.keyspace])

    def set_cursor(self, name: str, number: int) -> None:
        """Sets a cursor of the feed of changes at the commit: see AsyncStore.cursors()."""
        self._begun().set_cursor(name, number)

    @property
    def attempt(self) -> int:
        """How often the function that it was begun for was run, this time counted; else 1."""
        return self._attempt

    @property
    def closed(self) -> bool:
        """Whether it was committed or rolled back."""
        return self._begun().closed

    async def commit(self) -> None:
        """Makes all its writes in one commit, unless something that it read has changed."""
        await self._threads.call(self._begun().commit)

    def rollback(self) -> None:
        """Lets its writes go. Again: does nothing."""
        self._begun().rollback()

    async def __aenter__(self) -> Self:
        begin = self._store.transaction
        self._transaction = await self._threads.call(lambda: begin(durability=self._durability))
        return self

    async def __aexit__(
        self, kind: Kind, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        transaction = cast(Transaction, self._transaction)
        if kind is not None:
            # What it has written lies in memory: to let it go waits for nothing.
            transaction.rollback()
            return
        try:
            if not transaction.closed:
                await self.commit()
        finally:
            # Cancelled before the commit began; ended otherwise.
            transaction.rollback()
