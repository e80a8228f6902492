"""Many files synced in one call, by Linux itself: no thread waits for the interpreter's lock after each of them."""

import errno
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol, Self

_AT_ONCE: Final = 256  # files that the kernel is given at once
_SIGN: Final = 1 << 63  # what it tells of each is a number of 64 bits, and the negative ones are errors


class Operation(Protocol):
    """What the kernel is to do with a file."""

    def set_callback(self, callback: Callable[[int], Any]) -> bool:
        """Have the kernel's result told."""
        ...


class Context(Protocol):
    """What is used of a context of `caio.linux_aio`."""

    def submit(self, *operations: Any) -> int:
        """Give operations to the kernel; return how many of them it has taken."""
        ...

    def process_events(self, max_requests: int, min_requests: int, timeout: int) -> int:
        """Wait for the ends of operations, and tell their results; return how many."""
        ...


class KernelSync:
    """The kernel's asynchronous I/O (io_submit), through `caio`. For one thread."""

    def __init__(self, fsync: Callable[[int], Operation], context: Context) -> None:
        self._fsync_of = fsync
        self._context = context

    @classmethod
    def found(cls) -> Self | None:
        """One to sync with; None where `caio` cannot be imported, or the system does not let it be used."""
        try:
            from caio.linux_aio import Context, Operation

            return cls(Operation.fsync, Context(max_requests=_AT_ONCE))
        except Exception:  # another system, a sandbox, too many in the whole system, a warning of the package's own
            return None

    def sync(self, files: Sequence[int]) -> list[OSError | None]:
        """Sync `files`, open ones by their numbers; return what each failed by."""
        told: list[int | None] = [None] * len(files)
        every = [self._sync_of(file, partial(told.__setitem__, at)) for at, file in enumerate(files)]
        for begin in range(0, len(every), _AT_ONCE):
            self._perform(every[begin : begin + _AT_ONCE])
        return [_fsync(file) if how is None else failure_of(how) for file, how in zip(files, told, strict=True)]

    def _sync_of(self, file: int, tell: Callable[[int], None]) -> Operation:
        operation = self._fsync_of(file)
        operation.set_callback(tell)
        return operation

    def _perform(self, operations: list[Operation]) -> None:
        """Have them performed, but for those after one that the kernel does not take: these are left untold."""
        begun = 0
        while begun < len(operations):
            try:
                begun += self._context.submit(*operations[begun:])
            except (ArithmeticError, ValueError, SystemError):
                break
        while begun:
            try:
                begun -= self._context.process_events(begun, begun, -1)
            except SystemError as error:
                if error.args[0] != errno.EINTR:
                    raise


def failure_of(result: int) -> OSError | None:
    """What the kernel tells of a sync as an error, or None: it was done."""
    signed = result - 2 * _SIGN if result >= _SIGN else result  # `caio` 0.12 hands it on without its sign
    return None if signed >= 0 else OSError(-signed, os.strerror(-signed))


def _fsync(file: int) -> OSError | None:
    try:
        os.fsync(file)
    except OSError as error:
        return error
    return None
