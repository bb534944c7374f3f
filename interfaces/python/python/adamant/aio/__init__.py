"""Adamant for asyncio: what may wait for the device runs in threads, so the loop never does.

    from adamant import aio

    async with await aio.open("app.adamant") as db:
        users = await db.keyspace("users", codec="utf-8")
        await users.put("ada", "Ada Lovelace")
        async for key, name in users.items(prefix="a"):
            print(key, name)

Classes and methods are those of adamant, called Async.., and say only what is otherwise: a call that may
wait is awaited, an iterator is asynchronous, contains() and count() stand for `in` and len().

A call that is cancelled while a thread works waits for the end of that work, milliseconds for a commit,
and raises CancelledError then: it has happened as a whole or not at all, and nothing goes on behind it.
"""

from adamant.aio._batch import AsyncBatch
from adamant.aio._expiring import AsyncExpiring, AsyncSnapshotExpiring
from adamant.aio._keyspace import AsyncKeyspace, AsyncTransactionKeyspace
from adamant.aio._multimap import AsyncMultimap
from adamant.aio._reader import AsyncReader
from adamant.aio._store import AsyncStore, go_back, in_memory, open, restore
from adamant.aio._threads import FETCHED_MAX, THREADS_MAX, Reads
from adamant.aio._together import AsyncSnapshot, AsyncTransaction

__all__ = [
    "FETCHED_MAX",
    "THREADS_MAX",
    "AsyncBatch",
    "AsyncExpiring",
    "AsyncKeyspace",
    "AsyncMultimap",
    "AsyncReader",
    "AsyncSnapshot",
    "AsyncSnapshotExpiring",
    "AsyncStore",
    "AsyncTransaction",
    "AsyncTransactionKeyspace",
    "Reads",
    "go_back",
    "in_memory",
    "open",
    "restore",
]
