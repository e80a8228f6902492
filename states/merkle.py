"""The Merkle root over record hashes (RFC 6962), kept up as records are appended: log n memory, two hashes a record."""

import hashlib
from operator import add
from typing import Final

_BATCH: Final = 32  # leaves that are hashed at once; a power of two


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
    sha256 = hashlib.sha256
    nodes = [sha256(leaf).digest() for leaf in map(b"\x00".__add__, map(bytes.fromhex, leaves))]
    while len(nodes) > 1:
        pairs = map(add, map(b"\x01".__add__, nodes[::2]), nodes[1::2])
        nodes = [sha256(pair).digest() for pair in pairs]
    return nodes[0]


def _joined(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()
