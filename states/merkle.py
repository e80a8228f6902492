"""The Merkle root over record hashes (RFC 6962), kept up as records are appended: log n memory, two hashes a record."""

import hashlib
from collections.abc import Iterable
from operator import add
from typing import Final

_BATCH: Final = 32  # leaves that are hashed at once; a power of two
_LEAF: Final = b"\x00"
_NODE: Final = b"\x01"


class Merkle:
    """A growing list of hashes of which only the peaks are kept, and the few that came last.

    count: how many were appended.
    """

    __slots__ = ("_batches", "_fresh", "_peaks", "count")

    def __init__(self) -> None:
        self.count = 0
        self._peaks: list[bytes] = []  # roots of full subtrees, the largest first
        self._batches = 0  # that are under the peaks
        self._fresh: list[str] = []  # what came after them, less than a batch

    def add(self, leaf: str) -> None:
        """Append a record's hash, as hex digits."""
        self.count += 1
        fresh = self._fresh
        fresh.append(leaf)
        if len(fresh) == _BATCH:
            node, count = _root(fresh), self._batches
            while count & 1:
                node = _joined(self._peaks.pop(), node)
                count >>= 1
            self._peaks.append(node)
            self._batches += 1
            fresh.clear()

    def root(self) -> str:
        """The root over all that was added, as hex digits; of nothing, the hash of the empty string."""
        peaks, fresh, size = self._peaks[:], self._fresh, _BATCH
        while size := size // 2:
            if len(fresh) & size:
                peaks.append(_root(fresh[:size]))
                fresh = fresh[size:]
        if not peaks:
            return hashlib.sha256(b"").hexdigest()
        node = peaks.pop()
        while peaks:
            node = _joined(peaks.pop(), node)
        return node.hex()


def _root(leaves: list[str]) -> bytes:
    """The root of a full subtree."""
    nodes = _hashed(_LEAF, map(bytes.fromhex, leaves))
    while len(nodes) > 1:
        nodes = _hashed(_NODE, map(add, nodes[::2], nodes[1::2]))
    return nodes[0]


def _joined(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(_NODE + left + right).digest()


def _hashed(start: bytes, contents: Iterable[bytes]) -> list[bytes]:
    """The hash of each, behind `start`."""
    begun, hashes = hashlib.sha256(start), list[bytes]()
    for content in contents:
        own = begun.copy()  # takes less than a new one
        own.update(content)
        hashes.append(own.digest())
    return hashes
