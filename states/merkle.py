"""The Merkle root over record hashes (RFC 6962), kept up as records are appended: log n memory, two hashes a record."""

import hashlib


class Merkle:
    """A growing list of hashes of which only the peaks are kept."""

    __slots__ = ("_peaks", "count")

    def __init__(self) -> None:
        self._peaks: list[bytes] = []  # roots of full subtrees, the largest first
        self.count = 0

    def add(self, leaf: str) -> None:
        """Append a record's hash, as hex digits."""
        node = hashlib.sha256(b"\x00" + bytes.fromhex(leaf)).digest()
        count = self.count
        while count & 1:
            node = hashlib.sha256(b"\x01" + self._peaks.pop() + node).digest()
            count >>= 1
        self._peaks.append(node)
        self.count += 1

    def root(self) -> str:
        """The root over all that was added, as hex digits; of nothing, the hash of the empty string."""
        if not self._peaks:
            return hashlib.sha256(b"").hexdigest()
        node = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            node = hashlib.sha256(b"\x01" + peak + node).digest()
        return node.hex()
