"""Folders entered by handle, step by step: a link that someone puts in the way meanwhile is not followed."""

import contextlib
import os
import stat
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import attrs

__all__ = ["Place", "entered"]

# Windows has no such handles: there, each path is resolved and checked, and then used as it is.
BY_HANDLE: Final = sys.platform != "win32" and os.open in os.supports_dir_fd and os.scandir in os.supports_fd

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
# Not to wait for a writer, should it be a pipe.
_READ: Final = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)


@attrs.frozen
class Place:
    """A folder that was entered: by its handle, or by its path where there are no handles."""

    handle: int | None
    path: Path

    def named(self, name: str) -> str:
        """What to call an entry of the folder, together with `handle`."""
        return name if self.handle is not None else str(self.path / name)

    def listed(self) -> Iterator[os.DirEntry[str]]:
        """The entries of the folder."""
        with os.scandir(self.path if self.handle is None else self.handle) as entries:
            yield from entries

    def status(self, name: str) -> os.stat_result | None:
        """What an entry is, links not followed; None where there is none."""
        try:
            return os.stat(self.named(name), dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def opened(self, name: str) -> BinaryIO:
        """A regular file of the folder, to be read. Raises OSError where it is none."""
        file = os.open(self.named(name), _READ, dir_fd=self.handle)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise OSError("it is no regular file")
        return os.fdopen(file, "rb")

    def created(self, name: str) -> BinaryIO:
        """A new file of the folder, to be written. Raises OSError where there is an entry of that name."""
        return os.fdopen(os.open(self.named(name), _CREATE, 0o666, dir_fd=self.handle), "wb")

    def replace(self, name: str, new_name: str) -> None:
        """Give an entry another name, in the place of what has that name."""
        os.replace(self.named(name), self.named(new_name), src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.named(name), dir_fd=self.handle)

    @contextlib.contextmanager
    def inner(self, name: str, *, make: bool = False) -> Generator["Place"]:
        """A folder of the folder; `make`: it is made where it is missing. Raises OSError where it is no folder."""
        if make and self.status(name) is None:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.named(name), dir_fd=self.handle)
        if self.handle is None:
            yield Place(None, self.path / name)
            return
        handle = os.open(name, _FOLDER, dir_fd=self.handle)
        try:
            yield Place(handle, self.path / name)
        finally:
            os.close(handle)


@contextlib.contextmanager
def entered(root: Path, folders: Sequence[str], *, make: bool = False) -> Generator[Place]:
    """The folder `root/folders...`; no step may be a link. `make`: missing folders are made."""
    with contextlib.ExitStack() as stack:
        if BY_HANDLE:
            handle = os.open(root, _FOLDER)
            stack.callback(os.close, handle)
            place = Place(handle, root)
        else:
            place = Place(None, root)
        for name in folders:
            place = stack.enter_context(place.inner(name, make=make))
        yield place
