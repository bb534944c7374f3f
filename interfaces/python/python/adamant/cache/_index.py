"""What a cache keeps beside its entries, and how one commit changes both.

The keyspace of entries has key -> record. The index has, by the first byte of its keys:

    e key            -> rank, deadline, bytes, tags: what is known of an entry
    o rank key       -> nothing: the order in which entries make room
    d deadline key   -> nothing: the order in which entries expire
    t tag key        -> nothing: the entries of a tag
    s                -> how many entries were ever set, how many there are, their bytes

The rank of an entry is the number of the set that made it, in the upper 48 bits; the lower ones are for
reads between that and the next set. Numbers are big-endian, so that they sort. Every commit of a cache
changes both keyspaces, or neither.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from adamant._mapping import Keyspace, SnapshotKeyspace, TransactionKeyspace
from adamant._store import Transaction
from adamant.cache._encoding import head_of, with_deadline

ENTRY, ORDER, DEADLINE, TAG, TOTALS = b"e", b"o", b"d", b"t", b"s"
# Bits of a rank that tell reads apart.
READ_BITS = 16
_TOTALS = struct.Struct(">QQQ")
_NONE = _TOTALS.pack(0, 0, 0)
_META = struct.Struct(">QQQ")
_U64 = struct.Struct(">Q")
_U16 = struct.Struct(">H")

Bytes = Keyspace[bytes, bytes] | TransactionKeyspace[bytes, bytes] | SnapshotKeyspace[bytes, bytes]


class Meta(NamedTuple):
    """What is known of an entry: place in the order, deadline (0: none), bytes, tags."""

    rank: int
    deadline_ms: int
    size: int
    tags: tuple[bytes, ...]

    def pack(self) -> bytes:
        tags = b"".join(_U16.pack(len(tag)) + tag for tag in self.tags)
        return _META.pack(self.rank, self.deadline_ms, self.size) + tags


def meta_of(packed: bytes) -> Meta:
    """What is known of an entry, of its bytes."""
    tags, place = [], _META.size
    while place < len(packed):
        (length,) = _U16.unpack_from(packed, place)
        tags.append(packed[place + 2 : place + 2 + length])
        place += 2 + length
    rank, deadline_ms, size = _META.unpack_from(packed)
    return Meta(rank, deadline_ms, size, tuple(tags))


def order_row(rank: int, key: bytes) -> bytes:
    return ORDER + _U64.pack(rank) + key


def deadline_row(deadline_ms: int, key: bytes) -> bytes:
    return DEADLINE + _U64.pack(deadline_ms) + key


def tag_rows(tag: bytes) -> bytes:
    """What the rows of a tag begin with."""
    return TAG + _U16.pack(len(tag)) + tag


class Totals(NamedTuple):
    """How many entries were ever set, how many there are, and their bytes."""

    sets: int
    entries: int
    size: int


def totals_of(index: Bytes) -> Totals:
    """The totals that the index says. O(log n)."""
    return Totals(*_TOTALS.unpack(index.get(TOTALS, _NONE)))


class Change:
    """What one commit does to entries and index. end() comes before the commit."""

    __slots__ = ("count", "entries", "index", "sets", "size")

    def __init__(
        self, transaction: Transaction, entries: Keyspace[bytes, bytes], index: Keyspace[bytes, bytes]
    ) -> None:
        self.entries = transaction[entries]
        self.index = transaction[index]
        self.sets, self.count, self.size = totals_of(self.index)

    def end(self) -> None:
        self.index.put(TOTALS, _TOTALS.pack(*self.totals()))

    def totals(self) -> Totals:
        return Totals(self.sets, self.count, self.size)

    def meta(self, key: bytes) -> Meta | None:
        packed = self.index.get(ENTRY + key)
        return None if packed is None else meta_of(packed)

    def put(self, key: bytes, record: bytes, tags: tuple[bytes, ...]) -> None:
        """Sets an entry, as the last one of the order."""
        before = self.meta(key)
        if before is not None:
            self._remove_rows(key, before)
        deadline_ms = head_of(record).deadline_ms
        self.sets += 1
        meta = Meta(self.sets << READ_BITS, deadline_ms, len(key) + len(record), tags)
        self.entries.put(key, record)
        self.index.put(ENTRY + key, meta.pack())
        self.index.put(order_row(meta.rank, key), b"")
        if deadline_ms:
            self.index.put(deadline_row(deadline_ms, key), b"")
        for tag in tags:
            self.index.put(tag_rows(tag) + key, b"")
        self.count += 1
        self.size += meta.size

    def remove(self, key: bytes) -> bool:
        """Removes an entry; whether it was there."""
        meta = self.meta(key)
        if meta is None:
            return False
        self._remove_rows(key, meta)
        self.entries.delete(key)
        self.index.delete(ENTRY + key)
        return True

    def _remove_rows(self, key: bytes, meta: Meta) -> None:
        self.index.delete(order_row(meta.rank, key))
        if meta.deadline_ms:
            self.index.delete(deadline_row(meta.deadline_ms, key))
        for tag in meta.tags:
            self.index.delete(tag_rows(tag) + key)
        self.count -= 1
        self.size -= meta.size

    def set_deadline(self, key: bytes, record: bytes, deadline_ms: int) -> None:
        """Gives an entry that is there another deadline."""
        meta = self.meta(key)
        assert meta is not None, f"the entry {key!r} is not in the index"
        if meta.deadline_ms:
            self.index.delete(deadline_row(meta.deadline_ms, key))
        if deadline_ms:
            self.index.put(deadline_row(deadline_ms, key), b"")
        self.entries.put(key, with_deadline(record, deadline_ms))
        self.index.put(ENTRY + key, meta._replace(deadline_ms=deadline_ms).pack())

    def move(self, ranks: Mapping[bytes, int]) -> None:
        """Gives entries that are there higher ranks, unless they were set since."""
        for key, rank in ranks.items():
            meta = self.meta(key)
            if meta is not None and meta.rank < rank:
                self.index.delete(order_row(meta.rank, key))
                self.index.put(order_row(rank, key), b"")
                self.index.put(ENTRY + key, meta._replace(rank=rank).pack())

    def make_room(self, bytes_max: int, now_ms: int, entries_max: int) -> tuple[int, int]:
        """Removes at most so many entries until the bound holds; how many had expired, and others."""
        removed = [0, 0]
        for which, rows in enumerate((lambda: expired_keys(self.index, now_ms), self._ordered)):
            while self.size > bytes_max and sum(removed) < entries_max:
                key = next(rows(), None)
                if key is None:
                    break
                removed[which] += self.remove(key)
        return removed[0], removed[1]

    def _ordered(self) -> Iterator[bytes]:
        return ordered_keys(self.index)


def expired_keys(index: Bytes, now_ms: int) -> Iterator[bytes]:
    """Keys whose deadline has passed, the earliest first."""
    rows = index.keys(start=DEADLINE, stop=DEADLINE + _U64.pack(now_ms + 1))
    return (row[9:] for row in rows)


def ordered_keys(index: Bytes) -> Iterator[bytes]:
    """All keys, the first to make room first."""
    return (row[9:] for row in index.keys(prefix=ORDER))


def tagged_keys(index: Bytes, tag: bytes) -> Iterator[bytes]:
    """The keys of a tag."""
    rows = tag_rows(tag)
    return (row[len(rows) :] for row in index.keys(prefix=rows))


def live_keys(index: Bytes, now_ms: int, reverse: bool) -> Iterator[bytes]:
    """The keys of entries that have not expired, in order, or in reverse. Reads no values."""
    for row, packed in index.items(prefix=ENTRY, reverse=reverse):
        (deadline_ms,) = _U64.unpack_from(packed, 8)
        if not deadline_ms or now_ms < deadline_ms:
            yield row[1:]


def disagreements(entries: Bytes, index: Bytes) -> list[str]:
    """Where index and entries do not agree: nothing, if all is well. O(n)."""
    expected: dict[bytes, bytes | None] = {}
    size = count = 0
    for key, record in entries.items():
        packed = index.get(ENTRY + key)
        if packed is None:
            return [f"the entry {key!r} is not in the index"]
        meta = meta_of(packed)
        if (meta.deadline_ms, meta.size) != (head_of(record).deadline_ms, len(key) + len(record)):
            return [f"the index has {meta} for {key!r}, which has {len(key) + len(record)} bytes"]
        expected[ENTRY + key] = packed
        expected[order_row(meta.rank, key)] = b""
        if meta.deadline_ms:
            expected[deadline_row(meta.deadline_ms, key)] = b""
        expected.update({tag_rows(tag) + key: b"" for tag in meta.tags})
        size += meta.size
        count += 1
    found = []
    totals = totals_of(index)
    if (totals.entries, totals.size) != (count, size):
        found.append(f"{count} entries have {size} bytes, and the index says {totals}")
    rows: dict[bytes, Any] = {row: value for row, value in index.items() if row != TOTALS}
    if rows != expected:
        found.extend(f"the index has a wrong row {row!r}" for row in rows.keys() ^ expected.keys())
    return found
