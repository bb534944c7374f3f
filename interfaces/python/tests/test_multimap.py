"""Multimaps: a sorted set of pairs, against a set of Python."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import adamant
import pytest

Pair = tuple[bytes, bytes]


def some_bytes(source: random.Random) -> bytes:
    return bytes(source.choices(b"\0\1\xfe\xffa", k=source.randrange(4)))


def compare(
    tags: adamant.Multimap[bytes, bytes], model: set[Pair], source: random.Random
) -> None:
    ordered = sorted(model)
    assert list(tags) == ordered and list(reversed(tags)) == ordered[::-1]
    assert len(tags) == len(model) and bool(tags) == bool(model)
    key, value, stop = (some_bytes(source) for _ in range(3))
    values = [value for found, value in ordered if found == key]
    assert list(tags.values(key)) == values
    assert list(tags.values(key, reverse=True)) == values[::-1]
    assert list(tags.values(key, value, stop)) == [v for v in values if value <= v < stop]
    assert ((key, value) in tags) == ((key, value) in model)
    assert tags.has_key(key) == bool(values) and tags.count(key) == len(values)
    assert tags.first_value(key) == (values[0] if values else None)
    assert tags.last_value(key) == (values[-1] if values else None)
    keys = sorted({key for key, _ in model})
    assert list(tags.keys()) == keys and list(tags.keys(reverse=True)) == keys[::-1]
    assert list(tags.keys(key, stop)) == [k for k in keys if key <= k < stop]
    pairs = [pair for pair in ordered if key <= pair[0] < stop]
    assert list(tags.items(key, stop)) == pairs
    assert list(tags.items(key, stop, reverse=True)) == pairs[::-1]


def change(
    tags: adamant.Multimap[bytes, bytes], model: set[Pair], source: random.Random
) -> None:
    key, value = some_bytes(source), some_bytes(source)
    match source.randrange(8):
        case 0:
            assert tags.discard(key, value) == ((key, value) in model)
            model.discard((key, value))
        case 1:
            gone = {pair for pair in model if pair[0] == key}
            assert tags.discard_all(key) == len(gone)
            model -= gone
        case 2:
            pairs = {(some_bytes(source), some_bytes(source)) for _ in range(5)}
            tags.update(pairs)
            model |= pairs
        case _:
            assert tags.add(key, value) == ((key, value) not in model)
            model.add((key, value))


@pytest.mark.parametrize("engine", ["bplus", "lsm"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_a_sorted_set_of_pairs(db: adamant.Store, engine: Any, seed: int) -> None:
    source = random.Random(seed)
    tags = db.multimap("tags", engine=engine)
    model: set[Pair] = set()
    for _ in range(60):
        change(tags, model, source)
        compare(tags, model, source)
        if source.randrange(6) == 0:
            before, seen = db.snapshot(), set(model)
            with db.transaction() as transaction:
                within = transaction[tags]
                for _ in range(6):
                    change(within, model, source)
                    compare(within, model, source)
            compare(before[tags], seen, source)
            before.close()
    tags.clear()
    assert not tags and list(tags.keys()) == []


def test_more_pairs_than_a_batch(db: adamant.Store) -> None:
    tags = db.multimap("tags")
    pairs = [(b"%d" % (number % 3), b"%05d" % number) for number in range(5_000)]
    tags.update(pairs)
    with db.transaction() as transaction, db.snapshot() as snapshot:
        for seen in (tags, transaction[tags], snapshot[tags]):
            assert list(seen) == sorted(pairs)
            assert list(reversed(seen)) == sorted(pairs, reverse=True)
            assert len(list(seen.values(b"1"))) == seen.count(b"1") == 1_667
            assert list(seen.keys()) == [b"0", b"1", b"2"]


def test_codecs(db: adamant.Store) -> None:
    tags = db.multimap("tags", codec="utf-8")
    assert tags.add("rust", "adamant")
    tags.update({"c": "sqlite"}, [("rust", "ripgrep")])
    assert list(tags) == [("c", "sqlite"), ("rust", "adamant"), ("rust", "ripgrep")]
    assert ("rust", "adamant") in tags and "rust" not in tags
    with pytest.raises(TypeError):
        tags.add(b"rust", "adamant")  # type: ignore[arg-type]
    mixed = db.multimap("mixed", key_codec="utf-8")
    mixed.add("a", b"\xff")
    assert mixed.first_value("a") == b"\xff"


def test_failures(db: adamant.Store) -> None:
    tags = db.multimap("tags")
    tags.add(b"a", b"1")
    with pytest.raises(adamant.InvalidArgument, match="together"):
        tags.add(b"a", bytes(70_000))
    with pytest.raises(adamant.WrongKind, match=r"Store\.multimap"):
        db.keyspace("tags")
    db.keyspace("plain")
    with pytest.raises(adamant.WrongKind, match=r"Store\.keyspace"):
        db.multimap("plain")
    with db.snapshot() as snapshot:
        seen = snapshot[tags]
        with pytest.raises(adamant.InvalidArgument, match="read"):
            seen.add(b"a", b"2")
    with pytest.raises(adamant.Closed):
        list(seen)
    transaction = db.transaction()
    within = transaction[tags]
    within.add(b"a", b"2")
    transaction.rollback()
    with pytest.raises(adamant.Closed):
        within.add(b"a", b"2")
    assert list(tags) == [(b"a", b"1")]
    with pytest.raises(TypeError, match="pickle or copy"):
        copy.copy(tags)
    assert repr(tags) == '<adamant.Multimap "tags">'
    db.drop_keyspace("tags")
    with pytest.raises(adamant.KeyspaceDropped):
        tags.add(b"a", b"1")


def test_a_batch_takes_pairs_beside_entries(db: adamant.Store, engine: Any) -> None:
    names = db.keyspace("names", codec="utf-8", engine=engine)
    tags = db.multimap("tags", codec="utf-8", engine=engine)
    tags.update([("a", "1"), ("a", "2")])
    with db.batch() as batch:
        batch.put(names, "1", "a")
        tags.put_into(batch, "a", "3")
        tags.put_into(batch, "a", "2")
        tags.delete_from(batch, "a", "1")
        tags.delete_from(batch, "none", "1")
        # The later change of a pair wins.
        tags.put_into(batch, "b", "1")
        tags.delete_from(batch, "b", "1")
        assert len(batch) == 7 and list(tags) == [("a", "1"), ("a", "2")] and not names
    assert list(tags) == [("a", "2"), ("a", "3")] and names["1"] == "a"
    with pytest.raises(ZeroDivisionError), db.batch() as batch:
        tags.put_into(batch, "never", "")
        1 / 0  # noqa: B018
    assert not tags.has_key("never")
    with pytest.raises(adamant.Closed):
        tags.put_into(batch, "a", "4")
    with db.snapshot() as snapshot, db.transaction() as transaction, db.batch() as batch:
        with pytest.raises(adamant.InvalidArgument, match="of a snapshot"):
            snapshot[tags].put_into(batch, "a", "4")
        with pytest.raises(adamant.InvalidArgument, match="of a transaction"):
            transaction[tags].delete_from(batch, "a", "4")
        with pytest.raises(adamant.InvalidArgument, match="65535|65,535"):
            tags.put_into(batch, "a" * 40_000, "b" * 40_000)
        wrong: Any = names
        with pytest.raises(TypeError):
            tags.put_into(wrong, "a", "4")
        assert len(batch) == 0


def test_a_change_in_the_feed_is_a_pair(db: adamant.Store) -> None:
    tags = db.multimap("tags", codec="utf-8")
    db.record_changes(1 << 20)
    tags.add("rust", "adamant")
    tags.add("rust", "adamant")
    tags.discard_all("rust")
    seen = [
        (change.kind, tags.pair_of(change.key))
        for commit in db.changes(0, timeout=0)
        for change in commit.changes
        if change.key is not None
    ]
    assert seen == [("put", ("rust", "adamant")), ("removed", ("rust", "adamant"))]


def test_it_is_there_again(path: Path) -> None:
    with adamant.open(path) as db:
        db.multimap("tags", engine="lsm").update([(b"a", b"1"), (b"a", b"2")])
        assert [(info.name, info.engine) for info in db.keyspaces()] == [("tags", "lsm")]
    with adamant.open(path, read_only=True) as db:
        assert list(db.multimap("tags").values(b"a")) == [b"1", b"2"]
        with pytest.raises(adamant.UnknownKeyspace):
            db.multimap("none")
