"""What a cache reads: its keyspaces, values, keys, counts."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from adamant._block import Block
from adamant._errors import InvalidArgument, Locked
from adamant._mapping import Keyspace
from adamant._store import Durability, Engine, Path, Store
from adamant._store import open as open_store
from adamant.cache import _index
from adamant.cache._encoding import (
    Codec,
    Values,
    decode_key,
    encode_key,
    encode_tag,
    head_of,
)
from adamant.cache._flights import Flights
from adamant.cache._index import Change

Policy: TypeAlias = Literal["least-recently-used", "least-recently-stored"]
TTL: TypeAlias = float | timedelta | None

# How many keys that were read are remembered, to be moved in the order by a later commit.
TOUCHED_MAX = 1_000

MISSING: Any = object()
"""Stands for no value, where None is one."""

DEFAULT: Any = object()
"""Stands for the cache's own ttl, where None is one that never ends."""


class Statistics(NamedTuple):
    """What a cache has done since it was opened here, and what it holds.

    hits, misses: reads that found a value, and others.
    evictions: entries removed for the bound. expirations: entries removed since they were over.
    entries, bytes: what is there now; those that are over and not yet removed are counted.
    """

    hits: int
    misses: int
    evictions: int
    expirations: int
    entries: int
    bytes: int


class Handles:
    """Where entries and index are read."""

    __slots__ = ("entries", "index")

    def __init__(self, entries: Keyspace[bytes, bytes], index: Keyspace[bytes, bytes]) -> None:
        self.entries, self.index = entries, index

    def totals(self) -> _index.Totals:
        return _index.totals_of(self.index)


class Reads(Block):
    """What a cache has to be read: see Cache."""

    def __init__(
        self,
        store: Store | Path,
        name: str = "cache",
        *,
        bytes_max: int = 1 << 30,
        ttl: TTL = None,
        codec: Codec = "pickle",
        policy: Policy = "least-recently-used",
        durability: Durability = "buffered",
        engine: Engine | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if bytes_max < 0:
            raise InvalidArgument(f"bytes_max is at least 0, not {bytes_max}")
        if policy not in ("least-recently-used", "least-recently-stored"):
            raise InvalidArgument(
                f"expected least-recently-used or least-recently-stored as policy, found {policy!r}"
            )
        self._values = Values(codec)
        self._bytes_max, self._ttl, self._durability = bytes_max, ttl, durability
        self._remembers, self.clock = policy == "least-recently-used", clock
        self._name, self._engine = name, engine
        self._hits = self._misses = self._evictions = self._expirations = 0
        # Keys that were read, the last ones last, with the ranks that they get; the number of the last set
        # of this cache, and of reads since.
        self._touched: dict[bytes, int] = {}
        self._sets = self._reads = 0
        self._change: Change | None = None
        self._owner = 0
        self._is_broken = False
        # What early recomputation draws from.
        self._random: Callable[[], float] = random.random
        self.make_locks()
        self._owned = not isinstance(store, Store)
        self._store = store if isinstance(store, Store) else _open(store, read_only)
        try:
            self._open_keyspaces()
        except BaseException:
            if self._owned:
                self._store.close()
            raise
        _caches.add(self)

    def make_locks(self) -> None:
        """New locks: in a child of a fork, the old ones may be held by threads that are not there."""
        # Held by whoever changes entries; a transact() holds it for as long as it lasts.
        self._writing = threading.RLock()
        # Held for a moment, for the counts and the keys that were read.
        self._counting = threading.Lock()
        self.flights = Flights()

    def _open_keyspaces(self) -> None:
        self._entries = self._store.keyspace(self._name, engine=self._engine)
        self._index = self._store.keyspace(self._name + ".index", engine=self._engine)
        self._handles = Handles(self._entries, self._index)
        self._sets = self._handles.totals().sets

    # Reads.

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default. O(log n), and a copy of the value."""
        encoded = encode_key(key)
        record = self.find(encoded)
        self._count(encoded, record)
        return default if record is None else self._values.decode(encoded, record)

    def get_many(self, keys: Iterable[Any], default: Any = None) -> list[Any]:
        """The values of keys, in their order. As many reads."""
        return [self.get(key, default) for key in keys]

    def __getitem__(self, key: Any) -> Any:
        value = self.get(key, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.find(encode_key(key)) is not None

    def ttl(self, key: Any) -> float | None:
        """Seconds until the value of a key is over, None for one that never is. O(log n)."""
        record = self.find(encode_key(key))
        if record is None:
            raise KeyError(key)
        deadline_ms = head_of(record).deadline_ms
        return (deadline_ms - self.now_ms()) / 1000 if deadline_ms else None

    def __iter__(self) -> Iterator[Any]:
        """The keys whose values are not over, by kind and bytes. O(n), reads no values."""
        return map(decode_key, _index.live_keys(self._reader().index, self.now_ms(), False))

    def __reversed__(self) -> Iterator[Any]:
        return map(decode_key, _index.live_keys(self._reader().index, self.now_ms(), True))

    def tagged(self, tag: str) -> Iterator[Any]:
        """The keys of a tag; O(k), reads no values. Some may be over."""
        return map(decode_key, _index.tagged_keys(self._reader().index, encode_tag(tag)))

    def __len__(self) -> int:
        """How many entries there are; those that are over and not yet removed are counted. O(log n)."""
        return self._reader().totals().entries

    def __bool__(self) -> bool:
        # A cache that is empty is still a cache: `if cache` asks whether there is one.
        return True

    def statistics(self) -> Statistics:
        """Hits, misses, removals and what is there. O(log n)."""
        totals = self._reader().totals()
        with self._counting:
            counts = self._hits, self._misses, self._evictions, self._expirations
        return Statistics(*counts, totals.entries, totals.size)

    def check(self) -> list[str]:
        """Where index and entries do not agree: nothing, if all is well. O(n), as of one moment."""
        with self._store.snapshot() as now:
            return _index.disagreements(now[self._entries], now[self._index])

    def find(self, encoded: bytes) -> bytes | None:
        """The record of an encoded key, unless it is over. Counts nothing."""
        record = self._reader().entries.get(encoded)
        if record is not None:
            deadline_ms = int.from_bytes(record[1:9], "big")
            if deadline_ms and self.now_ms() >= deadline_ms:
                return None
        return record

    def decode(self, encoded: bytes, record: bytes) -> Any:
        """The value of a record that find() gave."""
        return self._values.decode(encoded, record)

    def now_ms(self) -> int:
        """The clock, in milliseconds."""
        return int(self.clock() * 1000)

    def _reader(self) -> Handles | Change:
        # What a block of transact() has changed, its thread reads; all others what was there.
        change = self._change
        if change is not None and self._is_in_block():
            return change
        try:
            return self._handles
        except AttributeError:
            # A refresh() is taking them from the store anew, or could not.
            with self._writing:
                if not hasattr(self, "_handles"):
                    self._open_keyspaces()
                return self._handles

    def _is_in_block(self) -> bool:
        """Whether this thread is in a block of transact()."""
        return self._change is not None and self._owner == threading.get_ident()

    def _count(self, encoded: bytes, record: bytes | None) -> None:
        with self._counting:
            if record is None:
                self._misses += 1
            else:
                self._hits += 1
                if self._remembers:
                    self._remember(encoded)

    def _remember(self, encoded: bytes) -> None:
        """That a key was read. What was read longest ago is forgotten, if there is no commit for long."""
        touched = self._touched
        if touched.pop(encoded, None) is None and len(touched) >= TOUCHED_MAX:
            del touched[next(iter(touched))]
        self._reads = min(self._reads + 1, (1 << _index.READ_BITS) - 1)
        touched[encoded] = (self._sets << _index.READ_BITS) + self._reads

    def refresh(self) -> bool:
        """Has a cache that is read beside its writer show what that has committed; whether it did.

        O(what was committed), some 0.1 ms; iterators over it that are left make it O(the store).
        False for a cache that is open for writing: it shows everything always.
        """
        if not self._store.read_only:
            return False
        with self._writing:
            # Handles that were made before keep what they show, and make a refresh slow.
            del self._entries, self._index, self._handles
            try:
                return self._store.refresh()
            finally:
                self._open_keyspaces()

    @property
    def store(self) -> Store:
        """The store that the cache is in."""
        return self._store

    def __repr__(self) -> str:
        return f"<adamant.cache.{type(self).__name__} {self._name!r} of {self._store!r}>"


_caches: weakref.WeakSet[Reads] = weakref.WeakSet()


def _renew_locks() -> None:
    for cache in list(_caches):
        cache.make_locks()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_locks)


def _open(path: Path, read_only: bool) -> Store:
    try:
        return open_store(path, create=not read_only, beside_writer=read_only)
    except Locked as error:
        error.add_note(
            "One process writes a cache. Read it beside that one with read_only=True, or give each "
            "process a path of its own."
        )
        raise
