"""Shelves in a store: adamant.shelf.open, as shelve.open; or Shelf over any keyspace of bytes.

    import adamant.shelf

    with adamant.shelf.open("app.shelf") as shelf:
        shelf["point"] = {"x": 1}

Values are pickles: open only what you trust.
"""

from __future__ import annotations

import pickle
import shelve
from collections.abc import MutableMapping
from typing import Any, TypeVar

from adamant import dbm
from adamant._errors import Undecodable
from adamant._store import Path

__all__ = ["DbfilenameShelf", "Shelf", "open"]

V = TypeVar("V")


class Shelf(shelve.Shelf[V]):
    """A mapping of str to whatever can be pickled, over one of bytes to bytes.

    As shelve.Shelf, but for three things: a pickle that cannot be read is an adamant.Undecodable that
    names its key, sync() and close() write back in one commit, and get() reads once. A read costs
    O(log n) and the pickle; a change is one commit. Threads may share it, unless it writes back.
    """

    dict: MutableMapping[bytes, bytes]
    cache: MutableMapping[str, V]
    keyencoding: str
    writeback: bool
    _protocol: int

    def __getitem__(self, key: str) -> V:
        if key in self.cache:
            return self.cache[key]
        written = self.dict[key.encode(self.keyencoding)]
        try:
            value: V = pickle.loads(written)
        except Exception as error:
            # A pickle that is no pickle, or of a class that is gone, may raise anything.
            raise Undecodable(
                f"the value of {key!r} cannot be read as pickle: {type(error).__name__}: {error}; "
                "set it again or delete it"
            ) from error
        if self.writeback:
            self.cache[key] = value
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or the default."""
        try:
            return self[key]
        except KeyError:
            return default

    def sync(self) -> None:
        """Writes back what was read, in one commit, if this shelf does; then waits for the device.

        Of a keyspace it does not wait: call the store's sync().
        """
        if self.writeback and self.cache:
            encoding, protocol = self.keyencoding, self._protocol
            self.dict.update(
                {key.encode(encoding): pickle.dumps(value, protocol) for key, value in self.cache.items()}
            )
            self.cache = {}
        if hasattr(self.dict, "sync"):
            self.dict.sync()


class DbfilenameShelf(Shelf[V]):
    """A shelf of a path, which open() opens."""

    def __init__(
        self, filename: Path, flag: dbm.Flag = "c", protocol: int | None = None, writeback: bool = False
    ) -> None:
        database: Any = dbm.open(filename, flag, keyspace="shelf")
        super().__init__(database, protocol, writeback)


def open(
    filename: Path, flag: dbm.Flag = "c", protocol: int | None = None, writeback: bool = False
) -> DbfilenameShelf[Any]:
    """Opens the shelf at a path, which is a directory. The flags are those of adamant.dbm.open.

    protocol: of the pickles. writeback: objects that were read are kept in memory, and written back by
    sync() and close(), so that what is changed in them is not lost; that costs memory and time for all
    that was read.
    """
    return DbfilenameShelf(filename, flag, protocol, writeback)
