"""Entries that end, by clocks that the tests set."""

from __future__ import annotations

import datetime
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adamant
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule


@pytest.fixture
def db(path: Path) -> Iterator[adamant.Store]:
    """A store whose entries expire by the clocks of the tests alone."""
    with adamant.open(path, durability="buffered", sweep_expired=False) as store:
        yield store


class Clock:
    """Says what it was told."""

    def __init__(self, millis: int = 1_000_000) -> None:
        self.millis = millis

    def __call__(self) -> float:
        return self.millis / 1000


def test_an_entry_is_there_until_its_deadline(db: adamant.Store, engine: Any) -> None:
    clock = Clock()
    sessions: Any = db.expiring("sessions", codec="utf-8", engine=engine, clock=clock)
    sessions.put("ada", "1", ttl=30)
    sessions.put("bob", "2", deadline=1_015.5)
    sessions["root"] = "3"
    assert dict(sessions) == {"ada": "1", "bob": "2", "root": "3"} and len(sessions) == 3
    assert (sessions.ttl("ada"), sessions.deadline("ada")) == (30.0, 1_030.0)
    assert (sessions.ttl("bob"), sessions.deadline("bob")) == (15.5, 1_015.5)
    assert (sessions.ttl("root"), sessions.deadline("root")) == (None, None)
    assert sessions.next_deadline() == 1_015.5 and sessions.purge() == 0

    clock.millis = 1_015_499
    assert sessions["bob"] == "2" and sessions.ttl("bob") == 0.001
    clock.millis = 1_015_500
    works: list[Any] = [
        lambda: sessions["bob"],
        lambda: sessions.ttl("bob"),
        lambda: sessions.deadline("bob"),
        lambda: sessions.__delitem__("bob"),
        lambda: sessions.pop("bob"),
    ]
    for work in works:
        with pytest.raises(KeyError, match="bob"):
            work()
    assert "bob" not in sessions and sessions.get("bob") is None and sessions.lend("bob") is None
    assert list(sessions) == ["ada", "root"] == [key for key, _ in sessions.items()]
    assert not sessions.persist("bob") and not sessions.set_deadline("bob", ttl=5)
    assert sessions.set_deadline("ada", ttl=datetime.timedelta(milliseconds=1500))
    assert sessions.deadline("ada") == 1_017.0
    assert sessions.persist("ada") and sessions.ttl("ada") is None
    clock.millis = 9_000_000
    assert (sessions.first(), sessions.last()) == (("ada", "1"), ("root", "3"))
    # As every assignment: what was set to end does not, when it is set again.
    sessions.put("ada", "1", ttl=1)
    sessions["ada"] = "2"
    assert sessions.ttl("ada") is None and sessions.next_deadline() is None


def test_times_of_all_kinds(db: adamant.Store) -> None:
    clock = Clock()
    entries: Any = db.expiring("entries", clock=clock)
    end = datetime.datetime(2040, 5, 6, 7, 8, 9, 123_000, tzinfo=datetime.UTC)
    entries.put(b"a", b"", deadline=end)
    assert entries.deadline(b"a") == end.timestamp()
    assert datetime.datetime.fromtimestamp(entries.deadline(b"a"), datetime.UTC) == end
    for millis in (1, 999, 1_000_001, 1_700_000_000_001, 253_402_300_799_999):
        clock.millis = 0
        entries.put(b"a", b"", deadline=millis / 1000)
        found = entries.deadline(b"a")
        assert round(found * 1000) == millis
        entries.set_deadline(b"a", deadline=found)
        assert entries.deadline(b"a") == found
    clock.millis = 1_000_000
    for over in ({"ttl": 0}, {"deadline": -1}, {"deadline": 1000}):
        entries.put(b"a", b"", **over)
        assert b"a" not in entries
    entries.put(b"a", b"", ttl=float("inf"))
    assert entries.ttl(b"a") > 1e15
    for given, words in (
        ({"ttl": float("nan")}, "nan"),
        ({"ttl": 1.0, "deadline": 2.0}, "not both"),
    ):
        with pytest.raises(adamant.InvalidArgument, match=words):
            entries.put(b"a", b"", **given)
    with pytest.raises(adamant.InvalidArgument, match="persist"):
        entries.set_deadline(b"a")
    kinds: list[dict[str, Any]] = [
        {"ttl": "1"},
        {"deadline": b"1"},
        {"ttl": end},
        {"deadline": datetime.timedelta(1)},
    ]
    for kind in kinds:
        with pytest.raises(TypeError):
            entries.put(b"a", b"", **kind)
    with pytest.raises(TypeError):
        entries.put(b"a", b"", 5)


def test_by_the_clock_of_the_system(db: adamant.Store) -> None:
    entries = db.expiring("entries")
    before = time.time()
    entries.put(b"a", b"", ttl=3600)
    entries.put(b"b", b"", deadline=before - 1)
    end, left = entries.deadline(b"a"), entries.ttl(b"a")
    assert end is not None and before + 3599 < end < time.time() + 3601
    assert left is not None and 0 <= left <= 3600
    assert list(entries) == [b"a"] and entries.purge() == 1


def test_a_thread_removes_what_expires(path: Path) -> None:
    with adamant.open(path) as db:
        entries = db.expiring("entries")
        entries.put(b"a", b"", ttl=0.05)
        entries[b"b"] = b""
        until = time.monotonic() + 60
        while entries.next_deadline() is not None:
            assert time.monotonic() < until
            time.sleep(0.01)
        assert list(entries) == [b"b"] and entries.purge() == 0


def test_a_clock_that_fails(db: adamant.Store) -> None:
    def fail() -> float:
        raise OSError("no clock")

    entries: Any = db.expiring("entries", clock=fail)
    for work in (lambda: entries.get(b"a"), lambda: entries.put(b"a", b""), lambda: list(entries)):
        with pytest.raises(OSError, match="no clock"):
            work()
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda: "noon", TypeError),
        (lambda: float("nan"), adamant.InvalidArgument),
    ]
    for clock, error in wrong:
        with pytest.raises(error):
            db.expiring("entries", clock=clock).get(b"a")


def test_what_holds_other_entries_is_refused(path: Path) -> None:
    db: Any = adamant.in_memory()
    plain = db.keyspace("plain")
    plain[b"a"] = b"1"
    with pytest.raises(adamant.NotExpiring, match="plain"):
        db.expiring("plain")
    entries = db.expiring("entries", engine="lsm")
    entries[b"a"] = b"1"
    with pytest.raises(adamant.WrongEngine):
        db.expiring("entries", engine="btree")
    assert [info.name for info in db.keyspaces()] == ["entries", "entries.deadlines", "plain"]
    works: list[Any] = [
        lambda: db.batch().put(entries, b"a", b""),
        lambda: db.snapshot()[db.snapshot()[entries]],
        lambda: db.snapshot()[db.transaction()[entries]],
        lambda: db.transaction()[db.transaction()[entries]],
    ]
    for work in works:
        with pytest.raises(TypeError):
            work()
    assert db.drop_expiring("entries") and not db.drop_expiring("entries")
    with pytest.raises(adamant.KeyspaceDropped):
        entries[b"a"]
    with pytest.raises(adamant.InvalidArgument, match="65527|65,527"):
        db.expiring("entries")[b"k" * 65_528] = b""

    with adamant.open(path) as store:
        store.expiring("entries").put(b"a", b"1", ttl=3600)
    with adamant.open(path, read_only=True) as store:
        assert dict(store.expiring("entries")) == {b"a": b"1"}
        with pytest.raises(adamant.ReadOnly):
            store.expiring("entries")[b"b"] = b"1"
        with pytest.raises(adamant.UnknownKeyspace):
            store.expiring("others")


def test_snapshots_and_transactions(db: adamant.Store, engine: Any) -> None:
    clock = Clock()
    leases = db.expiring("leases", engine=engine, clock=clock)
    log = db.keyspace("log")
    leases.put(b"printer", b"ada", ttl=10)
    leases[b"door"] = b"bob"
    with db.snapshot() as before:
        leases.clear()
        seen = before[leases]
        assert dict(seen) == {b"door": b"bob", b"printer": b"ada"} and len(seen) == 2
        assert (seen.ttl(b"printer"), seen.deadline(b"printer")) == (10.0, 1_010.0)
        assert seen.ttl(b"door") is None and b"printer" in seen and not leases
        clock.millis += 10_000
        # It was asked for before; who asks now sees that time has gone on.
        assert b"printer" in seen and list(before[leases]) == [b"door"]
        with pytest.raises(KeyError):
            before[leases].deadline(b"printer")

    with db.transaction() as transaction:
        mine = transaction[leases]
        mine.put(b"printer", b"bob", ttl=5)
        mine[b"window"] = b"eve"
        transaction[log][b"1"] = b"bob has the printer"
        assert isinstance(mine, adamant.TransactionExpiring)
        assert mine.deadline(b"printer") == 1_015.0 == mine.next_deadline()
        assert list(mine) == [b"printer", b"window"] and mine[b"printer":b"q"] == {b"printer": b"bob"}
        clock.millis += 60_000
        assert b"printer" in mine, "a transaction sees one time"
        assert mine.popitem() == (b"window", b"eve") and len(mine) == 1
        assert not leases and b"printer" not in transaction[leases]
    assert not leases and log[b"1"] and leases.purge() == 1

    one, other = db.transaction(), db.transaction()
    one[leases].put(b"printer", b"one", ttl=5)
    other[leases].put(b"printer", b"other", ttl=5)
    one.commit()
    with pytest.raises(adamant.Conflict):
        other.commit()
    with pytest.raises(ZeroDivisionError):
        with db.transaction() as transaction:
            transaction[leases].clear()
            1 / 0
    assert leases[b"printer"] == b"one"


def test_changes_are_one_commit_each(db: adamant.Store) -> None:
    entries = db.expiring("entries", clock=Clock())

    def commits() -> int:
        return int(db.stats()["commits"]["commits"])

    before = commits()
    entries.update({b"%03d" % number: b"" for number in range(500)})
    assert commits() == before + 1
    for number in range(500):
        entries.put(b"%03d" % number, b"", ttl=0 if number % 2 else 50)
    before = commits()
    assert entries.purge(100) == 100 and entries.purge() == 150 and entries.purge() == 0
    assert commits() == before + 2 and len(entries) == 250
    del entries[b"100":b"200"]
    assert commits() == before + 3 and len(entries) == 200


def test_threads_take_each_entry_once(db: adamant.Store) -> None:
    entries = db.expiring("entries", durability="buffered")
    entries.update({b"%03d" % number: b"" for number in range(200)})
    taken: list[bytes] = []

    def take() -> None:
        while True:
            try:
                taken.append(entries.popitem()[0])
            except KeyError:
                return

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [b"%03d" % number for number in range(200)] and not entries


keys = st.sampled_from([b"a", b"b", b"c", b"d", b"\xff" * 40])
values = st.binary(max_size=20) | st.just(b"v" * 5000)
# Milliseconds from now.
spans = st.none() | st.integers(-5, 60)


class ExpiringMachine(RuleBasedStateMachine):
    """Any operations in any order beside a dict, while time goes on; reopened in between."""

    engine = "bplus"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = Clock()
        self.stored: dict[bytes, tuple[bytes, int | None]] = {}
        self.open()

    def open(self) -> None:
        self.db = adamant.open(self.folder / "store", durability="buffered", sweep_expired=False)
        db: Any = self.db
        self.entries: Any = db.expiring("test", engine=self.engine, clock=self.clock)
        self.snapshot: tuple[adamant.Snapshot, dict[bytes, tuple[bytes, int | None]]] | None = None

    def teardown(self) -> None:
        self.close_snapshot()
        assert self.db.check() == []
        self.db.close()
        shutil.rmtree(self.folder)

    def living(self, stored: dict[bytes, tuple[bytes, int | None]]) -> dict[bytes, bytes]:
        now = self.clock.millis
        return {key: value for key, (value, end) in sorted(stored.items()) if end is None or end > now}

    def end(self, span: int | None) -> int | None:
        return None if span is None else self.clock.millis + span

    @rule(key=keys, value=values, span=spans, by_ttl=st.booleans())
    def set(self, key: bytes, value: bytes, span: int | None, by_ttl: bool) -> None:
        end = self.end(span)
        if end is None:
            self.entries[key] = value
        elif by_ttl and span is not None and span >= 0:
            self.entries.put(key, value, ttl=span / 1000)
        else:
            self.entries.put(key, value, deadline=end / 1000)
        self.stored[key] = (value, end)

    @rule(key=keys, span=spans)
    def set_deadline(self, key: bytes, span: int | None) -> None:
        end = self.end(span)
        is_there = key in self.living(self.stored)
        if end is None:
            assert self.entries.persist(key) == is_there
        else:
            assert self.entries.set_deadline(key, deadline=end / 1000) == is_there
        if is_there:
            self.stored[key] = (self.stored[key][0], end)

    @rule(key=keys)
    def pop(self, key: bytes) -> None:
        assert self.entries.pop(key, None) == self.living(self.stored).get(key)
        self.stored.pop(key, None)

    @rule(key=keys, value=values)
    def setdefault(self, key: bytes, value: bytes) -> None:
        before = self.living(self.stored).get(key)
        assert self.entries.setdefault(key, value) == (value if before is None else before)
        if before is None:
            self.stored[key] = (value, None)

    @rule(start=st.none() | keys, stop=st.none() | keys)
    def remove_range(self, start: bytes | None, stop: bytes | None) -> None:
        del self.entries[start:stop]
        for key in self.living(self.stored):
            if (start is None or key >= start) and (stop is None or key < stop):
                del self.stored[key]

    @rule()
    def purge(self) -> None:
        living = self.living(self.stored)
        assert self.entries.purge() == len(self.stored) - len(living)
        self.stored = {key: self.stored[key] for key in living}

    @rule(millis=st.integers(1, 40))
    def wait(self, millis: int) -> None:
        self.clock.millis += millis

    @rule(key=keys, value=values, span=spans, commits=st.booleans())
    def transact(self, key: bytes, value: bytes, span: int | None, commits: bool) -> None:
        end = self.end(span)
        with self.db.transaction() as transaction:
            within = transaction[self.entries]
            assert within.get(key) == self.living(self.stored).get(key)
            within.put(key, value, deadline=None if end is None else end / 1000)
            changed = {**self.stored, key: (value, end)}
            assert list(within.items()) == list(self.living(changed).items())
            if not commits:
                transaction.rollback()
        if commits:
            self.stored = changed

    @precondition(lambda self: self.snapshot is None)
    @rule()
    def open_snapshot(self) -> None:
        self.snapshot = (self.db.snapshot(), dict(self.stored))

    @rule()
    def close_snapshot(self) -> None:
        if self.snapshot is not None:
            snapshot, stored = self.snapshot
            self.snapshot = None
            seen = snapshot[self.entries]
            assert list(seen.items()) == list(self.living(stored).items())
            assert list(reversed(seen)) == list(self.living(stored))[::-1]
            assert len(seen) == len(self.living(stored))
            snapshot.close()

    @rule(close=st.booleans())
    def reopen(self, close: bool) -> None:
        self.close_snapshot()
        if close:
            self.db.close()
        else:
            # The last handle of the store closes it.
            del self.db, self.entries
        self.open()

    @invariant()
    def is_what_was_set(self) -> None:
        living = self.living(self.stored)
        assert dict(self.entries) == living and list(self.entries) == list(living)
        assert len(self.entries) == len(living) and bool(self.entries) == bool(living)
        for key in living:
            end = self.stored[key][1]
            found = self.entries.deadline(key)
            assert (None if found is None else round(found * 1000)) == end


def case(name: str) -> Any:
    machine: Any = type(f"Machine_{name}", (ExpiringMachine,), {"engine": name})
    test: Any = machine.TestCase
    test.settings = settings(max_examples=12, stateful_step_count=30)
    return test


TestBplus = case("bplus")
TestLsm = case("lsm")
TestCritbit = case("critbit")


def test_times_that_say_too_little_are_refused(db: adamant.Store) -> None:
    sessions = db.expiring("sessions")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    naive = datetime.datetime(2100, 1, 1)
    for ttl in (-1, -0.001, datetime.timedelta(seconds=-1), float("-inf")):
        with pytest.raises(adamant.InvalidArgument, match="at least 0"):
            sessions.put(b"key", b"value", ttl=ttl)
        with pytest.raises(adamant.InvalidArgument, match="at least 0"):
            sessions.set_deadline(b"key", ttl=ttl)
    for place in (sessions, db.transaction()[sessions]):
        with pytest.raises(adamant.InvalidArgument, match="without a zone"):
            place.put(b"key", b"value", deadline=naive)
    clock: Any = datetime.datetime.now
    with pytest.raises(adamant.InvalidArgument, match="without a zone"):
        db.expiring("sessions", clock=clock).put(b"key", b"value", ttl=1)
    assert b"key" not in sessions
    # What is over at once is no mistake, and neither is a deadline that has gone by.
    sessions.put(b"key", b"value", ttl=0)
    sessions.put(b"key", b"value", deadline=-1)
    assert b"key" not in sessions
    sessions.put(b"key", b"value", deadline=naive.replace(tzinfo=zone))
    assert sessions.deadline(b"key") == naive.replace(tzinfo=zone).timestamp()
