"""A file that only ever grows, by whole lines, and belongs to one writer."""

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Final

from looplatch.audit.disk import DISK, OWNER_ONLY, OWNERS_FOLDER, USUAL_FOLDER, Disk, Syncing, sync_each
from looplatch.audit.errors import LogFailed, LogInUse
from looplatch.states.errors import UsageError

_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT
_BLOCK: Final = 1 << 16  # bytes that are read at a time, from the end
_CANNOT_SYNC_FOLDERS: Final = frozenset({errno.EACCES, errno.EINVAL, errno.ENOTSUP})


class Folder:
    """The folder of files that are written together: one fsync makes the names of all that were made in it durable."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self.is_synced = True

    def sync(self) -> None:
        """Make the names durable: without it, a synced file may be gone after a power cut. Raises OSError."""
        sync_each(self.syncing(), self._disk)

    def syncing(self) -> Syncing:
        """What `sync` does, but for the syncing itself."""
        if self.is_synced:
            return
        try:
            folder = self._disk.open(self._path, os.O_RDONLY)
            try:
                yield folder
            finally:
                self._disk.close(folder)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC_FOLDERS:
                raise
        self.is_synced = True


def make_folder(path: Path, disk: Disk, mode: int = OWNERS_FOLDER, *, durable: bool = True) -> None:
    """Make the folder `path` where it is not there, durably unless told otherwise: its owner's alone (mode 0700).

    Those above it are made, too, where they are not there; they get the usual mode. Raises OSError, and ValueError for
    a path with a null character.
    """
    try:
        try:
            disk.mkdir(path, mode)
        except FileNotFoundError:
            if path.parent == path:
                raise
            make_folder(path.parent, disk, USUAL_FOLDER, durable=durable)
            disk.mkdir(path, mode)
    except OSError:  # not each system says first that it is there
        if not path.is_dir():
            raise
        return
    above = Folder(path.parent, disk)
    above.is_synced = not durable
    above.sync()


class LineFile:
    """An append-only file, locked for this writer and readable by its owner only.

    `write` is for one thread; `syncing` and `close` may be called from any. Raises UsageError where the file cannot be
    had, LogInUse where another writer has it.

    folder: that of a file beside it which is written together with it. found: how many bytes were there before.
    written: how many there are now.
    """

    def __init__(self, path: Path, disk: Disk = DISK, folder: Folder | None = None) -> None:
        self.path = path
        self._disk = disk
        self._created = not os.path.lexists(path)
        try:
            self._fd = disk.open(path, _FLAGS)
        except (OSError, ValueError) as error:  # ValueError: a path with a null character
            raise _unusable(path, error) from error
        try:
            found = self._claim()
        except BaseException as error:
            self._forget(remove=self._created and not isinstance(error, LogInUse))
            raise
        self._identity = (found.st_dev, found.st_ino)
        self.found = self.written = self._synced = found.st_size
        self.folder = folder or Folder(path.parent, disk)
        if self._created:
            self.folder.is_synced = False
        self._syncing = threading.Lock()  # a file must not be closed (and its number given away) during an fsync
        self._open = True

    def _claim(self) -> os.stat_result:
        try:
            if not stat.S_ISREG(os.fstat(self._fd).st_mode):
                raise UsageError("log", f"{self.path} is no regular file", "Give the path of a file")
            self._disk.lock(self._fd)
            found = os.fstat(self._fd)
            if (found.st_dev, found.st_ino) != _identity(self.path):
                raise LogInUse(self.path)  # it was removed, or replaced, before it was locked
            if stat.S_IMODE(found.st_mode) != OWNER_ONLY:
                os.chmod(self._fd, OWNER_ONLY)
        except BlockingIOError:
            raise LogInUse(self.path) from None
        except (OSError, ImportError) as error:  # no locks there, or somebody else's file
            raise _unusable(self.path, error) from error
        return found

    def write(self, line: bytes) -> None:
        """Append `line`; it is with the operating system when this returns. Raises LogFailed."""
        size = len(line)
        try:
            done = self._disk.write(self._fd, line)
            if done != size:
                rest = memoryview(line)[done:]
                while rest:
                    rest = rest[self._disk.write(self._fd, rest) :]
        except OSError as error:
            raise LogFailed(self.path, "writing", error) from error
        self.written += size

    def set_aside(self, size: int, place: Path) -> int:
        """Move what stands after the first `size` bytes into a file of its own at `place`; return how much that is.

        It is in that file, durably, before it is cut off here. Raises LogFailed.
        """
        torn = self.written - size
        if not torn:
            return 0
        try:
            with self.path.open("rb") as file:
                file.seek(size)
                rest = file.read()
            fd = self._disk.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            try:
                done = 0
                while done < len(rest):
                    done += self._disk.write(fd, memoryview(rest)[done:])
                self._disk.fsync(fd)
            finally:
                self._disk.close(fd)
            self.folder.is_synced = False
            self.folder.sync()
            self._disk.truncate(self._fd, size)
        except OSError as error:
            raise LogFailed(self.path, "moving the torn end aside", error) from error
        self.written, self._synced = size, 0
        return torn

    @property
    def is_synced(self) -> bool:
        """Whether all that was written is on the disk itself."""
        return self._synced == self.written

    def syncing(self) -> Syncing:
        """What is to be synced so that all that was written before is on the disk itself, under the file's name.

        Raises LogFailed.
        """
        with self._syncing:
            written = self.written
            if not self._open or written == self._synced:
                return
            try:
                yield self._fd
                yield from self.folder.syncing()
            except OSError as error:
                raise LogFailed(self.path, "fsync", error) from error
            self._synced = written

    def syncing_name(self) -> Syncing:
        """The same for a new file's name alone: nothing may have been written to it. Raises LogFailed."""
        with self._syncing:
            try:
                yield from self.folder.syncing()
            except OSError as error:
                raise LogFailed(self.path, "fsync", error) from error

    def check_place(self) -> None:
        """Raise LogFailed where the file was removed or replaced meanwhile."""
        try:
            if _identity(self.path) != self._identity:
                raise FileNotFoundError(errno.ENOENT, "the file was replaced by another")
        except OSError as error:
            raise LogFailed(self.path, "fsync", error) from error

    def close(self) -> None:
        """Close the file and give up its lock; a second call does nothing. Raises LogFailed."""
        with self._syncing:
            if not self._open:
                return
            self._open = False
            try:
                self._disk.close(self._fd)
            except OSError as error:
                raise LogFailed(self.path, "closing", error) from error

    def discard(self) -> None:
        """Close the file that nothing was written to, and remove it if it was made here."""
        self._open = False
        self._forget(remove=self._created)

    def _forget(self, *, remove: bool) -> None:
        if remove:  # while it is still locked, so that nobody else has taken it over
            self.path.unlink(missing_ok=True)
        self._disk.close(self._fd)


def end_of_lines(path: Path) -> int:
    """Where the last whole line of a file ends. Raises LogFailed where it cannot be read."""
    try:
        with path.open("rb") as file:
            place = file.seek(0, os.SEEK_END)
            while place:
                size = min(place, _BLOCK)
                place = file.seek(place - size)
                found = file.read(size).rfind(b"\n")
                if found >= 0:
                    return place + found + 1
    except OSError as error:
        raise LogFailed(path, "reading", error) from error
    return 0


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _unusable(path: Path, error: Exception) -> UsageError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UsageError("log", f"{path} cannot be written ({why})", "Give a path in a folder that exists and is writable")
