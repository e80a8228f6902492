"""The payload store: a file of JSON lines beside the log, one line a payload.

    {"commitment":"<64 hex digits>","salt":"<32 hex digits>","payload":<the payload: one line of JSON, as it is>}

The fields have fixed places, so that a payload is read back byte for byte without encoding it anew, and so that it can
be blanked where it stands: `null` for salt and payload, and spaces up to the old length.
"""

import os
import re
from pathlib import Path
from typing import Final

import attrs

from looplatch.audit.disk import Disk
from looplatch.audit.protocol import PayloadSource
from looplatch.states.errors import UsageError

_LINE: Final = re.compile(
    rb'\{"commitment":"(?P<commitment>[0-9a-f]{64})","salt":"(?P<salt>[0-9a-f]{32})","payload":(?P<payload>.*)\}\n'
)
_BLANKED: Final = re.compile(rb'\{"commitment":"[0-9a-f]{64}","salt":null,"payload":null\} *\n')
_BEGINNING: Final = b'{"commitment":"'
_MOST_STRANGE: Final = 100  # lines of a file that are told
_SHORTEST: Final = len(b'{"commitment":"","salt":"","payload":}\n') + 64 + 32
_BLANK: Final = b'{"commitment":"%b","salt":null,"payload":null}'
SUFFIX: Final = ".payloads"
SECOND: Final = "it is another payload for one commitment"


def payloads_of(log: Path) -> Path:
    """Where the payloads of the log at `log` are kept: `run.jsonl` has `run.payloads`; any other name gets it added."""
    return log.with_suffix(SUFFIX) if log.suffix == ".jsonl" else log.parent / (log.name + SUFFIX)


def payload_line(commitment: str, salt: bytes, payload: bytes) -> bytes:
    """The line that keeps `payload`."""
    return b'{"commitment":"%b","salt":"%b","payload":%b}\n' % (commitment.encode(), salt.hex().encode(), payload)


@attrs.frozen
class StrangeLine:
    """A line of a file of payloads that keeps none. line: its number in the file, from 1. problem: what is wrong."""

    file: Path
    line: int
    problem: str


class MemoryPayloads:
    """Payloads in memory, by their commitments. `before`: where those of an earlier epoch of the run are."""

    def __init__(self, before: PayloadSource | None = None) -> None:
        self._kept: dict[str, tuple[bytes, bytes]] = {}
        self._before = before
        self._dropped: set[str] = set()

    def put(self, commitment: str, salt: bytes, payload: bytes) -> None:
        """Keep `payload`."""
        self._kept[commitment] = (salt, payload)

    def drop(self, commitment: str) -> None:
        """Keep a payload no longer."""
        self._kept.pop(commitment, None)
        self._dropped.add(commitment)

    def find(self, commitment: str) -> tuple[bytes, bytes] | None:
        """The salt and the payload that `commitment` stands for, or None."""
        kept = self._kept.get(commitment)
        if commitment in self._dropped:
            return None
        return self._before.find(commitment) if kept is None and self._before is not None else kept

    def commitments(self) -> list[str]:
        """The commitments of all payloads that are kept."""
        earlier = () if self._before is None else self._before.commitments()
        return [one for one in dict.fromkeys((*earlier, *self._kept)) if one not in self._dropped]


class FilePayloads:
    """The payloads in the file at `path`, as they stood at the first `find`; none where there is no such file.

    Only their places are kept in memory. A last line that was torn, and lines that were blanked, hold no payload.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[bytes, int] | None = None
        self._strange: list[StrangeLine] = []

    def find(self, commitment: str) -> tuple[bytes, bytes] | None:
        """The salt and the payload that `commitment` stands for, or None. Raises UsageError for an unreadable file."""
        try:
            if self._places is None:
                self._places = self._scan()
            place = self._places.get(commitment.encode())
            if place is None:
                return None
            with self.path.open("rb") as file:
                file.seek(place)
                kept = _LINE.fullmatch(file.readline())
        except OSError as error:
            problem = f"the payloads in {self.path} cannot be read ({error.strerror})"
            raise UsageError("log", problem, "Make the file readable") from error
        return None if kept is None else (bytes.fromhex(kept["salt"].decode()), kept["payload"])

    def commitments(self) -> list[str]:
        """The commitments of all payloads that are kept. Raises UsageError for an unreadable file."""
        self.find("")
        return [one.decode() for one in self._places or ()]

    def strange(self) -> list[StrangeLine]:
        """The first hundred lines that keep nothing, but for blanked ones and a last one that was torn.

        Another payload for a commitment that has one is found by nobody, so it is one of them. Raises UsageError for an
        unreadable file.
        """
        self.find("")
        return list(self._strange)

    def line_of(self, commitment: str) -> int:
        """The number, from 1, of the line that keeps a payload that is there."""
        with self.path.open("rb") as file:
            return file.read((self._places or {})[commitment.encode()]).count(b"\n") + 1

    def blank(self, commitment: str, disk: Disk) -> bool:
        """Overwrite the payload where it stands, durably; whether there was one. Raises OSError."""
        if self.find(commitment) is None or self._places is None:
            return False
        place = self._places.pop(commitment.encode())
        fd = disk.open(self.path, os.O_RDWR)
        try:
            with self.path.open("rb") as file:
                file.seek(place)
                size = len(file.readline())
            left = (_BLANK % commitment.encode()).ljust(size - 1) + b"\n"
            while left:
                done = disk.overwrite(fd, left, place)
                left, place = left[done:], place + done
            disk.fsync(fd)
        finally:
            disk.close(fd)
        return True

    def _scan(self) -> dict[bytes, int]:
        places: dict[bytes, int] = {}
        if not self.path.exists():
            return places
        place = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                kept = _LINE.fullmatch(line) if len(line) > _SHORTEST else None
                if kept is None:
                    if not _may_stand_there(line):
                        self._tell(number, "it is no payload")
                else:
                    if kept["commitment"] in places:
                        self._tell(number, SECOND)
                    places[kept["commitment"]] = place
                place += len(line)
        return places

    def _tell(self, number: int, problem: str) -> None:
        if len(self._strange) < _MOST_STRANGE:
            self._strange.append(StrangeLine(self.path, number, problem))


def _may_stand_there(line: bytes) -> bool:
    """Whether a line that keeps no payload is one that was blanked, or the end that a crash tore off."""
    if line.endswith(b"\n"):
        return _BLANKED.fullmatch(line) is not None
    return line[: len(_BEGINNING)] == _BEGINNING[: len(line)]
