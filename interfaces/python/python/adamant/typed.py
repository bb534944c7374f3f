"""Types of keys and values, as Rust programs name them: for Keyspace.typed().

    from adamant.typed import Json, Reverse, u64

    posts = db.keyspace("posts").typed(tuple[str, Reverse[u64]], Json)
    posts["ada", 7] = {"title": "Notes"}

A type of Python stands for one of Rust: str for String, bytes for bytes, int for i64, float for f64,
bool, X | None for Option<X>, tuple[X, Y] for (X, Y), None for (). The others are here, or are given by
their recorded names, such as "[u8; 4]" or "(String, u32)".
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Annotated, Any, ForwardRef, TypeAlias, TypeVar, Union, get_args, get_origin

from adamant._errors import InvalidArgument

__all__ = [
    "Json",
    "Reverse",
    "Rust",
    "char",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "type_name",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Rust:
    """The recorded name of a type, for others than are here: Annotated[bytes, Rust("[u8; 4]")].

    A {} in it stands for the name of the annotated type.
    """

    name: str


# The highest first. What is a key is no object of a class of its own: it is of the type within.
Reverse: TypeAlias = Annotated[T, Rust("Reverse<{}>")]

# What the module json writes and reads; Json<serde_json::Value> in Rust. For values only.
Json: TypeAlias = Annotated[Any, Rust("Json<any>")]

u8: TypeAlias = Annotated[int, Rust("u8")]
u16: TypeAlias = Annotated[int, Rust("u16")]
u32: TypeAlias = Annotated[int, Rust("u32")]
u64: TypeAlias = Annotated[int, Rust("u64")]
u128: TypeAlias = Annotated[int, Rust("u128")]
i8: TypeAlias = Annotated[int, Rust("i8")]
i16: TypeAlias = Annotated[int, Rust("i16")]
i32: TypeAlias = Annotated[int, Rust("i32")]
i64: TypeAlias = Annotated[int, Rust("i64")]
i128: TypeAlias = Annotated[int, Rust("i128")]
# A float of half the bits: numbers are rounded to it.
f32: TypeAlias = Annotated[float, Rust("f32")]
f64: TypeAlias = Annotated[float, Rust("f64")]
# A str of one character.
char: TypeAlias = Annotated[str, Rust("char")]

_NAMES: dict[object, str] = {
    str: "String",
    bytes: "bytes",
    int: "i64",
    float: "f64",
    bool: "bool",
    None: "()",
    type(None): "()",
}


def type_name(given: object) -> str:
    """The recorded name of a type: of Python, of this module, or a name as it is."""
    if isinstance(given, str):
        return given
    if isinstance(given, ForwardRef):
        return given.__forward_arg__
    origin, parts = get_origin(given), get_args(given)
    if origin is Annotated:
        marks = [mark for mark in parts[1:] if isinstance(mark, Rust)]
        # A name without a part replaces what it annotates, which may have no name itself.
        is_whole = bool(marks) and "{}" not in marks[0].name
        name = "" if is_whole else type_name(parts[0])
        for mark in marks:
            name = mark.name.replace("{}", name)
        return name
    if origin is tuple and Ellipsis not in parts:
        return f"({', '.join(map(type_name, parts))})"
    if origin in (Union, types.UnionType) and len(parts) == 2 and type(None) in parts:
        (part,) = (part for part in parts if part is not type(None))
        return f"Option<{type_name(part)}>"
    try:
        return _NAMES[given]
    except (KeyError, TypeError):
        raise InvalidArgument(
            f"expected a type of keys or values, found {given!r}: known are str, bytes, int, float, "
            "bool, X | None, tuple[X, Y], None, what adamant.typed has, and names such as "
            '"(String, u32)"'
        ) from None
