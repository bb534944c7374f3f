"""Caches that several objects of a process share by their path, as one process opens a store once."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any

from adamant._errors import InvalidArgument
from adamant._store import Path
from adamant.cache._cache import Cache

_lock = threading.Lock()
_shared: weakref.WeakValueDictionary[tuple[int, str, str], Cache] = weakref.WeakValueDictionary()
_options: weakref.WeakKeyDictionary[Cache, dict[str, Any]] = weakref.WeakKeyDictionary()


def shared(path: Path, name: str, **options: Any) -> Cache:
    """The cache of a path and a name, opened unless this process has it; let go with its last user.

    A fork's child opens its own, which is adamant.Locked while the parent has the store open.
    """
    place = os.getpid(), os.path.realpath(os.fsdecode(path)), name
    with _lock:
        cache = _shared.get(place)
        if cache is None or cache.store.closed:
            cache = Cache(_store_at(place[:2]) or path, name, **options)
            _shared[place], _options[cache] = cache, options
        elif options != _options[cache]:
            raise InvalidArgument(
                f"this process has the cache {name!r} of {place[1]} open with {_options[cache]}, expected "
                f"the same, found {options}; give the same options, or another name"
            )
        return cache


def _store_at(place: tuple[int, str]) -> Any:
    """The store that another cache of this process has open there."""
    stores = [cache.store for key, cache in _shared.items() if key[:2] == place]
    return next((store for store in stores if not store.closed), None)


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_lock)
