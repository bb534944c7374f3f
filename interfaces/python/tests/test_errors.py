"""Wrong types, closed handles, and the tree of exceptions."""

from __future__ import annotations

import copy
import errno
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import adamant
import pytest


def test_the_tree_of_exceptions() -> None:
    classes = [
        found
        for name in adamant.__all__
        if isinstance(found := getattr(adamant, name), type) and issubclass(found, Exception)
    ]
    assert len(classes) > 15
    for found in classes:
        assert issubclass(found, adamant.Error)
        assert found.__module__ == "adamant" and found.__doc__
    assert issubclass(adamant.InvalidArgument, ValueError)
    assert issubclass(adamant.Missing, FileNotFoundError)
    assert issubclass(adamant.TargetExists, FileExistsError)


@pytest.mark.parametrize("wrong", ["text", 1, None, 1.5, (b"a",), object()])
def test_wrong_types(db: adamant.Store, wrong: Any) -> None:
    keyspace: Any = db.keyspace("test")
    texts: Any = db.keyspace("texts", codec="utf-8")
    keyspace[b"key"] = b"value"
    works: list[Any] = [
        lambda: keyspace[wrong],
        lambda: keyspace.__setitem__(wrong, b""),
        lambda: keyspace.__setitem__(b"key", wrong),
        lambda: keyspace.__delitem__(wrong),
        lambda: keyspace.discard(wrong),
        lambda: keyspace.pop(wrong),
        lambda: keyspace.setdefault(wrong, b""),
        lambda: keyspace.setdefault(b"new", wrong),
        lambda: keyspace.update({wrong: b""}),
        lambda: keyspace.update({b"new": wrong}),
        lambda: db.batch().put(keyspace, b"new", wrong),
        lambda: db.transaction()[keyspace].__setitem__(wrong, b""),
        lambda: db.batch().put(wrong, b"key", b""),
        lambda: db.snapshot()[wrong],
    ]
    if wrong is not None:
        works += [lambda: list(keyspace.keys(start=wrong)), lambda: list(keyspace[wrong:])]
    for work in works:
        with pytest.raises(TypeError):
            work()
    # What no key can be is not there: only writes refuse it.
    for mapping in (keyspace, db.snapshot()[keyspace], db.transaction()[keyspace], keyspace[b"a":]):
        assert wrong not in mapping and mapping.get(wrong, b"none") == b"none"
        assert not mapping.keys() & {wrong} and (wrong, b"value") not in mapping.items()
        assert mapping != {wrong: b"value"}
    assert keyspace.lend(wrong) is None and keyspace.pop(wrong, b"none") == b"none"
    assert db.transaction()[keyspace].pop(wrong, b"none") == b"none"
    assert db.expiring("ending").pop(wrong, b"none") == b"none"
    for key in (b"bytes", 1):
        with pytest.raises(TypeError, match="expected str as a key"):
            texts[key]
    with pytest.raises(TypeError, match="give the keyspace a codec"):
        keyspace["text"]
    assert dict(keyspace) == {b"key": b"value"}


def test_keys_and_names_that_cannot_be(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    for work in (
        lambda: keyspace.__setitem__(b"k" * 65_536, b""),
        lambda: db.keyspace(""),
        lambda: db.keyspace("n" * 256),
        lambda: db.keyspace("test", durability="maybe"),  # type: ignore[call-overload]
    ):
        with pytest.raises(adamant.InvalidArgument):
            work()
    keyspace[b""] = b"the lowest key"
    assert keyspace.first() == (b"", b"the lowest key") and b"" in keyspace.keys(stop=b"a")
    assert b"k" * 65_536 not in keyspace and keyspace.get(b"k" * 65_536) is None
    keyspace[b"k" * 65_535] = b""
    with pytest.raises(KeyError) as missing:
        keyspace[b"none"]
    assert missing.value.args == (b"none",)
    with pytest.raises(adamant.WrongEngine, match="lsm"):
        db.keyspace("test", engine="lsm")


def test_nothing_can_be_used_after_close(path: Path) -> None:
    db = adamant.open(path)
    keyspace = db.keyspace("test")
    keyspace[b"key"] = b"value" * 2000
    snapshot, transaction, batch = db.snapshot(), db.transaction(), db.batch()
    lent, entries = keyspace.lend(b"key"), iter(keyspace)
    batch.put(keyspace, b"a", b"")
    db.close()
    db.close()
    assert db.closed and "closed" in repr(db)
    for work in (
        lambda: keyspace[b"key"],
        lambda: keyspace.__setitem__(b"key", b""),
        lambda: len(keyspace),
        lambda: list(entries),
        lambda: snapshot[keyspace][b"key"],
        lambda: transaction[keyspace][b"key"],
        lambda: batch.commit(),
        lambda: db.keyspace("test"),
        lambda: db.snapshot(),
        lambda: db.transaction(),
        lambda: db.stats(),
        lambda: db.check(),
        lambda: db.sync(),
        lambda: db.keyspaces(),
    ):
        with pytest.raises(adamant.Closed):
            work()
    # What was lent is still there, a copy of its own since the store was closed.
    assert lent is not None and bytes(lent) == b"value" * 2000
    del lent, snapshot, transaction, batch, entries
    with adamant.open(path) as db:
        assert db.keyspace("test")[b"key"] == b"value" * 2000


def test_handles_are_not_pickled(db: adamant.Store) -> None:
    keyspace = db.keyspace("test")
    keyspace[b"a"] = b""
    for handle in (db, keyspace, db.snapshot(), db.transaction(), db.batch(), keyspace[:]):
        for work in (pickle.dumps, copy.copy, copy.deepcopy):
            if isinstance(handle, adamant.Range) and work is copy.copy:
                continue  # It is no handle: its copy is of the same keyspace.
            with pytest.raises(TypeError, match="cannot pickle"):
                work(handle)


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(adamant.Missing):
        adamant.open(tmp_path / "none", create=False)
    (tmp_path / "file").write_text("no store")
    with pytest.raises(adamant.Unsupported):
        adamant.open(tmp_path / "file")
    with pytest.raises(TypeError):
        adamant.open(tmp_path / "none", no_such_option=1)  # type: ignore[call-arg]
    with pytest.raises((TypeError, OverflowError)):
        adamant.open(tmp_path / "none", log_bytes_max=-1)


def test_damage_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with adamant.open(path) as db:
        db.keyspace("test").update({b"%d" % number: b"v" * 100 for number in range(5000)})
    pool = path / "pool"
    content = bytearray(pool.read_bytes())
    middle = content.index(b"v" * 100, len(content) // 3)
    content[middle + 10] ^= 1
    pool.write_bytes(content)
    with adamant.open(path) as db:
        findings = db.check()
        assert findings and "pool" in findings[0].place and findings[0].what
        assert not findings[0].is_unread
        with pytest.raises(adamant.Damaged):
            db.backup(tmp_path / "backup")


def test_words_of_handles(db: adamant.Store, path: Path) -> None:
    keyspace = db.keyspace("test", codec="utf-8")
    assert repr(db) == "<adamant.Store in memory>"
    assert repr(keyspace) == "<adamant.Keyspace 'test' engine=bplus keys=utf-8 values=utf-8>"
    assert "start='a'" in repr(keyspace["a":"b"]) and "Range" in repr(keyspace["a":"b"])
    with adamant.open(path) as other:
        assert repr(str(path)) in repr(other) and other.path == str(path)


def test_keys_come_without_values_that_are_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with adamant.open(path) as db:
        keyspace = db.keyspace("files", engine="lsm")
        keyspace.update({b"%03d" % number: b"v" * 5000 for number in range(300)})
        keyspace.compact()
    blobs = list((path / "blobs").iterdir())
    assert blobs
    for blob in blobs:
        blob.unlink()
    with adamant.open(path) as db:
        keyspace = db.keyspace("files", engine="lsm")
        expected = [b"%03d" % number for number in range(300)]
        with db.snapshot() as snapshot, db.transaction() as transaction:
            for place in (keyspace, keyspace[:], snapshot[keyspace], transaction[keyspace]):
                assert list(place) == list(place.keys()) == expected
                assert list(reversed(place)) == expected[::-1]
                assert len(place) == 300 and place and b"007" in place
                with pytest.raises(adamant.Damaged, match="files.*blobs"):
                    list(place.items())
        with pytest.raises(adamant.Damaged):
            keyspace[b"007"]


def test_a_store_that_could_not_write_is_poisoned(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "store"
    db = adamant.open(path)
    keyspace = db.keyspace("test")
    keyspace[b"key"] = b"value"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))
    found = []
    try:
        for _ in range(3):
            try:
                keyspace[b"new"] = b"value"
            except adamant.Error as error:
                found.append(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(found) == 3 and isinstance(found[-1], adamant.Poisoned)
    with pytest.raises(adamant.Poisoned):
        del keyspace[b"key"]
    assert keyspace[b"key"] == b"value"
    with pytest.raises(adamant.Poisoned):
        db.close()
    with adamant.open(path) as db:
        assert db.keyspace("test")[b"key"] == b"value"


def test_a_file_system_that_is_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(small)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs needs the privilege")
    try:
        with adamant.open(small / "store", log_bytes_max=4 << 20) as db:
            keyspace = db.keyspace("test")
            written = 0
            with pytest.raises(adamant.OutOfSpace):
                for written in range(1000):
                    keyspace[b"%04d" % written] = bytes(100_000)
            assert written > 10 and len(keyspace) == written
            for number in range(10):
                del keyspace[b"%04d" % number]
            keyspace[b"small"] = b"value"
            assert len(keyspace) == written - 9 and keyspace[b"small"] == b"value"
    finally:
        # Handles that are left keep its files open.
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_what_opening_fails_with_is_an_error_of_the_system(tmp_path: Path) -> None:
    path = tmp_path / "test.adamant"
    (tmp_path / "file").write_bytes(b"no store")
    (tmp_path / "damaged").mkdir()

    def fails(kind: type[OSError], number: int, work: Any, filename: Path | None = None) -> Any:
        with pytest.raises(kind) as failed:
            work()
        error: Any = failed.value
        assert isinstance(error, adamant.Error) and isinstance(error, OSError)
        assert error.errno == number and not str(error).startswith("[Errno"), repr(error)
        assert filename is None or Path(os.fsdecode(error.filename)) == filename
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.errno) == (type(error), str(error), number)
        return error

    fails(FileNotFoundError, errno.ENOENT, lambda: adamant.open(path, create=False), path)
    fails(adamant.Unsupported, errno.EINVAL, lambda: adamant.open(tmp_path / "file"))
    fails(adamant.Refused, errno.ENAMETOOLONG, lambda: adamant.open(tmp_path / ("n" * 300)))
    with adamant.open(path) as db:
        db.keyspace("test")[b"key"] = b"value"
        fails(BlockingIOError, errno.EAGAIN, lambda: adamant.open(path))
        fails(FileExistsError, errno.EEXIST, lambda: db.backup(path))
        db.backup(tmp_path / "copy")
    with adamant.open(path, read_only=True) as db:
        keyspace = db.keyspace("test")
        fails(adamant.ReadOnly, errno.EROFS, lambda: keyspace.__setitem__(b"key", b""))
    pool = path / "pool"
    damaged = bytearray(pool.read_bytes())
    damaged[24:4096] = b"\xff" * (4096 - 24)
    pool.write_bytes(damaged)
    fails(OSError, errno.EBADMSG, lambda: adamant.open(path))


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="the system permits everything"
)
def test_what_is_not_permitted_is_a_permission_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError) as failed:
        adamant.open(tmp_path / "test.adamant")
    assert isinstance(failed.value, adamant.Denied) and failed.value.errno == errno.EACCES


class AsPath:
    def __init__(self, path: Any) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        return self.path


@pytest.mark.parametrize("name", [b"plain", "\u00fc".encode(), b"no \xff text"])
def test_any_bytes_are_a_path(tmp_path: Path, name: bytes) -> None:
    path = os.fsencode(tmp_path) + b"/" + name
    with adamant.open(path) as db:
        db.keyspace("test", codec="utf-8")["key"] = "value"
        assert db.path == os.fsdecode(path)
    for same in (path, os.fsdecode(path), AsPath(path), AsPath(os.fsdecode(path)), Path(db.path)):
        with adamant.open(same, create=False) as db:
            assert db.keyspace("test", codec="utf-8")["key"] == "value"
    try:
        name.decode()
    except UnicodeDecodeError:
        return
    with adamant.open(path) as db:
        db.backup(path + b" backup")
    adamant.restore(AsPath(path + b" backup"), path + b" restored")
    with adamant.open(path + b" restored", create=False) as db:
        assert db.keyspace("test")[b"key"] == b"value"


def test_what_is_no_path(tmp_path: Path) -> None:
    for wrong in (1, None, bytearray(b"store"), AsPath(1)):
        if wrong is not None:
            with pytest.raises(TypeError):
                adamant.open(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            adamant.restore(wrong, tmp_path / "restored")  # type: ignore[arg-type]
    for zero in ("a\0b", b"a\0b"):
        with pytest.raises(adamant.InvalidArgument, match="zero byte"):
            adamant.open(zero)
