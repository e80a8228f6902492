"""The calls of the operating system that logs are written with, in one place: a test can give a disk that fails."""

import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

OWNER_ONLY = 0o600
OWNERS_FOLDER = 0o700
USUAL_FOLDER = 0o777  # less what the process masks

Syncing = Generator[int, None, None]
"""The numbers of files that are to be synced, each before the next is asked for; what that raised is thrown in."""


class Disk:
    """The real disk. Each method raises OSError as the call of the same name does."""

    def open(self, path: Path, flags: int) -> int:
        """Open `path`; a file made here is its owner's alone (mode 0600)."""
        return os.open(path, flags, OWNER_ONLY)

    def mkdir(self, path: Path, mode: int) -> None:
        """Make one folder, in a folder that is there."""
        os.mkdir(path, mode)

    def lock(self, fd: int) -> None:
        """Lock the file until it is closed. Raises BlockingIOError where someone else holds the lock."""
        import fcntl  # not on every platform: importing looplatch must work there all the same

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write some of `data`, perhaps not all; return how many bytes."""
        return os.write(fd, data)

    def overwrite(self, fd: int, data: bytes, place: int) -> int:
        """Write some of `data` over what stands from `place` on, perhaps not all; return how many bytes."""
        return os.pwrite(fd, data, place)

    def fsync(self, fd: int) -> None:
        """Return when the file is on the disk itself."""
        os.fsync(fd)

    def truncate(self, fd: int, size: int) -> None:
        """Cut the file off after `size` bytes."""
        os.ftruncate(fd, size)

    def close(self, fd: int) -> None:
        """Close the file, and so give up its lock."""
        os.close(fd)


def sync_each(files: Syncing, disk: Disk) -> None:
    """Sync `files` in this thread. Raises what they let through of what `disk` raised."""
    with closing(files):
        file = next(files, None)
        while file is not None:
            try:
                disk.fsync(file)
            except Exception as error:
                try:
                    file = files.throw(error)
                except StopIteration:
                    return
            else:
                file = next(files, None)


DISK = Disk()
