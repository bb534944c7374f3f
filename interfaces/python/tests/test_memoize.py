"""Functions that remember: one caller runs, others wait; threads and coroutines, early recomputation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adamant
import pytest
from adamant.cache import MISSING, Cache, memoize


class Clock:
    """Says what it was told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def counted(calls: list[Any]) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return len(calls)

    return function


def test_a_function_runs_once_for_its_arguments(path: Path) -> None:
    calls: list[Any] = []
    for round_ in range(2):
        with Cache(path) as cache:
            remembers = memoize(cache, name="f", tags="f")(counted(calls))
            assert [remembers(1), remembers(1), remembers("1"), remembers(1, b=2)] == [1, 1, 2, 3]
            # What is no literal, by its pickle.
            assert [remembers([1, {"a"}]), remembers([1, {"a"}])] == [4, 4]
            assert len(calls) == 4 and cache.check() == [], round_
    with Cache(path) as cache:
        remembers = memoize(cache, name="f", tags="f")(counted(calls))
        assert remembers.invalidate(1) and not remembers.invalidate(1) and remembers(1) == 5
        assert cache.evict("f") == 4 and remembers(1) == 6
        assert remembers.cache_key(1, b=2) == ("f", ((1,), ("b", 2)))


def test_none_is_a_value_and_an_exception_is_not(db: adamant.Store) -> None:
    cache, calls = Cache(db), []

    @memoize(cache, key=lambda number, note: number)
    def none_or_error(number: int, note: str) -> None:
        """Says so."""
        calls.append(note)
        if number == 2:
            raise ValueError(note)

    assert none_or_error.__doc__ == "Says so." and "none_or_error" in repr(none_or_error.__wrapped__)
    for note in ("a", "b"):
        none_or_error(1, note)
        with pytest.raises(ValueError, match=note):
            none_or_error(2, note)
    assert calls == ["a", "a", "b"]


def test_methods_and_recursion(db: adamant.Store) -> None:
    cache = Cache(db)

    class Square:
        def __init__(self, side: int) -> None:
            self.side = side

        @memoize(cache, key=lambda self, times: (self.side, times))
        def area(self, times: int) -> int:
            return self.side * self.side * times

    assert (Square(2).area(3), Square(3).area(3), Square(2).area(3)) == (12, 27, 12)

    @memoize(cache)
    def fibonacci(number: int) -> int:
        return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

    assert fibonacci(30) == 832_040 and cache.check() == []

    # A value that asks for itself does not wait for itself.
    asked = []

    def ask() -> int:
        asked.append(1)
        return 1 if len(asked) > 2 else cache.get_or_set("itself", ask)

    assert cache.get_or_set("itself", ask) == 1


def test_threads_wait_for_the_one_that_makes(db: adamant.Store) -> None:
    cache = Cache(db)
    start, made = threading.Barrier(9), threading.Event()
    calls: list[int] = []
    results: list[Any] = []

    def make() -> str:
        calls.append(1)
        assert made.wait(60)
        return "made"

    def work() -> None:
        start.wait()
        results.append(cache.get_or_set("key", make))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    # Until all have looked, and one runs: the others can only wait for it.
    while cache.statistics().misses < 8 or not calls:
        time.sleep(0.001)
    made.set()
    for thread in threads:
        thread.join()
    assert results == ["made"] * 8 and len(calls) == 1


def test_another_tries_when_the_maker_fails(db: adamant.Store) -> None:
    cache = Cache(db)
    waits, fails = threading.Event(), threading.Event()
    outcomes: list[Any] = []

    def fail() -> str:
        waits.set()
        assert fails.wait(60)
        raise ConnectionError("no answer")

    def first() -> None:
        with pytest.raises(ConnectionError):
            cache.get_or_set("key", fail)
        outcomes.append("failed")

    def second() -> None:
        outcomes.append(cache.get_or_set("key", lambda: "made"))

    one = threading.Thread(target=first)
    one.start()
    assert waits.wait(60)
    other = threading.Thread(target=second)
    other.start()
    while cache.statistics().misses < 2:
        time.sleep(0.001)
    fails.set()
    one.join()
    other.join()
    assert sorted(outcomes) == ["failed", "made"] and cache["key"] == "made"


def test_a_value_is_made_anew_before_its_end(db: adamant.Store) -> None:
    clock = Clock()
    cache = Cache(db, clock=clock)
    calls: list[int] = []

    def make() -> int:
        calls.append(1)
        clock.now += 2
        return len(calls)

    def get(chance: float) -> int:
        cache._random = lambda: chance
        return cache.get_or_set("key", make, ttl=100, early=1.0)

    assert get(0.5) == 1 and cache.ttl("key") == 100.0
    # 2 seconds to make it, and -log(1 - 0.99) is 4.6: 9.2 seconds before its end.
    clock.now += 90
    assert get(0.99) == 1
    clock.now += 1
    assert get(0.5) == 1 and get(0.99) == 2 and cache.ttl("key") == 100.0
    # While one makes it anew, others get what there is.
    clock.now += 99.9
    encoded = b"skey"
    flight, is_maker = cache.flights.join(encoded)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(get(0.999)))
    thread.start()
    thread.join()
    cache.flights.end(encoded, flight)
    assert is_maker and found == [2] and len(calls) == 2


def test_coroutines_wait_for_the_one_that_makes(db: adamant.Store) -> None:
    cache = Cache(db)
    calls: list[int] = []

    async def main() -> None:
        made = asyncio.Event()

        @memoize(cache, ttl=60)
        async def page(number: int) -> str:
            calls.append(number)
            await made.wait()
            if number < 0:
                raise ConnectionError("no answer")
            return f"page {number}"

        tasks = [asyncio.ensure_future(page(1)) for _ in range(5)]
        while cache.statistics().misses < 5:
            await asyncio.sleep(0)
        made.set()
        assert await asyncio.gather(*tasks) == ["page 1"] * 5 and calls == [1]
        assert await page(1) == "page 1" and calls == [1]
        for _ in range(2):
            with pytest.raises(ConnectionError):
                await page(-1)
        assert calls == [1, -1, -1] and page.invalidate(1)
        assert await page(1) == "page 1" and len(calls) == 4

    asyncio.run(main())
    assert cache.check() == []


def test_a_cancelled_maker_leaves_it_to_another(db: adamant.Store) -> None:
    cache = Cache(db)
    calls: list[int] = []

    async def main() -> None:
        @memoize(cache)
        async def slow() -> int:
            calls.append(1)
            await asyncio.sleep(3_600 if len(calls) == 1 else 0)
            return len(calls)

        maker = asyncio.ensure_future(slow())
        waiters = [asyncio.ensure_future(slow()) for _ in range(3)]
        while cache.statistics().misses < 4:
            await asyncio.sleep(0)
        waiters[0].cancel()  # those that wait may go, too
        maker.cancel()
        assert await asyncio.gather(*waiters[1:]) == [2, 2]
        for task in (maker, waiters[0]):
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert len(calls) == 2 and cache.check() == []


def test_missing_is_told_from_none(db: adamant.Store) -> None:
    cache = Cache(db)
    cache["a"] = None
    assert cache.get("a", MISSING) is None and cache.get("b", MISSING) is MISSING
