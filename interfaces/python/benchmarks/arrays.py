"""Millions of rows in and out as arrays, of Adamant beside lmdb and sqlite3.

    pip install ./interfaces/python numpy lmdb
    python interfaces/python/benchmarks/arrays.py --rows 2000000 --rounds 3

Rows are keys of 8 bytes, in an order of their own, and values of 32 bytes, both in arrays of numpy. Each
store is to take them all in one transaction, or as it loads fastest, to find the values of half of them into
an array, and to read all of them in order into arrays. lmdb and sqlite3 have no interface for arrays, so
they are given what their guides have for many rows: `putmulti` and `getmulti`, `executemany`, and their
objects are joined. Printed are medians, in thousands of rows in a second.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adamant
import numpy

WIDTH = 32


def rows_of(column: Any, width: int) -> list[bytes]:
    """The objects that the interfaces of others take."""
    data = column.tobytes()
    return [data[at : at + width] for at in range(0, len(data), width)]


class Adamant:
    engine = "bplus"
    atomic = True

    def __init__(self, path: Path) -> None:
        self.db = adamant.open(path / "store", durability="buffered")
        self.rows: Any = self.db.keyspace("rows", engine=self.engine)  # type: ignore[call-overload]

    def put(self, keys: Any, values: Any) -> None:
        self.rows.put_many(keys, values, atomic=self.atomic)

    def get(self, keys: Any, out: Any) -> None:
        self.rows.get_many_into(keys, out)

    def scan(self, keys: Any, values: Any) -> None:
        assert self.rows.scan().into(keys, values) == len(keys)

    def close(self) -> None:
        self.db.close()


class AdamantLoaded(Adamant):
    atomic = False


class AdamantLsm(Adamant):
    engine = "lsm"
    atomic = False


class Lmdb:
    def __init__(self, path: Path) -> None:
        self.env = importlib.import_module("lmdb").open(str(path), map_size=16 << 30, sync=False)

    def put(self, keys: Any, values: Any) -> None:
        pairs = zip(rows_of(keys, 8), rows_of(values, WIDTH))
        with self.env.begin(write=True) as transaction:
            transaction.cursor().putmulti(pairs)

    def get(self, keys: Any, out: Any) -> None:
        with self.env.begin() as transaction:
            found = transaction.cursor().getmulti(rows_of(keys, 8))
        out[:] = joined([value for _, value in found], out)

    def scan(self, keys: Any, values: Any) -> None:
        with self.env.begin() as transaction:
            found = list(transaction.cursor().iternext())
        keys[:] = joined([key for key, _ in found], keys)
        values[:] = joined([value for _, value in found], values)

    def close(self) -> None:
        self.env.close()


class Sqlite:
    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path / "rows.sqlite", isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = OFF")
        self.db.execute("CREATE TABLE rows (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")

    def put(self, keys: Any, values: Any) -> None:
        pairs = zip(rows_of(keys, 8), rows_of(values, WIDTH))
        self.db.execute("BEGIN")
        self.db.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?)", pairs)
        self.db.execute("COMMIT")

    def get(self, keys: Any, out: Any) -> None:
        words = "SELECT value FROM rows WHERE key = ?"
        execute = self.db.cursor().execute
        out[:] = joined([execute(words, (key,)).fetchone()[0] for key in rows_of(keys, 8)], out)

    def scan(self, keys: Any, values: Any) -> None:
        found = self.db.execute("SELECT key, value FROM rows ORDER BY key").fetchall()
        keys[:] = joined([key for key, _ in found], keys)
        values[:] = joined([value for _, value in found], values)

    def close(self) -> None:
        self.db.close()


def joined(parts: list[bytes], like: Any) -> Any:
    return numpy.frombuffer(b"".join(parts), like.dtype).reshape(like.shape)


STORES: dict[str, Any] = {
    "bplus, one commit": Adamant,
    "bplus, loaded": AdamantLoaded,
    "lsm, loaded": AdamantLsm,
    "lmdb": Lmdb,
    "sqlite3": Sqlite,
}


def timed(rows: int, work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return rows / (time.perf_counter() - start) / 1000


def run(store: Any, rows: int, seed: int) -> dict[str, float]:
    choices = numpy.random.default_rng(seed)
    keys = choices.permutation(rows).astype(">u8")
    values = choices.random((rows, WIDTH // 8))
    wanted = choices.choice(rows, rows // 2)
    folder = Path(tempfile.mkdtemp())
    try:
        opened = store(folder)
        results = {"in": timed(rows, lambda: opened.put(keys, values))}
        out = numpy.empty((len(wanted), WIDTH // 8))
        results["gets"] = timed(len(wanted), lambda: opened.get(keys[wanted], out))
        assert (out == values[wanted]).all()
        found = numpy.empty_like(keys), numpy.empty_like(values)
        results["scan"] = timed(rows, lambda: opened.scan(*found))
        order = numpy.argsort(keys)
        assert (found[0] == keys[order]).all() and (found[1] == values[order]).all()
        opened.close()
        return results
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Rows as arrays, beside other stores")
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    results: dict[str, dict[str, list[float]]] = {}
    for seed in range(options.rounds):
        for name, store in STORES.items():
            for work, rate in run(store, options.rows, seed).items():
                results.setdefault(work, {}).setdefault(name, []).append(rate)
    print(f"{options.rows} rows of 8 + {WIDTH} bytes, medians of {options.rounds} rounds\n")
    print("| thousands of rows in a second | " + " | ".join(STORES) + " |")
    print("|---|" + "--:|" * len(STORES))
    for work, rates in results.items():
        print(f"| {work} | " + " | ".join(f"{statistics.median(rates[name]):.3g}" for name in STORES) + " |")


if __name__ == "__main__":
    main()
