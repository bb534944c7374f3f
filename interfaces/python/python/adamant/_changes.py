"""The feed of changes: commits in order, live and from the past; cursors of those that read it."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from datetime import timedelta
from typing import Literal, NamedTuple, Self, TypeAlias

from adamant import _native
from adamant._block import Block

What: TypeAlias = Literal[
    "put",
    "removed",
    "moved",
    "swapped",
    "range removed",
    "cleared",
    "created",
    "dropped",
    "renamed",
    "exchanged",
    "loaded",
]


class Change(NamedTuple):
    """Something that a commit changed. What does not belong to its kind is None.

    kind: what happened:
        "put": key has this value, until the deadline if the keyspace is one of entries that end.
        "removed": key has no value.
        "moved": the value of key became that of target_key in the keyspace target.
        "swapped": both exchanged their values.
        "range removed": no key from start on, before stop, has a value; None: no bound.
        "loaded": entries were loaded from start on, before stop; they are not listed: read them.
        "created", "cleared", "dropped": the keyspace was made, emptied, taken out.
        "renamed": the keyspace is called new_name since.
        "exchanged": the keyspaces keyspace and target exchanged their names.
    keyspace, target: names, as they were then.
    keyspace_id, target_id: numbers of keyspaces, which stay when they are renamed.
    key, value, target_key, start, stop: bytes, whatever codec a handle to the keyspace has.
    deadline: seconds since 1970.
    """

    kind: What
    keyspace: str
    keyspace_id: int
    key: bytes | None = None
    value: bytes | None = None
    deadline: float | None = None
    target: str | None = None
    target_id: int | None = None
    target_key: bytes | None = None
    start: bytes | None = None
    stop: bytes | None = None
    new_name: str | None = None


class Commit(NamedTuple):
    """A commit of the feed: commits are numbered one by one, in the order in which they came."""

    number: int
    changes: tuple[Change, ...]


class ChangesInfo(NamedTuple):
    """The commits that the history of changes has, from first to last, and the bytes they take."""

    first: int
    last: int
    bytes: int
    bytes_max: int


class Changes(_native.Changes, Block):
    """Commits in order, from Store.changes(): an iterator. As a context manager it closes itself."""

    __slots__ = ("_timeout",)

    _timeout: float | timedelta | None

    def __init__(
        self, store: _native.Store, after: int = 0, timeout: float | timedelta | None = None
    ) -> None:
        self._timeout = timeout

    def next(self, timeout: float | timedelta | None = None) -> Commit | None:
        """The next commit; None if there is none within the timeout, which None makes endless."""
        found = self._next(timeout)
        if found is None:
            return None
        number, changes = found
        return Commit(number, tuple(Change(*change) for change in changes))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Commit:
        commit = self.next(self._timeout)
        if commit is None:
            raise StopIteration
        return commit

    def _end(self, failed: bool) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"after {self.after}"
        return f"<adamant.Changes {state}>"


class Cursors(MutableMapping[str, int]):
    """Cursors by name: numbers of the last commits of the feed that their owners are done with.

    Setting one is a commit that is not in the feed. Batch.set_cursor and Transaction.set_cursor do it
    in the commit of what its owner made of the feed, so that each commit is taken exactly once.
    """

    __slots__ = ("_store",)

    def __init__(self, store: _native.Store) -> None:
        self._store = store

    def __getitem__(self, name: str) -> int:
        number = self._store._cursor(name)
        if number is None:
            raise KeyError(name)
        return number

    def __setitem__(self, name: str, number: int) -> None:
        self._store._set_cursor(name, number)

    def __delitem__(self, name: str) -> None:
        self[name]
        self._store._set_cursor(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._store._cursors()])

    def __len__(self) -> int:
        return len(self._store._cursors())

    def __repr__(self) -> str:
        return f"<adamant.Cursors {dict(self._store._cursors())}>"
