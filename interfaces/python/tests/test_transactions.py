"""Transactions, batches, and running again after a conflict."""

from __future__ import annotations

from typing import Any

import adamant
import pytest


def test_a_transaction_happens_as_one_or_not_at_all(db: adamant.Store, engine: Any) -> None:
    accounts = db.keyspace("accounts", engine=engine)
    log = db.keyspace("log", codec="utf-8")
    accounts.update({b"ada": b"100", b"bob": b"0"})
    with db.transaction() as transaction:
        transaction[accounts][b"ada"] = b"90"
        transaction[accounts][b"bob"] = b"10"
        transaction[log]["1"] = "ada gave bob 10"
        assert accounts[b"ada"] == b"100" and not log
    assert (accounts[b"ada"], accounts[b"bob"], dict(log)) == (b"90", b"10", {"1": "ada gave bob 10"})

    with pytest.raises(ZeroDivisionError):
        with db.transaction() as transaction:
            del transaction[accounts][b"ada"]
            1 / 0
    assert accounts[b"ada"] == b"90"
    assert transaction.closed
    with pytest.raises(adamant.Closed, match="transaction was committed or rolled back"):
        transaction[accounts][b"ada"]
    with pytest.raises(adamant.Closed):
        transaction.commit()
    transaction.rollback()


def test_who_comes_second_gets_a_conflict(db: adamant.Store, engine: Any) -> None:
    stock = db.keyspace("stock", engine=engine)
    stock[b"apples"] = b"1"
    one, other = db.transaction(), db.transaction()
    for transaction in (one, other):
        assert transaction[stock].pop(b"apples") == b"1"
    one.commit()
    with pytest.raises(adamant.Conflict, match="Store.run"):
        other.commit()
    assert other.closed and db.stats()["commits"]["conflicts"] == 1

    # What comes into a range that was walked over is a conflict too; what nobody looked at is none.
    stock.update({b"b1": b"", b"b2": b"", b"c1": b""})
    with pytest.raises(adamant.Conflict):
        with db.transaction() as transaction:
            count = len(transaction[stock].keys(prefix=b"b"))
            stock[b"b3"] = b""
            transaction[stock][b"count"] = b"%d" % count
    with db.transaction() as transaction:
        count = len(transaction[stock].keys(prefix=b"b"))
        stock[b"c2"] = b""
        transaction[stock][b"count"] = b"%d" % count
    assert stock[b"count"] == b"3"


def test_run_goes_on_until_it_succeeds(db: adamant.Store) -> None:
    counters = db.keyspace("counters")
    counters[b"n"] = b"0"
    rounds = 0

    def add(transaction: adamant.Transaction) -> int:
        nonlocal rounds
        rounds += 1
        number = int(transaction[counters][b"n"]) + 1
        if rounds < 4:
            # Somebody else is faster.
            counters[b"n"] = b"%d" % (10 * rounds)
        transaction[counters][b"n"] = b"%d" % number
        return number

    assert db.run(add) == 31 and counters[b"n"] == b"31" and rounds == 4
    rounds = 0
    with pytest.raises(adamant.Conflict):
        db.run(add, attempts=2)
    assert rounds == 2
    with pytest.raises(adamant.InvalidArgument):
        db.run(add, attempts=0)

    def fail(transaction: adamant.Transaction) -> None:
        transaction[counters][b"n"] = b"?"
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        db.run(fail)
    assert counters[b"n"] != b"?"


def test_batches(db: adamant.Store) -> None:
    one, other = db.keyspace("one", engine="lsm"), db.keyspace("other", codec="utf-8")
    with db.batch() as batch:
        batch.put(one, b"a", b"1")
        batch.update(other, {"b": "2", "c": "3"})
        batch.delete(other, "c")
        assert len(batch) == 4 and not one and not other
    assert (dict(one), dict(other)) == ({b"a": b"1"}, {"b": "2"})
    assert batch.closed
    for work in (batch.commit, lambda: batch.put(one, b"a", b"")):
        with pytest.raises(adamant.Closed, match="batch was committed"):
            work()
    with pytest.raises(ZeroDivisionError):
        with db.batch() as batch:
            batch.put(one, b"z", b"")
            1 / 0
    assert b"z" not in one and batch.closed
    with db.batch(durability="buffered") as batch:
        batch.rename(one, b"a", b"b")
        batch.move_to(one, b"b", other, "moved")
    assert not one and other["moved"] == "1"
    with adamant.in_memory() as stranger, pytest.raises(adamant.InvalidArgument, match="another"):
        batch = db.batch()
        batch.put(stranger.keyspace("one"), b"a", b"")
