"""Ranges, prefixes, directions; iterators beside writers."""

from __future__ import annotations

import itertools
import random
from typing import Any

import adamant
import pytest
from conftest import look


def any_key(choices: random.Random) -> bytes:
    return bytes(choices.choices(b"ab\x00\xff", k=choices.randrange(1, 5)))


@pytest.mark.parametrize("place", ["keyspace", "transaction", "snapshot"])
def test_every_part_is_what_a_sorted_list_has(db: adamant.Store, engine: Any, place: str) -> None:
    choices = random.Random(2)
    keyspace = db.keyspace("test", engine=engine)
    model = {any_key(choices): b"%d" % number for number in range(120)}
    keyspace.update(model)
    mapping = look(db, keyspace, place)
    ends: list[bytes | None] = [None, b"", b"\xff\xff", *(any_key(choices) for _ in range(8))]
    for start, stop, prefix in itertools.product(ends, ends, [None, b"", b"a", b"a\xff", b"\xff"]):
        expected = sorted(
            key
            for key in model
            if (start is None or key >= start)
            and (stop is None or key < stop)
            and (prefix is None or key.startswith(prefix))
        )
        part = {"start": start, "stop": stop, "prefix": prefix}
        view = mapping.keys(**part)
        assert list(view) == expected, part
        assert len(view) == len(expected), part
        assert list(mapping.keys(**part, reverse=True)) == expected[::-1], part
        assert list(reversed(view)) == expected[::-1], part
        assert list(mapping.items(**part)) == [(key, model[key]) for key in expected], part
        if prefix is None:
            found = mapping[start:stop]
            assert list(found) == expected and len(found) == len(expected), part
            assert bool(found) == bool(expected)
            for key in model:
                assert (key in found) == (key in expected)
                assert found.get(key) == (model[key] if key in expected else None)


def test_ranges_are_taken_out(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine)
    for mapping in (keyspace, db.transaction()[keyspace]):
        mapping.update({b"%04d" % number: b"" for number in range(3000)})
        del mapping[b"0100":b"2900"]
        assert len(mapping) == 200
        del mapping[b"2900":]
        assert list(mapping) == [b"%04d" % number for number in range(100)]
        del mapping[:]
        assert not mapping
    with pytest.raises(adamant.InvalidArgument, match="no step"):
        del keyspace[::2]
    with pytest.raises(adamant.InvalidArgument, match="no step"):
        keyspace[b"a":b"b":1]
    with pytest.raises(TypeError):
        keyspace[b"a":b"b"] = b""  # type: ignore[index]


@pytest.mark.parametrize("place", ["keyspace", "transaction"])
def test_iterators_go_on_while_the_mapping_is_written(
    db: adamant.Store, engine: Any, place: str
) -> None:
    keyspace: Any = db.keyspace("test", engine=engine)
    mapping = db.transaction()[keyspace] if place == "transaction" else keyspace
    mapping.update({b"%05d" % number: b"" for number in range(0, 4000, 2)})
    seen = []
    for key in mapping:
        seen.append(key)
        # Takes itself out, and puts something before and behind the iterator.
        del mapping[key]
        mapping[b"!%s" % key] = b""
        mapping[b"~%05d" % len(seen)] = b""
        if len(seen) == 2500:
            break
    untouched = [key for key in seen if not key.startswith(b"~")]
    assert untouched == [b"%05d" % number for number in range(0, 4000, 2)]
    assert seen == sorted(seen) and len(set(seen)) == len(seen)


def test_an_iterator_ends_with_its_error(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keyspace.update({b"%05d" % number: b"" for number in range(5000)})
    entries = iter(keyspace)
    assert next(entries) == b"00000"
    db.drop_keyspace("test")
    with pytest.raises(adamant.KeyspaceDropped, match="dropped"):
        list(entries)
    assert list(entries) == []


def test_first_and_last(db: adamant.Store, engine: Any) -> None:
    keyspace = db.keyspace("test", engine=engine)
    assert keyspace.first() is None and keyspace.last() is None
    keyspace.update({b"a": b"1", b"b": b"2"})
    with db.snapshot() as snapshot, db.transaction() as transaction:
        for mapping in (keyspace, snapshot[keyspace], transaction[keyspace]):
            assert mapping.first() == (b"a", b"1") and mapping.last() == (b"b", b"2")
