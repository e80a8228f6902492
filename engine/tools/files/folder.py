"""A folder that no path leads out of: not `..`, no absolute path, no link, and none that is put there meanwhile."""

import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

import attrs

from looplatch.states.errors import LooplatchError, UsageError
from looplatch.tools.files.handles import Place, entered
from looplatch.tools.files.listing import Listing, listed

__all__ = ["Folder", "PathRefused", "State"]

_VERSIONS: Final = frozenset({".git", ".hg", ".svn"})
_INSTALLED: Final = frozenset({"node_modules", ".venv", "venv", ".tox", ".nox", "site-packages"})
_CACHES: Final = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"})
_SKIPPED: Final = _VERSIONS | _INSTALLED | _CACHES
_MAX_NAME: Final = 100  # characters of a name that its temporary file takes over


class PathRefused(LooplatchError):
    """A path leads out of the folder, or to nothing in it that can be used so; `path` is what was asked for."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path!r} {problem}. Give the path of a file, relative to the folder, as glob lists it")
        self.path = path
        self.problem = problem


@attrs.frozen
class State:
    """What tells whether a file is still the one that was read."""

    file: int
    size: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "State":
        """The state that a status tells of."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


def _skips(name: str) -> bool:
    return name in _SKIPPED or name.endswith(".egg-info")


class Folder:
    """The files below `root`. Paths are relative to it; absolute ones and links may be used where they lead inside.

    Where the system has handles of folders (all but Windows), what is checked is what is used, whoever else changes the
    folder meanwhile.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Raises UsageError where `root` is no folder, or cannot be read."""
        try:
            self.root = Path(root).resolve(strict=True)
            with os.scandir(self.root):
                pass
        except (OSError, ValueError, RuntimeError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or error
            raise UsageError("folder", f"{str(root)!r} cannot be read as one ({why})", "Give a folder") from error

    def files(self, under: str = "", *, skips: Callable[[str], bool] = _skips) -> Listing:
        """The files below the folder `under`, newest first. Looks at no more than `MAX_ENTRIES` entries.

        Folders whose name `skips` takes (by custom those of version control, caches and installed packages) are left
        out. Raises PathRefused where `under` is no folder of this one.
        """
        parts = self.parts(under)
        try:
            with entered(self.root, parts) as place:
                return listed(place, "".join(f"{part}/" for part in parts), skips)
        except OSError as error:
            raise _refused(under, "cannot be listed", error) from error

    def is_folder(self, path: str) -> bool:
        """Whether `path` is a folder of this one. Raises PathRefused where it leads outside."""
        try:
            with entered(self.root, self.parts(path)):
                return True
        except OSError:
            return False

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading. Raises PathRefused where `path` is none, leads outside, or cannot be read."""
        *folders, name = self._file(path)
        try:
            with entered(self.root, folders) as place:
                return place.opened(name)
        except (OSError, ValueError) as error:
            raise _refused(path, "cannot be read", error) from error

    def write(self, path: str, data: bytes, *, unless_changed: State | None = None) -> None:
        """Write a file, whole or not at all; folders on the way to it are made.

        The file is replaced, so that other names (hard links) of the old one keep the old content. unless_changed: the
        file must still be as it was. Raises PathRefused where `path` leads outside, is no regular file, or cannot be
        written.
        """
        *folders, name = self._file(path)
        try:
            with entered(self.root, folders, make=True) as place:
                _write(place, name, data, path, unless_changed)
        except (OSError, ValueError) as error:
            raise _refused(path, "cannot be written", error) from error

    def parts(self, path: str) -> tuple[str, ...]:
        """The parts of the resolved path below the root: none is a link any more; the last ones may be missing.

        Raises PathRefused where `path` leads outside.
        """
        try:
            resolved = os.path.realpath(os.path.join(self.root, path))
        except (OSError, ValueError) as error:  # ValueError: a null character, or one that no name can hold
            raise _refused(path, "cannot be found", error) from error
        if not Path(resolved).is_relative_to(self.root):
            raise PathRefused(path, "leads out of the folder")
        return Path(resolved).relative_to(self.root).parts

    def _file(self, path: str) -> tuple[str, ...]:
        parts = self.parts(path)
        if not parts:
            raise PathRefused(path, "is the folder itself")
        return parts


def _refused(path: str, what: str, error: OSError | ValueError) -> PathRefused:
    why = (error.strerror if isinstance(error, OSError) else None) or error
    return PathRefused(path, f"{what} ({why})")


def _write(place: Place, name: str, data: bytes, path: str, unless_changed: State | None) -> None:
    old = place.status(name)
    if old is not None and not stat.S_ISREG(old.st_mode):
        raise OSError("it is no regular file")
    if old is not None and not old.st_mode & 0o222:
        raise OSError("it is write-protected")
    new_name = f".{name[:_MAX_NAME]}.{secrets.token_hex(8)}"
    try:
        with place.created(new_name) as file:
            file.write(data)
            if old is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        if unless_changed is not None:
            now = place.status(name)
            if now is None or State.of(now) != unless_changed:
                raise PathRefused(path, "was changed by someone else meanwhile")
        place.replace(new_name, name)
    finally:
        place.remove(new_name)
