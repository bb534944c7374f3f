"""The cache: what its users do, its bound, its expiry, its tags; by clocks that the tests set."""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from datetime import timedelta
from pathlib import Path
from typing import Any

import adamant
import pytest
from adamant.cache import Cache
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule


class Clock:
    """Says what it was told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_values_come_back(db: adamant.Store, engine: Any) -> None:
    cache = Cache(db, engine=engine)
    assert cache.set("a", {"x": [1, None]}) and cache.get("a") == {"x": [1, None]}
    assert cache.get("b") is None and cache.get("b", 7) == 7 and "b" not in cache
    cache["b"] = None
    assert "b" in cache and cache["b"] is None and cache.get("b", 7) is None
    assert not cache.add("b", 1) and cache.add("c", 1) and cache["c"] == 1
    assert cache.pop("c") == 1 and cache.pop("c") is None and cache.pop("c", 5) == 5
    assert cache.delete("b") and not cache.delete("b")
    works: list[Any] = [lambda: cache["b"], lambda: cache.ttl("b"), lambda: cache.__delitem__("b")]
    for missing in works:
        with pytest.raises(KeyError, match="b"):
            missing()
    assert cache.set_many([("d", 1), ("e", 2)]) == ["d", "e"]
    assert cache.get_many(["e", "none", "d"], 0) == [2, 0, 1] and cache.delete_many(["d", "none"]) == 1
    assert len(cache) == 2 and cache.check() == [] and cache.clear() == 2 and len(cache) == 0
    assert bool(cache) and cache.check() == [] and not cache.refresh()


def test_keys_of_all_kinds(db: adamant.Store) -> None:
    cache = Cache(db)
    keys: list[Any] = ["a", "\ud800", "", b"a", b"", 1, -(10**30), 1.5, True, None, ("a", (1, b"\0")), ()]
    for number, key in enumerate(keys):
        cache[key] = number
    assert [cache[key] for key in keys] == list(range(len(keys)))
    assert set(cache) == set(keys) and list(reversed(cache)) == list(cache)[::-1]
    # As in JSON and unlike in a dict, what is written otherwise is another key.
    assert 1.0 not in cache and 0 not in cache and False not in cache
    for wrong in (object(), [1], ("a", [1]), float("nan"), {"a": 1}, bytearray(b"a")):
        with pytest.raises(TypeError, match="as a key of a cache"):
            cache.set(wrong, 1)
    with pytest.raises(adamant.InvalidArgument, match="digest"):
        cache.set("k" * 60_000, 1)
    with pytest.raises(adamant.InvalidArgument, match="digest"):
        cache.set("k", 1, tags="t" * 1_001)
    cache.set("k" * 59_999, 1, tags="t" * 1_000)
    assert list(cache.tagged("t" * 1_000)) == ["k" * 59_999] and cache.check() == []


def test_codecs(db: adamant.Store) -> None:
    pickles, texts, raw = Cache(db), Cache(db, codec="json"), Cache(db, codec="bytes")
    pickles["a"], texts["b"], raw["c"] = {1, 2}, {"x": [1.5, None]}, b"\0\1"
    assert (pickles["a"], texts["b"]) == ({1, 2}, {"x": [1.5, None]})
    assert raw["c"] == b"\0\1" == pickles["c"]
    raw["d"] = memoryview(b"lent")
    assert raw["d"] == b"lent"
    # A cache without pickles reads none.
    for cache, key in ((texts, "a"), (raw, "a"), (pickles, "b"), (texts, "c")):
        with pytest.raises(adamant.Undecodable, match=f"'{key}' cannot be read as {cache._values.codec}"):
            cache[key]
    with pytest.raises(TypeError, match="expected bytes"):
        raw["e"] = "text"
    with pytest.raises(TypeError, match="serializable"):
        texts["e"] = {1}
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        pickles["e"] = lambda: None
    assert "e" not in raw and raw.check() == []


def test_a_pickle_that_is_damaged(db: adamant.Store) -> None:
    cache = Cache(db)
    cache["a"] = [1, 2]
    entries = db.keyspace("cache")
    record = entries[b"sa"]
    for damaged in (record[:-2], record[:13], record[:13] + b"\x80", record[:13] + b"cnone\nclass\n."):
        entries[b"sa"] = damaged
        with pytest.raises(adamant.Undecodable, match="set it again or delete it"):
            cache.get("a")
        with pytest.raises(adamant.Undecodable):
            cache.pop("a")
        assert "a" in cache
    assert cache.get_or_set("a", lambda: 5) == 5 and cache["a"] == 5 and cache.check() == []


def test_entries_expire(db: adamant.Store) -> None:
    clock = Clock()
    cache = Cache(db, ttl=60, clock=clock)
    cache.set("a", 1)
    cache.set("b", 2, ttl=0.5)
    cache.set("c", 3, ttl=None)
    cache.set("d", 4, ttl=timedelta(minutes=2))
    cache.set("e", 5, ttl=float("inf"))
    assert [cache.ttl(key) for key in "abcde"] == [60.0, 0.5, None, 120.0, None]
    clock.now = 1_000.499
    assert cache["b"] == 2 and cache.expire() == 0
    clock.now = 1_000.5
    assert "b" not in cache and cache.get("b") is None and list(cache) == ["a", "c", "d", "e"]
    assert not cache.touch("b") and not cache.delete("b") and cache.pop("a") == 1
    cache.set("b", 2, ttl=1)
    assert cache.touch("b", 5) and cache.ttl("b") == 5.0 and cache.touch("d", None)
    clock.now = 1_010
    assert cache.add("b", 6, ttl=1) and cache["b"] == 6 and cache.ttl("d") is None
    clock.now = 1e6
    assert len(cache) == 4 and cache.expire() == 1 and len(cache) == 3 and cache.check() == []
    assert cache.statistics().expirations == 1
    for wrong in (-1, float("nan")):
        with pytest.raises(adamant.InvalidArgument, match="at least 0"):
            cache.set("f", 1, ttl=wrong)
    cache.set("f", 1, ttl=0)
    assert "f" not in cache and cache.check() == []


def test_numbers_are_added_to(db: adamant.Store) -> None:
    clock = Clock()
    cache = Cache(db, codec="json", clock=clock)
    assert (cache.incr("hits"), cache.incr("hits", 5), cache.decr("hits", 2)) == (1, 6, 4)
    assert cache.incr("from", 1, default=100) == 101
    with pytest.raises(KeyError, match="none"):
        cache.incr("none", default=None)
    cache.set("leased", 1, ttl=10, tags=["t"])
    assert cache.incr("leased") == 2 and cache.ttl("leased") == 10.0 and cache.evict("t") == 1
    cache["text"] = "words"
    with pytest.raises(TypeError, match="expected an int"):
        cache.incr("text")
    assert cache["text"] == "words" and cache.check() == []


def test_tags_evict(db: adamant.Store) -> None:
    cache = Cache(db)
    for number in range(2_500):
        cache.set(number, number, tags=("all", "even" if number % 2 == 0 else "odd", "all"))
    cache.set("other", 1, tags="evening")
    assert len(list(cache.tagged("even"))) == 1_250
    cache.set(0, "no more of it")
    assert cache.evict("even") == 1_249 and cache[0] == "no more of it" and cache.check() == []
    assert cache.evict("all") == 1_250 and cache.evict("all") == 0
    assert set(cache) == {0, "other"} and cache.check() == []


def test_the_bound_holds(db: adamant.Store) -> None:
    cache, clock = Cache(db, bytes_max=5_000, clock=(clock := Clock())), clock
    cache.set("short", b"x" * 100, ttl=1)
    cache.set("first", b"x" * 100)
    clock.now += 2
    for number in range(100):
        cache.set(number, b"x" * 100)
        assert cache.get("first") == b"x" * 100
        statistics = cache.statistics()
        assert statistics.bytes <= 5_000 and statistics.entries == len(cache)
    # What was over went first; what was read stayed; the others went in the order of their coming.
    assert statistics.expirations == 1 and statistics.evictions == 101 - statistics.entries
    assert [key for key in range(100) if key in cache] == list(range(100))[-statistics.entries + 1 :]
    # What is larger than all may be does not stay, nor does what it was to replace.
    assert not cache.set("first", b"x" * 5_000) and "first" not in cache
    assert cache.check() == []
    lower = Cache(db, bytes_max=1_000)
    removed = lower.cull()
    assert removed == len(range(100)[-statistics.entries + 1 :]) - len(lower) and lower.check() == []
    assert 0 < lower.statistics().bytes <= 1_000 and lower.cull() == 0
    # What one commit brings is more than one removes: others follow it.
    cache.set_many((number, b"x") for number in range(5_000))
    assert 4_900 < cache.statistics().bytes <= 5_000 and 4_999 in cache and cache.check() == []
    with cache.transact():
        for number in range(3_000):
            cache.set(number, b"y")
    assert 4_900 < cache.statistics().bytes <= 5_000 and 2_999 in cache and cache.check() == []


def test_by_the_time_of_storing(db: adamant.Store) -> None:
    cache = Cache(db, bytes_max=1_000, policy="least-recently-stored")
    for number in range(20):
        cache.set(number, b"x" * 80)
        cache.get(0)
    assert 0 not in cache and 19 in cache


def test_a_block_is_one_commit(db: adamant.Store) -> None:
    cache = Cache(db)
    cache["a"] = 1
    seen = []
    with cache.transact():
        cache["a"] = 2
        with cache.transact():
            cache.incr("b")
        assert (cache["a"], cache["b"], set(cache), len(cache)) == (2, 1, {"a", "b"}, 2)
        assert cache.get_or_set("made", lambda: 3) == 3
        reader = threading.Thread(target=lambda: seen.append((cache["a"], "b" in cache, len(cache))))
        reader.start()
        reader.join()
    assert seen == [(1, False, 1)] and cache["a"] == 2 and cache.check() == []
    with pytest.raises(ZeroDivisionError), cache.transact():
        cache["a"] = 3
        cache.evict("none")
        cache.pop("b")
        1 / 0  # noqa: B018
    assert (cache["a"], cache["b"]) == (2, 1) and cache.check() == []


def test_what_failed_in_the_store_fails_the_block(db: adamant.Store, monkeypatch: Any) -> None:
    """An error between entry and index that the block swallows must not be committed by half."""
    cache = Cache(db)

    def fail(*_: object) -> None:
        raise adamant.OutOfSpace("no room")

    with pytest.raises(adamant.Error, match="run the block again"), cache.transact():
        cache["a"] = 1
        monkeypatch.setattr("adamant.cache._index.deadline_row", fail)
        with pytest.raises(adamant.OutOfSpace):
            cache.set("b", 1, ttl=5)
    assert len(cache) == 0 and cache.check() == []


def test_options_that_cannot_be(db: adamant.Store) -> None:
    for option in ({"bytes_max": -1}, {"policy": "random"}, {"codec": "yaml"}):
        with pytest.raises(adamant.InvalidArgument):
            Cache(db, **option)
    with pytest.raises(TypeError, match="expected str as a tag"):
        Cache(db).set("a", 1, tags=[1])  # type: ignore[list-item]


def test_threads_count_right(db: adamant.Store) -> None:
    cache = Cache(db, bytes_max=20_000)
    start = threading.Barrier(4)

    def work(thread: int) -> None:
        start.wait()
        for number in range(150):
            cache.incr("all")
            cache.set((thread, number), b"x" * 100, tags=str(thread))
            cache.get((thread, number - 1))
            if number % 50 == 49:
                cache.evict(str((thread + 1) % 4))

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache["all"] == 600 and cache.check() == [] and cache.statistics().bytes <= 20_000
    assert cache.statistics().hits + cache.statistics().misses == 601


class Model(RuleBasedStateMachine):
    """Whatever is done, a bounded cache has what a dict has that is bounded so."""

    keys = st.integers(0, 12)

    def __init__(self) -> None:
        super().__init__()
        self.db = adamant.in_memory()
        self.clock = Clock()
        self.cache = Cache(self.db, bytes_max=600, clock=self.clock)
        self.known: OrderedDict[int, tuple[bytes, float | None, frozenset[str]]] = OrderedDict()

    def size(self) -> int:
        return sum(len(str(key)) + 1 + 13 + len(value) for key, (value, _, _) in self.known.items())

    def is_there(self, key: int) -> bool:
        entry = self.known.get(key)
        return entry is not None and (entry[1] is None or self.clock.now < entry[1])

    @rule(
        key=keys,
        length=st.integers(0, 200),
        ttl=st.one_of(st.none(), st.integers(1, 5)),
        tags=st.frozensets(st.sampled_from("ab")),
    )
    def set(self, key: int, length: int, ttl: int | None, tags: frozenset[str]) -> None:
        value = bytes([key]) * length
        self.cache.set(key, value, ttl, tags)
        self.known.pop(key, None)
        self.known[key] = value, None if ttl is None else self.clock.now + ttl, tags
        over = sorted(
            (entry[1], ascii(other), other)
            for other, entry in self.known.items()
            if entry[1] is not None and not self.is_there(other)
        )
        while self.size() > 600:
            del self.known[over.pop(0)[2] if over else next(iter(self.known))]

    @rule(key=keys)
    def get(self, key: int) -> None:
        found = self.cache.get(key)
        assert found == (self.known[key][0] if self.is_there(key) else None)
        if found is not None:
            self.known.move_to_end(key)

    @rule(key=keys)
    def delete(self, key: int) -> None:
        assert self.cache.delete(key) == self.is_there(key)
        self.known.pop(key, None)

    @rule(tag=st.sampled_from("ab"))
    def evict(self, tag: str) -> None:
        tagged = [key for key, (_, _, tags) in self.known.items() if tag in tags]
        assert self.cache.evict(tag) == len(tagged)
        for key in tagged:
            del self.known[key]

    @rule(seconds=st.integers(1, 3), expires=st.booleans())
    def wait(self, seconds: int, expires: bool) -> None:
        self.clock.now += seconds
        if expires:
            self.cache.expire()
            self.known = OrderedDict((key, entry) for key, entry in self.known.items() if self.is_there(key))

    @rule()
    def close_and_open(self) -> None:
        self.cache.close()
        self.cache = Cache(self.db, bytes_max=600, clock=self.clock)

    @invariant()
    def holds_the_same(self) -> None:
        assert set(self.cache) == {key for key in self.known if self.is_there(key)}
        assert self.cache.statistics()[4:] == (len(self.known), self.size())
        assert self.cache.check() == []


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=40)


def test_nothing_is_done_after_close(path: Path) -> None:
    cache = Cache(path)
    cache["a"] = 1
    assert cache.get("a") == 1
    cache.close()
    cache.close()
    for work in (lambda: cache.get("a"), lambda: cache.set("a", 2), lambda: len(cache), cache.check):
        with pytest.raises(adamant.Closed):
            work()
    with Cache(path) as again:
        assert again["a"] == 1 and "cache" in repr(again)
    assert again.store.closed
