"""Many keys and values at once: as arrays of numpy, and as arrays, tables and streams of Arrow.

None of their packages is needed here: arrays are taken by the buffer protocol and by Arrow's C data
interface, which numpy, pyarrow, pandas, polars and others have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeAlias, TypeVar

from adamant import _native
from adamant._native import Column, Scan

if TYPE_CHECKING:
    from typing_extensions import Buffer

K_contra = TypeVar("K_contra", contravariant=True)


class ArrowArray(Protocol):
    """An array of Arrow, of any library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStream(Protocol):
    """A stream of arrays of Arrow, such as a table or a chunked array."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# The rows of a column: an array whose first axis counts them, offsets and data, or one of Arrow.
Rows: TypeAlias = "Buffer | tuple[Buffer, Buffer] | ArrowArray | ArrowStream"

ROWS = 1 << 16


class ReadsArrays(Generic[K_contra]):
    """What keyspaces have for arrays, wherever they are looked at. Bytes are as the store has them."""

    __slots__ = ()

    def get_many(self, keys: Rows) -> Column:
        """The values of keys in their order, of any length; null for a key that is not there."""
        return _native.get_many(self, keys)  # type: ignore[arg-type]

    def get_many_into(self, keys: Rows, out: Buffer, found: Buffer | None = None) -> int:
        """Writes the values of keys into the rows of an array; how many there were.

        found: an array of booleans that says which. A row of out whose key is not there stays as it
            is. Without found such a key is a KeyError.
        """
        return _native.get_many_into(self, keys, out, found)  # type: ignore[arg-type]

    def scan(
        self,
        *,
        start: K_contra | None = None,
        stop: K_contra | None = None,
        prefix: K_contra | None = None,
        reverse: bool = False,
        rows: int = ROWS,
    ) -> Scan:
        """The entries that items() gives, so many rows at a time, as columns or a stream of Arrow."""
        return _native.scan(self, start, stop, prefix, reverse, rows)  # type: ignore[arg-type]


class WritesArrays(ReadsArrays[K_contra]):
    """The same of those that can be written."""

    __slots__ = ()

    def put_many(self, keys: Rows, values: Rows | None = None, *, atomic: bool = True) -> int:
        """Sets the values of keys, row by row; how many. Without values, keys is a table of both.

        atomic: in one commit. Otherwise they are sorted and committed in pieces, of which a crash
            leaves some: the fastest way to load millions. A transaction is atomic either way.
        """
        return _native.put_many(self, keys, values, atomic)  # type: ignore[arg-type]
