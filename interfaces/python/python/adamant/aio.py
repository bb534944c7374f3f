"""Adamant for asyncio: what may wait for the device runs in threads, so the loop never does.

    from adamant import aio

    async with await aio.open("app.adamant") as db:
        users = await db.keyspace("users", codec="utf-8")
        await users.put("ada", "Ada Lovelace")
        async for key, name in users.items(prefix="a"):
            print(key, name)

A call that is cancelled while a thread works waits for the end of that work, milliseconds for a commit,
and raises CancelledError then: it has happened as a whole or not at all, and nothing goes on behind it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import islice
from types import TracebackType
from typing import Any, Generic, Literal, ParamSpec, Self, TypeAlias, TypeVar, Unpack, cast

from adamant._changes import Commit
from adamant._errors import Conflict, InvalidArgument
from adamant._mapping import Keyspace, TransactionKeyspace, _Part, _Readable
from adamant._store import Durability, Path, Store, Transaction
from adamant._store import open as open_store

__all__ = [
    "AsyncKeyspace",
    "AsyncReader",
    "AsyncStore",
    "AsyncTransaction",
    "AsyncTransactionKeyspace",
    "open",
]

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
P = ParamSpec("P")
Reads: TypeAlias = Literal["thread", "loop"]

# Threads of a store: as many commits wait for one sync of the device together.
THREADS_MAX = 8
# Entries that an iterator fetches at once, and seconds in which one that waits notices its end.
FETCHED_MAX = 256
WAITED_SECONDS = 0.2


class AsyncStore:
    """A store for coroutines of one loop, from open(). As a context manager it closes itself.

    store: the one of adamant, for what has no coroutine here: await call(db.store.backup, path).
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._pool = concurrent.futures.ThreadPoolExecutor(THREADS_MAX, "adamant")

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function returns, run in a thread of the store; see the module on cancellation."""
        return await _finished(self._pool.submit(function, *args, **kwargs))

    async def keyspace(
        self, name: str, *, reads: Reads = "thread", **options: Any
    ) -> AsyncKeyspace[Any, Any]:
        """The keyspace of that name, created if there is none; options as of Store.keyspace.

        reads: "thread", a read costs some 0.1 ms and never stops the loop; "loop", it costs what it does
        in Store, a microsecond, and stops the loop for a page that is not in memory: for what fits there.
        """
        if reads not in ("thread", "loop"):
            raise InvalidArgument(f"expected thread or loop as reads, found {reads!r}")
        opened = await self.call(lambda: self.store.keyspace(name, **options))
        return AsyncKeyspace(self, opened, reads)

    def transaction(self, *, durability: Durability | None = None) -> AsyncTransaction:
        """Reads and writes that happen as one when the async with block ends, or not at all if it fails.

        Others go on beside it; what one of them has changed meanwhile makes it fail with Conflict.
        """
        return AsyncTransaction(self, durability)

    async def run(
        self,
        function: Callable[[AsyncTransaction], Awaitable[T]],
        *,
        attempts: int = 100,
        durability: Durability | None = None,
    ) -> T:
        """What a coroutine function of a transaction returns, once that is committed.

        After a conflict it runs again, at most so many times. For much that conflicts, await
        call(db.store.run, function): a plain function, which others wait for in the end.
        """
        if attempts < 1 or not inspect.iscoroutinefunction(function):
            raise InvalidArgument(
                f"expected a coroutine function and at least 1 attempt, found {function!r}, {attempts}"
            )
        for attempt in range(attempts):
            try:
                async with self.transaction(durability=durability) as transaction:
                    return await function(transaction)
            except Conflict:
                if attempt + 1 == attempts:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def changes(
        self, after: int = 0, *, timeout: float | timedelta | None = None
    ) -> AsyncIterator[Commit]:
        """The commits behind the one of a number, of the past and to come: as Store.changes.

        While it waits it has one of the store's threads. It ends when no commit comes within the timeout.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        loop = asyncio.get_running_loop()
        with await self.call(self.store.changes, after) as feed:
            until = None if seconds is None else loop.time() + seconds
            while True:
                left = WAITED_SECONDS if until is None else min(WAITED_SECONDS, until - loop.time())
                commit = await self.call(feed.next, max(0.0, left))
                if commit is not None:
                    yield commit
                    until = None if seconds is None else loop.time() + seconds
                elif until is not None and loop.time() >= until:
                    return

    async def sync(self) -> None:
        """Makes everything committed so far survive power loss: waits for the device, in a thread."""
        await self.call(self.store.sync)

    async def close(self) -> None:
        """Brings all commits to the device and lets the store go. Again: does nothing."""
        try:
            if not self.store.closed:
                await self.call(self.store.close)
        finally:
            self._pool.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<adamant.aio.AsyncStore of {self.store!r}>"


class AsyncReader(Generic[K, V]):
    """What keyspaces have in common, wherever they are looked at. Each call costs a read."""

    def __init__(self, db: AsyncStore, reader: _Readable[K, V], reads: Reads) -> None:
        self._db, self._reader, self._in_thread = db, reader, reads == "thread"

    async def _read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._in_thread:
            return await self._db.call(function, *args, **kwargs)
        return function(*args, **kwargs)

    async def get(self, key: K, default: Any = None) -> V | Any:
        """The value of a key, or the default."""
        return await self._read(self._reader.get, key, default)

    async def contains(self, key: K) -> bool:
        """Whether a key is there."""
        return await self._read(self._reader.__contains__, key)

    async def count(self) -> int:
        """How many entries there are. O(1), with the engine lsm O(n)."""
        return await self._read(self._reader.__len__)

    async def keys(self, **part: Unpack[_Part[K]]) -> AsyncIterator[K]:
        """The keys from start on, before stop, that begin with prefix, in order, or in reverse.

        FETCHED_MAX at a time, so others run in between; as of Store, what is written meanwhile may be
        seen or not.
        """
        async for key in self._walk(lambda: iter(self._reader.keys(**part))):
            yield key

    async def values(self, **part: Unpack[_Part[K]]) -> AsyncIterator[V]:
        """The values of the keys that keys() gives, in their order."""
        async for value in self._walk(lambda: iter(self._reader.values(**part))):
            yield value

    async def items(self, **part: Unpack[_Part[K]]) -> AsyncIterator[tuple[K, V]]:
        """The entries of the keys that keys() gives, in their order."""
        async for pair in self._walk(lambda: iter(self._reader.items(**part))):
            yield pair

    def __aiter__(self) -> AsyncIterator[K]:
        return self.keys()

    async def _walk(self, begin: Callable[[], Iterator[T]]) -> AsyncIterator[T]:
        entries = await self._read(begin)
        while some := await self._read(lambda: list(islice(entries, FETCHED_MAX))):
            for entry in some:
                yield entry


class AsyncKeyspace(AsyncReader[K, V]):
    """An ordered mapping in a store: each change is a commit, made in a thread.

    Commits of several coroutines wait for one sync of the device together. keyspace: the one of adamant.
    """

    def __init__(self, db: AsyncStore, keyspace: Keyspace[K, V], reads: Reads) -> None:
        super().__init__(db, keyspace, reads)
        self.keyspace = keyspace
        self._reads: Reads = reads

    async def typed(self, *types: object) -> AsyncKeyspace[Any, Any]:
        """The same keyspace with types for its keys and values: as Keyspace.typed."""
        typed = await self._db.call(lambda: self.keyspace.typed(*types))
        return AsyncKeyspace(self._db, typed, self._reads)

    async def put(self, key: K, value: V) -> None:
        """Sets the value of a key. One commit."""
        await self._db.call(self.keyspace.put, key, value)

    async def update(self, entries: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        """Sets the values of many keys, in one commit. It walks over the entries in a thread."""
        await self._db.call(self.keyspace.update, entries)

    async def delete(self, key: K) -> None:
        """Deletes a key, whether it exists or not. One commit."""
        await self._db.call(self.keyspace.delete, key)

    async def discard(self, key: K) -> bool:
        """Removes a key if it exists; whether it did. One commit."""
        return await self._db.call(self.keyspace.discard, key)

    async def pop(self, key: K, default: Any = None) -> V | Any:
        """Removes a key and gives its value, or the default. One commit."""
        return await self._db.call(self.keyspace.pop, key, default)

    async def setdefault(self, key: K, value: V) -> V:
        """The value of a key; if it has none, it gets this one. Atomic."""
        return await self._db.call(self.keyspace.setdefault, key, value)

    async def compare_and_swap(self, key: K, expected: V | None, value: V | None) -> bool:
        """Sets the value of a key, or removes it, if its value is the expected one; None: no value."""
        return await self._db.call(self.keyspace.compare_and_swap, key, expected, value)

    async def clear(self) -> None:
        """Removes all entries, in one commit."""
        await self._db.call(self.keyspace.clear)


class AsyncTransactionKeyspace(AsyncReader[K, V]):
    """A keyspace within a transaction: what was there when it began, and its own changes.

    Changes stay in memory until the commit, so they are made at once and not awaited.
    """

    def __init__(self, db: AsyncStore, keyspace: TransactionKeyspace[K, V], reads: Reads) -> None:
        super().__init__(db, keyspace, reads)
        self._keyspace = keyspace

    def put(self, key: K, value: V) -> None:
        """Sets the value of a key, without reading it, so it cannot conflict."""
        self._keyspace.put(key, value)

    def delete(self, key: K) -> None:
        """Deletes a key, whether it exists or not, without reading it, so it cannot conflict."""
        self._keyspace.delete(key)


class AsyncTransaction:
    """Reads and writes that happen as one: transaction[keyspace] is one of its keyspaces."""

    def __init__(self, db: AsyncStore, durability: Durability | None) -> None:
        self._db, self._durability = db, durability
        self._transaction: Transaction | None = None

    def __getitem__(self, keyspace: AsyncKeyspace[K, V]) -> AsyncTransactionKeyspace[K, V]:
        if self._transaction is None:
            raise InvalidArgument("a transaction begins with its block: async with db.transaction() as it")
        reads: Reads = "thread" if keyspace._in_thread else "loop"
        return AsyncTransactionKeyspace(self._db, self._transaction[keyspace.keyspace], reads)

    async def __aenter__(self) -> Self:
        begin = self._db.store.transaction
        self._transaction = await self._db.call(lambda: begin(durability=self._durability))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        transaction = cast(Transaction, self._transaction)
        if kind is not None:
            # What it has written lies in memory: to let it go waits for nothing.
            transaction.rollback()
            return
        try:
            await self._db.call(transaction.commit)
        finally:
            # Cancelled before the commit began; ended otherwise.
            transaction.rollback()


async def open(path: Path, **options: Any) -> AsyncStore:
    """Opens the store at a path in a thread, creating it if there is nothing; options as of adamant.open.

    What opening costs is bounded by the store's log, not by its entries.
    """
    return AsyncStore(await asyncio.to_thread(lambda: open_store(path, **options)))


async def _finished(job: concurrent.futures.Future[T]) -> T:
    """The result of a thread's work. When cancelled: once the work has ended, or has not begun."""
    try:
        return await asyncio.shield(asyncio.wrap_future(job))
    except asyncio.CancelledError:
        if not job.cancel():
            await _ended(job)
        raise


async def _ended(job: concurrent.futures.Future[Any]) -> None:
    """Waits until work has ended, however often it is cancelled meanwhile."""
    while not job.done():
        try:
            await asyncio.wait([asyncio.wrap_future(job)])
        except asyncio.CancelledError:
            continue
