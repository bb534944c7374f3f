"""The front for asyncio has what the store has: names and parameters are compared, gaps explained."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import adamant
import pytest
from adamant import aio

PAIRS: list[tuple[type, type]] = [
    (adamant.Store, aio.AsyncStore),
    (adamant.Keyspace, aio.AsyncKeyspace),
    (adamant.Expiring, aio.AsyncExpiring),
    (adamant.Multimap, aio.AsyncMultimap),
    (adamant.SnapshotKeyspace, aio.AsyncReader),
    (adamant.SnapshotExpiring, aio.AsyncSnapshotExpiring),
    (adamant.TransactionKeyspace, aio.AsyncTransactionKeyspace),
    (adamant.TransactionExpiring, aio.AsyncExpiring),
    (adamant.Batch, aio.AsyncBatch),
    (adamant.Snapshot, aio.AsyncSnapshot),
    (adamant.Transaction, aio.AsyncTransaction),
]
NAMES = [plain.__name__ for plain, _ in PAIRS]

# What a class of adamant has and the one for coroutines has not, and why.
GAPS: dict[str, dict[str, str]] = {
    "AsyncStore": {"own_change": "it is of a thread, and threads are shared: ask within one call()"},
}
# What one for coroutines has beside, and why.
IN_AND_LEN = {"contains": "stands for the operator in", "count": "stands for len()"}
BESIDE: dict[str, dict[str, str]] = {
    "AsyncStore": {
        "call": "runs anything else in a thread",
        "set_cursor": "stands for cursors[name] = number",
    },
    "AsyncMultimap": {"contains": IN_AND_LEN["contains"]},
    "AsyncReader": IN_AND_LEN,
    "AsyncKeyspace": IN_AND_LEN,
    "AsyncExpiring": IN_AND_LEN,
    "AsyncSnapshotExpiring": IN_AND_LEN,
    "AsyncTransactionKeyspace": IN_AND_LEN,
}
# Named parameters that one for coroutines does not name, and why.
OPTIONS = "options go on as they are"
UNNAMED: dict[tuple[str, str], str] = {
    ("AsyncStore", "keyspace"): OPTIONS,
    ("AsyncStore", "expiring"): OPTIONS,
    ("AsyncStore", "multimap"): OPTIONS,
    ("AsyncStore", "run"): "one of coroutines is never exclusive",
    ("AsyncKeyspace", "typed"): "types go on as they are",
}
# What the module has not, and why.
MODULE = {
    "encrypt": "of a store that is closed: asyncio.to_thread(adamant.encrypt, ...)",
    "rekey": "of a store that is closed: asyncio.to_thread(adamant.rekey, ...)",
}


def public(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def named(function: Any) -> dict[str, Any]:
    """Parameters that a caller names, with their defaults."""
    both = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return {it.name: it.default for it in parameters if it.kind in both and it.name != "self"}


@pytest.mark.parametrize(("plain", "front"), PAIRS, ids=NAMES)
def test_each_name_is_there_or_its_gap_explained(plain: type, front: type) -> None:
    assert public(plain) - public(front) == set(GAPS.get(front.__name__, {}))
    assert public(front) - public(plain) == set(BESIDE.get(front.__name__, {}))


@pytest.mark.parametrize(("plain", "front"), PAIRS, ids=NAMES)
def test_named_parameters_are_the_same(plain: type, front: type) -> None:
    for name in sorted(public(plain) & public(front)):
        ours, theirs = getattr(front, name), getattr(plain, name)
        if not (callable(ours) and callable(theirs)):
            continue
        missing = {
            parameter: default
            for parameter, default in named(theirs).items()
            if named(ours).get(parameter, inspect.Signature) != default
        }
        expected = (front.__name__, name) in UNNAMED
        assert bool(missing) == expected, f"{front.__name__}.{name}: {missing}"


def test_the_functions_of_the_module_are_there() -> None:
    functions = {name for name in adamant.__all__ if inspect.isroutine(getattr(adamant, name))}
    assert functions - set(aio.__all__) == set(MODULE)
    fronts = {front.__name__ for _, front in PAIRS}
    assert {name for name in aio.__all__ if name.startswith("Async")} == fronts


def run(work: Callable[[aio.AsyncStore], Awaitable[None]], path: Path, **options: Any) -> None:
    async def main() -> None:
        async with await aio.open(path, **options) as db:
            await work(db)

    asyncio.run(main())


LITTLE = (1).to_bytes(8, "little")


@pytest.mark.parametrize("reads", ["thread", "loop"])
def test_a_keyspace_does_all_that_one_of_adamant_does(path: Path, engine: str, reads: Any) -> None:
    async def work(db: aio.AsyncStore) -> None:
        hits = await db.keyspace("hits", engine=engine, merge_operator="add", reads=reads)
        await asyncio.gather(*(hits.merge(b"home", LITTLE) for _ in range(20)))
        assert await hits.get(b"home") == (20).to_bytes(8, "little")
        assert (hits.name, hits.engine, hits.durability) == ("hits", engine, "sync")
        assert (hits.key_codec, hits.value_codec, await hits.types()) == (None, None, None)

        names = await db.keyspace("names", codec="utf-8", engine=engine, reads=reads)
        assert (names.key_codec, await names.first(), await names.last()) == ("utf-8", None, None)
        await names.update((f"{number:03}", "x" * number) for number in range(600))
        assert await names.first() == ("000", "") and await names.last() == ("599", "x" * 599)
        assert await names.count(start="100", stop="200") == await names.count(prefix="1") == 100
        assert await names.multi_get(["001", "no", "002"]) == ["x", None, "xx"]
        assert bytes(await names.lend("003") or b"") == b"xxx"
        assert [len(value) async for value in names.values(start="598")] == [598, 599]
        copy = await names.copy()
        assert len(copy) == 600 and copy == dict(names.keyspace)
        scanned = [len(keys) async for keys, values in names.scan(start="300", rows=128)]
        assert sum(scanned) == 300 and max(scanned) <= 128
        estimate = await names.estimate(prefix="2")
        assert 20 <= estimate.entries <= 500
        assert (await names.stats())["entries"] >= 600
        await names.compact()

        assert await names.rename("000", "a") and not await names.rename("000", "b")
        assert await names.swap("001", "002") and await names.get("001") == "xx"
        other = await db.keyspace("other", codec="utf-8", engine=engine, reads=reads)
        assert await names.move_to("a", other, "b") and await other.copy() == {"b": ""}
        assert await names.popitem() == ("599", "x" * 599)
        assert await names.popitem(last=False) == ("001", "xx")
        await names.clear()
        assert await names.count() == 0
        with pytest.raises(KeyError):
            await names.popitem()

    run(work, path)


def test_rows_of_arrays(path: Path) -> None:
    numpy = pytest.importorskip("numpy")

    async def work(db: aio.AsyncStore) -> None:
        rows = await db.keyspace("rows")
        keys = numpy.array([b"a", b"b", b"c"], dtype="S1")
        assert await rows.put_many(keys, numpy.array([1, 2, 3], dtype="<u8")) == 3
        column = await rows.get_many(numpy.array([b"a", b"d"], dtype="S1"))
        assert (len(column), column.missing) == (2, 1)
        out = numpy.zeros(3, dtype="<u8")
        assert await rows.get_many_into(keys, out) == 3 and list(out) == [1, 2, 3]
        async with db.transaction() as transaction:
            mine = transaction[rows]
            assert await mine.put_many(keys, out + numpy.uint64(1)) == 3
            assert await mine.get(b"a") == (2).to_bytes(8, "little")
        assert await rows.get(b"c") == (4).to_bytes(8, "little")

    run(work, path)


def test_entries_that_end(path: Path, engine: str) -> None:
    now = [1_000.0]

    async def work(db: aio.AsyncStore) -> None:
        leases = await db.expiring("leases", codec="utf-8", engine=engine, clock=lambda: now[0])
        await leases.put("a", "1", ttl=10)
        await leases.put("b", "2", deadline=1_005)
        await leases.put("c", "3")
        assert (await leases.ttl("a"), await leases.deadline("b")) == (10, 1_005)
        assert await leases.next_deadline() == 1_005 and await leases.ttl("c") is None
        async with await db.snapshot() as snapshot:
            now[0] = 1_006
            then = snapshot[leases]
            assert isinstance(then, aio.AsyncSnapshotExpiring)
            assert await then.deadline("a") == 1_010 and await then.ttl("a") == 4
            assert [key async for key in then] == [key async for key in leases] == ["a", "c"]
        assert await leases.purge() == 1
        assert await leases.persist("a") and await leases.deadline("a") is None
        assert await leases.set_deadline("a", ttl=1) and not await leases.set_deadline("b", ttl=1)
        async with db.transaction() as transaction:
            mine = transaction[leases]
            await mine.put("d", "4", ttl=100)
            await mine.delete("c")
            assert await mine.setdefault("d", "5") == "4" and not await mine.contains("c")
            assert await leases.contains("c") and not await leases.contains("d")
        assert await leases.items().__anext__() == ("a", "1")
        assert await leases.deadline("d") == 1_106 and await leases.pop("d") == "4"
        await leases.clear()
        assert await leases.count() == 0

    # By the system's clock all of them are over.
    run(work, path, sweep_expired=False)


def test_multimaps(path: Path, engine: str) -> None:
    async def work(db: aio.AsyncStore) -> None:
        tags = await db.multimap("tags", codec="utf-8", engine=engine)
        assert await tags.add("a", "1") and not await tags.add("a", "1")
        await tags.update([("a", "3"), ("a", "2"), ("b", "2")])
        assert (await tags.count(), await tags.count("a"), await tags.count("no")) == (4, 3, 0)
        assert await tags.contains("a", "2") and not await tags.contains("b", "1")
        assert await tags.has_key("b") and not await tags.has_key("c")
        assert (await tags.first_value("a"), await tags.last_value("a")) == ("1", "3")
        assert [value async for value in tags.values("a", "2", reverse=True)] == ["3", "2"]
        assert [key async for key in tags.keys()] == ["a", "b"]
        pairs = [("a", "1"), ("a", "2"), ("a", "3"), ("b", "2")]
        assert [pair async for pair in tags] == pairs
        async with await db.snapshot() as snapshot:
            async with db.transaction() as transaction:
                mine = transaction[tags]
                assert await mine.add("c", "1") and await mine.discard("b", "2")
                assert not await tags.has_key("c") and await mine.has_key("c")
            assert [pair async for pair in snapshot[tags].items()] == pairs
            assert await tags.discard_all("a") == 3 and await snapshot[tags].count() == 4
        assert [pair async for pair in tags] == [("c", "1")] and tags.name == "tags"
        async with db.batch() as batch:
            tags.put_into(batch, "d", "1")
            tags.delete_from(batch, "c", "1")
            assert await tags.has_key("c")
        assert [pair async for pair in tags] == [("d", "1")]
        with pytest.raises(ZeroDivisionError):
            async with db.transaction() as transaction:
                await transaction[tags].clear()
                1 / 0  # noqa: B018
        assert await tags.count() == 1

    run(work, path)


def test_batches_and_snapshots(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        names = await db.keyspace("names", codec="utf-8")
        hits = await db.keyspace("hits", merge_operator="add")
        async with db.batch(durability="buffered") as batch:
            batch.put(names, "a", "1")
            batch.update(names, {"b": "2", "c": "3"})
            batch.merge(hits, b"all", LITTLE)
            batch.merge(hits, b"all", LITTLE)
            batch.delete(names, "b")
            batch.rename(names, "c", "d")
            batch.move_to(names, "d", hits, b"d")
            assert len(batch) == 8 and await names.count() == 0 and not batch.closed
        assert batch.closed and await names.copy() == {"a": "1"}
        assert await hits.copy() == {b"all": (2).to_bytes(8, "little"), b"d": b"3"}
        with pytest.raises(ZeroDivisionError):
            async with db.batch() as batch:
                batch.put(names, "never", "")
                1 / 0  # noqa: B018
        assert batch.closed and not await names.contains("never")
        with pytest.raises(adamant.Closed):
            await batch.commit()

        async with await db.snapshot(durable=True) as snapshot:
            await names.clear()
            assert await snapshot[names].copy() == {"a": "1"}
            assert [pair async for pair in snapshot[names].items()] == [("a", "1")]
        assert snapshot.closed

    run(work, path)


def test_transactions_say_how_often_they_were_tried(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        hits = await db.keyspace("hits", merge_operator="add")
        names = await db.keyspace("names", codec="utf-8")
        tried: list[int] = []

        async def conflicts_twice(transaction: aio.AsyncTransaction) -> None:
            tried.append(transaction.attempt)
            await transaction[names].get("a")
            transaction[hits].merge(b"tries", LITTLE)
            if len(tried) < 3:
                await names.put("a", str(len(tried)))

        await db.run(conflicts_twice)
        assert tried == [1, 2, 3] and await hits.get(b"tries") == LITTLE

        # Merges read nothing, so two of them do not conflict.
        async with db.transaction() as transaction:
            transaction[hits].merge(b"tries", LITTLE)
            await hits.merge(b"tries", LITTLE)
            assert not transaction.closed
            await transaction.commit()
            assert transaction.closed
        assert await hits.get(b"tries") == (3).to_bytes(8, "little")
        async with db.transaction() as transaction:
            transaction[names].put("a", "rolled back")
            assert await transaction[names].discard("b") is False
            transaction.rollback()
        assert await names.get("a") == "2"

        def alone(transaction: adamant.Transaction) -> str:
            return transaction[names.keyspace]["a"]

        assert await db.exclusive(alone) == "2"
        refused: Any = conflicts_twice
        with pytest.raises(adamant.InvalidArgument, match="plain function"):
            await db.exclusive(refused)

    run(work, path)


def test_the_care_of_a_store(path: Path, tmp_path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        names = await db.keyspace("names", codec="utf-8", engine="lsm")
        await names.put("a", "1" * 500)
        await db.create_savepoint("before")
        await names.put("a", "2")
        assert [savepoint.name for savepoint in await db.savepoints()] == ["before"]
        async with await db.open_savepoint("before") as before:
            then = await before.keyspace("names", codec="utf-8")
            assert await then.get("a") == "1" * 500 and before.read_only
        assert await db.delete_savepoint("before") and not await db.delete_savepoint("before")
        assert await db.convert_keyspace("names", "bplus")
        assert await db.value_compression("names") is None
        assert await db.compress_values("names", "lz4") and await db.value_compression("names")
        await db.rename_keyspace("names", "called")
        listed = [(it.name, it.entries, it.merge_operator) for it in await db.keyspaces()]
        assert listed == [("called", 1, None)]
        await db.backup(tmp_path / "full")
        await names.put("b", "3")
        await db.backup(tmp_path / "more", since=tmp_path / "full")
        await db.compact()
        await db.shrink()
        assert await db.check() == [] and (await db.stats())["entries"] == 2
        assert (db.path, db.is_encrypted, db.read_only) == (str(path), False, False)
        await db.expiring("ends")
        assert await db.drop_expiring("ends") and await db.drop_keyspace("called")
        assert not await db.drop_keyspace("called")
        with pytest.raises(adamant.UnknownKeyspace):
            await db.train_dictionary("called")
        await db.create_savepoint("empty")

    run(work, path)

    async def elsewhere() -> None:
        await aio.restore(tmp_path / "more", tmp_path / "restored")
        async with await aio.open(tmp_path / "restored") as db:
            names = await db.keyspace("called", codec="utf-8")
            assert await names.copy() == {"a": "2", "b": "3"}
        await aio.go_back(path, "empty")
        async with await aio.open(path) as db:
            assert await db.keyspaces() == []
        async with aio.in_memory() as db:
            await (await db.keyspace("a")).put(b"k", b"v")
            assert db.path is None

    asyncio.run(elsewhere())


def test_the_feed_and_its_cursors(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        await db.record_changes(1 << 20)
        names = await db.keyspace("names", codec="utf-8")
        assert await db.last_change() == 1
        async with db.batch() as batch:
            batch.put(names, "a", "1")
            batch.set_cursor("reader", 1)
        assert await db.cursors() == {"reader": 1}
        async with db.transaction() as transaction:
            transaction.set_cursor("reader", 2)
        assert await db.cursors() == {"reader": 2}
        await db.set_cursor("other", 1)
        await db.set_cursor("reader", None)
        assert await db.cursors() == {"other": 1}
        await db.wait_durable(await db.last_change())
        assert (await db.changes_info()).last == 2
        await db.record_changes(None)
        with pytest.raises(adamant.ChangesNotRecorded):
            await db.changes_info()

    run(work, path)


def test_a_store_beside_its_writer(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        names = await db.keyspace("names", codec="utf-8")
        assert not db.beside_writer and not await db.wait_for_change()
        async with await aio.open(path, beside_writer=True) as beside:
            assert beside.beside_writer and not await beside.wait_for_change(timeout=0)
            assert not await beside.refresh()
            waiter = asyncio.ensure_future(beside.wait_for_change())
            await asyncio.sleep(0.3)
            assert not waiter.done()
            await names.put("a", "1")
            assert await asyncio.wait_for(waiter, 60) and await beside.refresh()
            assert await (await beside.keyspace("names", codec="utf-8")).get("a") == "1"
            waiter = asyncio.ensure_future(beside.wait_for_change())
            await asyncio.sleep(0)
            waiter.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiter

    run(work, path)


def test_an_encrypted_store_gets_another_key(path: Path) -> None:
    async def work(db: aio.AsyncStore) -> None:
        assert db.is_encrypted
        await db.rekey(b"b" * 32)

    run(work, path, encryption_key=b"a" * 32)
    with pytest.raises(adamant.WrongKey):
        adamant.open(path, encryption_key=b"a" * 32)
    adamant.open(path, encryption_key=b"b" * 32).close()
