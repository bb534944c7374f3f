"""Keyspaces as mappings: what the native classes get from collections.abc, and ranges.

Reads and writes of single keys are native. What is here makes views and ranges, whose iterators are
native again, so nothing of this is paid for an entry.
"""

from __future__ import annotations

from collections.abc import (
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    MutableMapping,
    ValuesView,
)
from typing import (
    Any,
    Generic,
    NamedTuple,
    Protocol,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from adamant import _native
from adamant._arrays import ReadsArrays, WritesArrays
from adamant._errors import InvalidArgument
from adamant.typed import type_name

K = TypeVar("K")
V = TypeVar("V")
K_contra = TypeVar("K_contra", contravariant=True)
V_co = TypeVar("V_co", covariant=True)
L = TypeVar("L")
W = TypeVar("W")


class _HasKeys(Protocol[K, V_co]):
    def keys(self) -> Iterable[K]: ...

    def __getitem__(self, key: K, /) -> V_co: ...


class _Part(TypedDict, Generic[K], total=False):
    """What keys(), values() and items() take, by name: which part of a keyspace, and which way.

    Keys from start on, before stop, that begin with prefix, as far as given; in order, or in reverse.
    Of tuples each may be the first parts.
    """

    start: K | tuple[Any, ...] | None
    stop: K | tuple[Any, ...] | None
    prefix: K | tuple[Any, ...] | None
    reverse: bool


class _Span:
    """A part of a keyspace, by its keys: from start on, before stop, that begin with prefix."""

    __slots__ = ("prefix", "reader", "reverse", "start", "stop")

    def __init__(
        self,
        reader: _native.Reader[Any, Any],
        start: Any = None,
        stop: Any = None,
        prefix: Any = None,
        reverse: bool = False,
    ) -> None:
        self.reader = reader
        self.start = start
        self.stop = stop
        self.prefix = prefix
        self.reverse = reverse

    def iterate(self, kind: str, *, backwards: bool = False) -> Iterator[Any]:
        reverse = self.reverse != backwards
        return self.reader._iterate(kind, self.start, self.stop, self.prefix, reverse)

    def count(self) -> int:
        if self.is_all():
            return len(self.reader)
        return self.reader._count(self.start, self.stop, self.prefix)

    def is_all(self) -> bool:
        return self.start is None and self.stop is None and self.prefix is None

    def spans(self, key: Any) -> bool:
        return self.reader._spans(key, self.start, self.stop, self.prefix)

    def __repr__(self) -> str:
        named = [
            f"{name}={value!r}"
            for name in ("start", "stop", "prefix")
            if (value := getattr(self, name)) is not None
        ]
        return ", ".join([repr(self.reader), *named] + (["reverse=True"] if self.reverse else []))


class _Merging(Mapping[K, V]):
    """What dict has beside what mappings have. A copy is a dict: of what is there now, in that order."""

    __slots__ = ()

    def copy(self) -> dict[K, V]:
        """All entries, as a dict."""
        return dict(self.items())

    def __or__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(self.items()) | dict(other.items())

    def __ror__(self, other: Mapping[Any, Any]) -> dict[Any, Any]:
        if not isinstance(other, Mapping):
            return NotImplemented
        return dict(other.items()) | dict(self.items())


class Range(_Merging[K, V]):
    """The entries of a part of a keyspace, as a mapping: ks[b"a":b"f"].

    It holds no entries: it looks at the keyspace whenever it is asked. Counting it is a walk over it.
    """

    __slots__ = ("_span",)

    def __init__(self, span: _Span) -> None:
        self._span = span

    def __getitem__(self, key: K) -> V:
        if isinstance(key, slice):
            raise TypeError("a range has no ranges; give both bounds to the keyspace at once")
        if not self._span.spans(key):
            raise KeyError(key)
        value: V = self._span.reader[key]
        return value

    def __contains__(self, key: object) -> bool:
        return self._span.spans(key) and key in self._span.reader

    def __iter__(self) -> Iterator[K]:
        return self._span.iterate("keys")

    def __reversed__(self) -> Iterator[K]:
        return self._span.iterate("keys", backwards=True)

    def __len__(self) -> int:
        return self._span.count()

    def __bool__(self) -> bool:
        return next(self._span.iterate("keys"), None) is not None

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> KeysView[K]:
        return _Keys(self, self._span)

    def values(self) -> ValuesView[V]:
        return _Values(self, self._span)

    def items(self) -> ItemsView[K, V]:
        return _Items(self, self._span)

    def __repr__(self) -> str:
        return f"<adamant.Range of {self._span!r}>"


# What a view inherits asks its mapping; so that of a part is over a mapping of that part, a Range.


class _Keys(KeysView[K]):
    __slots__ = ("_span",)

    def __init__(self, mapping: Mapping[K, Any], span: _Span) -> None:
        super().__init__(mapping)
        self._span = span

    def __iter__(self) -> Iterator[K]:
        return self._span.iterate("keys")

    def __reversed__(self) -> Iterator[K]:
        return self._span.iterate("keys", backwards=True)

    def __len__(self) -> int:
        return self._span.count()

    def __repr__(self) -> str:
        return f"<keys of {self._span!r}>"


class _Values(ValuesView[V]):
    __slots__ = ("_span",)

    def __init__(self, mapping: Mapping[Any, V], span: _Span) -> None:
        super().__init__(mapping)
        self._span = span

    def __iter__(self) -> Iterator[V]:
        return self._span.iterate("values")

    def __reversed__(self) -> Iterator[V]:
        return self._span.iterate("values", backwards=True)

    def __len__(self) -> int:
        return self._span.count()

    def __repr__(self) -> str:
        return f"<values of {self._span!r}>"


class _Items(ItemsView[K, V]):
    __slots__ = ("_span",)

    def __init__(self, mapping: Mapping[K, V], span: _Span) -> None:
        super().__init__(mapping)
        self._span = span

    def __iter__(self) -> Iterator[tuple[K, V]]:
        return self._span.iterate("items")

    def __reversed__(self) -> Iterator[tuple[K, V]]:
        return self._span.iterate("items", backwards=True)

    def __contains__(self, item: object) -> bool:
        # As dict: what is no pair is no entry.
        return isinstance(item, tuple) and len(item) == 2 and super().__contains__(item)

    def __len__(self) -> int:
        return self._span.count()

    def __repr__(self) -> str:
        return f"<items of {self._span!r}>"


def _equal(one: Mapping[Any, Any], other: object) -> bool:
    """Whether two mappings have the same entries; what is stored is walked over, not gathered."""
    if not isinstance(other, Mapping):
        return NotImplemented  # type: ignore[no-any-return]
    if isinstance(other, (_Readable, Range)) and _key_codec(one) == _key_codec(other):
        # Both are in the order of their keys, which is that of their bytes.
        mine, others = iter(_ascending(one)), iter(_ascending(other))
        return all(pair == next(others, None) for pair in mine) and next(others, None) is None
    absent = object()
    found = 0
    for key, value in one.items():
        there = other.get(key, absent)
        if there is absent or there != value:
            return False
        found += 1
    return found == len(other)


def _key_codec(mapping: Any) -> str | None:
    reader = mapping._span.reader if isinstance(mapping, Range) else mapping
    codec: str | None = reader.key_codec
    return codec


def _ascending(mapping: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    if isinstance(mapping, Range):
        span = mapping._span
        return span.reader._iterate("items", span.start, span.stop, span.prefix, False)
    return iter(mapping.items())


class _Readable(_Merging[K, V], ReadsArrays[K]):
    """What keyspaces have in common, wherever they are looked at."""

    __slots__ = ()

    def keys(self, **part: Unpack[_Part[K]]) -> KeysView[K]:
        """The keys from start on, before stop, that begin with prefix, in order, or in reverse."""
        return _Keys(*self._part(part))

    def values(self, **part: Unpack[_Part[K]]) -> ValuesView[V]:
        """The values of the keys that keys() gives, in their order."""
        return _Values(*self._part(part))

    def items(self, **part: Unpack[_Part[K]]) -> ItemsView[K, V]:
        """The entries of the keys that keys() gives, in their order."""
        return _Items(*self._part(part))

    def _part(self, part: _Part[K]) -> tuple[Mapping[K, V], _Span]:
        span = _Span(self, **part)  # type: ignore[arg-type]
        return (self if span.is_all() else Range(span)), span

    def _range(self, keys: slice) -> Range[K, V]:
        if keys.step is not None:
            raise InvalidArgument(
                "a range of keys has no step; iterate backwards by reverse=True or reversed()"
            )
        return Range(_Span(self, keys.start, keys.stop))  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return _equal(self, other)

    __hash__ = None  # type: ignore[assignment]


class _Writable(_Readable[K, V], MutableMapping[K, V]):
    """The same of those that can be written."""

    __slots__ = ()

    # A dict stays a dict by `|=`, too, but what `|` gives is another one.
    def __ior__(  # type: ignore[misc, override]
        self, other: Mapping[K, V] | Iterable[tuple[K, V]]
    ) -> Self:
        self.update(other)
        return self


def _described(reader: _native.Reader[Any, Any]) -> str:
    codecs = "".join(
        f" {name}={codec}"
        for name, codec in (("keys", reader.key_codec), ("values", reader.value_codec))
        if codec is not None
    )
    return f"<adamant.{type(reader).__name__} {reader.name!r} engine={reader.engine}{codecs}>"


class RangeEstimate(NamedTuple):
    """About how many entries a part of a keyspace has, of how many bytes; whether they were counted."""

    entries: int
    bytes: int
    is_exact: bool


class Keyspace(_native.Keyspace[K, V], _Writable[K, V], WritesArrays[K]):
    """An ordered mapping in a store: each change is a commit, and atomic beside other threads."""

    __slots__ = ()

    def estimate(
        self, *, start: K | None = None, stop: K | None = None, prefix: K | None = None
    ) -> RangeEstimate:
        """About how many entries there are from start on, before stop, that begin with prefix.

        They are not visited: the engine bplus reads some hundred blocks and is right within some tenths,
        mostly within some hundredths; lsm reads indexes and no data; the others count up to 1,000, and
        are right within a tenth of all entries beyond.
        """
        return RangeEstimate(*self._estimate(start, stop, prefix))

    def update(
        self, other: Mapping[K, V] | _HasKeys[K, V] | Iterable[tuple[K, V]] = (), /, **others: V
    ) -> None:
        """Sets the values of many keys, in one commit. Takes what dict.update takes."""
        self._update(other, others)

    @overload
    def typed(self) -> Keyspace[Any, Any]: ...

    @overload
    def typed(self, key: type[L], value: type[W]) -> Keyspace[L, W]: ...

    @overload
    def typed(self, key: type[L], value: object) -> Keyspace[L, Any]: ...

    @overload
    def typed(self, key: object, value: type[W]) -> Keyspace[Any, W]: ...

    @overload
    def typed(self, key: object, value: object) -> Keyspace[Any, Any]: ...

    def typed(self, key: object = ..., value: object = ...) -> Keyspace[Any, Any]:
        """The same keyspace with types for its keys and values, which are as Rust programs write them.

        The order is that of the keys: of numbers, text, and tuples part by part. The types are recorded
        the first time, while there is no entry; from then on others are WrongTypes. Without arguments
        they are the recorded ones. See adamant.typed, and Keyspace.types.
        """
        if key is not ... or value is not ...:
            return Keyspace(self, self.name, types=(type_name(key), type_name(value)))
        types = self.types
        if types is None:
            raise InvalidArgument(
                f"no types of the keyspace {self.name!r} are recorded; give those of keys and values"
            )
        return Keyspace(self, self.name, types=types)

    def __repr__(self) -> str:
        return _described(self)


class SnapshotKeyspace(_native.SnapshotReader[K, V], _Readable[K, V]):
    """A keyspace as a snapshot saw it, to be read."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _described(self)


class TransactionKeyspace(_native.TransactionReader[K, V], _Writable[K, V], WritesArrays[K]):
    """A keyspace within a transaction: what was there when it began, and its own changes."""

    __slots__ = ()

    def update(
        self, other: Mapping[K, V] | _HasKeys[K, V] | Iterable[tuple[K, V]] = (), /, **others: V
    ) -> None:
        """Sets the values of many keys. Takes what dict.update takes."""
        self._update(other, others)

    def clear(self) -> None:
        """Takes all entries out: all that there are count as read."""
        del self[:]

    def __repr__(self) -> str:
        return _described(self)


class Expiring(_native.Expiring[K, V], _Writable[K, V]):
    """An ordered mapping whose entries may end: from its deadline on an entry is not there.

    What is set as in every mapping never ends; put() says when. What is over takes room until a thread of the
    store (sweep_expired of open()) or purge() removes it.
    """

    __slots__ = ()

    def update(
        self, other: Mapping[K, V] | _HasKeys[K, V] | Iterable[tuple[K, V]] = (), /, **others: V
    ) -> None:
        """Sets the values of many keys, in one commit; they never end. Takes what dict.update takes."""
        self._update(other, others)

    def clear(self) -> None:
        """Takes all entries out, in one commit."""
        del self[:]

    def __repr__(self) -> str:
        return _described(self)


class SnapshotExpiring(_native.SnapshotExpiring[K, V], _Readable[K, V]):
    """A keyspace of entries that end as a snapshot saw it, but for those over when it was asked for."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _described(self)


class TransactionExpiring(_native.TransactionExpiring[K, V], Expiring[K, V]):
    """A keyspace of entries that end within a transaction, at the time at which it was asked for."""

    __slots__ = ()
