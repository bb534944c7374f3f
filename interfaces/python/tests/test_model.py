"""Any operations in any order, beside a dict and a sorted list; reopened in between."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import adamant
import pytest
from conftest import ENGINES
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

keys = st.binary(min_size=1, max_size=3) | st.sampled_from([b"a", b"a\x00", b"b", b"\xff" * 40])
values = st.binary(max_size=30) | st.integers(0, 3).map(lambda n: bytes([n]) * 5000)
bounds = st.none() | keys


class StoreMachine(RuleBasedStateMachine):
    engine = "bplus"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: dict[bytes, bytes] = {}
        self.snapshots: list[tuple[adamant.Snapshot, dict[bytes, bytes]]] = []
        self.open()

    def open(self) -> None:
        self.db = adamant.open(self.folder / "store", durability="buffered")
        self.keyspace: Any = self.db.keyspace("test", engine=self.engine)  # type: ignore[call-overload]

    def teardown(self) -> None:
        self.close_snapshots()
        assert self.db.check() == []
        self.db.close()
        shutil.rmtree(self.folder)

    def close_snapshots(self) -> None:
        while self.snapshots:
            snapshot, model = self.snapshots.pop()
            assert dict(snapshot[self.keyspace]) == model
            snapshot.close()

    @rule(key=keys, value=values)
    def put(self, key: bytes, value: bytes) -> None:
        self.keyspace[key] = value
        self.model[key] = value

    @rule(key=keys)
    def discard(self, key: bytes) -> None:
        assert self.keyspace.discard(key) == (self.model.pop(key, None) is not None)

    @rule(key=keys, value=values)
    def setdefault(self, key: bytes, value: bytes) -> None:
        assert self.keyspace.setdefault(key, value) == self.model.setdefault(key, value)

    @rule(key=keys)
    def pop(self, key: bytes) -> None:
        assert self.keyspace.pop(key, None) == self.model.pop(key, None)

    @rule(start=bounds, stop=bounds)
    def remove_range(self, start: bytes | None, stop: bytes | None) -> None:
        del self.keyspace[start:stop]
        for key in self.within(start, stop):
            del self.model[key]

    @rule(changes=st.lists(st.tuples(keys, st.none() | values), max_size=8))
    def batch(self, changes: list[tuple[bytes, bytes | None]]) -> None:
        with self.db.batch() as batch:
            for key, value in changes:
                if value is None:
                    batch.delete(self.keyspace, key)
                else:
                    batch.put(self.keyspace, key, value)
        self.change(self.model, changes)

    @rule(changes=st.lists(st.tuples(keys, st.none() | values), max_size=8), commits=st.booleans())
    def transact(self, changes: list[tuple[bytes, bytes | None]], commits: bool) -> None:
        model = dict(self.model)
        with self.db.transaction() as transaction:
            within = transaction[self.keyspace]
            for key, value in changes:
                assert within.get(key) == model.get(key)
                if value is None:
                    within.delete(key)
                else:
                    within[key] = value
                self.change(model, [(key, value)])
            assert list(within.items()) == sorted(model.items())
            if not commits:
                transaction.rollback()
        if commits:
            self.model = model

    @precondition(lambda self: len(self.snapshots) < 3)
    @rule()
    def snapshot(self) -> None:
        self.snapshots.append((self.db.snapshot(), dict(self.model)))

    @rule()
    def clear(self) -> None:
        self.keyspace.clear()
        self.model.clear()

    @rule(close=st.booleans())
    def reopen(self, close: bool) -> None:
        self.close_snapshots()
        if close:
            self.db.close()
        else:
            # The last handle of the store closes it.
            del self.db, self.keyspace
        self.open()

    @rule(start=bounds, stop=bounds, reverse=st.booleans())
    def scan(self, start: bytes | None, stop: bytes | None, reverse: bool) -> None:
        found = self.keyspace.items(start=start, stop=stop, reverse=reverse)
        expected = [(key, self.model[key]) for key in self.within(start, stop)]
        assert list(found) == (expected[::-1] if reverse else expected)
        for snapshot, model in self.snapshots:
            found = snapshot[self.keyspace].items(start=start, stop=stop, reverse=reverse)
            expected = [(key, model[key]) for key in self.within(start, stop, model)]
            assert list(found) == (expected[::-1] if reverse else expected)

    @rule(key=keys)
    def lend(self, key: bytes) -> None:
        for snapshot, model in self.snapshots:
            lent = snapshot[self.keyspace].lend(key)
            assert (None if lent is None else bytes(lent)) == model.get(key)

    @invariant()
    def counts(self) -> None:
        assert len(self.keyspace) == len(self.model)

    def within(
        self, start: bytes | None, stop: bytes | None, model: dict[bytes, bytes] | None = None
    ) -> list[bytes]:
        return sorted(
            key
            for key in (self.model if model is None else model)
            if (start is None or key >= start) and (stop is None or key < stop)
        )

    @staticmethod
    def change(model: dict[bytes, bytes], changes: list[tuple[bytes, bytes | None]]) -> None:
        for key, value in changes:
            if value is None:
                model.pop(key, None)
            else:
                model[key] = value


def case(name: str) -> Any:
    machine: Any = type(f"Machine_{name}", (StoreMachine,), {"engine": name})
    test: Any = machine.TestCase
    test.settings = settings(max_examples=12, stateful_step_count=30)
    return test


TestBplus = case("bplus")
TestLsm = case("lsm")
TestBtree = case("btree")
TestCritbit = case("critbit")
TestRedblack = case("redblack")


def test_all_engines_have_a_machine() -> None:
    assert {name.lower() for name in ("Bplus", "Lsm", "Btree", "Critbit", "Redblack")} == set(ENGINES)
    with pytest.raises(adamant.InvalidArgument, match="bplus, btree, critbit, redblack, lsm"):
        adamant.in_memory().keyspace("test", engine="other")  # type: ignore[call-overload]
