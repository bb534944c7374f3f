"""Caches that several objects of a process share by path and name."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any

from adamant._errors import InvalidArgument
from adamant._shared import shared_store
from adamant._store import Path, Store
from adamant.cache._cache import Cache

_lock = threading.RLock()
_caches: weakref.WeakKeyDictionary[Store, weakref.WeakValueDictionary[str, Cache]]
_caches = weakref.WeakKeyDictionary()
_options: weakref.WeakKeyDictionary[Cache, dict[str, Any]] = weakref.WeakKeyDictionary()


def shared(path: Path, name: str, **options: Any) -> Cache:
    """The cache of a name in the store of a path, which this process opens once."""
    store = shared_store(path)
    with _lock:
        caches = _caches.setdefault(store, weakref.WeakValueDictionary())
        cache = caches.get(name)
        if cache is None:
            caches[name] = cache = Cache(store, name, **options)
            _options[cache] = options
        elif options != _options[cache]:
            raise InvalidArgument(
                f"this process has the cache {name!r} of {store.path} open with {_options[cache]}, found "
                f"{options}; give the same options, or another name"
            )
        return cache


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew_lock)
