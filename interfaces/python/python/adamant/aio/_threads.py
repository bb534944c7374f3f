"""Threads of a store, for the work of coroutines, and what becomes of it when they are cancelled."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
Reads: TypeAlias = Literal["thread", "loop"]
# The class of what a block failed by; None: it did not.
Kind: TypeAlias = type[BaseException] | None

# Threads of a store: as many commits wait for one sync of the device together.
THREADS_MAX = 8
# Entries that an iterator fetches at once, and seconds in which one that waits notices its end.
FETCHED_MAX = 256
WAITED_SECONDS = 0.2


class Threads:
    """The threads of a store."""

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(THREADS_MAX, "adamant")

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function returns, run in a thread."""
        return await _finished(self._pool.submit(function, *args, **kwargs))

    async def call_often(
        self, function: Callable[[float], T], timeout: float | timedelta | None
    ) -> T:
        """What a function of a timeout returns, once it is true, or at the end of the timeout.

        It waits for a moment each time it is called, so a caller that is cancelled ends soon.
        """
        seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        while True:
            left = WAITED_SECONDS if until is None else min(WAITED_SECONDS, until - loop.time())
            found = await self.call(function, max(0.0, left))
            if found or (until is not None and loop.time() >= until):
                return found

    def end(self) -> None:
        """Lets them end once their work is done, and takes no more."""
        self._pool.shutdown(wait=False)


class Place:
    """Where a keyspace reads: in the store's threads, or on the loop."""

    def __init__(self, threads: Threads, reads: Reads) -> None:
        self.threads, self.reads = threads, reads

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a function that reads returns."""
        if self.reads == "thread":
            return await self.threads.call(function, *args, **kwargs)
        return function(*args, **kwargs)

    async def walk(self, begin: Callable[[], Iterator[T]], some: int) -> AsyncIterator[T]:
        """What an iterator gives, so many at a time."""
        found = await self.read(begin)
        while fetched := await self.read(lambda: list(islice(found, some))):
            for one in fetched:
                yield one


async def in_a_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function returns, run in a thread of its own."""
    threads = Threads()
    try:
        return await threads.call(function, *args, **kwargs)
    finally:
        threads.end()


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
