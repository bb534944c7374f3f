"""Encrypted stores: keys and their errors, other keys, copies."""

from __future__ import annotations

import pickle
import secrets
from pathlib import Path
from typing import Any

import adamant
import pytest

KEY, OTHER = secrets.token_bytes(32), secrets.token_bytes(32)


def filled(path: Path, **key: Any) -> None:
    with adamant.open(path, **key) as db:
        db.keyspace("patients", codec="utf-8")["4711"] = "Smith" * 1000
        assert db.is_encrypted == bool(key)


def found(path: Path, **key: Any) -> str:
    with adamant.open(path, create=False, **key) as db:
        assert db.check() == []
        return db.keyspace("patients", codec="utf-8")["4711"]


def test_a_store_needs_its_key(path: Path) -> None:
    filled(path, encryption_key=KEY)
    assert not any(b"SmithSmith" in file.read_bytes() for file in path.iterdir() if file.is_file())
    for key in (KEY, KEY.hex(), KEY.hex().encode() + b"\n"):
        assert found(path, encryption_key=key).startswith("Smith")
    with pytest.raises(adamant.KeyNeeded, match="encryption_key") as needed:
        adamant.open(path)
    assert isinstance(needed.value, PermissionError) and needed.value.filename == path
    assert type(pickle.loads(pickle.dumps(needed.value))) is adamant.KeyNeeded
    with pytest.raises(adamant.WrongKey):
        adamant.open(path, encryption_key=OTHER)
    with adamant.open(path, encryption_key=KEY, read_only=True) as db:
        with pytest.raises(adamant.ReadOnly):
            db.rekey(OTHER)


def test_keys_that_cannot_be(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"secret")
    for wrong in (b"", b"secret", "secret", KEY + b"1", "g" * 64):
        with pytest.raises(adamant.InvalidArgument) as refused:
            adamant.open(path, encryption_key=wrong)
        assert "secret" not in str(refused.value)
    with pytest.raises(adamant.InvalidArgument):
        adamant.open(path, key_file=file)
    with pytest.raises(adamant.InvalidArgument):
        adamant.open(path, key_file=file, encryption_key=KEY)
    with pytest.raises(adamant.Refused):
        adamant.open(path, key_file=tmp_path / "none")
    number: Any = 7
    with pytest.raises(TypeError):
        adamant.open(path, encryption_key=number)
    assert not path.exists()
    for good in (OTHER, OTHER.hex().encode() + b"\n"):
        file.write_bytes(good)
        filled(path, key_file=file)
    assert found(path, encryption_key=OTHER)


def test_other_keys(path: Path) -> None:
    filled(path, encryption_key=KEY)
    with adamant.open(path, encryption_key=KEY) as db:
        db.rekey(OTHER)
    with pytest.raises(adamant.WrongKey):
        adamant.open(path, encryption_key=KEY)
    adamant.rekey(path, OTHER, KEY)
    assert found(path, encryption_key=KEY)
    adamant.encrypt(path, None, old=KEY)
    assert found(path)
    with pytest.raises(adamant.NotEncrypted):
        adamant.open(path, encryption_key=KEY)
    with pytest.raises(adamant.NotEncrypted):
        adamant.rekey(path, KEY, OTHER)
    with adamant.open(path) as db, pytest.raises(adamant.NotEncrypted):
        db.rekey(KEY)
    adamant.encrypt(path, OTHER)
    assert found(path, encryption_key=OTHER)
    with pytest.raises(adamant.KeyNeeded):
        adamant.encrypt(path, KEY)


def test_copies_have_the_key(tmp_path: Path) -> None:
    store, full, increment, copy = (tmp_path / name for name in ("store", "full", "since", "copy"))
    filled(store, encryption_key=KEY)
    with adamant.open(store, encryption_key=KEY) as db:
        db.backup(full)
        db.keyspace("patients", codec="utf-8")["4712"] = "Jones"
        db.backup(increment, since=full)
    with pytest.raises(adamant.KeyNeeded):
        adamant.restore(full, copy)
    for backup in (full, increment):
        target = tmp_path / f"restored {backup.name}"
        adamant.restore(backup, target, encryption_key=KEY)
        assert found(target, encryption_key=KEY)
    with adamant.open(increment, encryption_key=KEY, read_only=True) as db:
        assert db.is_encrypted and db.keyspace("patients", codec="utf-8")["4712"] == "Jones"
