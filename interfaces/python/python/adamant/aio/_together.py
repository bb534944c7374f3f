"""What sees several keyspaces as one, for coroutines: snapshots and transactions."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar, cast, overload

from adamant._errors import InvalidArgument
from adamant._store import Durability, Snapshot, Store, Transaction
from adamant.aio._expiring import AsyncExpiring, AsyncSnapshotExpiring
from adamant.aio._keyspace import AsyncKeyspace, AsyncTransactionKeyspace
from adamant.aio._multimap import AsyncMultimap
from adamant.aio._reader import AsyncReader
from adamant.aio._threads import Kind, Threads

K = TypeVar("K")
V = TypeVar("V")


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
