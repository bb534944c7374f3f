"""Threads: none waits for the store while it keeps others from running."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adamant
import pytest


def together(*works: Callable[[], None]) -> None:
    """Runs all at once, and raises what one of them raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_counters_lose_nothing(db: adamant.Store, engine: Any) -> None:
    counters = db.keyspace("counters", engine=engine)
    counters[b"n"] = b"0"
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def add(transaction: adamant.Transaction) -> None:
        within = transaction[counters]
        within[b"n"] = b"%d" % (int(within[b"n"]) + 1)

    def many() -> None:
        for _ in range(100):
            db.run(add)

    try:
        together(*[many] * 4)
    finally:
        sys.setswitchinterval(interval)
    assert counters[b"n"] == b"400"


def test_setdefault_and_pop_have_one_winner(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine)
    won: list[bytes] = []
    popped: list[bytes] = []
    barrier = threading.Barrier(4)

    def one(name: bytes) -> None:
        for number in range(100):
            barrier.wait()
            key = b"%d" % number
            if keyspace.setdefault(key, name) == name:
                won.append(key)
            barrier.wait()
            if keyspace.pop(key, None) is not None:
                popped.append(key)

    together(*[lambda name=b"%d" % number: one(name) for number in range(4)])
    assert sorted(won) == sorted(popped) == sorted(b"%d" % number for number in range(100))


def test_readers_beside_a_writer(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine)
    keyspace.update({b"%04d" % number: b"0" for number in range(1000)})
    done = threading.Event()

    def write() -> None:
        for generation in range(1, 30):
            keyspace.update({b"%04d" % number: b"%d" % generation for number in range(1000)})
        done.set()

    def read() -> None:
        while not done.is_set():
            with db.snapshot() as snapshot:
                generations = set(snapshot[keyspace].values())
                assert len(generations) == 1 and len(snapshot[keyspace]) == 1000
            keys = list(keyspace)
            assert len(keys) == 1000

    together(write, read, read)


def test_threads_share_an_iterator(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keyspace.update({b"%05d" % number: b"" for number in range(20_000)})
    entries = iter(keyspace)
    seen: list[list[bytes]] = [[], [], [], []]
    together(*[lambda mine=mine: mine.extend(entries) for mine in seen])
    assert sorted(key for mine in seen for key in mine) == list(keyspace)


def test_others_run_while_one_waits(path: Path) -> None:
    """Nobody is made to let others run here: whoever runs beside a call, that has let it."""
    with adamant.open(path) as db:
        keyspace = db.keyspace("test")
        keyspace.update({b"%06d" % number: b"x" * 20 for number in range(50_000)})
        value = b"v" * (32 << 20)
        other, numbers = db, itertools.count()

        def reopen() -> None:
            nonlocal other
            other = adamant.open(path.parent / "other")

        def nothing() -> None:
            pass

        # What is done before, and what has to let others run.
        works: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "put": (nothing, lambda: keyspace.__setitem__(b"large", value)),
            "get": (nothing, lambda: [keyspace[b"large"] for _ in range(8)]),
            "count": (nothing, lambda: [len(keyspace[b"0":]) for _ in range(8)]),
            "check": (nothing, db.check),
            "backup": (nothing, lambda: db.backup(path.parent / f"backup-{next(numbers)}")),
            "scan": (nothing, lambda: sum(1 for _ in keyspace.values())),
            "close": (reopen, lambda: other.close()),
        }
        ticks, done = 0, threading.Event()

        def tick() -> None:
            nonlocal ticks
            while not done.is_set():
                ticks += 1
                time.sleep(0)

        def lets_others_run(prepare: Callable[[], object], work: Callable[[], object]) -> bool:
            """Whether it does so ever: on a busy machine nobody need be there to run at once."""
            end = time.monotonic() + 60
            while time.monotonic() < end:
                prepare()
                before = ticks
                work()
                if ticks > before:
                    return True
            return False

        def use() -> None:
            try:
                for name, (prepare, work) in works.items():
                    assert lets_others_run(prepare, work), name
            finally:
                done.set()

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1000)
        try:
            together(tick, use)
        finally:
            sys.setswitchinterval(interval)


def test_a_subinterpreter_is_refused_by_an_import_error() -> None:
    interpreters = pytest.importorskip("_interpreters", reason="Python 3.13 has them for programs")
    inner = interpreters.create()
    try:
        failure = interpreters.exec(inner, f"import sys; sys.path[:] = {sys.path!r}; import adamant")
    finally:
        interpreters.destroy(inner)
    assert failure.type.__name__ == "ImportError" and "subinterpreters" in failure.msg
