"""What the tests share. Everything random in them is the same each time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adamant
import pytest
from hypothesis import HealthCheck, settings

ENGINES = ["bplus", "lsm", "btree", "critbit", "redblack"]

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    print_blob=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "test.adamant"


@pytest.fixture
def db() -> Iterator[adamant.Store]:
    with adamant.in_memory() as store:
        yield store


def look(db: adamant.Store, keyspace: adamant.Keyspace[bytes, bytes], place: str) -> Any:
    """A keyspace where it is looked at."""
    if place == "transaction":
        return db.transaction()[keyspace]
    if place == "snapshot":
        return db.snapshot()[keyspace]
    return keyspace[:] if place == "range" else keyspace
