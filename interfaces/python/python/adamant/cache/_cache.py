"""The cache: what changes its entries, each change one commit of them and their index."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from threading import get_ident
from typing import Any, TypeVar

from adamant._errors import Error, InvalidArgument, Undecodable
from adamant.cache import _index
from adamant.cache._encoding import encode_key, encode_tag, head_of
from adamant.cache._index import Change
from adamant.cache._reads import DEFAULT, MISSING, TOUCHED_MAX, TTL, Reads

T = TypeVar("T")

# Entries that one commit of many removes.
SWEPT_MAX = 1_000
_MILLIS_MAX = (1 << 64) - 1


class Cache(Reads):
    """A bounded cache with expiry and tags, in a keyspace of a store.

    store: a store that is open, or a path, where the cache opens one and closes it again.
    name: of the keyspace; beside it is one called as it and ".index".
    bytes_max: bytes of keys and values at most; what is over makes room, in the order of the policy.
    ttl: how long values live that are set without one: seconds, a timedelta, None for ever.
    codec: how values are written: "pickle", "json", or "bytes", which takes nothing else.
    policy: what makes room first. "least-recently-used" keeps in memory which keys were read, and
        writes that with the next commits: a crash forgets the last TOUCHED_MAX reads, no entry.
    durability: what a change waits for; "buffered" survives the end of the process.
    read_only: with a path: reads the store beside the process that writes it. See refresh().
    clock: gives seconds since 1970.

    Have one object for a cache in a process: blocks of transact() of two can conflict.

    Reading costs O(log n) and one copy of the value; it waits for no one and never writes. A change
    is one commit of entry and index, O(log n) for the entry and each of its tags. With the engine
    "bplus" a read touches the device only for pages that are not in memory.
    """


    def set(self, key: Any, value: Any, ttl: TTL = DEFAULT, tags: Iterable[str] | str = ()) -> bool:
        """Sets the value of a key; whether it is kept, as a value larger than the bound is not.

        ttl: how long it lives. tags: names that evict() takes it out by. One commit, O(log n) for the
        entry and each tag, and for each entry that makes room.
        """
        return self.put_encoded(encode_key(key), value, ttl, tags)

    def set_many(
        self, entries: Iterable[tuple[Any, Any]], ttl: TTL = DEFAULT, tags: Iterable[str] | str = ()
    ) -> list[Any]:
        """Sets the values of many keys in one commit; the keys of those that are kept."""
        deadline_ms, encoded_tags = self._deadline_ms(ttl), _encode_tags(tags)
        encoded = [
            (key, encode_key(key), self._values.encode(value, deadline_ms, 0.0)) for key, value in entries
        ]

        def work(change: Change) -> list[Any]:
            return [key for key, raw, record in encoded if self._put(change, raw, record, encoded_tags)]

        return self._write(work)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.set(key, value)

    def put_encoded(
        self, key: bytes, value: Any, ttl: TTL, tags: Iterable[str] | str, seconds: float = 0.0
    ) -> bool:
        """set() of an encoded key, whose value took so many seconds to make."""
        record = self._values.encode(value, self._deadline_ms(ttl), seconds)
        encoded_tags = _encode_tags(tags)
        return self._write(lambda change: self._put(change, key, record, encoded_tags))

    def _put(self, change: Change, key: bytes, record: bytes, tags: tuple[bytes, ...]) -> bool:
        if len(key) + len(record) > self._bytes_max:
            change.remove(key)  # what it has is not its value any more
            return False
        change.put(key, record, tags)
        return True

    def add(self, key: Any, value: Any, ttl: TTL = DEFAULT, tags: Iterable[str] | str = ()) -> bool:
        """Sets the value of a key that has none; whether it did, and keeps it. Atomic, as set()."""
        encoded, encoded_tags = encode_key(key), _encode_tags(tags)
        record = self._values.encode(value, self._deadline_ms(ttl), 0.0)

        def work(change: Change) -> bool:
            is_there = self._live(change, encoded) is not None
            return not is_there and self._put(change, encoded, record, encoded_tags)

        return self._write(work)

    def incr(self, key: Any, delta: int = 1, default: int | None = 0) -> int:
        """Adds to the number that a key has, and gives the sum; it keeps its deadline and its tags.

        default: what a key that is not there counts as; None: it is a KeyError. Atomic, as set().
        """
        encoded = encode_key(key)

        def work(change: Change) -> int:
            record = self._live(change, encoded)
            if record is None:
                if default is None:
                    raise KeyError(key)
                number, deadline_ms, meta = default, self._deadline_ms(DEFAULT), None
            else:
                number, deadline_ms = self.decode(encoded, record), head_of(record).deadline_ms
                meta = change.meta(encoded)
            if not isinstance(number, int):
                raise TypeError(f"expected an int to add to as {key!r}, found {type(number).__name__}")
            record = self._values.encode(number + delta, deadline_ms, 0.0)
            self._put(change, encoded, record, () if meta is None else meta.tags)
            return number + delta

        return self._write(work)

    def decr(self, key: Any, delta: int = 1, default: int | None = 0) -> int:
        """Takes from the number that a key has: incr() of -delta."""
        return self.incr(key, -delta, default)

    def pop(self, key: Any, default: Any = None) -> Any:
        """Removes a key and gives its value, or the default. Atomic, as set()."""
        encoded = encode_key(key)

        def work(change: Change) -> Any:
            record = self._live(change, encoded)
            # What cannot be read stays: delete() takes it out.
            value = default if record is None else self.decode(encoded, record)
            change.remove(encoded)
            return value

        return self._write(work)

    def touch(self, key: Any, ttl: TTL = DEFAULT) -> bool:
        """Gives a value another end; whether it is there. Writes the value anew."""
        encoded, deadline_ms = encode_key(key), self._deadline_ms(ttl)

        def work(change: Change) -> bool:
            record = self._live(change, encoded)
            if record is None:
                return False
            change.set_deadline(encoded, record, deadline_ms)
            return True

        return self._write(work)

    def delete(self, key: Any) -> bool:
        """Removes a key; whether it was there."""
        encoded = encode_key(key)

        def work(change: Change) -> bool:
            is_there = self._live(change, encoded) is not None
            change.remove(encoded)
            return is_there

        return self._write(work)

    def delete_many(self, keys: Iterable[Any]) -> int:
        """Removes keys in one commit; how many were there."""
        encoded = [encode_key(key) for key in keys]
        return self._write(lambda change: sum(change.remove(key) for key in encoded))

    def __delitem__(self, key: Any) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def evict(self, tag: str) -> int:
        """Removes the entries of a tag, 1,000 in a commit; how many. O(k log n)."""
        encoded = encode_tag(tag)
        return self._sweep(lambda change: _index.tagged_keys(change.index, encoded))

    def expire(self) -> int:
        """Removes the entries that are over, 1,000 in a commit; how many. O(k log n)."""
        now_ms = self.now_ms()
        count = self._sweep(lambda change: _index.expired_keys(change.index, now_ms))
        with self._counting:
            self._expirations += count
        return count

    def clear(self) -> int:
        """Removes all entries, 1,000 in a commit; how many. O(n log n)."""
        return self._sweep(lambda change: _index.ordered_keys(change.index))

    def cull(self) -> int:
        """Removes entries until the bound holds, 1,000 in a commit; how many.

        Each change does so by itself: this is for a cache that is opened with a lower bound.
        """
        count = 0
        while removed := self._write(self._make_room, makes_room=False):
            count += removed
        return count

    def _sweep(self, keys: Callable[[Change], Iterator[bytes]]) -> int:
        def work(change: Change) -> int:
            return sum(change.remove(key) for key in list(islice(keys(change), SWEPT_MAX)))

        count = 0
        while removed := self._write(work):
            count += removed
        return count

    def _make_room(self, change: Change) -> int:
        if change.size <= self._bytes_max and len(self._touched) < TOUCHED_MAX:
            return 0
        change.move(self._take_touched())
        expired, evicted = change.make_room(self._bytes_max, self.now_ms(), SWEPT_MAX)
        with self._counting:
            self._expirations += expired
            self._evictions += evicted
        return expired + evicted

    def _take_touched(self) -> dict[bytes, int]:
        with self._counting:
            touched, self._touched = self._touched, {}
        return touched

    def _end_change(self, change: Change) -> None:
        change.end()
        with self._counting:
            if change.sets != self._sets:
                self._sets, self._reads = change.sets, 0

    def _live(self, change: Change, key: bytes) -> bytes | None:
        """The record of a key in a change, unless it is over."""
        record = change.entries.get(key)
        if record is None:
            return None
        deadline_ms = head_of(record).deadline_ms
        return None if deadline_ms and self.now_ms() >= deadline_ms else record

    def _deadline_ms(self, ttl: TTL) -> int:
        """When what is set now is over: at least 1, as 0 stands for never."""
        given = self._ttl if ttl is DEFAULT else ttl
        if given is None:
            return 0
        seconds = given.total_seconds() if isinstance(given, timedelta) else given
        if not seconds >= 0:
            raise InvalidArgument(f"expected a ttl of at least 0 seconds, or None, found {given!r}")
        millis = self.clock() * 1000 + seconds * 1000
        return 0 if math.isinf(millis) else min(max(1, int(millis)), _MILLIS_MAX)

    def _write(self, work: Callable[[Change], T], *, makes_room: bool = True) -> T:
        """Makes a change in one commit, or a part of the one of transact()."""
        with self._writing:
            if self._change is not None:
                return self._within(self._change, work)

            def commit(transaction: Any) -> tuple[T, bool]:
                change = Change(transaction, self._entries, self._index)
                made = work(change)
                if makes_room:
                    self._make_room(change)
                self._end_change(change)
                return made, change.size > self._bytes_max

            made, is_over = self._store.exclusive(commit, durability=self._durability)
            if is_over and makes_room:
                self.cull()
            return made

    def _within(self, change: Change, work: Callable[[Change], T]) -> T:
        try:
            return work(change)
        except Error as error:
            # The store failed somewhere between entry and index: the block cannot be committed.
            self._is_broken = not isinstance(error, (InvalidArgument, Undecodable))
            raise

    @contextmanager
    def transact(self) -> Iterator[None]:
        """A block whose changes are one commit, or none if it fails. Others that change entries wait.

        Its thread sees what it has changed, all others what was there. Within a coroutine it must not
        await: other coroutines of the thread would be in the block, too.
        """
        with self._writing:
            if self._change is not None:
                yield  # a part of the block around it
                return
            with self._store.transaction(durability=self._durability) as transaction:
                change = Change(transaction, self._entries, self._index)
                self._change, self._owner, self._is_broken = change, get_ident(), False
                try:
                    yield
                    if self._is_broken:
                        raise Error("a change of this block failed in the store; run the block again")
                    self._make_room(change)
                    self._end_change(change)
                finally:
                    self._change = None
            if change.size > self._bytes_max:
                self.cull()

    def get_or_set(
        self,
        key: Any,
        make: Callable[[], T],
        *,
        ttl: TTL = DEFAULT,
        tags: Iterable[str] | str = (),
        early: float = 0.0,
    ) -> T:
        """The value of a key, which a function makes if there is none.

        While one thread of this process makes it, others wait for what it returns; if it raises, one
        of them tries. A value that cannot be read is made anew. early: above 0, the value is made anew
        by one caller before it is over, with a chance that grows towards its end and with the time it
        took to make; 1 is a good choice, more is earlier. Others get the old value meanwhile.
        """
        encoded = encode_key(key)
        found, is_due = self.look(encoded, early)
        while found is MISSING or is_due:
            if self._is_in_block():
                # To wait here, with the block open, could be to wait for one that waits for the block.
                found = self._make(encoded, make, ttl, tags)
                break
            flight, is_maker = self.flights.join(encoded)
            if not is_maker:
                if found is not MISSING:
                    break
                if (landed := flight.wait()) is not None:
                    found = landed[0]
                    break
                found, is_due = self.look(encoded, early, counts=False)
                continue
            try:
                # Another may have made it between the look and the flight.
                found, is_due = self.look(encoded, early, counts=False)
                if found is MISSING or is_due:
                    found, is_due = self._make(encoded, make, ttl, tags), False
                flight.result = (found,)
            finally:
                self.flights.end(encoded, flight)
        value: T = found
        return value

    def _make(
        self, encoded: bytes, make: Callable[[], T], ttl: TTL, tags: Iterable[str] | str
    ) -> T:
        began = self.clock()
        made = make()
        self.put_encoded(encoded, made, ttl, tags, max(0.0, self.clock() - began))
        return made

    def look(self, encoded: bytes, early: float = 0.0, *, counts: bool = True) -> tuple[Any, bool]:
        """The value of an encoded key, or MISSING, and whether it is to be made anew before its end."""
        record = self.find(encoded)
        value = MISSING
        if record is not None:
            try:
                value = self.decode(encoded, record)
            except Undecodable:
                record = None
        if counts:
            self._count(encoded, record)
        if record is None or early <= 0:
            return value, False
        head = head_of(record)
        if not head.deadline_ms:
            return value, False
        # "Optimal probabilistic cache stampede prevention", Vattani and others, 2015.
        ahead = head.seconds * early * -math.log(1.0 - self._random())
        return value, self.clock() + ahead >= head.deadline_ms / 1000

    def _end(self, failed: bool) -> None:
        self.close()

    def close(self) -> None:
        """Writes which keys were read last, and closes the store if the cache opened it. Again: nothing."""
        if self._store.closed:
            return
        touched = self._take_touched()
        try:
            if touched and not self._store.read_only:
                self._write(lambda change: change.move(touched))
        finally:
            if self._owned:
                self._store.close()


def _encode_tags(tags: Iterable[str] | str) -> tuple[bytes, ...]:
    """Tags as bytes, each once; a str is one tag."""
    names = (tags,) if isinstance(tags, str) else tags
    return tuple(dict.fromkeys(encode_tag(tag) for tag in names))
