"""Reading the lines of a log: what is a record, what is damage, what is a torn tail."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import orjson

from looplatch.audit.errors import LogDamaged
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.record import SCHEMAS, Kind, Record

_EVERY_RECORD_HAS: Final[dict[str, type]] = {
    "v": int, "run": str, "seq": int, "epoch": int, "ts": str, "mono_ns": int, "kind": str, "prev": str, "hash": str,
}  # fmt: skip
_LONGEST_GENESIS: Final = 1 << 20  # bytes that are read of a file that may be anything
_KINDS: Final = frozenset(kind.value for kind in Kind)


def split(data: bytes) -> tuple[tuple[bytes, ...], bytes]:
    """The whole lines in `data`, each with its newline, and the torn rest: a line counts once its newline is there."""
    lines = data.split(b"\n")
    torn = lines.pop()
    return tuple(line + b"\n" for line in lines), torn


def parse(line: bytes, number: int, file: Path | None) -> Record:
    """The record in a line. Raises LogDamaged where it is none, with the line's `number`.

    The chain is not checked here: that is the verifier's, who finds every damage and not only the first.
    """
    try:
        found: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise LogDamaged(file, number, f"it is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise LogDamaged(file, number, "it is no JSON object")
    data = cast("dict[str, Any]", found)
    for name, kind in _EVERY_RECORD_HAS.items():
        if type(data.get(name)) is not kind:
            raise LogDamaged(file, number, f"its field {name!r} is missing or is no {kind.__name__}")
    if data["v"] not in SCHEMAS:
        known = f"{', '.join(map(str, SCHEMAS[:-1]))} and {SCHEMAS[-1]}"
        raise LogDamaged(file, number, f"it has schema {data['v']}; this looplatch reads the schemas {known}")
    if data["kind"] not in _KINDS:
        raise LogDamaged(file, number, f"its kind {brief(data['kind'])} is unknown")
    return Record(data)


def fields_of(line: bytes | None) -> dict[str, Any]:
    """What a line holds, whether that is a record or not: empty where it is no JSON object, or there is no line."""
    try:
        found: object = orjson.loads(line or b"")
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def read_bytes(file: Path) -> bytes:
    """All that `file` holds. Raises UsageError where it cannot be read."""
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise _unreadable(file, error) from error


def first_lines(file: Path, count: int) -> Iterator[bytes]:
    """The first `count` lines of `file`, read when they are asked for. Raises UsageError where it cannot be read."""
    try:
        with file.open("rb") as opened:
            yield from itertools.islice(opened, count)
    except OSError as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: OSError | ValueError) -> UsageError:
    why = error.strerror if isinstance(error, OSError) else error
    return UsageError("log", f"{file} cannot be read ({why})", "Give the path of a log")


def run_of(file: Path) -> str | None:
    """The run that the first line of `file` names; None where it names none."""
    with file.open("rb") as opened:
        return parsed_run(opened.readline(_LONGEST_GENESIS), file)


def parsed_run(line: bytes, file: Path) -> str | None:
    """The run that the line of `file` names; None where it names none."""
    try:
        return parse(line, 1, file).run
    except LogDamaged:
        return None
