"""Transactions, batches, and running again after a conflict."""

from __future__ import annotations

import errno
import threading
from datetime import timedelta
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


def test_run_ends_alone_or_at_a_limit(db: adamant.Store) -> None:
    stock = db.keyspace("stock")
    attempts: list[int] = []

    def lose(transaction: adamant.Transaction) -> int:
        attempts.append(transaction.attempt)
        transaction[stock].get(b"apples")
        try:
            stock[b"apples"] = b"theirs"
        except adamant.Error as error:
            assert "exclusive" in str(error)
        transaction[stock][b"apples"] = b"mine"
        return transaction.attempt

    assert db.run(lose) == 9 and attempts == list(range(1, 10)) and stock[b"apples"] == b"mine"
    assert db.run(lose, exclusive_after=2, durability="buffered") == 3
    cases: tuple[tuple[dict[str, Any], int], ...] = (
        ({"attempts": 1}, 1),
        ({"attempts": 5}, 5),
        ({"exclusive_after": None}, 100),
        ({"exclusive_after": None, "attempts": 12}, 12),
        ({"timeout": 0}, 1),
    )
    for limits, expected in cases:
        attempts.clear()
        with pytest.raises(adamant.Conflict):
            db.run(lose, **limits)
        assert len(attempts) == expected and stock[b"apples"] == b"theirs"
    wrongs: tuple[dict[str, Any], ...] = (
        {"attempts": 0},
        {"exclusive_after": 0},
        {"timeout": -1},
        {"durability": "never"},
    )
    for wrong in wrongs:
        with pytest.raises(adamant.InvalidArgument):
            db.run(lose, **wrong)
    with pytest.raises(TypeError):
        db.run(lose, timeout="soon")  # type: ignore[arg-type]


def test_what_run_lends_ends_with_it(db: adamant.Store) -> None:
    stock = db.keyspace("stock")
    kept: list[adamant.Transaction] = []

    def keep(transaction: adamant.Transaction) -> None:
        kept.append(transaction)
        transaction[stock][b"pears"] = b"1"

    db.run(keep)
    db.exclusive(keep)
    for transaction in kept:
        assert transaction.closed
        for work in (transaction.commit, lambda: transaction.attempt):
            with pytest.raises(adamant.Closed):
                work()

    def end(transaction: adamant.Transaction) -> str:
        transaction[stock][b"pears"] = b"2"
        transaction.rollback()
        return "nothing of it"

    assert db.run(end) == "nothing of it" and stock[b"pears"] == b"1"
    with db.transaction() as transaction:
        assert transaction.attempt == 1


def test_exclusive(db: adamant.Store) -> None:
    stock = db.keyspace("stock")
    stock[b"apples"] = b"1"
    outcomes: list[object] = []

    def beside() -> None:
        for timeout in (0, 0.02, timedelta(milliseconds=1)):
            try:
                outcomes.append(db.exclusive(lambda transaction: 1 / 0, timeout=timeout))
            except adamant.TimedOut as error:
                assert isinstance(error, TimeoutError) and error.errno == errno.ETIMEDOUT
                outcomes.append(error)

    def only(transaction: adamant.Transaction) -> int:
        thread = threading.Thread(target=beside)
        thread.start()
        thread.join()
        with pytest.raises(adamant.Error, match="exclusive"):
            stock[b"apples"] = b"?"
        with pytest.raises(adamant.Error, match="exclusive"):
            db.exclusive(only)
        number = int(transaction[stock][b"apples"]) + 1
        transaction[stock][b"apples"] = b"%d" % number
        return number

    assert db.exclusive(only) == 2 and stock[b"apples"] == b"2" and len(outcomes) == 3
    with pytest.raises(ZeroDivisionError):
        db.exclusive(lambda transaction: 1 / 0, timeout=60)
    assert db.exclusive(lambda transaction: dict(transaction[stock]), timeout=0) == {b"apples": b"2"}
    with pytest.raises(adamant.InvalidArgument):
        db.exclusive(only, timeout=float("nan"))


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
