"""Durability of a keyspace, its figures, estimates, many keys at once."""

from pathlib import Path

import adamant
import pytest
from adamant._store import Engine


def test_durability_is_recorded_with_a_keyspace(tmp_path: Path) -> None:
    with adamant.open(tmp_path / "store") as db:
        pages = db.keyspace("pages", default_durability="buffered")
        orders = db.keyspace("orders")
        assert (pages.durability, orders.durability) == ("buffered", "sync")
        assert db.keyspace("pages", durability="deferred").durability == "deferred"
        assert [it.durability for it in db.keyspaces()] == [None, "buffered"]

        def waited(work: object) -> bool:
            before = db.stats()["commits"]["synced"]["count"]
            work()  # type: ignore[operator]
            after = db.stats()["commits"]["synced"]["count"]
            return bool(after > before)

        def both() -> None:
            with db.batch() as batch:
                batch.put(pages, b"b", b"1")
                batch.put(orders, b"b", b"1")

        assert not waited(lambda: pages.put(b"a", b"1"))
        assert not waited(lambda: pages.update({b"a": b"2"}))
        assert waited(lambda: orders.put(b"a", b"1"))
        assert waited(lambda: orders.update({b"a": b"2"}))
        assert waited(both)
        cache = db.expiring("cache", default_durability="deferred")
        assert not waited(lambda: cache.put(b"a", b"1", ttl=60))
        with pytest.raises(adamant.InvalidArgument, match="eventually"):
            db.keyspace("pages", default_durability="eventually")  # type: ignore[call-overload]
    with adamant.open(tmp_path / "store", durability="deferred") as db:
        assert db.keyspace("pages").durability == "buffered"
        assert db.keyspace("orders").durability == "deferred"
        assert db.keyspace("pages", default_durability="store").durability == "deferred"


@pytest.mark.parametrize("engine", ["bplus", "lsm", "btree", "critbit", "redblack"])
def test_figures_and_estimates(engine: Engine) -> None:
    with adamant.in_memory() as db:
        data = db.keyspace("data", codec="utf-8", engine=engine)
        data.update((f"{number:05}", "x" * 20) for number in range(20_000))
        assert data.stats()["writes"] == 20_000
        assert data.multi_get(["00007", "none", "00003"]) == ["x" * 20, None, "x" * 20]
        assert data.multi_get([]) == []
        stats = data.stats()
        assert (stats["entries"], stats["lookups"]) == (20_000, 3)
        assert stats["heap_bytes"] >= 20_000 * 25
        assert ("cache_hits" in stats) == (engine == "lsm")
        found = data.estimate(start="05000", stop="10000")
        assert 3_000 < found.entries < 7_000
        assert found.bytes > 20 * found.entries
        few = data.estimate(prefix="0001")
        assert 5 <= few.entries <= 20
        assert few.is_exact == (engine != "lsm")
        with db.snapshot() as before:
            data["00007"] = "y"
            assert before[data].multi_get(["00007"]) == ["x" * 20]
        with db.transaction() as transaction:
            transaction[data]["00007"] = "z"
            assert transaction[data].multi_get(["00007", "none"]) == ["z", None]


def test_data_can_stay_out_of_the_cache() -> None:
    with adamant.in_memory() as db:
        data = db.keyspace("data", engine="lsm", lsm={"caches_data": False})
        data.update((b"%05d" % number, b"x" * 100) for number in range(20_000))
        data.compact()
        for _ in range(3):
            before = data.stats()["cache_misses"]
            assert data[b"00007"] == b"x" * 100
            assert data.stats()["cache_misses"] > before


def test_the_path_of_a_store(tmp_path: Path) -> None:
    with adamant.open(tmp_path / "store") as db:
        assert db.path == str(tmp_path / "store")
    with adamant.in_memory() as db:
        assert db.path is None
