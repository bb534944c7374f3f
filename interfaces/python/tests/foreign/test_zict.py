"""zict's own checks of mappings, over a keyspace: it needs no class of ours in between."""

from __future__ import annotations

from pathlib import Path

import adamant
import pytest

pytest.importorskip("zict")
from zict import Buffer, Func  # noqa: E402
from zict.tests import utils_test  # noqa: E402


@pytest.fixture
def mapping(path: Path, engine: str) -> adamant.Keyspace[str, bytes]:
    db = adamant.open(path, durability="buffered")
    return db.keyspace("zict", key_codec="utf-8", engine=engine)  # type: ignore[call-overload, no-any-return]


def test_a_keyspace_is_a_mapping(mapping: adamant.Keyspace[str, bytes]) -> None:
    utils_test.check_mapping(mapping)


def test_keys_and_values_of_wrong_types(mapping: adamant.Keyspace[str, bytes]) -> None:
    utils_test.check_bad_key_types(mapping)
    utils_test.check_bad_value_types(mapping)


def test_a_buffer_spills_to_a_store(mapping: adamant.Keyspace[str, bytes]) -> None:
    """As dask.distributed uses it: what is more than memory is to hold goes to the store."""
    memory: dict[str, int] = {}
    buffer = Buffer(memory, Func(lambda number: b"%d" % number, int, mapping), n=3)
    for number in range(10):
        buffer[str(number)] = number
    assert len(memory) == 3 and len(mapping) == 7
    assert dict(buffer) == {str(number): number for number in range(10)}
