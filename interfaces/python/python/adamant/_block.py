"""What a with block ends."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Block:
    """What a with block ends: by _end, which is told whether the block has failed."""

    __slots__ = ()

    def _end(self, failed: bool) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end(kind is not None)
