"""Databases of adamant.dbm and shelves: what CPython's own tests of them do not ask for."""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import adamant
import adamant.dbm
import adamant.shelf
import pytest
from test_processes import forks, in_child


def test_flags(path: Path) -> None:
    flag: adamant.dbm.Flag
    for flag in ("r", "w"):
        with pytest.raises(adamant.dbm.error, match="found nothing"):
            adamant.dbm.open(path, flag)
    with pytest.raises(adamant.InvalidArgument, match="expected r, w, c or n"):
        adamant.dbm.open(path, "rw")  # type: ignore[arg-type]
    with adamant.dbm.open(path, "c") as database:
        database["a"], database[b"b"] = "1", b"2"
        with pytest.raises(adamant.dbm.error, match="is held by process"):
            adamant.dbm.open(path, "w")
        # Reading goes on beside, as of the moment of opening.
        with adamant.dbm.open(path) as beside:
            database["c"] = "3"
            assert dict(beside) == {b"a": b"1", b"b": b"2"}
            beside.sync()
            works: list[Any] = [lambda: beside.__setitem__("d", ""), lambda: beside.clear()]
            for work in works:
                with pytest.raises(adamant.dbm.error, match="reading only"):
                    work()
    with adamant.dbm.open(path, "w") as database:
        assert len(database) == 3 and database.get("none") is None
    # n empties it, and nothing else that is in the store.
    with adamant.open(path) as store:
        store.keyspace("other")[b"key"] = b"stays"
    with adamant.dbm.open(path, "n") as database:
        assert database.keys() == []
    with adamant.open(path) as store:
        assert store.keyspace("other")[b"key"] == b"stays"
        store.drop_keyspace("dbm")
    with pytest.raises(adamant.dbm.error, match='no keyspace "dbm"'):
        adamant.dbm.open(path)
    adamant.open(path).close()  # what failed has let it go


def test_what_is_no_database_stays(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"something else")
    flag: adamant.dbm.Flag
    for flag in ("r", "w", "c", "n"):
        with pytest.raises(adamant.dbm.error, match="is not a store"):
            adamant.dbm.open(file, flag)
    assert file.read_bytes() == b"something else" and adamant.dbm.whichdb(file) == ""
    assert adamant.dbm.whichdb(tmp_path / "none") is None


def test_permissions(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        for mode, expected in ((0o600, 0o700), (0o666, 0o755), (0o660, 0o750)):
            path = tmp_path / f"{mode:o}"
            adamant.dbm.open(path, "c", mode).close()
            assert stat.S_IMODE(path.stat().st_mode) == expected
    finally:
        os.umask(before)


def test_all_of_a_mapping(path: Path) -> None:
    database = adamant.dbm.open(os.fsencode(path), "c")
    mixed: dict[bytes | str, bytes | str] = {"b": "2", b"c": b"3"}
    database.update(mixed, a="1")
    assert database.keys() == [b"a", b"b", b"c"] == list(database) and b"a" in database
    assert list(database.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    key, walked = database.firstkey(), []
    while key is not None:
        walked.append(key)
        key = database.nextkey(key)
    assert walked == [b"a", b"b", b"c"] and database.nextkey("c") is None
    assert database.setdefault("a", "9") == b"1" and database.setdefault("d") == b""
    assert database.pop("d") == b"" and database.popitem() == (b"a", b"1")
    wrong: Any
    for wrong in (1, None, 1.5):
        with pytest.raises(TypeError, match="expected bytes or str"):
            database[wrong] = b""
        with pytest.raises(TypeError, match="expected bytes or str"):
            wrong in database  # noqa: B015
    with pytest.raises(KeyError, match="none"):
        del database["none"]
    database.reorganize()
    database.clear()
    assert len(database) == 0 and database.firstkey() is None
    database.close()
    database.close()
    for work in (lambda: len(database), lambda: database["a"], database.keys, database.sync):
        with pytest.raises(adamant.dbm.error, match="closed"):
            work()


def test_a_pickle_that_is_damaged(db: adamant.Store) -> None:
    keyspace = db.keyspace("shelf")
    shelf: adamant.shelf.Shelf[Any] = adamant.shelf.Shelf(keyspace)
    shelf["a"], shelf["b"] = [1], [2]
    for damaged in (b"", keyspace[b"a"][:-1], b"\x80", b"cnone\nclass\n."):
        keyspace[b"a"] = damaged
        for work in (lambda: shelf["a"], lambda: shelf.get("a"), lambda: list(shelf.values())):
            with pytest.raises(adamant.Undecodable, match="'a' cannot be read as pickle"):
                work()
    assert "a" in shelf and shelf["b"] == [2] and shelf.get("none", 5) == 5
    del shelf["a"]
    assert dict(shelf) == {"b": [2]}


def test_what_cannot_be_pickled_changes_nothing(db: adamant.Store) -> None:
    keyspace = db.keyspace("shelf")
    shelf: adamant.shelf.Shelf[Any] = adamant.shelf.Shelf(keyspace, writeback=True)
    shelf["a"], shelf["b"] = [1], [2]
    shelf["a"].append(1)
    shelf["b"].append(lambda: None)
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        shelf.sync()
    assert pickle.loads(keyspace[b"a"]) == [1] and shelf["a"] == [1, 1]
    shelf["b"].pop()
    shelf.close()
    assert pickle.loads(keyspace[b"a"]) == [1, 1]


def test_what_is_written_back_is_one_commit(path: Path) -> None:
    with adamant.open(path) as db:
        db.record_changes(1 << 20)
        keyspace = db.keyspace("shelf")
        shelf: adamant.shelf.Shelf[Any] = adamant.shelf.Shelf(keyspace, writeback=True)
        for number in range(5):
            shelf[str(number)] = [number]
        before = db.last_change
        for number in range(5):
            shelf[str(number)].append(number)
        shelf.sync()
        assert db.last_change == before + 1
        (commit,) = db.changes(before, timeout=0)
        assert [change.key for change in commit.changes] == [b"0", b"1", b"2", b"3", b"4"]


def test_threads_share_a_shelf(path: Path) -> None:
    with adamant.shelf.open(path) as shelf:

        def work(thread: int) -> None:
            for number in range(100):
                shelf[f"{thread} {number}"] = (thread, number)
                assert shelf[f"{thread} {number}"] == (thread, number)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(shelf) == 400
    with adamant.shelf.open(path, "r") as shelf:
        assert shelf["3 99"] == (3, 99) and len(shelf) == 400


@forks
def test_a_forks_child_is_refused(path: Path) -> None:
    with adamant.shelf.open(path) as shelf:
        shelf["a"] = 1
        assert in_child(lambda: shelf["a"]).startswith("Forked: ")
        assert in_child(lambda: shelf.__setitem__("a", 2)).startswith("Forked: ")
        assert shelf["a"] == 1


WRITER = """
    import sys
    import adamant.shelf

    shelf = adamant.shelf.open(sys.argv[1], writeback=True)
    number = len(shelf.get("squares", ()))
    shelf.setdefault("squares", [])
    shelf.setdefault("count", [0])
    while True:
        shelf["squares"].append(number * number)
        number += 1
        shelf["count"][0] = number
        shelf.sync()
        print(number, flush=True)
"""


def test_a_killed_process_has_written_all_back_or_nothing(path: Path) -> None:
    for rounds in (1, 30, 100):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(WRITER), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        told = [int(writer.stdout.readline()) for _ in range(rounds)][-1]
        writer.kill()
        writer.stdout.close()
        writer.wait()
        with adamant.shelf.open(path, "r") as shelf:
            assert shelf["count"][0] >= told
            assert shelf["squares"] == [number * number for number in range(shelf["count"][0])]
