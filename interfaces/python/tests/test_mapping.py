"""Keyspaces behave as dict does, but for their order."""

from __future__ import annotations

import array
import collections.abc
import concurrent.futures
import contextlib
import itertools
import random
from typing import Any

import adamant
import pytest
from conftest import look


def outcome(work: Any) -> Any:
    """What a call returns, or the class of what it raises."""
    try:
        return work()
    except KeyError:
        return KeyError
    except TypeError:
        return TypeError


CALLS = {
    "get": lambda it, key, value: it.get(key),
    "get with default": lambda it, key, value: it.get(key, value),
    "getitem": lambda it, key, value: it[key],
    "contains": lambda it, key, value: key in it,
    "setitem": lambda it, key, value: it.__setitem__(key, value),
    "delitem": lambda it, key, value: it.__delitem__(key),
    "pop": lambda it, key, value: it.pop(key),
    "pop with default": lambda it, key, value: it.pop(key, value),
    "setdefault": lambda it, key, value: it.setdefault(key, value),
    "update": lambda it, key, value: it.update({key: value, key + b"+": value}),
    "update by pairs": lambda it, key, value: it.update([(key, value)]),
    "update by keys": lambda it, key, value: it.update(OnlyKeys({key: value})),
    "clear": lambda it, key, value: it.clear(),
    "len": lambda it, key, value: len(it),
    "bool": lambda it, key, value: bool(it),
    "keys": lambda it, key, value: sorted(it.keys()),
    "items": lambda it, key, value: sorted(it.items()),
    "values": lambda it, key, value: sorted(it.values()),
    "keys of": lambda it, key, value: key in it.keys(),
    "items of": lambda it, key, value: (key, value) in it.items(),
    "values of": lambda it, key, value: value in it.values(),
    "keys and": lambda it, key, value: sorted(it.keys() & {key, b"k1"}),
    "keys or": lambda it, key, value: sorted(it.keys() | {key}),
    "keys minus": lambda it, key, value: sorted(it.keys() - {key}),
    "items xor": lambda it, key, value: sorted(it.items() ^ {(key, value)}),
    "disjoint": lambda it, key, value: it.keys().isdisjoint([key]),
    "equal": lambda it, key, value: it == {key: value},
    "lists": lambda it, key, value: it == [key],
    "copy": lambda it, key, value: it.copy(),
    "or": lambda it, key, value: it | {key: value},
    "or, other way": lambda it, key, value: {key: value, b"more": value} | it,
    "or of another kind": lambda it, key, value: it | [(key, value)],
    "or in place": lambda it, key, value: it.__ior__({key: value}) is it,
    "or in place by pairs": lambda it, key, value: it.__ior__([(key, value)]) is it,
    "setdefault of None": lambda it, key, value: key in it and it.setdefault(key),
    "get of another type": lambda it, key, value: (it.get(1), it.get("text", value), it.get(None)),
    "getitem of another type": lambda it, key, value: it[1],
    "contains of another type": lambda it, key, value: (1 in it, None in it, "text" in it),
    "pop of another type": lambda it, key, value: (it.pop(1, value), it.pop("text")),
    "keys and others": lambda it, key, value: sorted(it.keys() & {key, "text", 1, None}),
    "items and others": lambda it, key, value: sorted(it.items() & {(key, value), ("text", 1), 1}),
    "at least others": lambda it, key, value: it.keys() >= {key, "text"},
    "disjoint of others": lambda it, key, value: it.keys().isdisjoint(["text", 1]),
    "equal to others": lambda it, key, value: it == dict.fromkeys(["text", 1, key][: len(it)]),
    "unhashable": lambda it, key, value: hash(it),
}


class OnlyKeys:
    def __init__(self, entries: dict[bytes, bytes]) -> None:
        self.entries = entries

    def keys(self) -> Any:
        return self.entries.keys()

    def __getitem__(self, key: bytes) -> bytes:
        return self.entries[key]


@pytest.mark.parametrize("place", ["keyspace", "transaction", "expiring", "expiring transaction"])
def test_every_method_does_what_that_of_dict_does(
    db: adamant.Store, engine: Any, place: str
) -> None:
    makers: Any = (db.expiring, db.keyspace)
    keyspace: Any = makers["expiring" not in place]("test", engine=engine)
    mapping = db.transaction()[keyspace] if "transaction" in place else keyspace
    model: dict[bytes, bytes] = {}
    choices = random.Random(1)
    names = sorted(CALLS)
    for step in range(3000):
        name = choices.choice(names)
        if name == "clear" and step % 4:
            continue
        key, value = b"k%d" % choices.randrange(8), b"v%d" % choices.randrange(3)
        call: Any = CALLS[name]
        found, expected = (outcome(lambda: call(it, key, value)) for it in (mapping, model))
        assert found == expected, f"step {step}: {name}({key!r}, {value!r})"
    assert mapping == model and model == mapping
    assert len(model) > 0


@pytest.mark.parametrize("place", ["keyspace", "transaction", "snapshot", "range"])
def test_mappings_are_those_of_collections(db: adamant.Store, engine: Any, place: str) -> None:
    keyspace = db.keyspace("test", engine=engine)
    model = {b"%03d" % number: b"%d" % (number % 7) for number in range(100)}
    keyspace.update(model)
    mapping = look(db, keyspace, place)
    assert isinstance(mapping, collections.abc.Mapping)
    writable = place in ("keyspace", "transaction")
    assert isinstance(mapping, collections.abc.MutableMapping) == writable
    assert hasattr(mapping, "__setitem__") == writable
    assert dict(mapping) == model == {**mapping}
    assert list(mapping) == sorted(model) and list(reversed(mapping)) == sorted(model)[::-1]
    for name, view in (
        ("keys", collections.abc.KeysView),
        ("values", collections.abc.ValuesView),
        ("items", collections.abc.ItemsView),
    ):
        found: Any = getattr(mapping, name)()
        expected = list(getattr(dict(sorted(model.items())), name)())
        assert type(found).__mro__[1] is view
        assert list(found) == expected and list(reversed(found)) == expected[::-1]
        assert len(found) == len(expected)
        # A view can be walked again, and by several at once.
        assert list(zip(found, found)) == list(zip(expected, expected))
        assert name in repr(found)
    assert mapping == keyspace and mapping != {} and mapping != {**model, b"more": b""}
    assert mapping != {key: b"other" for key in model}


def test_popitem_takes_from_either_end(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine)
    for mapping in (keyspace, db.transaction()[keyspace]):
        mapping.update({b"a": b"1", b"b": b"2", b"c": b"3"})
        assert mapping.popitem() == (b"c", b"3")
        assert mapping.popitem(last=False) == (b"a", b"1")
        assert mapping.popitem() == (b"b", b"2")
        with pytest.raises(KeyError, match="empty"):
            mapping.popitem()


def test_threads_that_pop_get_different_entries(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine, durability="deferred")
    keyspace.update({b"%04d" % number: b"" for number in range(600)})

    def pop_all(last: bool) -> list[bytes]:
        popped = []
        with contextlib.suppress(KeyError):
            while True:
                popped.append(keyspace.popitem(last=last)[0])
        return popped

    with concurrent.futures.ThreadPoolExecutor() as threads:
        popped = [key for part in threads.map(pop_all, (True, False, True)) for key in part]
    assert sorted(popped) == [b"%04d" % number for number in range(600)]


def test_a_range_is_taken_out_by_one_commit(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine)
    keyspace.update({b"%05d" % number: b"" for number in range(3000)})
    before = int(db.stats()["commits"]["commits"])
    del keyspace[b"00010":b"02990"]
    assert int(db.stats()["commits"]["commits"]) == before + 1
    assert len(keyspace) == 20


def test_update_is_one_commit(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")

    def commits() -> int:
        return int(db.stats()["commits"]["commits"])

    before = commits()
    keyspace.update({b"%d" % number: b"" for number in range(1000)})
    assert commits() == before + 1

    def failing() -> Any:
        yield b"new", b"value"
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="middle"):
        keyspace.update(failing())
    with pytest.raises(TypeError, match="as a value"):
        keyspace.update([(b"new", b"value"), (b"newer", 1)])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="pairs"):
        keyspace.update([(b"new",)])  # type: ignore[list-item]
    assert b"new" not in keyspace


def test_codecs(db: adamant.Store) -> None:
    texts = db.keyspace("texts", codec="UTF8")
    assert (texts.key_codec, texts.value_codec) == ("utf-8", "utf-8")
    texts["gr\u00fc\u00dfe"] = "\u4f60\u597d"
    assert db.keyspace("texts")["gr\u00fc\u00dfe".encode()] == "\u4f60\u597d".encode()
    half = db.keyspace("texts", key_codec="utf-8")
    assert half["gr\u00fc\u00dfe"] == "\u4f60\u597d".encode()
    other = db.keyspace("latin", key_codec="latin-1", value_codec="utf-16-le")
    assert (other.key_codec, other.value_codec) == ("iso8859-1", "utf-16-le")
    other["\u00e9"] = "\u20ac"
    assert db.keyspace("latin")[b"\xe9"] == b"\xac\x20" and other.first() == ("\u00e9", "\u20ac")
    with pytest.raises(UnicodeEncodeError):
        other["\u20ac"] = ""
    with pytest.raises(UnicodeEncodeError):
        texts["\ud800"] = ""
    db.keyspace("texts")[b"\xff"] = b""
    with pytest.raises(UnicodeDecodeError):
        texts.last()
    with pytest.raises(UnicodeDecodeError):
        list(texts)
    with pytest.raises(LookupError):
        db.keyspace("texts", codec="no such codec")
    with pytest.raises(adamant.InvalidArgument, match="not both"):
        db.keyspace("texts", codec="utf-8", key_codec="utf-8")  # type: ignore[call-overload]


def test_what_lends_bytes_is_taken(db: adamant.Store) -> None:
    keyspace: Any = db.keyspace("test")
    for number, kind in enumerate([bytes, bytearray, memoryview]):
        key, value = kind(b"key%d" % number), kind(b"value")
        keyspace[key] = value
        assert keyspace[key] == b"value" and key in keyspace and keyspace.pop(key) == b"value"
    keyspace[b"strided"] = memoryview(b"a-b-c-")[::2]
    assert keyspace[b"strided"] == b"abc"


def test_typed_memory_is_taken_as_it_lies(db: adamant.Store, engine: Any) -> None:
    keyspace: Any = db.keyspace("test", engine=engine)
    for code in "bBhHiIlLqQfdu":
        some = array.array(code, "abc" if code == "u" else [1, 2, 3])
        keyspace[code.encode()] = some
        assert keyspace[code.encode()] == some.tobytes()
    floats = array.array("d", [1.5, -2.25])
    keyspace[floats] = b"by its bytes"
    assert floats in keyspace and keyspace.pop(floats) == b"by its bytes"
    keyspace[b"cast"] = memoryview(floats).cast("B").cast("q")
    assert keyspace[b"cast"] == floats.tobytes()
    keyspace[b"strided"] = memoryview(floats)[::-1]
    assert keyspace[b"strided"] == array.array("d", [-2.25, 1.5]).tobytes()


def test_arrays_of_numpy(db: adamant.Store) -> None:
    numpy = pytest.importorskip("numpy")
    keyspace: Any = db.keyspace("test")
    matrix = numpy.arange(12, dtype="float64").reshape(3, 4)
    record = numpy.zeros(2, dtype=[("Owner", "u4"), ("x", "f8")])
    for number, kept in enumerate((matrix, matrix.T, matrix[::2, 1:], record, matrix[0, 0])):
        keyspace[b"%d" % number] = kept
        assert keyspace[b"%d" % number] == kept.tobytes()
    objects = numpy.array([object()], dtype=object)
    mixed = numpy.zeros(1, dtype=[("a", "u4"), ("b", "O")])
    for refused, match in (
        (objects, "found ndarray; its memory holds pointers"),
        (mixed, "found ndarray; its memory holds pointers"),
        (numpy.array(["2026-01-01"], dtype="datetime64[s]"), "ndarray; it does not lend its memory"),
        (numpy.str_("text"), "found str_?; give the keyspace a codec to use str"),
    ):
        with pytest.raises(TypeError, match=f"expected bytes as a value, {match}|{match}"):
            keyspace[b"key"] = refused


def test_hints_fit_what_was_given(db: adamant.Store) -> None:
    keyspace: Any = db.keyspace("test")
    texts: Any = db.keyspace("texts", codec="utf-8")
    released = memoryview(b"abc")
    released.release()
    for mapping, key, match in (
        (keyspace, "text", "found str; give the keyspace a codec to use str"),
        (keyspace, 1, "found int; make bytes of it, as int.to_bytes"),
        (keyspace, None, "found NoneType; make bytes of it"),
        (keyspace, released, r"found memoryview; it does not lend its memory \(.*released"),
        (texts, b"bytes", "found bytes; open the keyspace without a codec to use bytes"),
        (texts, bytearray(), "found bytearray; open the keyspace without a codec"),
        (texts, 1, "found int; make a str of it"),
        (texts, None, "found NoneType; make a str of it"),
    ):
        with pytest.raises(TypeError, match=f"expected (bytes|str) as a key, {match}"):
            mapping[key] = b"" if mapping is keyspace else ""
        with pytest.raises(TypeError, match=match) as missing:
            mapping[key]
        if key is not released:
            assert isinstance(missing.value, adamant.NotAKey)
            assert isinstance(missing.value, KeyError)


def test_moves(db: adamant.Store) -> None:
    for source, target in itertools.product(["bplus", "lsm"], ["bplus", "critbit"]):
        one: Any = db.keyspace(f"one {source} {target}", engine=source)  # type: ignore[call-overload]
        other: Any = db.keyspace(f"other {source} {target}", engine=target)  # type: ignore[call-overload]
        one.update({b"a": b"1", b"b": b"2"})
        assert one.rename(b"a", b"c") and not one.rename(b"a", b"d")
        assert one.swap(b"b", b"c") and not one.swap(b"b", b"x")
        assert one.move_to(b"b", other, b"z") and not one.move_to(b"b", other, b"z")
        assert dict(one) == {b"c": b"2"} and dict(other) == {b"z": b"1"}


def test_compare_and_swap(db: adamant.Store, engine: Any) -> None:
    locks = db.keyspace("locks", engine=engine)
    assert locks.compare_and_swap(b"door", None, b"ada")
    assert not locks.compare_and_swap(b"door", None, b"bob")
    assert locks.compare_and_swap(b"door", b"ada", b"bob")
    assert locks.compare_and_swap(b"door", b"bob", None) and b"door" not in locks
