"""Snapshots, and values that are lent and not copied."""

from __future__ import annotations

import gc
from typing import Any

import adamant
import pytest


def test_a_snapshot_sees_one_moment_of_all_keyspaces(db: adamant.Store, engine: Any) -> None:
    one, other = db.keyspace("one", engine=engine), db.keyspace("other")
    one[b"a"] = other[b"a"] = b"before"
    with db.snapshot() as snapshot:
        entries = iter(snapshot[one].items())
        one.update({b"a": b"after", b"b": b"new"})
        db.drop_keyspace("other")
        assert dict(snapshot[one]) == dict(snapshot[other]) == {b"a": b"before"}
        assert snapshot[one][b"a":] == {b"a": b"before"} and len(snapshot[one]) == 1
        assert b"b" not in snapshot[one] and snapshot[one].get(b"b", b"none") == b"none"
        assert next(entries) == (b"a", b"before")
        assert not snapshot.closed
    assert snapshot.closed
    snapshot.close()
    for work in (
        lambda: snapshot[one][b"a"],
        lambda: list(entries),
        lambda: len(snapshot[one]),
        lambda: list(snapshot[one]),
    ):
        with pytest.raises(adamant.Closed, match="snapshot was closed"):
            work()
    with db.snapshot(durable=True) as snapshot:
        assert len(snapshot[one]) == 2


def test_snapshots_can_expire(path: Any) -> None:
    with adamant.open(path, snapshot_bytes_max=1 << 20) as db:
        keyspace = db.keyspace("test")
        keyspace.update({b"%d" % number: b"x" * 4000 for number in range(600)})
        with db.snapshot() as snapshot:
            keyspace.update({b"%d" % number: b"y" * 4000 for number in range(600)})
            with pytest.raises(adamant.SnapshotExpired, match="snapshot_bytes_max"):
                dict(snapshot[keyspace])


@pytest.mark.parametrize("length", [0, 1, 20, 4096, 4097, 1 << 20])
def test_values_are_lent(db: adamant.Store, engine: Any, length: int) -> None:
    keyspace = db.keyspace("test", engine=engine)
    value = bytes(number * 7 % 251 for number in range(length))
    keyspace[b"key"] = value
    with db.snapshot() as snapshot:
        keyspace[b"key"] = b"x" * length
        lent = snapshot[keyspace].lend(b"key")
        assert snapshot[keyspace].lend(b"none") is None
    assert lent is not None
    assert lent.readonly and lent.contiguous and lent.format == "B" and lent.nbytes == length
    # It stays what it is, whatever becomes of the snapshot, the key and the keyspace.
    keyspace.clear()
    keyspace.update({b"%d" % number: b"z" * length for number in range(20)})
    gc.collect()
    assert lent == value
    part = lent[length // 2 :]
    lent.release()
    assert part == value[length // 2 :]
    with pytest.raises((TypeError, ValueError)):
        part[:1] = b"!"


def test_a_large_value_is_not_copied(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keyspace[b"key"] = b"v" * (1 << 20)
    before = db.stats()["heap"]["quarantined"]
    lent = keyspace.lend(b"key")
    assert lent is not None
    del keyspace[b"key"]
    # The block that was freed waits for its view.
    assert db.stats()["heap"]["quarantined"] > before
    assert bytes(lent[:3]) == b"vvv"
    lent.release()


def test_what_is_kept_for_an_older_snapshot_costs_a_newer_one_nothing(
    db: adamant.Store, engine: Any
) -> None:
    keyspace, other = db.keyspace("test", engine=engine), db.keyspace("other")
    expiring = db.expiring("expiring", engine=engine)
    keyspace.update({b"%06d" % number: b"v" for number in range(5_001)})
    for number in range(1_001):
        expiring.put(b"%06d" % number, b"v", ttl=1e6)

    def walked() -> int:
        return int(db.stats()["commits"]["versions_walked"])

    with db.snapshot() as older:
        del keyspace[: b"%06d" % 5_000]
        for number in range(1_000):
            del expiring[b"%06d" % number]
        before = walked()
        with db.transaction() as transaction:
            assert list(transaction[keyspace]) == [b"005000"]
            assert next(iter(reversed(transaction[keyspace]))) == b"005000"
            assert list(transaction[expiring]) == [b"001000"]
            transaction[other][b"k"] = b"v"
        with db.snapshot() as newer:
            assert len(newer[keyspace]) == len(list(newer[keyspace])) == 1
            assert list(newer[expiring]) == [b"001000"]
        assert walked() == before
        assert len(list(older[keyspace])) == 5_001 and len(list(older[expiring])) == 1_001
