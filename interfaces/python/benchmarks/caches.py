"""adamant.cache beside diskcache: the same work with each, in one run.

Both keep entries on the disk, with a bound in bytes; changes survive the end of the process, and power
loss is not waited for (diskcache: SQLite's WAL with synchronous=NORMAL, its default). Values are short
strings, written as pickles or by what diskcache has for them.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from adamant.cache import Cache

try:
    import diskcache
except ImportError:
    diskcache = None

VALUE = "x" * 100


BYTES_MAX = 1 << 30


def caches() -> dict[str, Callable[[Path], Any]]:
    """How each is opened, by name."""
    opened: dict[str, Callable[[Path], Any]] = {}
    for policy in ("least-recently-used", "least-recently-stored"):
        opened[f"Adamant, {policy}"] = partial(Cache, bytes_max=BYTES_MAX, policy=policy)
        if diskcache is not None:
            opened[f"diskcache, {policy}"] = partial(
                diskcache.Cache, size_limit=BYTES_MAX, eviction_policy=policy
            )
    return opened


def work(cache: Any, entries: int) -> dict[str, float]:
    """Thousands of operations in a second of the clock, by their kind."""
    kinds: dict[str, Callable[[int], Any]] = {
        "set": lambda number: cache.set(f"key {number}", VALUE),
        "get": lambda number: cache.get(f"key {number}"),
        "get, a miss": lambda number: cache.get(f"none {number}"),
        "incr": lambda number: cache.incr("count"),
        "set again": lambda number: cache.set(f"key {number}", VALUE),
    }
    found = {}
    for kind, operation in kinds.items():
        began = time.perf_counter()
        for number in range(entries):
            operation(number)
        found[kind] = entries / (time.perf_counter() - began) / 1000
    assert cache.get("count") == entries and cache.get(f"key {entries - 1}") == VALUE
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rounds: dict[str, list[dict[str, float]]] = {}
    for _ in range(given.rounds):
        for name, open_cache in caches().items():
            with tempfile.TemporaryDirectory() as folder:
                cache = open_cache(Path(folder, "cache"))
                rounds.setdefault(name, []).append(work(cache, given.entries))
                cache.close()
    kinds = list(next(iter(rounds.values()))[0])
    print(f"{given.entries} entries, medians of {given.rounds} rounds\n")
    print("| thousands in a second |", " | ".join(rounds), "|")
    print("|---|" + "--:|" * len(rounds))
    for kind in kinds:
        medians = [statistics.median(row[kind] for row in rows) for rows in rounds.values()]
        print(f"| {kind} |", " | ".join(f"{median:.3g}" for median in medians), "|")


if __name__ == "__main__":
    main()
