"""The store for coroutines."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from adamant import _store as plain
from adamant._changes import ChangesInfo, Commit
from adamant._errors import Conflict, InvalidArgument
from adamant._store import (
    Durability,
    Engine,
    Finding,
    KeyspaceInfo,
    Path,
    SavepointInfo,
    Store,
    Transaction,
)
from adamant.aio._batch import AsyncBatch
from adamant.aio._expiring import AsyncExpiring
from adamant.aio._keyspace import AsyncKeyspace
from adamant.aio._multimap import AsyncMultimap
from adamant.aio._threads import Place, Reads, Threads, in_a_thread
from adamant.aio._together import AsyncSnapshot, AsyncTransaction

T = TypeVar("T")
P = ParamSpec("P")


class AsyncStore:
    """A store for coroutines of one loop, from open(). As a context manager it closes itself.

    store: the one of adamant; call() runs what it has and any other function in a thread.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._threads = Threads()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function returns, run in a thread of the store; see the module on cancellation."""
        return await self._threads.call(function, *args, **kwargs)

    def _place(self, reads: Reads) -> Place:
        if reads not in ("thread", "loop"):
            raise InvalidArgument(f"expected thread or loop as reads, found {reads!r}")
        return Place(self._threads, reads)

    async def keyspace(
        self, name: str, *, reads: Reads = "thread", **options: Any
    ) -> AsyncKeyspace[Any, Any]:
        """The keyspace of that name, created if there is none; options as of Store.keyspace.

        reads: "thread", a read costs some 0.1 ms and never stops the loop; "loop", it costs what it does
        in Store, a microsecond, and stops the loop for a page that is not in memory: for what fits there.
        """
        place = self._place(reads)
        return AsyncKeyspace(place, await self.call(lambda: self.store.keyspace(name, **options)))

    async def expiring(
        self, name: str, *, reads: Reads = "thread", **options: Any
    ) -> AsyncExpiring[Any, Any]:
        """The keyspace of that name for entries that may end; options as of Store.expiring."""
        place = self._place(reads)
        return AsyncExpiring(place, await self.call(lambda: self.store.expiring(name, **options)))

    async def multimap(
        self, name: str, *, reads: Reads = "thread", **options: Any
    ) -> AsyncMultimap[Any, Any]:
        """The multimap of that name, created if there is none; options as of Store.multimap."""
        place = self._place(reads)
        return AsyncMultimap(place, await self.call(lambda: self.store.multimap(name, **options)))

    async def keyspaces(self) -> list[KeyspaceInfo]:
        """All keyspaces, by name."""
        return await self.call(self.store.keyspaces)

    async def drop_keyspace(self, name: str) -> bool:
        """Drops a keyspace and all that it holds, in one commit; whether there was one."""
        return await self.call(self.store.drop_keyspace, name)

    async def drop_expiring(self, name: str) -> bool:
        """Drops a keyspace of entries that end, and their deadlines; whether there was one."""
        return await self.call(self.store.drop_expiring, name)

    async def rename_keyspace(self, name: str, new_name: str) -> None:
        """Gives a keyspace another name, in one commit."""
        await self.call(self.store.rename_keyspace, name, new_name)

    async def convert_keyspace(self, name: str, engine: Engine) -> bool:
        """Makes a keyspace one of another engine, in one commit; False if it is one already."""
        return await self.call(self.store.convert_keyspace, name, engine)

    async def compress_values(
        self, name: str, compression: str, *, dictionary: bytes | None = None
    ) -> bool:
        """Has a keyspace store its values by another compression: as Store.compress_values."""
        compress = self.store.compress_values
        return await self.call(lambda: compress(name, compression, dictionary=dictionary))

    async def value_compression(self, name: str) -> str | None:
        """The compression of the values of a keyspace; None for none."""
        return await self.call(self.store.value_compression, name)

    async def train_dictionary(self, name: str, bytes_max: int = 16384) -> bytes:
        """A dictionary of at most so many bytes, 256 to 65536, from the values of a keyspace."""
        return await self.call(self.store.train_dictionary, name, bytes_max)

    def batch(self, *, durability: Durability | None = None) -> AsyncBatch:
        """Changes that become one commit when the async with block ends, or are let go if it fails."""
        return AsyncBatch(self._threads, self.store.batch(durability=durability))

    async def snapshot(self, *, durable: bool = False) -> AsyncSnapshot:
        """All keyspaces as they are now; durable: as they are once all that is durable.

        async with await db.snapshot() as snapshot lets it go at the end of the block.
        """
        snapshot = await self.call(lambda: self.store.snapshot(durable=durable))
        return AsyncSnapshot(self._threads, snapshot)

    def transaction(self, *, durability: Durability | None = None) -> AsyncTransaction:
        """Reads and writes that happen as one when the async with block ends, or not at all if it fails.

        Others go on beside it; what one of them has changed meanwhile makes it fail with Conflict.
        """
        return AsyncTransaction(self._threads, self.store, durability)

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
        for attempt in range(1, attempts + 1):
            begins = AsyncTransaction(self._threads, self.store, durability, attempt)
            try:
                async with begins as transaction:
                    return await function(transaction)
            except Conflict:
                if attempt == attempts:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def exclusive(
        self,
        function: Callable[[Transaction], T],
        *,
        timeout: float | timedelta | None = None,
        durability: Durability | None = None,
    ) -> T:
        """What a plain function of a transaction returns beside which nobody else writes: in a thread.

        A coroutine function would keep others from writing for as long as the loop does something else.
        """
        if inspect.iscoroutinefunction(function):
            raise InvalidArgument(
                f"expected a plain function, which runs in a thread, found {function!r}; see run()"
            )
        exclusive = self.store.exclusive
        return await self.call(
            lambda: exclusive(function, timeout=timeout, durability=durability)
        )

    async def record_changes(self, bytes_max: int | None) -> None:
        """Records what each commit changes from now on, for changes(): as Store.record_changes."""
        await self.call(self.store.record_changes, bytes_max)

    async def changes(
        self, after: int = 0, *, timeout: float | timedelta | None = None
    ) -> AsyncIterator[Commit]:
        """The commits behind the one of a number, of the past and to come: as Store.changes.

        While it waits it has one of the store's threads. It ends when no commit comes within the timeout.
        """
        with await self.call(self.store.changes, after) as feed:
            while (commit := await self._threads.call_often(feed.next, timeout)) is not None:
                yield commit

    async def changes_info(self) -> ChangesInfo:
        """Which commits the history of changes has, and the bytes that it takes and may take."""
        return await self.call(self.store.changes_info)

    async def last_change(self) -> int:
        """The number of the last commit in the feed of changes; 0 before the first."""
        return await self.call(lambda: self.store.last_change)

    async def cursors(self) -> dict[str, int]:
        """Durable positions in the feed of changes, by name."""
        return await self.call(lambda: dict(self.store.cursors))

    async def set_cursor(self, name: str, number: int | None) -> None:
        """Sets a cursor of the feed of changes, in a commit of its own; None removes it."""
        await self.call(self.store._set_cursor, name, number)

    async def wait_durable(self, number: int) -> None:
        """Waits until the commit of a number survives power loss."""
        await self.call(self.store.wait_durable, number)

    async def refresh(self) -> bool:
        """Has a store that was opened beside a writer show its last commit: as Store.refresh."""
        return await self.call(self.store.refresh)

    async def wait_for_change(self, timeout: float | timedelta | None = None) -> bool:
        """Waits until refresh() would show a later commit; whether it would within the timeout.

        None: waits for ever. False at once for a store that was not opened beside a writer.
        """
        if not await self.call(lambda: self.store.beside_writer):
            return False
        return await self._threads.call_often(self.store.wait_for_change, timeout)

    async def create_savepoint(self, name: str) -> None:
        """Makes a persistent savepoint, the store as it is now, under a name: as Store.create_savepoint."""
        await self.call(self.store.create_savepoint, name)

    async def delete_savepoint(self, name: str) -> bool:
        """Deletes a persistent savepoint, and gives back what only it held; whether there was one."""
        return await self.call(self.store.delete_savepoint, name)

    async def savepoints(self) -> list[SavepointInfo]:
        """All persistent savepoints, the oldest first, and behind them those that were given up."""
        return await self.call(self.store.savepoints)

    async def open_savepoint(self, name: str) -> AsyncStore:
        """What a persistent savepoint shows, as a store of its own that is only read."""
        return AsyncStore(await self.call(self.store.open_savepoint, name))

    async def backup(self, path: Path, *, link: bool = False, since: Path | None = None) -> None:
        """Copies the store to a path where nothing is, while it is used: as Store.backup."""
        await self.call(lambda: self.store.backup(path, link=link, since=since))

    async def check(self) -> list[Finding]:
        """Verifies every checksum and structure, and lists what is wrong: nothing, if it is whole."""
        return await self.call(self.store.check)

    async def compact(self) -> None:
        """Compacts all keyspaces, and gives free space back to the file system."""
        await self.call(self.store.compact)

    async def shrink(self) -> None:
        """Gives free space of the pool file back to the file system."""
        await self.call(self.store.shrink)

    async def stats(self) -> dict[str, Any]:
        """Figures of the store."""
        return await self.call(self.store.stats)

    async def rekey(self, new: bytes | str) -> None:
        """Has another key open the store from now on, at once: the files stay as they are."""
        await self.call(self.store.rekey, new)

    async def sync(self) -> None:
        """Makes everything committed so far survive power loss: waits for the device, in a thread."""
        await self.call(self.store.sync)

    @property
    def path(self) -> str | None:
        """Where it is, as os.fsdecode has it; None for a store in memory."""
        return self.store.path

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading only."""
        return self.store.read_only

    @property
    def beside_writer(self) -> bool:
        """Whether it was opened for reading beside a writer."""
        return self.store.beside_writer

    @property
    def is_encrypted(self) -> bool:
        """Whether its files are encrypted."""
        return self.store.is_encrypted

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.store.closed

    async def close(self) -> None:
        """Brings all commits to the device and lets the store go. Again: does nothing."""
        try:
            if not self.store.closed:
                await self.call(self.store.close)
        finally:
            self._threads.end()

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


async def open(path: Path, **options: Any) -> AsyncStore:
    """Opens the store at a path in a thread, creating it if there is nothing; options as of adamant.open.

    What opening costs is bounded by the store's log, not by its entries.
    """
    return AsyncStore(await in_a_thread(lambda: plain.open(path, **options)))


def in_memory() -> AsyncStore:
    """A store in memory, gone when it is closed: for tests."""
    return AsyncStore(plain.in_memory())


async def go_back(path: Path, name: str, **key: Any) -> None:
    """Makes a store that is closed what one of its savepoints shows; all savepoints stay.

    The key as of adamant.go_back.
    """
    await in_a_thread(lambda: plain.go_back(path, name, **key))


async def restore(backup: Path, path: Path, **key: Any) -> None:
    """Verifies a backup and copies it to a path where nothing is; the key as of adamant.restore."""
    await in_a_thread(lambda: plain.restore(backup, path, **key))
