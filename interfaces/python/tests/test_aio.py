"""The front for asyncio: the loop goes on, what is cancelled has happened as a whole or not at all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import adamant
import pytest
from adamant import aio


def run(work: Callable[[aio.AsyncStore], Awaitable[None]], path: Path, **options: Any) -> None:
    async def main() -> None:
        async with await aio.open(path, **options) as db:
            await work(db)
        assert db.store.closed and "closed" in repr(db)
        await db.close()

    asyncio.run(main())


@pytest.mark.parametrize("reads", ["thread", "loop"])
def test_reads_and_writes(path: Path, engine: str, reads: Any) -> None:
    async def work(db: aio.AsyncStore) -> None:
        entries = await db.keyspace("test", codec="utf-8", engine=engine, reads=reads)
        await entries.put("a", "1")
        await entries.update({f"n{number:04}": str(number) for number in range(700)})
        assert await entries.get("a") == "1" and await entries.get("none", "no") == "no"
        assert await entries.contains("a") and not await entries.contains("none")
        assert await entries.count() == 701
        assert [key async for key in entries][:2] == ["a", "n0000"]
        assert [int(value) async for value in entries.values(prefix="n")] == list(range(700))
        found = [pair async for pair in entries.items(start="n0300", stop="n0302", reverse=True)]
        assert found == [("n0301", "301"), ("n0300", "300")]
        assert await entries.pop("a") == "1" and await entries.pop("a") is None
        assert await entries.setdefault("a", "2") == "2" and await entries.discard("a")
        assert await entries.compare_and_swap("a", None, "3") and await entries.get("a") == "3"
        await entries.delete("a")
        await entries.clear()
        assert await entries.count() == 0
        await db.sync()
        assert await db.call(db.store.check) == []

    run(work, path)


def test_types(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        plain = await db.keyspace("test", reads="loop")
        typed = await plain.typed(tuple[str, int], float)
        await typed.update({("a", -1): 0.5, ("a", 5): 1.5, ("b", 0): 2})
        assert [key async for key in typed.keys(prefix=("a",))] == [("a", -1), ("a", 5)]
        async with db.transaction() as transaction:
            transaction[typed].put(("a", 6), 3.5)
        assert await (await plain.typed()).get(("a", 6)) == 3.5
        with pytest.raises(adamant.WrongTypes):
            await plain.typed(str, float)

    run(work, path)


def test_the_loop_goes_on_while_others_write(path: Path) -> None:
    """A commit that has to wait, here for another's exclusive transaction, stops no coroutine."""

    async def work(db: aio.AsyncStore) -> None:
        entries = await db.keyspace("test", codec="utf-8")
        begun, ends = threading.Event(), threading.Event()

        def hold(transaction: adamant.Transaction) -> None:
            begun.set()
            assert ends.wait(60)

        holder = asyncio.ensure_future(db.call(db.store.exclusive, hold))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        puts = [asyncio.ensure_future(entries.put(str(number), "x")) for number in range(5)]
        for _ in range(50):
            await asyncio.sleep(0.001)
        assert not any(put.done() for put in puts) and await entries.get("0") is None
        ends.set()
        await asyncio.gather(holder, *puts)
        assert await entries.count() == 5

    run(work, path)


def test_transactions(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        accounts = await db.keyspace("accounts", codec="utf-8")
        await accounts.update({"ada": "100", "bob": "0"})
        async with db.transaction() as transaction:
            mine = transaction[accounts]
            mine.put("ada", str(int(await mine.get("ada")) - 10))
            mine.put("bob", "10")
            mine.delete("none")
            assert await mine.get("ada") == "90" and await accounts.get("ada") == "100"
            assert [key async for key in mine] == ["ada", "bob"]
        assert [pair async for pair in accounts.items()] == [("ada", "90"), ("bob", "10")]
        with pytest.raises(ZeroDivisionError):
            async with db.transaction() as transaction:
                transaction[accounts].put("ada", "0")
                1 / 0  # noqa: B018
        with pytest.raises(adamant.Conflict):
            async with db.transaction() as transaction:
                await transaction[accounts].get("ada")
                await accounts.put("ada", "80")
                transaction[accounts].put("bob", "0")
        assert await accounts.get("ada") == "80" and await accounts.get("bob") == "10"
        with pytest.raises(adamant.InvalidArgument, match="begins with its block"):
            db.transaction()[accounts]

    run(work, path)


def test_runs_again_after_a_conflict(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        hits = await db.keyspace("hits", codec="utf-8")

        async def hit(transaction: aio.AsyncTransaction) -> int:
            mine = transaction[hits]
            number = int(await mine.get("all", "0")) + 1
            mine.put("all", str(number))
            return number

        numbers = await asyncio.gather(*(db.run(hit) for _ in range(20)))
        assert sorted(numbers) == list(range(1, 21)) and await hits.get("all") == "20"

        async def always(transaction: aio.AsyncTransaction) -> None:
            await hit(transaction)
            await hits.put("all", "0")

        with pytest.raises(adamant.Conflict):
            await db.run(always, attempts=3)
        plain: Any = len
        with pytest.raises(adamant.InvalidArgument, match="coroutine function"):
            await db.run(plain)

    run(work, path)


def test_what_is_cancelled_is_done_or_not_begun(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        entries = await db.keyspace("test", codec="utf-8")
        begun, ends = threading.Event(), threading.Event()

        def slow() -> None:
            begun.set()
            assert ends.wait(60)
            entries.keyspace["slow"] = "done"

        # Work that has begun is waited for, however often it is cancelled.
        task = asyncio.ensure_future(db.call(slow))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.001)
        assert not task.done()
        ends.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await entries.get("slow") == "done"

        # Work that has not begun never does.
        begun.clear()
        ends.clear()
        busy = [asyncio.ensure_future(db.call(ends.wait, 60)) for _ in range(aio.THREADS_MAX)]
        await asyncio.sleep(0)
        task = asyncio.ensure_future(entries.put("never", "put"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ends.set()
        await asyncio.gather(*busy)
        assert not await entries.contains("never")

    run(work, path)


def test_a_cancelled_transaction_leaves_nothing(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        entries = await db.keyspace("test", codec="utf-8")
        inside = asyncio.Event()

        async def change() -> None:
            async with db.transaction() as transaction:
                transaction[entries].put("a", "1")
                inside.set()
                await asyncio.sleep(3_600)

        task = asyncio.ensure_future(change())
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await entries.count() == 0

        # Cancelled at any moment of many: both entries, or neither.
        async def both(number: int) -> None:
            async with db.transaction() as transaction:
                transaction[entries].put(f"a{number}", "")
                transaction[entries].put(f"b{number}", "")

        for number in range(60):
            task = asyncio.ensure_future(both(number))
            for _ in range(number % 6):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert await entries.contains(f"a{number}") == await entries.contains(f"b{number}")

    run(work, path, durability="buffered")


def test_the_feed_of_changes(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        rooms = await db.keyspace("rooms", codec="utf-8")
        db.store.record_changes(1 << 20)
        seen: list[bytes | None] = []

        async def follow() -> None:
            async for commit in db.changes():
                seen.extend(change.key for change in commit.changes)
                if len(seen) == 3:
                    return

        follower = asyncio.ensure_future(follow())
        for name in ("a", "b", "c"):
            await rooms.put(name, "swept")
        await follower
        assert seen == [b"a", b"b", b"c"]
        assert [commit.number async for commit in db.changes(1, timeout=0)] == [2, 3]
        waiter = asyncio.ensure_future(follow())
        seen.clear()
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

    run(work, path)


def test_errors_are_those_of_the_store(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        with pytest.raises(adamant.Locked):
            await aio.open(path)
        with pytest.raises(adamant.InvalidArgument, match="thread or loop"):
            await db.keyspace("test", reads="never")  # type: ignore[arg-type]
        entries = await db.keyspace("test")
        with pytest.raises(TypeError, match="bytes"):
            await entries.put("text", b"")
        async with await aio.open(path, beside_writer=True) as beside:
            reader = await beside.keyspace("test")
            with pytest.raises(adamant.ReadOnly):
                await reader.put(b"a", b"")

    run(work, path)
