"""Salts for commitments: from the system's randomness, or from where the caller says."""

import os
from typing import Final

from looplatch.audit.protocol import Entropy
from looplatch.states.errors import UsageError

SALT_BYTES: Final = 16
_AT_ONCE: Final = 64  # salts: each draw from the system is a call of the kernel, which costs as much as a small hash


class Salts:
    """Gives one salt at a time, none of them twice. Raises UsageError where `entropy` gives other than was asked."""

    __slots__ = ("_count", "_drawn", "_entropy", "_process")

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._count = _AT_ONCE if entropy is os.urandom else 1  # the caller's is asked for each
        self._drawn: list[bytes] = []
        self._process = 0

    def many(self, count: int) -> list[bytes]:
        """So many salts, as `next` gives them."""
        if self._count == 1:
            return [self.next() for _ in range(count)]
        given = self._drawn_anew(count)
        return [given[place : place + SALT_BYTES] for place in range(0, len(given), SALT_BYTES)]

    def next(self) -> bytes:
        """A salt that was not given before; also not by another process that was forked from this one."""
        drawn = self._drawn
        if not drawn or self._process != os.getpid():
            given = self._drawn_anew(self._count)
            drawn[:] = [given[place : place + SALT_BYTES] for place in range(len(given) - SALT_BYTES, -1, -SALT_BYTES)]
            self._process = os.getpid()
        return drawn.pop()

    def _drawn_anew(self, count: int) -> bytes:
        wanted = SALT_BYTES * count
        given = self._entropy(wanted)
        if len(given) != wanted:
            raise UsageError("entropy", f"it gave {len(given)} bytes for {wanted}", "Give as many as are asked for")
        return given
