"""Stores that several objects of a process share by their path, as one process opens a store once."""

from __future__ import annotations

import os
import sys
import threading
import weakref

from adamant._store import Path, Store
from adamant._store import open as open_store

_lock = threading.Lock()
_stores: weakref.WeakValueDictionary[tuple[int, str, bool], Store] = weakref.WeakValueDictionary()


def shared_store(path: Path, *, read_only: bool = False) -> Store:
    """The store at a path, opened unless this process has it; closed when its last user lets it go.

    read_only: the one that this process writes, if it does; else beside the process that does. A fork's
    child opens its own, which is adamant.Locked while the parent has the store open.
    """
    place = os.getpid(), os.path.realpath(os.fsdecode(path))
    with _lock:
        for beside in (False, True) if read_only else (False,):
            store = _stores.get((*place, beside))
            if store is not None and not store.closed:
                return store
        store = open_store(path, create=not read_only, beside_writer=read_only)
        _stores[*place, read_only] = store
        return store


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_lock)
