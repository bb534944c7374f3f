"""A cache in a store: bounded, with expiry and tags, whole after a crash.

    from adamant.cache import Cache, memoize

    cache = Cache("cache.adamant", bytes_max=100 << 20)

    @memoize(cache, ttl=3600)
    def page(address): ...

Entry and index change in one commit, so a crash leaves no half of an entry. One process writes a cache;
others read it beside that one (read_only=True, refresh). adamant.cache.cachelib and adamant.cache.dogpile
are backends for the packages of these names.
"""

from adamant.cache._cache import Cache
from adamant.cache._encoding import Codec
from adamant.cache._memoize import Memoized, memoize
from adamant.cache._reads import DEFAULT, MISSING, Policy, Statistics

__all__ = [
    "DEFAULT",
    "MISSING",
    "Cache",
    "Codec",
    "Memoized",
    "Policy",
    "Statistics",
    "memoize",
]
