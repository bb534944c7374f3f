"""Forks, and processes that are killed."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import adamant
import pytest


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


def in_child(work: Any) -> str:
    """Runs something in the child of a fork; what it returned or raised, in words."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            words = repr(work())
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"
        os.write(writing, words.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        words = pipe.read()
    _, status = os.waitpid(process, 0)
    assert status == 0, f"the child ended with {status}"
    return words


@forks
def test_a_forks_child_is_refused(path: Path) -> None:
    db = adamant.open(path)
    keyspace = db.keyspace("test")
    keyspace.update({b"%d" % number: b"x" * 10_000 for number in range(100)})
    db.record_changes(1 << 20)
    snapshot, transaction, batch = db.snapshot(), db.transaction(), db.batch()
    changes = db.changes()
    entries = iter(keyspace)
    next(entries)
    works: dict[str, Any] = {
        "get": lambda: keyspace[b"1"],
        "contains": lambda: b"1" in keyspace,
        "put": lambda: keyspace.__setitem__(b"1", b""),
        "len": lambda: len(keyspace),
        "next": lambda: next(entries),
        "snapshot": lambda: snapshot[keyspace],
        "transaction": lambda: transaction[keyspace],
        "batch": lambda: batch.put(keyspace, b"a", b""),
        "commit": lambda: batch.commit(),
        "stats": lambda: db.stats(),
        "refresh": lambda: db.refresh(),
        "wait_for_change": lambda: db.wait_for_change(0),
        "changes": lambda: changes.next(0),
        "check": lambda: db.check(),
        "close": lambda: db.close(),
        "backup": lambda: db.backup(path.parent / "backup"),
        "open": lambda: db.keyspace("test"),
    }
    for name, work in works.items():
        assert in_child(work).startswith("Forked: "), name

    def drop_all() -> str:
        nonlocal db, keyspace, snapshot, transaction, batch, changes, entries
        works.clear()
        del db, keyspace, snapshot, transaction, batch, changes, entries
        return "dropped"

    assert in_child(drop_all) == "'dropped'"
    # The parent has noticed nothing.
    keyspace[b"1"] = b"still here"
    assert keyspace[b"1"] == b"still here" and db.check() == []
    snapshot.close()
    db.close()


@forks
def test_a_child_opens_a_store_of_its_own(path: Path) -> None:
    with adamant.open(path) as db:
        db.keyspace("test", codec="utf-8")["who"] = "parent"

    def child() -> str:
        with adamant.open(path) as mine:
            keyspace = mine.keyspace("test", codec="utf-8")
            keyspace["child"] = "was here"
            return keyspace["who"]

    assert in_child(child) == "'parent'"
    with adamant.open(path) as db:
        assert db.keyspace("test", codec="utf-8")["child"] == "was here"


@forks
def test_a_fork_while_threads_use_the_store(path: Path) -> None:
    """A lock that a thread held at the fork stays locked in the child for ever: nobody waits for it."""
    import threading

    db = adamant.open(path, durability="buffered")
    keyspace = db.keyspace("test")
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            keyspace[b"%d" % (number % 1000)] = b"x" * 100

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(20):
            assert in_child(lambda: keyspace[b"1"]).startswith("Forked: ")
    finally:
        done.set()
        thread.join()
    db.close()


def _spawned(path: str, key: str) -> str:
    with adamant.open(path, read_only=True) as db:
        return db.keyspace("test", codec="utf-8")[key]


def test_spawned_processes_read_together(path: Path) -> None:
    with adamant.open(path) as db:
        db.keyspace("test", codec="utf-8").update({"a": "1", "b": "2"})
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.starmap(_spawned, [(str(path), "a"), (str(path), "b")])
    assert found == ["1", "2"]


def _spawned_beside(path: str, key: str) -> str:
    with adamant.open(path, beside_writer=True) as db:
        assert db.read_only
        return db.keyspace("test", codec="utf-8")[key]


def test_spawned_processes_read_beside_one_that_writes(path: Path) -> None:
    with adamant.open(path, reader_bytes_max=1 << 20) as db, multiprocessing.get_context(
        "spawn"
    ).Pool(2) as pool:
        keyspace = db.keyspace("test", codec="utf-8")
        for value in ["1", "2", "3"]:
            keyspace.update({"a": value, "b": value})
            found = pool.starmap(_spawned_beside, [(str(path), "a"), (str(path), "b")])
            assert found == [value, value]


WRITER = """
    import sys
    import adamant

    db = adamant.open(sys.argv[1], durability=sys.argv[2])
    numbers = db.keyspace("numbers", engine=sys.argv[3])
    squares = db.keyspace("squares")
    number = len(numbers)
    while True:
        with db.batch() as batch:
            batch.put(numbers, b"%08d" % number, b"x" * (number % 300))
            batch.put(squares, b"%08d" % number, b"%d" % (number * number))
        number += 1
        print(number, flush=True)
"""


@pytest.mark.parametrize("durability", ["sync", "buffered"])
def test_killed_processes_leave_what_they_were_told_is_there(
    path: Path, engine: str, durability: str
) -> None:
    told = 0
    for rounds in (1, 40, 150):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(path), durability, engine],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        for _ in range(rounds):
            told = int(writer.stdout.readline())
        writer.kill()
        told = max([told, *(int(line) for line in writer.stdout.read().split("\n")[:-1])])
        writer.wait()
        with adamant.open(path) as db:
            numbers, squares = db.keyspace("numbers"), db.keyspace("squares")
            count = len(numbers)
            # All that it was told, in both keyspaces, and at most the one that was being made.
            assert told <= count <= told + 1
            assert [int(key) for key in numbers] == list(range(count))
            assert squares == {b"%08d" % n: b"%d" % (n * n) for n in range(count)}
            assert db.check() == []
