"""Caches and shelves where processes end, fork, read beside one another, and devices are full."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import adamant
import pytest
from adamant.cache import Cache
from test_processes import forks, in_child

FILLER = """
    import sys
    from adamant.cache import Cache

    cache = Cache(sys.argv[1], bytes_max=20_000, engine=sys.argv[2])
    number = len(cache)
    while True:
        with cache.transact():
            cache.set(number, b"x" * (number % 700), ttl=3600 if number % 3 else None, tags=str(number % 5))
            cache.get(number - 7)
            cache.incr("all")
        if number % 11 == 0:
            cache.evict(str(number % 5))
        number += 1
        print(number, flush=True)
"""


@pytest.mark.parametrize("engine", ["bplus", "lsm"])
def test_a_killed_process_leaves_index_and_entries_alike(path: Path, engine: str) -> None:
    told = 0
    for rounds in (1, 37, 260):
        filler = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(FILLER), str(path), engine],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert filler.stdout is not None
        told = [int(filler.stdout.readline()) for _ in range(rounds)][-1]
        filler.kill()
        filler.stdout.close()
        filler.wait()
        with Cache(path, bytes_max=20_000) as cache:
            assert cache.check() == []
            statistics = cache.statistics()
            assert 0 < statistics.bytes <= 20_000 and statistics.entries == len(cache) > 0
            sizes = [len(key) + len(value) for key, value in cache.store.keyspace("cache").items()]
            assert (len(sizes), sum(sizes)) == (statistics.entries, statistics.bytes)
            assert cache.get("all") is not None and cache.store.check() == []
    assert told > 260


def test_another_process_is_told_who_writes(path: Path) -> None:
    with Cache(path) as cache:
        cache["a"] = 1
        with pytest.raises(adamant.Locked, match="is held by process") as locked:
            Cache(path)
        assert "read_only=True" in locked.value.__notes__[0]
        with Cache(path, read_only=True) as beside:
            assert beside["a"] == 1 and list(beside) == ["a"] and beside.statistics().entries == 1
            cache["a"] = 2
            assert beside["a"] == 1 and beside.refresh() and beside["a"] == 2 and not beside.refresh()
            with pytest.raises(adamant.ReadOnly):
                beside.set("a", 3)
            with pytest.raises(adamant.ReadOnly), beside.transact():
                beside["a"] = 3
        assert cache["a"] == 2 and not cache.store.closed
    with pytest.raises(adamant.Missing):
        Cache(path.parent / "none", read_only=True)
    with pytest.raises(adamant.UnknownKeyspace):
        Cache(path, "other", read_only=True)
    with adamant.open(path) as store:
        store.keyspace("plain")
        assert Cache(store)["a"] == 2


def test_threads_read_beside_while_one_refreshes(path: Path) -> None:
    with Cache(path) as cache, Cache(path, read_only=True) as beside:
        done, found = threading.Event(), [[0] for _ in range(2)]

        def read(seen: list[int]) -> None:
            while not done.is_set():
                seen.append(beside.get("count", 0))

        readers = [threading.Thread(target=read, args=(seen,)) for seen in found]
        for reader in readers:
            reader.start()
        try:
            for number in range(1, 41):
                assert cache.incr("count") == number and beside.refresh()
                assert beside["count"] == number
        finally:
            done.set()
            for reader in readers:
                reader.join()
        assert all(seen == sorted(seen) and len(seen) > 1 for seen in found)


@forks
def test_a_forks_child_is_refused_while_threads_use_the_cache(path: Path) -> None:
    """Locks that other threads held at the fork, the cache's as well, keep no child waiting."""
    cache = Cache(path, bytes_max=50_000)
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            number += 1
            cache.set(number % 100, b"x" * 1_000)
            cache.get(number % 90)
            cache.get_or_set(("made", number % 50), lambda: 1)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert in_child(lambda: cache.get(1)).startswith("Forked: ")
            assert in_child(lambda: cache.set(1, 2)).startswith("Forked: ")
            assert in_child(lambda: cache.get_or_set(1, lambda: 2)).startswith("Forked: ")
            assert in_child(lambda: cache.statistics()).startswith("Forked: ")
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert cache.check() == []
    cache.close()


def test_a_full_device_leaves_the_cache_whole(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs the privilege")
    noise = random.Random(0).randbytes(200_000)
    try:
        with Cache(small / "cache.adamant") as cache:
            cache["first"] = "kept"
            number = 0
            with pytest.raises(adamant.OutOfSpace):
                while True:
                    cache.set(number, noise, tags="noise")
                    number += 1
            assert cache.check() == [] and cache["first"] == "kept" and number > 10
            assert number not in cache and cache[number - 1] == noise
            # What is evicted makes room, on a full device too.
            assert cache.evict("noise") == number and cache.check() == []
            cache["next"] = noise
            assert len(cache) == 2
            # A bound below the device's size never meets it.
            bounded = Cache(cache.store, "bounded", bytes_max=1_000_000)
            for number in range(200):
                bounded.set(number, noise)
            assert bounded.check() == [] and len(bounded) == 4
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
