"""pyarrow and pandas over columns and scans, by Arrow's C data interface."""

from __future__ import annotations

import gc
from typing import Any

import adamant
import pytest

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

WORDS = [b"", b"a", b"bb", b"\xc3\xa9", b"long" * 40, b"z"]
TYPES = ["binary", "large_binary", "string", "large_string"]


def words(kind: str) -> Any:
    return pyarrow.array(WORDS, "binary").cast(getattr(pyarrow, kind)())


@pytest.fixture
def keyspace(db: adamant.Store) -> adamant.Keyspace[bytes, bytes]:
    return db.keyspace("test")


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("cut", [slice(0, None), slice(1, 4), slice(2, 2)])
def test_arrays_of_bytes_go_in(keyspace: Any, kind: str, cut: slice) -> None:
    array = words(kind)[cut]
    assert keyspace.put_many(array, array) == len(array)
    assert list(keyspace.items()) == [(word, word) for word in sorted(WORDS[cut])]
    column = pyarrow.array(keyspace.get_many(array))
    column.validate(full=True)
    assert column.to_pylist() == WORDS[cut]


@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "uint64", "float32", "float64"])
def test_numbers_go_in_as_their_memory(keyspace: Any, kind: str) -> None:
    array = pyarrow.array([5, 6, 7, 8], kind)[1:]
    keyspace.put_many(array, array)
    bytes_each = memoryview(array.buffers()[1])[array.type.bit_width // 8 :]
    width = array.type.bit_width // 8
    assert set(keyspace) == {bytes(bytes_each[at * width : (at + 1) * width]) for at in range(3)}


def test_tables_and_chunks_go_in_and_out(keyspace: Any, db: adamant.Store) -> None:
    keys = pyarrow.chunked_array([words("binary")[:2], words("binary")[2:]])
    fixed = pyarrow.array([b"%03d" % number for number in range(6)], pyarrow.binary(3))
    table = pyarrow.table({"k": keys, "v": pyarrow.chunked_array([fixed[:5], fixed[5:]])})
    assert keyspace.put_many(table) == 6
    assert keyspace.put_many(table["k"], table["v"]) == 6
    for part in (table.slice(1, 4).combine_chunks().to_batches()[0], table.slice(1, 4)):
        copy = db.keyspace("copy")
        copy.clear()
        assert copy.put_many(part) == 4
        assert dict(copy.items()) == dict(zip(WORDS[1:5], fixed[1:5].to_pylist()))
    read = pyarrow.table(keyspace.scan(rows=4))
    read.validate(full=True)
    assert [batch.num_rows for batch in read.to_batches()] == [4, 2]
    assert read.to_pydict() == {
        "key": list(keyspace),
        "value": list(keyspace.values()),
    }
    assert pyarrow.schema(keyspace.scan()).names == ["key", "value"]
    part = pyarrow.table(keyspace.scan(start=b"a", stop=b"m", reverse=True))
    assert part["key"].to_pylist() == [b"long" * 40, b"bb", b"a"]
    assert pyarrow.table(keyspace.scan(prefix=b"none")).num_rows == 0


def test_missing_keys_are_null(keyspace: Any) -> None:
    keys = pyarrow.array([b"%05d" % number for number in range(0, 2000)])
    keyspace.put_many(keys[::3], keys[::3])
    column = pyarrow.array(keyspace.get_many(keys))
    column.validate(full=True)
    assert column.to_pylist() == [word if at % 3 == 0 else None for at, word in enumerate(keys.to_pylist())]
    assert column.null_count == keyspace.get_many(keys).missing == 2000 - 667


def test_text_is_strings(db: adamant.Store) -> None:
    texts = db.keyspace("texts", codec="utf-8")
    frame = pandas.DataFrame({"name": ["ada", "grace", "\u00e9"], "born": ["1815", "1906", ""]})
    assert texts.put_many(frame) == 3
    assert dict(texts.items()) == {"ada": "1815", "grace": "1906", "\u00e9": ""}
    table = pyarrow.table(texts.scan())
    table.validate(full=True)
    assert table.schema.types == [pyarrow.large_string()] * 2
    back = table.to_pandas()
    assert back.values.tolist() == frame.values.tolist()
    assert pandas.Series(pyarrow.array(texts.get_many(frame["name"]))).tolist() == ["1815", "1906", ""]
    with db.transaction() as transaction:
        assert transaction[texts].put_many(frame[:1]) == 1


def test_other_types_are_refused(keyspace: Any) -> None:
    good = pyarrow.array([b"a", b"b"])
    for bad in (
        good.dictionary_encode(),
        pyarrow.array([True, False]),
        pyarrow.array([[1], [2]]),
        pyarrow.array(["a", "b"], pyarrow.string_view()),
        pyarrow.array([None, None]),
    ):
        with pytest.raises(TypeError, match="found Arrow's type"):
            keyspace.put_many(good, bad)
    with pytest.raises(adamant.InvalidArgument, match="no nulls as values"):
        keyspace.put_many(good, pyarrow.array([b"a", None]))
    keyspace.put_many(good[:1], pyarrow.array([b"a", None])[:1])
    with pytest.raises(adamant.InvalidArgument, match="one column as keys, found a table of 2"):
        keyspace.get_many(pyarrow.table({"a": good, "b": good}))
    with pytest.raises(adamant.InvalidArgument, match="a table of two columns, keys and values, found 3"):
        keyspace.put_many(pyarrow.table({"a": good, "b": good, "c": good}))
    with pytest.raises(adamant.InvalidArgument, match="found 1"):
        keyspace.put_many(good)


def test_a_stream_that_fails_says_so(keyspace: Any, db: adamant.Store) -> None:
    def batches() -> Any:
        yield pyarrow.record_batch({"k": pyarrow.array([b"a"]), "v": pyarrow.array([b"1"])})
        raise ValueError("the source is gone")

    schema = pyarrow.schema({"k": pyarrow.binary(), "v": pyarrow.binary()})
    with pytest.raises(adamant.InvalidArgument, match="the source is gone"):
        keyspace.put_many(pyarrow.RecordBatchReader.from_batches(schema, batches()))
    assert len(keyspace) == 0
    keyspace.put_many(words("binary"), words("binary"))
    snapshot = db.snapshot()
    reader = pyarrow.RecordBatchReader.from_stream(snapshot[keyspace].scan(rows=2))
    assert reader.read_next_batch().num_rows == 2
    snapshot.close()
    with pytest.raises(OSError, match="the snapshot was closed"):
        reader.read_next_batch()


def test_memory_is_let_go_when_nothing_uses_it(keyspace: Any) -> None:
    before = pyarrow.total_allocated_bytes()
    array = pyarrow.array([b"%07d" % number for number in range(10_000)])
    for _ in range(10):
        keyspace.put_many(array, array)
        with pytest.raises(adamant.InvalidArgument):
            keyspace.put_many(array, array[1:])
    # Capsules that nobody takes, and arrays that are used after what they came from.
    column = keyspace.get_many(array)
    column.__arrow_c_array__()
    keyspace.scan().__arrow_c_stream__()
    child = pyarrow.record_batch(pyarrow.table(keyspace.scan()).to_batches()[0])["value"]
    kept = pyarrow.array(column)
    del column
    same, last = kept.equals(child), kept[9_999].as_py()
    assert same and last == b"0009999"
    del array, kept, child
    gc.collect()
    assert pyarrow.total_allocated_bytes() == before


def test_what_was_taken_cannot_be_taken_again(keyspace: Any) -> None:
    schema, array = keyspace.get_many(words("binary")).__arrow_c_array__()
    pyarrow.Array._import_from_c_capsule(schema, array)

    class Again:
        def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
            return schema, array

    with pytest.raises(ValueError, match="taken before"):
        keyspace.put_many(Again(), words("binary"))

    class Other:
        def __arrow_c_array__(self, requested_schema: object | None = None) -> Any:
            return array, schema

    with pytest.raises((TypeError, ValueError)):
        keyspace.get_many(Other())
