"""A dbm database that is a store: adamant.dbm.open(path, flag, mode), as dbm.open of the standard library.

The database is a keyspace, in the order of its keys. Each change is one commit, and so is update(). It
survives the end of the process at once, and power loss after sync() or close().
"""

from __future__ import annotations

import contextlib
import dbm as standard
import errno
import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeAlias

from adamant._errors import InvalidArgument, UnknownKeyspace
from adamant._mapping import Keyspace
from adamant._store import Durability, Path, Store
from adamant._store import open as open_store

__all__ = ["Database", "error", "open", "whichdb"]

# As in dbm.dumb: whatever the system or a store refuses is one.
error: Final = OSError

Flag: TypeAlias = Literal["r", "w", "c", "n"]
Text: TypeAlias = bytes | str


class Database(MutableMapping[Text, Text]):
    """An open database, from open(): a mapping of bytes. A str that is given is its UTF-8.

    A read costs O(log n) and touches the device only for pages that are not in memory; a change is one
    commit, O(log n). As a context manager it closes itself. Any number of threads may use it.
    """

    __slots__ = ("_open", "_store")

    def __init__(self, store: Store, keyspace: Keyspace[bytes, bytes]) -> None:
        self._store = store
        self._open: Keyspace[bytes, bytes] | None = keyspace

    @property
    def keyspace(self) -> Keyspace[bytes, bytes]:
        """The keyspace that the entries are in."""
        if self._open is None:
            raise error(errno.EBADF, "the database is closed; open it again")
        return self._open

    def __getitem__(self, key: Text) -> bytes:
        value = self.keyspace.get(_bytes(key))
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Text, value: Text) -> None:
        self.keyspace.put(_bytes(key), _bytes(value))

    def __delitem__(self, key: Text) -> None:
        if not self.keyspace.discard(_bytes(key)):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return _bytes(key) in self.keyspace

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.keyspace)

    def __len__(self) -> int:
        """How many entries there are. O(1)."""
        return len(self.keyspace)

    def keys(self) -> list[bytes]:  # type: ignore[override]  # as of all modules of dbm
        """All keys, as a list, in order. O(n)."""
        return list(self.keyspace)

    def get(self, key: Text, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self.keyspace.get(_bytes(key), default)

    def setdefault(self, key: Text, default: Text = b"") -> bytes:
        """The value of a key; if it has none, it gets this one. Atomic."""
        return self.keyspace.setdefault(_bytes(key), _bytes(default))

    def update(  # type: ignore[override]  # str is converted, and all is one commit
        self, other: Mapping[Text, Text] | Iterable[tuple[Text, Text]] = (), /, **others: Text
    ) -> None:
        """Sets the values of many keys in one commit."""
        entries = dict(other, **others)
        self.keyspace.update({_bytes(key): _bytes(value) for key, value in entries.items()})

    def clear(self) -> None:
        """Removes all entries, in one commit."""
        self.keyspace.clear()

    def firstkey(self) -> bytes | None:
        """The lowest key, None if there is none. O(log n)."""
        return next(iter(self.keyspace), None)

    def nextkey(self, key: Text) -> bytes | None:
        """The key behind one, None behind the last. O(log n)."""
        return next(iter(self.keyspace.keys(start=_bytes(key) + b"\0")), None)

    def reorganize(self) -> None:
        """Gives free space back to the file system. O(n)."""
        self.keyspace.compact()
        self._store.shrink()

    def sync(self) -> None:
        """Makes all changes survive power loss: waits for the device."""
        if self.keyspace is not None and not self._store.read_only:
            self._store.sync()

    def close(self) -> None:
        """Makes all changes survive power loss, and lets the store go. Again: does nothing."""
        self._open = None
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<adamant.dbm.Database of {self._store!r}>"


def open(
    file: Path,
    flag: Flag = "r",
    mode: int = 0o666,
    *,
    keyspace: str = "dbm",
    durability: Durability = "buffered",
) -> Database:
    """Opens the database at a path, which is a directory.

    flag: "r" reads what is there, also beside a process that writes it, as it is now; "w" writes what is
        there; "c" creates it if there is nothing; "n" empties it, in one commit, or creates it.
    mode: permissions of a directory that is created, less the umask; who may read may also enter.
    keyspace: where in the store the entries are. durability: what each change waits for.

    One process may have it open for writing: others get adamant.Locked, an error that names that one.
    What opening costs is bounded by the log of the store, not by the entries.
    """
    if flag not in ("r", "w", "c", "n"):
        raise InvalidArgument(f"expected r, w, c or n as flag, found {flag!r}")
    creates = flag in ("c", "n")
    if creates:
        _make_room(file, flag, mode)
    reads = flag == "r"
    store = open_store(file, create=creates, beside_writer=reads, durability=durability)
    try:
        entries = store.keyspace(keyspace)
        if flag == "n":
            entries.clear()
    except UnknownKeyspace as unknown:
        store.close()
        raise error(errno.ENOENT, str(unknown), os.fsdecode(file)) from unknown
    except BaseException:
        store.close()
        raise
    return Database(store, entries)


def whichdb(filename: Path) -> str | None:
    """Which module opens what is at a path: "adamant.dbm" for a store, else as dbm.whichdb says."""
    if os.path.isfile(os.path.join(os.fsdecode(filename), "pool")):
        return "adamant.dbm"
    return standard.whichdb(os.fsdecode(filename))


def _make_room(file: Path, flag: str, mode: int) -> None:
    """A directory for a new store, with these permissions. An empty file of another database goes."""
    if flag == "n" and os.path.isfile(file) and os.path.getsize(file) == 0:
        os.unlink(file)
    with contextlib.suppress(FileExistsError):
        os.mkdir(file, mode | (mode & 0o444) >> 2)


def _bytes(text: object) -> bytes:
    if isinstance(text, str):
        return text.encode("utf-8")
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"expected bytes or str as key and value of a dbm, found {type(text).__name__}")
