"""Makes SQLite's own writes fail, one after the other, in the library that this Python uses.

SQLite lets tests replace the system calls that it makes (`xSetSystemCall` of its `unix` VFS); that is reached through
`ctypes`, since the module `sqlite3` does not show it. All else, SQLite's code included, is as it is in a real run.
"""

import _sqlite3
import ctypes
import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any

_FIRST = ("xOpen", "xDelete", "xAccess", "xFullPathname", "xDlOpen", "xDlError", "xDlSym", "xDlClose", "xRandomness")
_LAST = ("xSleep", "xCurrentTime", "xGetLastError", "xCurrentTimeInt64", "xSetSystemCall", "xGetSystemCall")
_WRITES = {  # the names that builds of SQLite use, and what each takes after the file's number
    b"pwrite64": (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64),
    b"pwrite": (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64),
    b"write": (ctypes.c_void_p, ctypes.c_size_t),
    b"ftruncate": (ctypes.c_int64,),
}


class _Vfs(ctypes.Structure):
    """`sqlite3_vfs`, as sqlite3.h has it since version 3.7.6."""

    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", ctypes.c_void_p),
        ("zName", ctypes.c_char_p),
        ("pAppData", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in (*_FIRST, *_LAST)),
    ]


_Set = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Vfs), ctypes.c_char_p, ctypes.c_void_p)
_Get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Vfs), ctypes.c_char_p)


@cache
def _vfs() -> Any:
    """The `unix` VFS; None where this Python's SQLite cannot be reached, or is one of Windows."""
    try:
        find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    except (AttributeError, OSError):
        return None
    find.restype, find.argtypes = ctypes.POINTER(_Vfs), [ctypes.c_char_p]
    found = find(None)
    return found if found and found.contents.iVersion >= 3 and found.contents.zName == b"unix" else None


def can_fail() -> bool:
    """Whether the writes of this Python's SQLite can be made to fail."""
    return _vfs() is not None


class Faults:
    """Writes that fail: number `at`, and every later one, as on a disk that is full and stays so.

    short: the first that fails is done in part before. due: called as the first one fails.
    """

    def __init__(self, at: int, *, short: bool, due: Callable[[], None] = lambda: None) -> None:
        self.left, self.short, self.due = at, short, due
        self.failed = 0

    def is_next(self) -> bool:
        """Count one, and say whether it fails."""
        self.left -= 1
        if self.left > 0:
            return False
        self.failed += 1
        if self.failed == 1:
            self.due()
        return True

    def cut(self) -> None:
        """A write was not done, or in part."""


@contextmanager
def failing_writes(faults: Faults) -> Generator[None]:
    """Have SQLite's writes fail as `faults` say."""
    vfs = _vfs()
    set_call = _Set(vfs.contents.xSetSystemCall)
    replaced = [(name, call) for name, takes in _WRITES.items() if (call := _replaced(vfs, name, takes, faults))]
    assert replaced
    try:
        for name, call in replaced:
            assert set_call(vfs, name, ctypes.cast(call.ours, ctypes.c_void_p)) == 0
        yield
    finally:
        for name, call in replaced:
            set_call(vfs, name, call.own)


def _replaced(vfs: Any, name: bytes, takes: tuple[Any, ...], faults: Faults) -> Any:
    own = _Get(vfs.contents.xGetSystemCall)(vfs, name)
    if own is None:
        return None
    kind = ctypes.CFUNCTYPE(
        ctypes.c_ssize_t if b"write" in name else ctypes.c_int, ctypes.c_int, *takes, use_errno=True
    )
    real = kind(own)

    def call(fd: int, *given: Any) -> int:
        if not faults.is_next():
            return int(real(fd, *given))
        if faults.short and b"write" in name and given[1] > 1:
            faults.short = False
            written = int(real(fd, given[0], given[1] // 2, *given[2:]))
            faults.cut()
            return written
        faults.cut()
        ctypes.set_errno(errno.ENOSPC)
        return -1

    return SimpleNamespace(own=own, ours=kind(call))
