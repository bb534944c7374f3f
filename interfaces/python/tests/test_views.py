"""Views of parts keep to their part, whatever is asked of them.

They once inherited what asks the whole mapping: with keys a, b, c, "a" was in keys(start="b").
"""

from __future__ import annotations

import operator
import random
from typing import Any

import adamant
import pytest

PLACES = ["keyspace", "snapshot", "transaction"]
KEYS = [b"a", b"a\xff", b"ab", b"b", b"b\x00", b"ba", b"c", b"\xff", b"\xff\xff"]
ENDS = [None, None, b"", b"a", b"ab", b"b", b"bb", b"\xff", b"\xff\xff\xff"]
PREFIXES = [None, None, b"", b"a", b"b", b"\xff"]


def placed(db: adamant.Store, keyspace: Any, place: str) -> Any:
    if place == "snapshot":
        return db.snapshot()[keyspace]
    return db.transaction()[keyspace] if place == "transaction" else keyspace


def outcome(work: Any) -> Any:
    """What a call returns, or the class of what it raises."""
    try:
        found = work()
    except KeyError:
        return KeyError
    except TypeError:
        return TypeError
    # Views and sets are not in one order.
    return frozenset(found) if isinstance(found, (set, frozenset)) else found


# Of a view and something beside it; what dict does is what is to be done.
SET_CALLS: dict[str, Any] = {
    "and": operator.and_,
    "or": operator.or_,
    "minus": operator.sub,
    "xor": operator.xor,
    "and, other way": lambda view, other: other & view,
    "or, other way": lambda view, other: other | view,
    "minus, other way": lambda view, other: other - view,
    "xor, other way": lambda view, other: other ^ view,
    "disjoint": lambda view, other: view.isdisjoint(other),
    "at most": operator.le,
    "less": operator.lt,
    "at least": operator.ge,
    "more": operator.gt,
    "at least, other way": lambda view, other: other >= view,
    "equal": operator.eq,
    "unequal": operator.ne,
}


def same_in_sets(choices: random.Random, view: Any, model: Any, some: list[Any]) -> None:
    others = [set(), set(model), set(some), set(choices.sample(some, 3)), {*model, *some[:1]}]
    for other in others:
        for name, call in SET_CALLS.items():
            found, expected = outcome(lambda: call(view, other)), outcome(lambda: call(model, other))
            assert found == expected, (name, view, other)
    assert view.isdisjoint(list(some)) == model.isdisjoint(list(some))


def same_in_all(choices: random.Random, whole: Any, part: Any, model: dict[bytes, bytes]) -> None:
    """A part, which has keys(), values() and items(), beside a dict of what is in it."""
    views: list[Any] = [part.keys(), part.values(), part.items()]
    models: list[Any] = [model.keys(), model.values(), model.items()]
    pairs: list[Any] = [(key, value) for key, value in whole.items()]
    pairs += [(KEYS[0], b"other"), (b"none", b"0")]
    for view, expected in zip(views, models, strict=True):
        assert list(view) == list(expected) and len(view) == len(expected)
        assert list(reversed(view)) == list(reversed(list(expected)))
        for candidate in [*whole, *whole.values(), *pairs, b"none", (b"a",), (1, 2, 3), 5, None]:
            assert (candidate in view) == (candidate in expected), (view, candidate)
    same_in_sets(choices, views[0], models[0], [*whole, b"none"])
    same_in_sets(choices, views[2], models[2], pairs)


class Part:
    """What keys(), values() and items() give for one span."""

    def __init__(self, mapping: Any, span: dict[str, Any]) -> None:
        self.keys: Any = lambda: mapping.keys(**span)
        self.values: Any = lambda: mapping.values(**span)
        self.items: Any = lambda: mapping.items(**span)


def within(model: dict[bytes, bytes], span: dict[str, Any]) -> dict[bytes, bytes]:
    start, stop, prefix = span["start"], span["stop"], span["prefix"] or b""
    keys = [key for key in sorted(model) if key.startswith(prefix)]
    keys = [key for key in keys if start is None or key >= start]
    keys = [key for key in keys if stop is None or key < stop]
    return {key: model[key] for key in (reversed(keys) if span["reverse"] else keys)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["plain", "expiring"])
def test_parts_do_what_a_dict_of_the_part_does(db: adamant.Store, kind: str, place: str) -> None:
    choices = random.Random(7)
    engine: Any = "lsm" if place == "snapshot" else "bplus"
    keyspace: Any = (db.expiring if kind == "expiring" else db.keyspace)("test", engine=engine)
    model = {key: b"%d" % (number % 4) for number, key in enumerate(KEYS)}
    keyspace.update(model)
    mapping = placed(db, keyspace, place)
    for _ in range(40):
        span = {
            "start": choices.choice(ENDS),
            "stop": choices.choice(ENDS),
            "prefix": choices.choice(PREFIXES),
            "reverse": choices.random() < 0.5,
        }
        expected = within(model, span)
        same_in_all(choices, model, Part(mapping, span), expected)
        part, expected = mapping[span["start"] : span["stop"]], within(
            model, {**span, "prefix": None, "reverse": False}
        )
        same_in_all(choices, model, part, expected)
        assert part == expected and expected == part and (part != model) == (expected != model)
        assert dict(part) == expected and list(reversed(part)) == list(reversed(list(expected)))
        keys: list[Any] = [*KEYS, b"none", 5, None, "text"]
        for key in keys:
            assert (key in part) == (key in expected) and part.get(key) == expected.get(key)
            assert outcome(lambda: part[key]) == outcome(lambda: expected[key])


def test_what_was_found(db: adamant.Store) -> None:
    keyspace = db.keyspace("test", codec="utf-8")
    keyspace.update(a="1", b="2", c="3")
    for mapping in (keyspace, db.snapshot()[keyspace], db.transaction()[keyspace]):
        view = mapping.keys(start="b")
        assert "a" not in view and view & {"a"} == set() and view.isdisjoint({"a"})
        assert not view >= {"a"} and view == {"b", "c"}
        assert ("a", "1") not in mapping.items(prefix="b")


def test_mappings_of_different_codecs_are_compared_by_their_entries(db: adamant.Store) -> None:
    # In the order of their bytes these two differ: in UTF-16 the second begins with a surrogate.
    one, other = db.keyspace("one", codec="utf-8"), db.keyspace("other", codec="utf-16-be")
    for keyspace in (one, other):
        keyspace.update({"\uffee": "1", "\U0001f600": "2"})
    assert list(one) != list(other)
    assert one == other and other == one and one[:] == other[:]
    other["\uffee"] = "3"
    assert one != other
