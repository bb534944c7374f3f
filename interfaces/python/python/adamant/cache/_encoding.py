"""How keys and values of a cache are written as bytes.

A key is a letter that names its kind, then its bytes. A record is a head (kind of the value, deadline,
seconds that it took to make), then the value.
"""

from __future__ import annotations

import ast
import json
import pickle
import struct
from typing import Any, Literal, NamedTuple, TypeAlias

from adamant._errors import InvalidArgument, Undecodable

Codec: TypeAlias = Literal["pickle", "json", "bytes"]

# So that a row of a tag, which has the tag and a key in it, is a key of a keyspace, too.
KEY_BYTES_MAX = 60_000
TAG_BYTES_MAX = 1_000

_HEAD = struct.Struct(">cQf")
HEAD_BYTES = _HEAD.size
_RAW, _PICKLE, _JSON = b"b", b"p", b"j"
_KINDS: dict[Codec, bytes] = {"pickle": _PICKLE, "json": _JSON, "bytes": _RAW}


class Head(NamedTuple):
    """What precedes a value: its kind, when it is over (0: never), seconds that it took to make."""

    kind: bytes
    deadline_ms: int
    seconds: float


def encode_key(key: Any) -> bytes:
    """The bytes of a key: of str, bytes, int, float, bool, None, or a tuple of such. 1 is not 1.0."""
    if isinstance(key, str):
        encoded = b"s" + key.encode("utf-8", "surrogatepass")
    elif isinstance(key, bytes):
        encoded = b"b" + key
    elif _is_literal(key):
        encoded = b"l" + ascii(key).encode("ascii")
    else:
        raise TypeError(
            "expected str, bytes, int, float, bool, None or a tuple of them as a key of a cache, "
            f"found {type(key).__name__}; make a str of it"
        )
    if len(encoded) > KEY_BYTES_MAX:
        raise InvalidArgument(
            f"a key of a cache has at most {KEY_BYTES_MAX} bytes, this one has {len(encoded)}; "
            "use a digest of it"
        )
    return encoded


def decode_key(encoded: bytes) -> Any:
    """The key of its bytes."""
    kind, rest = encoded[:1], encoded[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    return rest if kind == b"b" else ast.literal_eval(rest.decode("ascii"))


def _is_literal(key: Any) -> bool:
    # By type(), not isinstance(): what a subclass prints need not be what it is.
    if type(key) is tuple:
        return all(_is_literal(part) or type(part) in (str, bytes) for part in key)
    if type(key) is float:
        return key - key == 0  # neither infinite nor no number, which are no literals
    return key is None or type(key) in (int, bool)


def encode_tag(tag: str) -> bytes:
    """The bytes of a tag."""
    if not isinstance(tag, str):
        raise TypeError(f"expected str as a tag, found {type(tag).__name__}")
    encoded = tag.encode("utf-8", "surrogatepass")
    if len(encoded) > TAG_BYTES_MAX:
        raise InvalidArgument(
            f"a tag has at most {TAG_BYTES_MAX} bytes, this one has {len(encoded)}; use a digest of it"
        )
    return encoded


class Values:
    """Values as records, by one codec."""

    __slots__ = ("_kind", "codec")

    def __init__(self, codec: Codec) -> None:
        if codec not in _KINDS:
            raise InvalidArgument(f"expected pickle, json or bytes as codec, found {codec!r}")
        self.codec = codec
        self._kind = _KINDS[codec]

    def encode(self, value: Any, deadline_ms: int, seconds: float) -> bytes:
        """The record of a value. What the codec cannot write raises what the codec raises."""
        kind = self._kind
        if kind == _JSON:
            written = json.dumps(value, separators=(",", ":")).encode("utf-8")
        elif isinstance(value, (bytes, bytearray, memoryview)) and (
            kind == _RAW or type(value) is bytes
        ):
            kind, written = _RAW, bytes(value)
        elif kind == _PICKLE:
            written = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        else:
            raise TypeError(f"expected bytes as a value, found {type(value).__name__}")
        return _HEAD.pack(kind, deadline_ms, seconds) + written

    def decode(self, key: bytes, record: bytes) -> Any:
        """The value of a record; Undecodable if this codec has not written it."""
        kind = record[:1]
        try:
            if kind == _RAW and self._kind != _JSON:
                return record[HEAD_BYTES:]
            if kind != self._kind:
                raise ValueError(f"it was written as kind {kind!r}")
            if kind == _JSON:
                return json.loads(record[HEAD_BYTES:])
            return pickle.loads(memoryview(record)[HEAD_BYTES:])
        except Exception as error:
            # A pickle that is no pickle, or of a class that is gone, may raise anything.
            raise Undecodable(
                f"the value of {decode_key(key)!r} cannot be read as {self.codec}: "
                f"{type(error).__name__}: {error}; set it again or delete it"
            ) from error


def head_of(record: bytes) -> Head:
    """The head of a record."""
    return Head(*_HEAD.unpack_from(record))


def with_deadline(record: bytes, deadline_ms: int) -> bytes:
    """The record with another deadline."""
    head = head_of(record)
    return _HEAD.pack(head.kind, deadline_ms, head.seconds) + record[HEAD_BYTES:]
