"""Opening, listing, backup and what else concerns a whole store."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import adamant
import pytest


def test_what_was_written_is_there_again(path: Path, engine: Any) -> None:
    with adamant.open(path) as db:
        db.keyspace("test", engine=engine).update({b"%d" % n: b"%d" % (n * n) for n in range(2000)})
    with adamant.open(path, create=False) as db:
        assert db.keyspace("test") == {b"%d" % n: b"%d" % (n * n) for n in range(2000)}
        assert db.check() == []


def test_options_of_the_engine_lsm(path: Path) -> None:
    words = {b"%06d" % n: b"Bern, Basel, Lugano. " * 20 for n in range(2000)}
    with adamant.open(path) as db:
        small = db.keyspace("small", engine="lsm", lsm={"compression": ["none", "zstd:9"]})
        plain = db.keyspace("plain", engine="lsm", lsm={"compression": "none", "block_bytes": 1024})
        for keyspace in (small, plain):
            keyspace.update(words)
            keyspace.compact()
            assert keyspace == words
        sizes = [file.stat().st_size for file in (path / "tables").iterdir()]
        assert min(sizes) * 10 < max(sizes)
        leases = db.expiring("leases", engine="lsm", lsm={"blob_bytes_min": None})
        leases[b"a"] = b"b"
        with pytest.raises(adamant.WrongEngine):
            db.keyspace("other", lsm={"hash_index": True})
        wrong: list[Any] = [{"compression": "lz5"}, {"block_bytes": 1}, {"filter_bits_per_key": 31}]
        for options in [*wrong, {"blocks": 1}, {"compression": []}]:
            with pytest.raises(adamant.InvalidArgument):
                db.keyspace("small", lsm=options)
    with adamant.open(path) as db:
        assert db.keyspace("small", lsm={"compression": "lz4, last zstd"}) == words


def test_compressed_values(path: Path) -> None:
    words = {b"%06d" % n: b"name: crate-%d; license: MIT; town: Bern, Basel, Lugano. " % n * 5
             for n in range(2000)}
    with adamant.open(path) as db:
        notes = db.keyspace("notes", engine="btree", value_compression="lz4, from 50")
        notes.update(words)
        assert notes == words and db.value_compression("notes") == "lz4, from 50"
        plain = db.keyspace("plain")
        plain.update(words)
        assert db.value_compression("plain") is None
        with pytest.raises(adamant.InvalidArgument):
            db.keyspace("plain", value_compression="lz4")
        with pytest.raises(adamant.InvalidArgument):
            db.keyspace("other", value_compression="lz5")
        dictionary = db.train_dictionary("plain", 2048)
        assert 0 < len(dictionary) <= 2048
        assert db.compress_values("plain", "zstd", dictionary=dictionary)
        assert not db.compress_values("plain", "zstd", dictionary=dictionary)
        with pytest.raises(adamant.InvalidArgument):
            db.compress_values("plain", "lz4", dictionary=dictionary)
        assert plain == words
        leases = db.expiring("leases", value_compression="zstd")
        leases[b"a"] = b"b" * 500
    with adamant.open(path) as db:
        assert db.keyspace("plain") == words and db.value_compression("plain") == "zstd:3"
        assert db.expiring("leases")[b"a"] == b"b" * 500
        assert db.compress_values("plain", "none") and db.keyspace("plain") == words
        assert db.check() == []


def test_keyspaces(db: adamant.Store) -> None:
    db.keyspace("b", engine="critbit")[b"k"] = b""
    db.keyspace("a", engine="lsm")
    assert db.keyspaces() == [
        adamant.KeyspaceInfo("a", "lsm", 0),
        adamant.KeyspaceInfo("b", "critbit", 1),
    ]
    assert db.keyspaces()[1].engine == "critbit"
    assert db.convert_keyspace("b", "bplus") and not db.convert_keyspace("b", "bplus")
    db.rename_keyspace("b", "c")
    assert db.keyspace("c").engine == "bplus" and b"k" in db.keyspace("c")
    with pytest.raises(adamant.UnknownKeyspace):
        db.rename_keyspace("b", "d")
    with pytest.raises(adamant.KeyspaceExists):
        db.rename_keyspace("c", "a")
    handle = db.keyspace("c")
    assert db.drop_keyspace("c") and not db.drop_keyspace("c")
    with pytest.raises(adamant.KeyspaceDropped):
        handle[b"k"]
    db.keyspace("a").compact()
    db.compact()


def test_backup_and_restore(tmp_path: Path) -> None:
    backup, copy, linked = (tmp_path / name for name in ("backup", "copy", "linked"))
    with adamant.open(tmp_path / "store") as db:
        words = db.keyspace("words", codec="utf-8")
        words["one"] = "1"
        db.backup(backup)
        words["two"] = "2"
        with pytest.raises(adamant.TargetExists):
            db.backup(backup)
        with pytest.raises(adamant.InvalidArgument):
            db.backup(tmp_path / "store" / "within")
        db.keyspace("visits", engine="lsm", codec="utf-8")["k"] = "v"
        db.backup(linked, link=True)
    adamant.restore(backup, copy)
    with adamant.open(linked) as db:
        assert dict(db.keyspace("visits", codec="utf-8")) == {"k": "v"}
    for path in (backup, copy):
        with adamant.open(path) as db:
            assert dict(db.keyspace("words", codec="utf-8")) == {"one": "1"}


def test_increments(tmp_path: Path) -> None:
    monday, tuesday, wednesday = (tmp_path / name for name in ("monday", "tuesday", "wednesday"))
    with adamant.open(tmp_path / "store") as db:
        words = db.keyspace("words", codec="utf-8")
        for number in range(1000):
            words[f"{number:04}"] = "x" * 200
        db.backup(monday)
        words["day"] = "tuesday"
        db.backup(tuesday, since=monday)
        words["day"] = "wednesday"
        db.backup(wednesday, since=str(tuesday))
        with pytest.raises(adamant.InvalidArgument):
            db.backup(tmp_path / "both", since=monday, link=True)
        with pytest.raises(adamant.InvalidArgument):
            db.backup(tmp_path / "itself", since=tmp_path / "store")
        with pytest.raises(adamant.Missing):
            db.backup(tmp_path / "none", since=tmp_path / "nothing")
    full, one = ((path / name).stat().st_size for path, name in ((monday, "pool"), (tuesday, "increment")))
    assert one * 4 < full
    for path in (tuesday, wednesday):
        with adamant.open(path, read_only=True) as db:
            words = db.keyspace("words", codec="utf-8")
            assert (words["day"], len(words)) == (path.name, 1001)
            assert not db.check()
        adamant.restore(path, tmp_path / f"restored {path.name}")
        with adamant.open(tmp_path / f"restored {path.name}") as db:
            assert db.keyspace("words", codec="utf-8")["day"] == path.name
    with pytest.raises(adamant.Unsupported):
        adamant.open(tuesday)
    monday.rename(tmp_path / "elsewhere")
    with pytest.raises(adamant.Missing, match="monday") as missing:
        adamant.open(wednesday, read_only=True)
    assert str(monday) in str(missing.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts descriptors by /proc")
def test_closed_stores_keep_nothing(path: Path) -> None:
    """Each kept handle kept a tebibyte of addresses: some 144 closed stores were all that could be."""
    with adamant.open(path) as db:
        db.keyspace("test")[b"key"] = b"x" * 100_000
    kept: list[Any] = []
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(300):
        db = adamant.open(path)
        keyspace = db.keyspace("test")
        entries = iter(keyspace)
        next(entries)
        kept.append((db, keyspace, entries, db.snapshot()))
        db.close()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    for _, keyspace, _, _ in kept:
        with pytest.raises(adamant.Closed):
            keyspace[b"key"]


def test_one_who_writes_or_any_who_read(path: Path) -> None:
    with adamant.open(path) as db:
        db.keyspace("test")[b"key"] = b"value"
        for read_only in (False, True):
            with pytest.raises(adamant.Locked, match="already open"):
                adamant.open(path, read_only=read_only)
    with adamant.open(path, read_only=True) as one, adamant.open(path, read_only=True) as other:
        assert one.read_only and one.keyspace("test") == other.keyspace("test")
        for work in (
            lambda: one.keyspace("test").__setitem__(b"key", b""),
            lambda: one.keyspace("test").clear(),
            lambda: one.drop_keyspace("test"),
        ):
            with pytest.raises(adamant.ReadOnly):
                work()
        with pytest.raises(adamant.UnknownKeyspace):
            one.keyspace("other")


@pytest.mark.parametrize("durability", ["sync", "buffered", "deferred"])
def test_durabilities(path: Path, durability: Any) -> None:
    with adamant.open(path, durability=durability) as db:
        keyspace = db.keyspace("test")
        keyspace[b"a"] = b"1"
        db.keyspace("test", durability="sync")[b"b"] = b"2"
        with db.transaction(durability="deferred") as transaction:
            transaction[keyspace][b"c"] = b"3"
        db.sync()
        journal = db.stats()["heap"]["journal"]
        assert journal["durable_sequence"] == journal["last_sequence"]
    with adamant.open(path) as db:
        assert len(db.keyspace("test")) == 3


def test_options_are_taken(path: Path) -> None:
    with adamant.open(
        path,
        log_bytes_max=8 << 20,
        deferred_ms_max=10,
        deferred_bytes_max=1 << 20,
        verify_first_touch=True,
        memory_bytes_max=64 << 20,
        image="filled",
        snapshot_bytes_max=1 << 20,
        cache_bytes_max=1 << 20,
        pinned_bytes_max=1 << 20,
        open_files_max=16,
    ) as db:
        db.keyspace("test").update({b"%d" % number: b"x" * 1000 for number in range(20_000)})
        assert db.stats()["heap"]["journal"]["log_allocated_bytes"] <= 32 << 20
        assert db.stats()["entries"] == 20_000
        db.shrink()


def test_merge_operators(path: Path) -> None:
    with adamant.open(path) as db:
        visits = db.keyspace("visits", engine="lsm", merge_operator="add")
        one = (1).to_bytes(8, "little")
        for _ in range(3):
            visits.merge(b"home", one)
        assert visits[b"home"] == (3).to_bytes(8, "little")
        with pytest.raises(adamant.InvalidArgument, match="8 bytes"):
            visits.merge(b"home", b"1")
        with pytest.raises(adamant.InvalidArgument, match="append"):
            db.keyspace("visits", merge_operator="append")
        log = db.keyspace("log", codec="utf-8", merge_operator="append")
        with db.batch() as batch:
            batch.put(log, "today", "up")
            batch.merge(log, "today", ", out")
        with db.transaction() as transaction:
            transaction[log].merge("today", ", home")
            assert transaction[log]["today"] == "up, out, home"
        assert log["today"] == "up, out, home"
        with pytest.raises(adamant.InvalidArgument):
            db.keyspace("plain").merge(b"key", b"1")


def test_dropping_the_last_handle_closes(path: Path) -> None:
    db = adamant.open(path)
    keyspace = db.keyspace("test")
    keyspace[b"a"] = b"1"
    del db
    assert keyspace[b"a"] == b"1"
    del keyspace
    with adamant.open(path) as db:
        assert db.keyspace("test")[b"a"] == b"1"


def test_savepoints(path: Path) -> None:
    with adamant.open(path) as db:
        prices = db.keyspace("prices")
        prices[b"tea"] = b"3"
        db.create_savepoint("one")
        with pytest.raises(adamant.InvalidArgument):
            db.create_savepoint("one")
        prices[b"tea"] = b"4"
        with db.open_savepoint("one") as before:
            assert before.keyspace("prices") == {b"tea": b"3"}
            with pytest.raises(adamant.ReadOnly):
                before.keyspace("prices")[b"tea"] = b"5"
        with pytest.raises(adamant.Missing):
            db.open_savepoint("two")
        [found] = db.savepoints()
        assert (found.name, found.state) == ("one", "whole")
        assert found.size > 0 and found.commit > 0 and found.made is not None
        with pytest.raises(adamant.Locked):
            adamant.go_back(path, "one")
    adamant.go_back(path, "one")
    with adamant.open(path) as db:
        assert db.keyspace("prices") == {b"tea": b"3"}
        assert db.delete_savepoint("one") and not db.delete_savepoint("one")
        assert db.savepoints() == []
