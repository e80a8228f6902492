"""Contents that a crash tore off and that were moved aside: to be deleted as well, where that is asked for."""

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Final

from looplatch.audit.disk import DISK, Disk
from looplatch.audit.errors import LogFailed

_BEGUN: Final = re.compile(
    rb'\{"commitment":"(?P<commitment>[0-9a-f]{64})","salt":"[0-9a-f]{32}","payload":(?P<payload>.+)', re.DOTALL
)


def torn_beside(payloads: Iterable[Path]) -> tuple[Path, ...]:
    """The files into which the torn ends of these files of payloads were moved."""
    return tuple(path for file in payloads for path in sorted(file.parent.glob(f"{_escaped(file.name)}.*.torn")))


def _escaped(name: str) -> str:
    return re.sub(r"([*?[])", r"[\1]", name)


def commitments_torn(paths: Iterable[Path]) -> frozenset[str]:
    """The commitments of what stands in torn ends."""
    return frozenset(found["commitment"].decode() for path in paths if (found := _BEGUN.match(path.read_bytes())))


def blank_torn(
    paths: Iterable[Path], commitments: Collection[str], contents: Collection[bytes], disk: Disk = DISK
) -> None:
    """Overwrite torn ends that belong to one of the `commitments`, or begin as one of the `contents` does, durably.

    Each stays as long as it was, since a claim may still have to say how much was lost. Raises LogFailed.
    """
    for path in paths:
        try:
            data = path.read_bytes()
            found = _BEGUN.match(data)
            if found is None:
                continue
            named = found["commitment"].decode() in commitments
            if named or any(content.startswith(found["payload"]) for content in contents):
                _overwrite(path, b" " * len(data), disk)
        except OSError as error:
            raise LogFailed(path, "deleting", error) from error


def _overwrite(path: Path, data: bytes, disk: Disk) -> None:
    fd = disk.open(path, os.O_RDWR)
    try:
        place = 0
        while place < len(data):
            place += disk.overwrite(fd, data[place:], place)
        disk.fsync(fd)
    finally:
        disk.close(fd)
