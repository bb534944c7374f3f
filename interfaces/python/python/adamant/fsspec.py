"""A file system for fsspec in a keyspace: fsspec.filesystem("adamant", path="files.adamant").

    import fsspec

    files = fsspec.filesystem("adamant", path="files.adamant")
    files.pipe("reports/2024.csv", b"a,b")

A file is an entry, its path the key; an empty directory is a key that ends in a slash.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from adamant._mapping import Keyspace
from adamant._shared import shared_store
from adamant._store import Durability
from fsspec import AbstractFileSystem

__all__ = ["AdamantFileSystem"]


class AdamantFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Files in a keyspace of a store: each is written as a whole, by one commit, or not at all.

    path: where the store is. keyspace: where in it. durability: what a file that is written waits for;
    "buffered" survives the end of the process. Objects of one path share the store of this process.

    Reading a file copies it once and touches the device only for pages that are not in memory; a part
    costs the part. A file that is written is in memory until it is closed, and dropped if its block
    fails. Listing costs O(log n) for each name, and removing a directory is one commit.
    """

    protocol = "adamant"
    root_marker = ""

    def __init__(
        self,
        path: str,
        keyspace: str = "files",
        durability: Durability = "buffered",
        read_only: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        store = shared_store(path, read_only=read_only)
        self.keyspace: Keyspace[str, bytes] = store.keyspace(
            keyspace, key_codec="utf-8", durability=durability
        )

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        return str(path).removeprefix("adamant://").strip("/")

    def _names(self, folder: str) -> Iterator[tuple[str, bool]]:
        """What is right below a folder, each once, and whether it is a directory."""
        start = prefix = folder + "/" if folder else ""
        while (key := next(iter(self.keyspace.keys(start=start, prefix=prefix)), None)) is not None:
            name, slash, _ = key[len(prefix) :].partition("/")
            # Behind it, and behind all that is below it: "0" comes right behind "/".
            start = prefix + name + ("0" if slash else "\0")
            if name:
                yield prefix + name, bool(slash)

    def _size(self, path: str) -> int | None:
        """The bytes of a file; None if there is none."""
        found = self.keyspace.lend(path) if path else None
        return None if found is None else len(found)

    def _is_directory(self, path: str) -> bool:
        return not path or next(iter(self.keyspace.keys(prefix=path + "/")), None) is not None

    def _read(self, path: str) -> memoryview:
        found = self.keyspace.lend(path) if path else None
        if found is None:
            raise IsADirectoryError(path) if self._is_directory(path) else FileNotFoundError(path)
        return found

    def _check_place(self, path: str) -> None:
        """Fails where a file would be in the place of a directory, or below another file."""
        if self._is_directory(path):
            raise IsADirectoryError(path)
        while path := self._parent(path):
            if self._size(path) is not None:
                raise NotADirectoryError(path)

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        """The name, size and type of what is at a path."""
        path = self._strip_protocol(path)
        size = self._size(path)
        if size is not None:
            return {"name": path, "size": size, "type": "file"}
        if self._is_directory(path):
            return {"name": path, "size": 0, "type": "directory"}
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **options: Any) -> list[Any]:
        """What is in a directory, or the file at a path."""
        path = self._strip_protocol(path)
        found = self.info(path)
        if found["type"] == "directory":
            rows = [
                {"name": name, "size": 0, "type": "directory"} if is_directory else self.info(name)
                for name, is_directory in self._names(path)
            ]
        else:
            rows = [found]
        return rows if detail else [row["name"] for row in rows]

    def mkdir(self, path: str, create_parents: bool = True, **options: Any) -> None:
        """Makes a directory. It would be there with its first file, too."""
        path = self._strip_protocol(path)
        if self.exists(path):
            raise FileExistsError(path)
        self.keyspace.put(path + "/", b"")

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Makes a directory, and with it those above it."""
        if not (exist_ok and self.isdir(path)):
            self.mkdir(path)

    def rmdir(self, path: str) -> None:
        """Removes a directory that is empty."""
        path = self._strip_protocol(path)
        if not self._is_directory(path):
            raise FileNotFoundError(path)
        if next(self._names(path), None) is not None:
            raise OSError(errno.ENOTEMPTY, "the directory is not empty; remove it with rm", path)
        self.keyspace.delete(path + "/")

    def rm_file(self, path: str) -> None:
        """Removes a file."""
        path = self._strip_protocol(path)
        if not path or not self.keyspace.discard(path):
            raise FileNotFoundError(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Removes files, and directories with all that is in them if recursive: each in one commit."""
        for each in self.expand_path(path, recursive=False, maxdepth=maxdepth):
            if self._size(each) is not None:
                self.rm_file(each)
            elif recursive:
                del self.keyspace[slice(each + "/", each + "0") if each else slice(None)]
            else:
                self.rmdir(each)

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        """Copies a file, or makes a directory as the one there."""
        path1, path2 = self._strip_protocol(path1), self._strip_protocol(path2)
        if self._size(path1) is None and self._is_directory(path1):
            self.makedirs(path2, exist_ok=True)
        else:
            self.pipe_file(path2, self._read(path1))

    def pipe_file(self, path: str, value: Any, mode: str = "overwrite", **options: Any) -> None:
        """Writes a file: one commit. mode "create": FileExistsError if there is one, atomically."""
        path = self._strip_protocol(path)
        self._check_place(path)
        if mode != "create":
            self.keyspace.put(path, bytes(value))
        elif not self.keyspace.compare_and_swap(path, None, bytes(value)):
            raise FileExistsError(path)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        """The bytes of a file, or of a part of it."""
        return bytes(self._read(self._strip_protocol(path))[start:end])

    def _open(self, path: str, mode: str = "rb", *_: Any, **options: Any) -> Any:
        if mode == "rb":
            return io.BytesIO(self._read(path))
        if mode not in ("wb", "xb", "ab"):
            raise ValueError(f"expected rb, wb, xb or ab as mode, found {mode!r}")
        if mode == "xb" and self.exists(path):
            raise FileExistsError(path)
        before = bytes(self._read(path)) if mode == "ab" and self._size(path) is not None else b""
        return _Written(self, path, before, "create" if mode == "xb" else "overwrite")


class _Written(io.BytesIO):
    """A file that is written: it is there when it is closed, and not if its block fails."""

    def __init__(self, files: AdamantFileSystem, path: str, before: bytes, mode: str) -> None:
        super().__init__()
        self.write(before)
        self._files, self._path, self._mode, self._fails = files, path, mode, False

    def close(self) -> None:
        if not self.closed:
            try:
                if not self._fails:
                    self._files.pipe_file(self._path, self.getvalue(), self._mode)
            finally:
                super().close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._fails = kind is not None
        super().__exit__(kind, error, traceback)

    def __del__(self) -> None:
        # A file that was not closed is not written: it may be half of one.
        self._fails = True
        super().__del__()
