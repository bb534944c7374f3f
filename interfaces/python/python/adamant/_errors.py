"""The exceptions, as a tree under Error.

A key that is not there is a KeyError, as of every mapping; an object of the wrong type is a TypeError,
and where it was looked for as a key, both. What opening a store can fail with is an OSError with its
errno, but for an InvalidArgument.
"""

from __future__ import annotations

import errno
from typing import Any


class Error(Exception):
    """Whatever a store is the cause of. Its words say what was expected and found, and what to do."""

    __module__ = "adamant"


class InvalidArgument(Error, ValueError):
    """A key, value, name, range or option that a store cannot take. Nothing was changed."""

    __module__ = "adamant"


class NotAKey(Error, KeyError, TypeError):
    """No key of the keyspace can be such an object, so it is not there."""

    __module__ = "adamant"

    def __str__(self) -> str:
        # KeyError would show how the words are written in Python.
        return str(self.args[0])


class _System(Error, OSError):
    """What is also an OSError: str is the words, errno what the system said, or else what fits."""

    _errno = errno.EIO

    def __init__(self, words: str, number: int | None = None, filename: Any = None) -> None:
        super().__init__(self._errno if number is None else number, words, filename)

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.strerror, self.errno, self.filename)


class Undecodable(Error, ValueError):
    """The bytes of a value are not what was to have written them, such as a pickle: set it again."""

    __module__ = "adamant"


class Closed(Error):
    """The store, snapshot, transaction or batch was closed before."""

    __module__ = "adamant"


class Forked(Error):
    """The store was opened before a fork, and this is the child."""

    __module__ = "adamant"


class Conflict(Error):
    """Another commit changed what a transaction read. It did nothing: run it again (Store.run)."""

    __module__ = "adamant"


class SnapshotExpired(Error):
    """A snapshot was ended since what was kept for it took too much memory."""

    __module__ = "adamant"


class UnknownKeyspace(Error, LookupError):
    """There is no keyspace of that name."""

    __module__ = "adamant"


class KeyspaceExists(Error):
    """There is a keyspace of that name already."""

    __module__ = "adamant"


class KeyspaceDropped(Error):
    """The keyspace of this handle was dropped."""

    __module__ = "adamant"


class WrongEngine(Error):
    """The keyspace is kept by another engine than the one asked for."""

    __module__ = "adamant"


class NotExpiring(Error):
    """The keyspace of that name holds entries that were not made to end."""

    __module__ = "adamant"


class WrongKind(Error):
    """The keyspace of that name has entries of another kind: those that end, deadlines, changes."""

    __module__ = "adamant"


class WrongTypes(Error, TypeError):
    """The keyspace has keys or values of other types than were asked for: Keyspace.types says which."""

    __module__ = "adamant"


class ChangesNotRecorded(Error):
    """The store does not record changes: Store.record_changes begins."""

    __module__ = "adamant"


class ChangesUnknown(Error):
    """The history of changes has the commits from first to last, and not all of those behind after."""

    __module__ = "adamant"

    def __init__(self, words: str, after: int = 0, first: int = 0, last: int = 0) -> None:
        super().__init__(words)
        self.after, self.first, self.last = after, first, last

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.after, self.first, self.last)


class Missing(_System, FileNotFoundError):
    """There is no store at the path."""

    __module__ = "adamant"
    _errno = errno.ENOENT


class TargetExists(_System, FileExistsError):
    """Something is where a new store is to be made."""

    __module__ = "adamant"
    _errno = errno.EEXIST


class Locked(_System, BlockingIOError):
    """Another process, or another handle of this one, has the store open."""

    __module__ = "adamant"
    _errno = errno.EAGAIN


class KeyNeeded(_System, PermissionError):
    """The store is encrypted, and no key was given."""

    __module__ = "adamant"
    _errno = errno.EACCES


class WrongKey(_System, PermissionError):
    """The store is encrypted by another key than was given. Nothing was changed."""

    __module__ = "adamant"
    _errno = errno.EACCES


class NotEncrypted(_System):
    """A key was given, and the store is not encrypted."""

    __module__ = "adamant"
    _errno = errno.EINVAL


class TimedOut(_System, TimeoutError):
    """Others wrote for longer than was to be waited. Nothing was done: try again later."""

    __module__ = "adamant"
    _errno = errno.ETIMEDOUT


class ReadOnly(_System):
    """The store was opened for reading only."""

    __module__ = "adamant"
    _errno = errno.EROFS


class OutOfSpace(_System):
    """The device is full. The call did nothing; reads and removes still work."""

    __module__ = "adamant"
    _errno = errno.ENOSPC


class Poisoned(_System):
    """A write or sync failed: the store refuses writes until it is opened again."""

    __module__ = "adamant"


class Damaged(_System):
    """Something durable is not what was written: run a check, restore a backup."""

    __module__ = "adamant"
    _errno = errno.EBADMSG


class Unsupported(_System):
    """This is no store, or one of a newer version."""

    __module__ = "adamant"
    _errno = errno.EINVAL


class Refused(_System):
    """The system refused what the store asked of it: errno and the words say why."""

    __module__ = "adamant"


class Denied(Refused, PermissionError):
    """The system does not permit it."""

    __module__ = "adamant"
    _errno = errno.EACCES
