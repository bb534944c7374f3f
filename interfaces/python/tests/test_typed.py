"""Typed keyspaces: the bytes of Rust programs, in the order of the keys, and what is refused."""

from __future__ import annotations

import ast
import json
import math
import re
import struct
from datetime import timedelta
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Optional, Union

import adamant
import pytest
from adamant.typed import (
    Json,
    Reverse,
    Rust,
    char,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    i128,
    type_name,
    u8,
    u16,
    u32,
    u64,
    u128,
)
from conftest import look
from hypothesis import assume, given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
I64_MIN = -(1 << 63)
# The examples of docs/format/typed.md, which `store/src/typed/dynamic_tests.rs` has for the types of Rust.
KEYS: list[tuple[object, Any, bytes]] = [
    (u8, 7, b"\x07"),
    (u16, 0x102, b"\x01\x02"),
    (u32, 0x102, b"\0\0\x01\x02"),
    (u64, 0x102, b"\0\0\0\0\0\0\x01\x02"),
    (u128, (1 << 128) - 1, b"\xff" * 16),
    (i8, -1, b"\x7f"),
    (i16, -1, b"\x7f\xff"),
    (i32, 5, b"\x80\0\0\x05"),
    (i64, I64_MIN, b"\0" * 8),
    (int, I64_MIN, b"\0" * 8),
    (i128, (1 << 127) - 1, b"\xff" * 16),
    (f32, 1.5, b"\xbf\xc0\0\0"),
    (f64, -1.5, b"\x40\x07\xff\xff\xff\xff\xff\xff"),
    (float, -1.5, b"\x40\x07\xff\xff\xff\xff\xff\xff"),
    (bool, True, b"\x01"),
    (char, "\u00e9", b"\0\0\0\xe9"),
    (str, "ab", b"ab"),
    (bytes, b"a\0", b"a\0"),
    ("[u8; 3]", b"\1\2\3", b"\1\2\3"),
    (str | None, None, b"\0"),
    (Optional[str], "a", b"\x01a"),
    (Reverse[str], "a", b"\x9e\xff\xff"),
    (tuple[str, Reverse[u64]], ("ab", 5), b"ab\0\0\xff\xff\xff\xff\xff\xff\xff\xfa"),
    (
        tuple[tuple[u8, str], i8 | None, str],
        ((1, "a\0b"), -2, "c"),
        b"\x01a\0\xffb\0\0\x01\x7ec",
    ),
    ("(u8, u8, u8, u8, u8, u8)", (1, 2, 3, 4, 5, 6), b"\1\2\3\4\5\6"),
]
VALUES: list[tuple[object, Any, bytes]] = [
    (u16, 0x102, b"\x02\x01"),
    (i32, -2, b"\xfe\xff\xff\xff"),
    (u128, 0x102, b"\x02\x01" + b"\0" * 14),
    (f32, 1.5, b"\0\0\xc0\x3f"),
    (float, -1.5, b"\0\0\0\0\0\0\xf8\xbf"),
    (bool, False, b"\0"),
    (char, "\u00e9", b"\xe9\0\0\0"),
    (None, None, b""),
    (str, "ab", b"ab"),
    (bytes, b"a\0", b"a\0"),
    (Annotated[bytes, Rust("[u8; 2]")], b"\1\2", b"\1\2"),
    (Json, {"a": [1, -2, 0.5, None, "\u00e9"]}, '{"a":[1,-2,0.5,null,"\u00e9"]}'.encode()),
]


def test_the_examples_are_those_of_the_page() -> None:
    page = (ROOT / "docs/format/typed.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.+)` \| `(.+)` \| (?:`([0-9a-f ]+)`|none) \|$", page, re.MULTILINE)
    written = [(name, ast.literal_eval(found), bytes.fromhex(encoded)) for name, found, encoded in rows]
    tested = [(type_name(given), found, encoded) for given, found, encoded in KEYS + VALUES]
    assert len(written) > 30 and all(row in tested for row in written)
    assert all(row in written for row in tested)


@pytest.mark.parametrize("key, found, encoded", KEYS)
def test_keys_have_the_bytes_of_rust(
    db: adamant.Store, key: object, found: Any, encoded: bytes
) -> None:
    plain = db.keyspace("keys")
    typed = plain.typed(key, bytes)
    typed[found] = b"set"
    assert list(plain) == [encoded] and plain[encoded] == b"set"
    assert list(typed) == [found] and typed[found] == b"set"
    assert typed.first() == (found, b"set") and found in typed
    assert type(next(iter(typed))) is type(found)
    # What Rust wrote is read.
    other = db.keyspace("written by Rust").typed(key, bytes)
    db.keyspace("written by Rust")[encoded] = b"there"
    assert other.popitem() == (found, b"there")


@pytest.mark.parametrize("value, found, encoded", VALUES)
def test_values_have_the_bytes_of_rust(
    db: adamant.Store, value: object, found: Any, encoded: bytes
) -> None:
    plain = db.keyspace("values")
    typed = plain.typed("u8", value)
    typed[1] = found
    assert plain[b"\1"] == encoded and typed[1] == found
    assert typed.setdefault(1, found) == found and typed.setdefault(2, found) == found
    assert typed.pop(2) == found and list(typed.values()) == [found]
    plain[b"\3"] = encoded
    assert typed.last() == (3, found)


@pytest.mark.parametrize(
    "given, name",
    [
        (tuple[str, int], "(String, i64)"),
        (GenericAlias(tuple, ("u32", "String")), "(u32, String)"),
        (tuple[str, tuple[bool, bytes] | None], "(String, Option<(bool, bytes)>)"),
        (Annotated[Optional[u8], Rust("Reverse<{}>")], "Reverse<Option<u8>>"),
        (Annotated[Reverse[u8], Rust("Reverse<{}>")], "Reverse<Reverse<u8>>"),
        (Reverse[f32], "Reverse<f32>"),
        (Annotated[int, "not a name"], "i64"),
        (Json, "Json<any>"),
        (None, "()"),
        ("Json<Person> version 2", "Json<Person> version 2"),
    ],
)
def test_types_have_names(given: object, name: str) -> None:
    assert type_name(given) == name


@pytest.mark.parametrize("given", [list, dict[str, int], tuple[int, ...], int | str, 7, [], object])
def test_types_without_a_name_are_refused(db: adamant.Store, given: object) -> None:
    with pytest.raises(adamant.InvalidArgument, match="expected a type of keys or values"):
        db.keyspace("a").typed(given, bytes)
    assert db.keyspace("a").types is None


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("u7", bytes, "type of keys, found 'u7'|found \"u7\""),
        (tuple[int], bytes, "type of keys"),
        (Json, bytes, "type of keys"),
        (None, bytes, "type of keys"),
        (str, tuple[int, int], "type of values"),
        (str, int | None, "type of values"),
        (str, "Serde<Person>", "use Json in Rust"),
        (str, "Day version 2", "type of values"),
        ("Option<Option<u8>>", bytes, "None may be either"),
        ("(u8, Option<Reverse<Option<u8>>>)", bytes, "None may be either"),
        ("(" * 5000, bytes, "type of keys"),
    ],
)
def test_types_that_python_lacks_are_refused(
    db: adamant.Store, key: object, value: object, words: str
) -> None:
    with pytest.raises(adamant.InvalidArgument, match=words):
        db.keyspace("a").typed(key, value)
    assert db.keyspace("a").types is None


def test_types_are_recorded(path: Path) -> None:
    with adamant.open(path) as db:
        scores = db.keyspace("scores")
        with pytest.raises(adamant.InvalidArgument, match="no types"):
            scores.typed()
        assert scores.typed("( String,u64 )", float).types == ("(String, u64)", "f64")
        scores.typed(tuple[str, u64], float)["ada", 1] = 0.5
        filled = db.keyspace("filled")
        filled[b"a"] = b"b"
        # The types of a keyspace that was filled as bytes are trusted.
        assert filled.typed(str, str)["a"] == "b" and filled.types is None
    with adamant.open(path, read_only=True) as db:
        typed = db.keyspace("scores").typed()
        assert dict(typed) == {("ada", 1): 0.5}
        assert (typed.key_codec, typed.value_codec) == ("(String, u64)", "f64")
        assert "keys=(String, u64) values=f64" in repr(typed)
        for key, value in [(str, float), (tuple[str, int], float), (tuple[str, u64], f32)]:
            with pytest.raises(adamant.WrongTypes, match=r"has keys \(String, u64\), values f64"):
                db.keyspace("scores").typed(key, value)
        assert issubclass(adamant.WrongTypes, adamant.Error)
        assert issubclass(adamant.WrongTypes, TypeError)


class Whole:
    """An integer that is no int."""

    def __index__(self) -> int:
        return 7


def test_integers_are_all_that_python_takes_for_one(db: adamant.Store) -> None:
    typed = db.keyspace("a").typed(u8, i16)
    typed[Whole()] = True  # type: ignore[index]
    assert dict(typed) == {7: 1} and typed[True + 6] == 1


@pytest.mark.parametrize(
    "key, refused, error, words",
    [
        (u8, 256, OverflowError, "range of u8 as a key, found 256"),
        (u64, -1, OverflowError, "range of u64 as a key, found -1"),
        (i128, 1 << 127, OverflowError, "range of i128"),
        (u8, 1.0, TypeError, r"int \(u8\) as a key, found float"),
        (u8, "1", TypeError, "found str"),
        (u8, None, TypeError, "found NoneType"),
        (float, "1", TypeError, r"float \(f64\) as a key, found str"),
        (float, (1 << 53) + 1, OverflowError, "an int up to 9007199254740992"),
        (float, 1 << 200, OverflowError, "found a larger one"),
        (f32, 1e39, OverflowError, "range of f32"),
        (bool, 1, TypeError, "bool as a key, found int"),
        (char, "ab", ValueError, "one character"),
        (char, "", ValueError, "one character"),
        (char, b"a", TypeError, "str"),
        ("[u8; 2]", b"abc", ValueError, "2 bytes as a key, found 3"),
        (tuple[str, u8], ("a",), ValueError, r"2 parts, \(String, u8\), as a key, found 1"),
        (tuple[str, u8], ("a", 1, 2), ValueError, "found 3"),
        (tuple[str, u8], ["a", 1], TypeError, "found list"),
        (tuple[str, u8], ("a", 256), OverflowError, r"a part of a key \(String, u8\), found 256"),
        (tuple[str, u8], (b"a", 1), TypeError, r"str \(String\) as a part of a key"),
        (tuple[str, u8], ("\ud800", 1), UnicodeEncodeError, "surrogates"),
        (u8 | None, 256, OverflowError, "u8"),
    ],
)
def test_objects_of_other_types_are_refused(
    db: adamant.Store, key: object, refused: Any, error: type[Exception], words: str
) -> None:
    typed = db.keyspace("a").typed(key, bytes)
    with pytest.raises(error, match=words):
        typed[refused] = b"set"
    with pytest.raises(error, match=words):
        typed.update({refused: b""} if not isinstance(refused, list) else [(refused, b"")])
    # Looked for, it is not there.
    assert refused not in typed and typed.get(refused, b"no") == b"no"
    assert typed.pop(refused, b"no") == b"no"
    for look_for in (typed.__getitem__, typed.__delitem__, typed.pop):
        with pytest.raises(adamant.NotAKey, match=words):
            look_for(refused)
    assert not typed


@pytest.mark.parametrize(
    "value, refused, error",
    [
        (u8, 256, OverflowError),
        (u8, None, TypeError),
        (None, 0, TypeError),
        (Json, {1, 2}, TypeError),
        (Json, [math.nan], ValueError),
        (Json, {"a": 1 << 64}, OverflowError),
        (Json, [I64_MIN - 1], OverflowError),
        (Json, "\ud800", UnicodeEncodeError),
        (Json, json.loads("[" * 128 + "]" * 128), ValueError),
    ],
)
def test_values_of_other_types_are_refused(
    db: adamant.Store, value: object, refused: Any, error: type[Exception]
) -> None:
    typed = db.keyspace("a").typed(u8, value)
    with pytest.raises(error):
        typed[1] = refused
    with pytest.raises(error), db.transaction() as transaction:
        transaction[typed][1] = refused
    assert not typed


def test_json_is_what_rust_reads(db: adamant.Store) -> None:
    typed = db.keyspace("a").typed(u8, Json)
    odd = {'"\\[{-1': ["\\", '"', "]" * 200, (1 << 64) - 1, I64_MIN, 1e300, -5e-324, "99999999999999999999"]}
    deep = json.loads("[" * 127 + "]" * 127)
    for number, found in enumerate([odd, deep, None, True, "", [], {"": {}}]):
        typed[number] = found
        assert typed[number] == found
    for malformed in (b"", b"{", b"\xff", b"'a'", "1".encode("utf-16")):
        db.keyspace("a")[b"\xff"] = malformed
        with pytest.raises(adamant.Undecodable, match="JSON"):
            typed[255]


@pytest.mark.parametrize(
    "key, malformed",
    [
        (u32, b"abc"),
        (u32, b"abcde"),
        (bool, b"\2"),
        (char, b"\0\0\xd8\0"),
        (f64, b"1234567"),
        (str | None, b"\0a"),
        (tuple[str, u8], b"abc"),
        (tuple[str, u8], b"a\0\0"),
        (tuple[str, u8], b"\xff\0\0\1"),
        ("[u8; 2]", b"a"),
        (Reverse[bytes], b"abc"),
    ],
)
def test_bytes_that_are_no_key_are_an_error(
    db: adamant.Store, key: object, malformed: bytes
) -> None:
    plain = db.keyspace("a")
    plain[malformed] = b""
    with pytest.raises(adamant.Undecodable, match=f"as a key of type .*found {len(malformed)} bytes"):
        list(plain.typed(key, bytes))
    assert list(plain.typed(key, bytes).values()) == [b""]


def test_text_alone_is_that_of_the_codec(db: adamant.Store) -> None:
    plain = db.keyspace("a")
    plain[b"\xff"] = b"\xff"
    for typed, whole in ((plain.typed(str, bytes), True), (plain.typed(bytes, str), False)):
        with pytest.raises(UnicodeDecodeError):
            list(typed if whole else typed.values())
    assert plain.typed(str, str).key_codec == "utf-8"


@pytest.mark.parametrize("place", ["keyspace", "range", "snapshot", "transaction"])
def test_parts_of_tuples_are_ranges(db: adamant.Store, place: str) -> None:
    scores = db.keyspace("a").typed(tuple[str, Reverse[u8], str], u8)
    keys = [(name, number, last) for name in ("ad", "ada", "b") for number in (9, 5) for last in ("", "x")]
    scores.update((key, number) for number, key in enumerate(keys))
    seen = look(db, scores, place)  # type: ignore[arg-type]
    assert list(seen) == keys and list(reversed(seen)) == keys[::-1]
    if place == "range":
        return
    for parts in (("ada",), ("ada", 5), ("ad", 9), ("c",), ()):
        begin = [key for key in keys if key[: len(parts)] == parts]
        assert list(seen.keys(prefix=parts)) == begin, parts
        assert len(seen.items(prefix=parts)) == len(begin)
        assert [key for key, _ in seen.items(prefix=parts, reverse=True)] == begin[::-1]

    def order(key: tuple[Any, ...]) -> list[Any]:
        return [-part if isinstance(part, int) else part for part in key]

    bounds: list[Any] = [("ad",), ("ada", 5), ("ada", 9, ""), ("ada", 9, "x"), ("b",), ("b", 1), ("z",)]
    for start in bounds:
        for stop in bounds:
            part = [key for key in keys if order(start) <= order(key) < order(stop)]
            assert list(seen.keys(start=start, stop=stop)) == part
            assert list(seen[start:stop]) == part
            assert dict(seen[start:stop]) == dict(seen.items(start=start, stop=stop))


def test_what_is_no_prefix_is_refused(db: adamant.Store) -> None:
    pairs = db.keyspace("a").typed(tuple[str, u8], u8)
    for prefix in (("a", 1), ("a", 1, 2), "a", ["a"]):
        with pytest.raises(TypeError, match="a tuple of 0 to 1 of the first parts"):
            list(pairs.keys(prefix=prefix))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="str"):
        list(pairs.keys(prefix=(1,)))
    with pytest.raises(TypeError, match="no prefixes; use start and stop"):
        list(db.keyspace("b").typed(u8, u8).keys(prefix=1))
    texts = db.keyspace("c").typed(str, u8)
    texts.update({"ad": 1, "ada": 2, "b": 3})
    assert list(texts.keys(prefix="ad")) == ["ad", "ada"]


def test_all_that_a_keyspace_has(db: adamant.Store, engine: str) -> None:
    ages = db.keyspace("ages", engine=engine).typed(i32, u16)  # type: ignore[call-overload]
    ages.update({-1: 1, 5: 2, 300: 3})
    assert ages.compare_and_swap(5, 2, 7) and not ages.compare_and_swap(5, 2, 8)
    assert not ages.compare_and_swap(6, 2, None) and ages.compare_and_swap(7, None, 9)
    assert ages.pop(7) == 9 and ages.rename(300, -300) and ages.swap(-300, 5)
    assert list(ages.items()) == [(-300, 7), (-1, 1), (5, 3)]
    before = db.snapshot()
    with db.batch() as batch:
        batch.put(ages, 8, 8)
        batch.delete(ages, -1)
        batch.rename(ages, 5, 6)
    with db.transaction() as transaction:
        within = transaction[ages]
        within[9] = within.pop(8)
        assert within.first() == (-300, 7) and within.setdefault(10, 1) == 1
        del within[10:]
    assert dict(ages) == {-300: 7, 6: 3, 9: 8}
    assert dict(before[ages]) == {-300: 7, -1: 1, 5: 3}
    del ages[:0]
    assert ages == {6: 3, 9: 8} and ages != before[ages] and before[ages] == before[ages]
    other = db.keyspace("others").typed(tuple[str, i32], u16)
    assert ages.move_to(6, other, ("six", 6)) and other["six", 6] == 3
    assert ages.popitem() == (9, 8) and not ages


def test_arrays_are_of_bytes(db: adamant.Store) -> None:
    with pytest.raises(adamant.InvalidArgument, match="found u8; open it without a codec"):
        db.keyspace("a").typed(u8, bytes).scan()


def test_equal_bits_are_equal_floats(db: adamant.Store) -> None:
    floats = db.keyspace("a").typed(float, None)
    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    order = [-math.nan, -math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 3, math.inf, math.nan, other_nan]
    for number in reversed(order):
        floats[number] = None
    assert list(map(repr, floats)) == [repr(float(number)) for number in order]
    assert [math.copysign(1, number) for number in floats] == [-1] * 5 + [1] * 6
    assert math.nan in floats and floats[-0.0] is None and len(floats) == len(order)
    assert len(list(floats.keys(start=0.0, stop=math.inf))) == 3


SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    u8: st.integers(0, 255),
    i16: st.integers(-(1 << 15), (1 << 15) - 1),
    i64: st.integers(I64_MIN, -I64_MIN - 1),
    u128: st.integers(0, (1 << 128) - 1),
    i128: st.integers(-(1 << 127), (1 << 127) - 1),
    f64: st.floats(allow_nan=False).map(lambda number: number + 0.0),
    f32: st.floats(allow_nan=False, width=32).map(lambda number: number + 0.0),
    bool: st.booleans(),
    char: st.characters(exclude_categories=["Cs"]),
    # Text with zeros, and many equal beginnings.
    str: st.text(st.sampled_from("\0\1ab\u00e9\U0001f600"), max_size=4),
    bytes: st.lists(st.sampled_from(b"\0\1a\xfe\xff"), max_size=4).map(bytes),
}


class Flipped:
    """The order of the keys of Reverse."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Flipped) -> bool:
        return bool(other.key < self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flipped) and bool(self.key == other.key)


# A type, its keys, and what has their order.
Model = tuple[Any, st.SearchStrategy[Any], Any]
PLAIN: list[Model] = [
    (name, keys, (lambda key: key.encode()) if name in (str, char) else (lambda key: key))
    for name, keys in SCALARS.items()
]


def wrapped(models: st.SearchStrategy[Model]) -> st.SearchStrategy[Model]:
    def reverse(model: Model) -> Model:
        return Annotated[model[0], Rust("Reverse<{}>")], model[1], lambda key: Flipped(model[2](key))

    def option(model: Model) -> Model:
        def order(key: Any) -> Any:
            return (0,) if key is None else (1, model[2](key))

        return Union[model[0], None], st.none() | model[1], order

    def tuples(models: list[Model]) -> Model:
        def order(key: Any) -> Any:
            return tuple(model[2](part) for model, part in zip(models, key, strict=True))

        return (
            GenericAlias(tuple, tuple(model[0] for model in models)),
            st.tuples(*(model[1] for model in models)),
            order,
        )

    nullable = models.filter(lambda model: not type_name(model[0]).startswith(("Option", "Reverse")))
    return (
        models.map(reverse)
        | nullable.map(option)
        | st.lists(models, min_size=2, max_size=6).map(tuples)
    )


MODELS = st.recursive(st.sampled_from(PLAIN), wrapped, max_leaves=5)


@given(data=st.data(), model=MODELS)
def test_keys_have_the_order_of_their_bytes(data: st.DataObject, model: Model) -> None:
    name, keys, order = model
    some = data.draw(st.lists(keys, min_size=2, max_size=8))
    with adamant.in_memory() as db:
        plain = db.keyspace("a")
        typed = plain.typed(name, bytes)
        typed.update((key, repr(key).encode()) for key in some)
        found = list(typed)
        assert [repr(key).encode() for key in found] == list(typed.values())
        expected: list[Any] = []
        for key in sorted(some, key=order):
            if not expected or order(expected[-1]) != order(key):
                expected.append(key)
        assert found == expected
        assert [plain.typed().get(key) for key in expected] == list(plain.values())
        # None is no bound, also where it is a key.
        bounds = keys.filter(lambda key: key is not None)
        low, high = data.draw(bounds), data.draw(bounds)
        between = [key for key in expected if not order(key) < order(low) and order(key) < order(high)]
        assert list(typed.keys(start=low, stop=high)) == between


@given(st.floats(width=64), st.floats(width=64))
def test_floats_have_the_order_of_their_bits(one: float, other: float) -> None:
    def total(number: float) -> int:
        bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
        return bits if bits >= 0 else -(bits & ((1 << 63) - 1)) - 1

    assume(total(one) != total(other))
    with adamant.in_memory() as db:
        typed = db.keyspace("a").typed(float, None)
        typed.update([(one, None), (other, None)])
        assert [total(number) for number in typed] == sorted([total(one), total(other)])


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(I64_MIN, (1 << 64) - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda parts: st.lists(parts) | st.dictionaries(st.text("\\\"[]{}-1a"), parts),
        max_leaves=20,
    )
)
def test_json_round_trips(value: Any) -> None:
    with adamant.in_memory() as db:
        typed = db.keyspace("a").typed(u8, Json)
        typed[1] = value
        assert typed[1] == value
        assert json.loads(db.keyspace("a")[b"\1"]) == value


def test_entries_that_expire_take_codecs_only(db: adamant.Store) -> None:
    sessions = db.expiring("sessions", codec="utf-8")
    sessions.put("a", "b", ttl=timedelta(hours=1))
    assert sessions.types is None and not hasattr(sessions, "typed")
