"""Adamant beside lmdb, rocksdict, sqlite3 and diskcache: the same work in one run, as ratios.

    pip install ./interfaces/python lmdb rocksdict diskcache
    python interfaces/python/benchmarks/compare.py --entries 100000 --rounds 3

Each workload is run on every store in turn, as many rounds as asked for, each time in a new folder; the
order of the stores turns with the rounds. Printed are medians, in thousands of operations in a second,
and how many times as fast Adamant is as the fastest of the others. A store that is not installed is left
out, and said so. Rates depend on the machine, ratios less so.

There are two tables: by the clock on the wall, and by the time that processors spent on the work, of all
threads of the process. On a machine that others use, too, only the second one means something: a workload
takes some ten milliseconds, and may lose as many to somebody else. It leaves out what is waited for, which
for synced puts is nearly all: there Adamant, lmdb and rocksdict call fdatasync once each (`strace -f -c`),
so they differ by what the device makes of it just then.

What each store is asked for: single puts are durable ("synced") or survive the end of the process
("buffered"); batches survive the end of the process. All read and write bytes, through the interface that its
own guide shows first, with one connection, environment or handle for all of the run.
"""

from __future__ import annotations

import argparse
import importlib
import random
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import adamant

Pair = tuple[bytes, bytes]

BATCH_ENTRIES = 1000
SCANNED_ENTRIES = 100
VALUE_BYTES = 100
# A key before all others.
FIRST = b"\x00"
# Gets of an entry: of one each the whole takes too short a time.
GETS_EACH = 5


class Peer(Protocol):
    """What every store can do."""

    def __init__(self, path: Path, synced: bool) -> None: ...

    def put(self, key: bytes, value: bytes) -> None: ...

    def put_many(self, pairs: list[Pair]) -> None: ...

    def get(self, key: bytes) -> bytes | None: ...

    def scan(self, start: bytes) -> Iterable[Pair]: ...

    def close(self) -> None: ...


class Adamant:
    engine = "bplus"

    def __init__(self, path: Path, synced: bool) -> None:
        self.db = adamant.open(path / "store", durability="sync" if synced else "buffered")
        self.keyspace: Any = self.db.keyspace("test", engine=self.engine)  # type: ignore[call-overload]
        self.get = self.keyspace.get
        self.put = self.keyspace.__setitem__
        self.put_many = self.keyspace.update

    def scan(self, start: bytes) -> Iterable[Pair]:
        found: Iterable[Pair] = self.keyspace.items(start=start)
        return found

    def close(self) -> None:
        self.db.close()


class AdamantLsm(Adamant):
    engine = "lsm"


class Lmdb:
    def __init__(self, path: Path, synced: bool) -> None:
        lmdb = importlib.import_module("lmdb")
        self.env = lmdb.open(str(path), map_size=16 << 30, sync=synced)

    def put(self, key: bytes, value: bytes) -> None:
        with self.env.begin(write=True) as transaction:
            transaction.put(key, value)

    def put_many(self, pairs: list[Pair]) -> None:
        with self.env.begin(write=True) as transaction:
            for key, value in pairs:
                transaction.put(key, value)

    def get(self, key: bytes) -> bytes | None:
        with self.env.begin() as transaction:
            found: bytes | None = transaction.get(key)
            return found

    def scan(self, start: bytes) -> Iterator[Pair]:
        with self.env.begin() as transaction:
            cursor = transaction.cursor()
            if cursor.set_range(start):
                yield from cursor.iternext()

    def close(self) -> None:
        self.env.close()


class Rocks:
    def __init__(self, path: Path, synced: bool) -> None:
        rocksdict = importlib.import_module("rocksdict")
        self.rocksdict = rocksdict
        self.db = rocksdict.Rdict(str(path / "rocks"), rocksdict.Options(raw_mode=True))
        self.options = rocksdict.WriteOptions()
        self.options.sync = synced

    def put(self, key: bytes, value: bytes) -> None:
        self.db.put(key, value, write_opt=self.options)

    def put_many(self, pairs: list[Pair]) -> None:
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for key, value in pairs:
            batch.put(key, value)
        self.db.write(batch, self.options)

    def get(self, key: bytes) -> bytes | None:
        found: bytes | None = self.db.get(key)
        return found

    def scan(self, start: bytes) -> Iterable[Pair]:
        found: Iterable[Pair] = self.db.items(from_key=start)
        return found

    def close(self) -> None:
        self.db.close()


class Sqlite:
    def __init__(self, path: Path, synced: bool) -> None:
        self.db = sqlite3.connect(path / "test.sqlite", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA synchronous = {'FULL' if synced else 'OFF'}")
        self.db.execute("CREATE TABLE test (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def put(self, key: bytes, value: bytes) -> None:
        self.db.execute("INSERT OR REPLACE INTO test VALUES (?, ?)", (key, value))

    def put_many(self, pairs: list[Pair]) -> None:
        self.db.execute("BEGIN")
        self.db.executemany("INSERT OR REPLACE INTO test VALUES (?, ?)", pairs)
        self.db.execute("COMMIT")

    def get(self, key: bytes) -> bytes | None:
        found = self.db.execute("SELECT value FROM test WHERE key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def scan(self, start: bytes) -> Iterable[Pair]:
        return self.db.execute("SELECT key, value FROM test WHERE key >= ? ORDER BY key", (start,))

    def close(self) -> None:
        self.db.close()


class Disk:
    """It has no scan from a key on, so there is none of it."""

    def __init__(self, path: Path, synced: bool) -> None:
        diskcache = importlib.import_module("diskcache")
        settings = {"eviction_policy": "none", "sqlite_synchronous": 2 if synced else 0}
        self.cache = diskcache.Cache(str(path / "cache"), **settings)
        self.put = self.cache.__setitem__
        self.get = self.cache.get

    def put_many(self, pairs: list[Pair]) -> None:
        with self.cache.transact():
            for key, value in pairs:
                self.cache[key] = value

    def scan(self, start: bytes) -> Iterable[Pair]:
        assert start <= FIRST
        return ((key, self.cache[key]) for key in self.cache.iterkeys())

    def close(self) -> None:
        self.cache.close()


PEERS: dict[str, type[Peer]] = {
    "Adamant bplus": Adamant,
    "Adamant lsm": AdamantLsm,
    "lmdb": Lmdb,
    "rocksdict": Rocks,
    "sqlite3": Sqlite,
    "diskcache": Disk,
}
MODULES = {"lmdb": "lmdb", "rocksdict": "rocksdict", "diskcache": "diskcache"}


def pairs_of(entries: int, seed: int) -> list[Pair]:
    """Entries in an order of their own, of keys of 20 bytes."""
    choices = random.Random(seed)
    pairs = [(b"key-%016d" % (number * 7919), b"") for number in range(entries)]
    choices.shuffle(pairs)
    return [(key, choices.randbytes(VALUE_BYTES)) for key, _ in pairs]


class Rates(NamedTuple):
    """Thousands of operations in a second: of the clock, and of the processors' time."""

    by_clock: float
    by_processor: float


def timed(operations: int, work: Callable[[], None]) -> Rates:
    start, spent = time.perf_counter(), time.process_time()
    work()
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    # The clock of the processors may be a coarse one.
    return Rates(operations / seconds / 1000, operations / max(spent, 1e-6) / 1000)


def run(peer: type[Peer], entries: int, seed: int) -> dict[str, Rates]:
    """All workloads on a new store; each is compared with what was put."""
    folder = Path(tempfile.mkdtemp())
    pairs = pairs_of(entries, seed)
    model = dict(pairs)
    choices = random.Random(seed + 1)
    results: dict[str, Rates] = {}
    try:
        synced_puts = min(entries, 1000)
        store = peer(make(folder / "synced"), True)

        def puts(count: int) -> None:
            for key, value in pairs[:count]:
                store.put(key, value)

        results["single puts, synced"] = timed(synced_puts, lambda: puts(synced_puts))
        store.close()
        store = peer(make(folder / "single"), False)
        single_puts = min(entries, 20_000)
        results["single puts, buffered"] = timed(single_puts, lambda: puts(single_puts))
        store.close()
        store = peer(make(folder / "many"), False)

        def batches() -> None:
            for first in range(0, entries, BATCH_ENTRIES):
                store.put_many(pairs[first : first + BATCH_ENTRIES])

        results[f"batches of {BATCH_ENTRIES}"] = timed(entries, batches)
        wanted = choices.choices(pairs, k=GETS_EACH * entries)

        def gets() -> None:
            for key, value in wanted:
                assert store.get(key) == value

        results["gets"] = timed(len(wanted), gets)

        def full() -> None:
            assert sum(1 for _ in store.scan(FIRST)) == entries

        results["full scan, entries"] = timed(entries, full)
        ordered = sorted(model)
        scans = max(entries // SCANNED_ENTRIES, 1)
        starts = choices.choices(range(max(entries - SCANNED_ENTRIES, 1)), k=scans)

        def parts() -> None:
            for start in starts:
                found = store.scan(ordered[start])
                last = b""
                for _, (last, _) in zip(range(SCANNED_ENTRIES), found):
                    pass
                assert last == ordered[min(start + SCANNED_ENTRIES, entries) - 1]

        if peer is not Disk:
            results[f"scans of {SCANNED_ENTRIES}"] = timed(scans, parts)
        store.close()
        return results
    finally:
        shutil.rmtree(folder)


def make(path: Path) -> Path:
    path.mkdir()
    return path


def installed() -> dict[str, type[Peer]]:
    found = {}
    for name, peer in PEERS.items():
        try:
            importlib.import_module(MODULES.get(name, "sqlite3"))
        except ImportError as error:
            print(f"left out: {name}: {error}")
            continue
        found[name] = peer
    return found


def table(results: dict[str, dict[str, list[Rates]]], kind: str, by: int) -> Iterator[str]:
    """Rows of Markdown: medians, and the ratio to the fastest other store."""
    names = list(results)
    yield f"| thousands in a second of {kind} | " + " | ".join(names) + " | Adamant bplus to the best other |"
    yield "|---|" + "--:|" * (len(names) + 1)
    for workload in results[names[0]]:
        rates = {name: results[name].get(workload) for name in names}
        medians = {name: statistics.median(it[by] for it in found) for name, found in rates.items() if found}
        others = [rate for name, rate in medians.items() if not name.startswith("Adamant")]
        ratio = f"{medians[names[0]] / max(others):.2f}" if others else "-"
        cells = [f"{medians[name]:.3g}" if name in medians else "-" for name in names]
        yield f"| {workload} | " + " | ".join(cells) + f" | {ratio} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Adamant beside other stores, from Python")
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.entries < 1 or options.rounds < 1:
        parser.error("entries and rounds are at least 1")
    peers = installed()
    results: dict[str, dict[str, list[Rates]]] = {name: {} for name in peers}
    for number in range(options.rounds):
        names = list(peers)
        names = names[number % len(names) :] + names[: number % len(names)]
        for name in names:
            for workload, rate in run(peers[name], options.entries, number).items():
                results[name].setdefault(workload, []).append(rate)
            print(f"round {number + 1}: {name} done", file=sys.stderr)
    print(f"{options.entries} entries of 20 + {VALUE_BYTES} bytes, medians of {options.rounds} rounds\n")
    print("\n".join(table(results, "the clock", 0)), end="\n\n")
    print("\n".join(table(results, "processors", 1)))


if __name__ == "__main__":
    main()
