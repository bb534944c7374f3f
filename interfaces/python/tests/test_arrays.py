"""Arrays with the buffer protocol: rows in and out, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import adamant
import pytest

from conftest import ENGINES, look

numpy = pytest.importorskip("numpy")

ROWS = 40_000


def entries(rows: int = ROWS) -> tuple[Any, Any]:
    """Keys in no order, whose memory is in that of their numbers, and a value for each."""
    choices = numpy.random.default_rng(7)
    keys = choices.permutation(rows).astype(">u8")
    return keys, choices.random((rows, 3))


@pytest.fixture(params=ENGINES)
def keyspace(request: pytest.FixtureRequest, db: adamant.Store) -> Any:
    return db.keyspace("test", engine=request.param)


@pytest.mark.parametrize("atomic", [True, False])
def test_rows_come_back(keyspace: Any, atomic: bool) -> None:
    keys, values = entries()
    assert keyspace.put_many(keys, values, atomic=atomic) == ROWS
    assert len(keyspace) == ROWS and keyspace[keys[5:6].tobytes()] == values[5].tobytes()
    out = numpy.zeros_like(values)
    assert keyspace.get_many_into(keys, out) == ROWS
    assert (out == values).all()
    column = keyspace.get_many(keys)
    assert len(column) == ROWS and column.missing == 0
    assert (numpy.frombuffer(column.data).reshape(-1, 3) == values).all()
    assert (numpy.frombuffer(column.offsets, "<i8") == numpy.arange(ROWS + 1) * 24).all()
    keys_read, values_read = numpy.empty(ROWS + 9, ">u8"), numpy.empty((ROWS + 9, 3))
    assert keyspace.scan().into(keys_read, values_read) == ROWS
    assert (keys_read[:ROWS] == numpy.arange(ROWS)).all()
    assert (values_read[:ROWS] == values[numpy.argsort(keys)]).all()


@pytest.mark.parametrize("place", ["keyspace", "snapshot", "transaction"])
def test_reads_are_of_where_they_are_asked(db: adamant.Store, place: str) -> None:
    keyspace = db.keyspace("test")
    keyspace.put_many(numpy.array([b"a", b"b", b"c"]), numpy.array([b"1", b"2", b"3"]))
    where = look(db, keyspace, place)
    keys = numpy.array([b"c", b"x", b"a"])
    assert bytes(where.get_many(keys).data) == b"31"
    out = numpy.full(3, b"-")
    assert where.get_many_into(keys, out, found := numpy.empty(3, bool)) == 2
    assert out.tolist() == [b"3", b"-", b"1"] and found.tolist() == [True, False, True]
    ((keys, values),) = where.scan(start=b"b", reverse=True)
    assert (bytes(keys.data), bytes(values.data)) == (b"cb", b"32")


def test_expiring_entries_are_left_out(path: Path) -> None:
    now = 1000.0
    db = adamant.open(path, sweep_expired=False)
    expiring = db.expiring("test", clock=lambda: now)
    expiring[b"a"] = b"stays"
    expiring.put(b"b", b"ends", ttl=5)
    keys = numpy.array([b"a", b"b"])
    assert expiring.get_many(keys).missing == 0
    now += 10
    column = expiring.get_many(keys)
    assert bytes(column.data) == b"stays" and bytes(column.found) == b"\1\0"
    assert [len(keys) for keys, _ in expiring.scan()] == [1]
    with pytest.raises(AttributeError):
        expiring.put_many(keys, keys)  # type: ignore[attr-defined]


def test_offsets_and_data_are_rows_of_any_length(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    for kind in ("<i4", "<u4", "<i8", "<u8"):
        keyspace.clear()
        offsets = numpy.array([0, 1, 1, 4], kind)
        assert keyspace.put_many((numpy.array([0, 1, 3, 6], kind), b"abbccc"), (offsets, b"1234")) == 3
        assert dict(keyspace.items()) == {b"a": b"1", b"bb": b"", b"ccc": b"234"}
    for bad in ([0, 3, 2, 4], [0, 1, 2, 9], [0, -1, 2, 4]):
        with pytest.raises(adamant.InvalidArgument, match="ascend within the data, found others at row"):
            keyspace.put_many(numpy.arange(3), (numpy.array(bad, "<i4"), b"1234"))
    assert len(keyspace) == 3
    with pytest.raises(adamant.InvalidArgument, match="one more than rows"):
        keyspace.get_many((numpy.zeros((0,), "<i4"), b""))
    for kind in (">i4", "<i2", "<f8"):
        with pytest.raises(TypeError, match="int32 or int64"):
            keyspace.get_many((numpy.zeros(2, kind), b""))


def test_structured_arrays_and_those_in_pieces_are_rows(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    fields = [("id", ">u4"), ("name", "U8"), ("born", "f8")]
    people = numpy.array([(1, "ada", 1815.0), (2, "alan", 1912.0)], fields)
    keyspace.put_many(people["id"], people)
    out = numpy.empty_like(people)
    assert keyspace.get_many_into(people["id"][::-1], out) == 2
    assert out.tolist() == people[::-1].tolist()
    square = numpy.arange(16, dtype="u1").reshape(4, 4)
    keyspace.put_many(square.T, square)
    assert keyspace[bytes([1, 5, 9, 13])] == bytes([4, 5, 6, 7])


def test_a_scan_goes_on_where_it_was(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keys, values = entries(5000)
    keyspace.put_many(keys, values)
    scan = keyspace.scan(rows=700)
    out = numpy.empty(1500, ">u8")
    assert scan.into(keys=out) == 1500 and out[-1] == 1499
    first, _ = next(scan)
    assert len(first) == 700 and numpy.frombuffer(first.data, ">u8")[0] == 1500
    assert [scan.into(out), scan.into(out), scan.into(out)] == [1500, 1300, 0]
    assert list(scan) == [] and list(keyspace.scan(prefix=b"none")) == []


def test_nothing_is_put_if_a_row_cannot_be(db: adamant.Store, path: Path) -> None:
    keyspace = db.keyspace("test")
    for atomic in (True, False):
        with pytest.raises(adamant.InvalidArgument, match="2 keys and 3 values"):
            keyspace.put_many(numpy.arange(2), numpy.arange(3), atomic=atomic)
        with pytest.raises(adamant.InvalidArgument):
            keyspace.put_many((numpy.array([0, 1, 9], "<i8"), b"ab"), numpy.arange(2), atomic=atomic)
    assert len(keyspace) == 0
    texts = db.keyspace("texts", codec="utf-8")
    with pytest.raises(adamant.InvalidArgument, match="expected UTF-8"):
        texts.put_many(numpy.array([b"a", b"\xff"]), numpy.array([b"1", b"2"]))
    assert len(texts) == 0
    with pytest.raises(adamant.InvalidArgument, match="found latin-1|found iso8859-1"):
        db.keyspace("latin", codec="latin-1").get_many(numpy.arange(2))
    adamant.open(path).close()
    with adamant.open(path, read_only=True) as store, pytest.raises(adamant.Error):
        store.keyspace("test").put_many(numpy.arange(2), numpy.arange(2))


def test_a_transaction_puts_at_its_commit(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keys, values = entries(100)
    with db.transaction() as transaction:
        within = transaction[keyspace]
        assert within.put_many(keys, values) == 100
        assert within.get_many(keys).missing == 0 and keyspace.get_many(keys).missing == 100
    assert keyspace.get_many(keys).missing == 0
    with pytest.raises(adamant.Closed):
        within.put_many(keys, values)


def test_objects_that_are_no_rows_are_refused(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    pointers = numpy.array([b"a", 1], object)
    one: Any
    for one in (1, None, [b"a"], "text", numpy.str_("a"), numpy.array(1), pointers, {b"a": b"b"}):
        with pytest.raises(TypeError):
            keyspace.get_many(one)
    for flat in (b"abc", bytearray(b"abc"), numpy.zeros(3, "u1")):
        with pytest.raises(adamant.InvalidArgument, match="an array of rows as keys"):
            keyspace.get_many(flat)
    with pytest.raises(adamant.InvalidArgument, match="a table of two columns"):
        keyspace.put_many(numpy.arange(3))
    with pytest.raises(adamant.InvalidArgument, match="at least one row"):
        keyspace.scan(rows=0)
    assert len(keyspace.get_many(numpy.zeros((0, 8), "u1"))) == 0


def test_arrays_that_cannot_take_the_values_are_refused(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keys = numpy.array([1, 2], ">u8")
    keyspace.put_many(keys, numpy.zeros((2, 3)))
    out: Any
    for out in (bytes(48), numpy.zeros((3, 2)).T, numpy.zeros((4, 3))[::2]):
        with pytest.raises((BufferError, adamant.InvalidArgument)):
            keyspace.get_many_into(keys, out)
    with pytest.raises(adamant.InvalidArgument, match="room for 2 rows in out, found 1"):
        keyspace.get_many_into(keys, numpy.zeros((1, 3)))
    out = numpy.ones((2, 2))
    with pytest.raises(adamant.InvalidArgument, match="16 bytes in each row of out, found 24 for row 0"):
        keyspace.get_many_into(keys, out)
    with pytest.raises(adamant.InvalidArgument, match="found 24 for row 0"):
        keyspace.scan().into(values=out)
    assert (out == 1).all()
    with pytest.raises(KeyError, match="t'"):
        keyspace.get_many_into(numpy.array([1, 9], ">u8"), numpy.zeros((2, 3)))
    for found in (numpy.zeros(3, bool), numpy.zeros(2, "i4")):
        with pytest.raises(adamant.InvalidArgument, match="2 booleans for found"):
            keyspace.get_many_into(keys, numpy.zeros((2, 3)), found)
    with pytest.raises(adamant.InvalidArgument, match="found none"):
        keyspace.scan().into()


def test_other_threads_run_meanwhile(db: adamant.Store) -> None:
    """Calls of arrays in several threads, of one keyspace, beside a thread of Python."""
    keyspace = db.keyspace("test")
    keys, values = entries()
    failures: list[BaseException] = []

    def work(shift: int) -> None:
        try:
            for _ in range(5):
                keyspace.put_many(keys, values)
                out = numpy.empty_like(values)
                assert keyspace.get_many_into(numpy.roll(keys, shift), out) == ROWS
                assert (out == numpy.roll(values, shift, axis=0)).all()
                assert sum(len(found) for found, _ in keyspace.scan(rows=999)) == ROWS
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(3)]
    for thread in threads:
        thread.start()
    turns = 0
    while any(thread.is_alive() for thread in threads):
        turns += 1
        threads[turns % 3].join(0.001)
    assert not failures and turns > 3


def test_columns_outlive_their_store(path: Path) -> None:
    with adamant.open(path) as store:
        keyspace = store.keyspace("test")
        keyspace.put_many(numpy.arange(9), numpy.arange(9))
        column, scan = keyspace.get_many(numpy.arange(9)), keyspace.scan()
    assert numpy.frombuffer(column.data, "i8").tolist() == list(range(9))
    with pytest.raises(adamant.Closed):
        next(scan)
    assert list(scan) == []
