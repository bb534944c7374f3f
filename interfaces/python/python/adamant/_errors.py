"""The exceptions, as a tree under Error.

A key that is not there is a KeyError, as of every mapping; an object of the wrong type is a TypeError.
"""


class Error(Exception):
    """Whatever a store is the cause of. Its words say what was expected and found, and what to do."""

    __module__ = "adamant"


class InvalidArgument(Error, ValueError):
    """A key, value, name, range or option that a store cannot take. Nothing was changed."""

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


class Missing(Error, FileNotFoundError):
    """There is no store at the path."""

    __module__ = "adamant"


class TargetExists(Error, FileExistsError):
    """Something is where a new store is to be made."""

    __module__ = "adamant"


class Locked(Error):
    """Another process, or another handle of this one, has the store open."""

    __module__ = "adamant"


class ReadOnly(Error):
    """The store was opened for reading only."""

    __module__ = "adamant"


class OutOfSpace(Error):
    """The device is full. The call did nothing; reads and removes still work."""

    __module__ = "adamant"


class Poisoned(Error):
    """A write or sync failed: the store refuses writes until it is opened again."""

    __module__ = "adamant"


class Damaged(Error):
    """Something durable is not what was written: run a check, restore a backup."""

    __module__ = "adamant"


class Unsupported(Error):
    """This is no store, or one of a newer version."""

    __module__ = "adamant"
