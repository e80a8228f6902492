"""Checks of a log, for tests: that it is right, and that it is the one that was recorded."""

import os
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol, get_args

import orjson

from looplatch.analysis.comparison import shown
from looplatch.analysis.steps import unlike
from looplatch.audit import Log, read
from looplatch.paths import path_of
from looplatch.proving.replaying import replay
from looplatch.proving.verification import verify
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_switch
from looplatch.states.record import Record
from looplatch.states.verify.findings import Status

__all__ = ["assert_matches", "assert_valid", "check_log", "comparable"]

_OWN: Final = ("ts", "mono_ns", "prev", "hash", "run", "library", "sdk", "root", "commitment")
_CHAINED: Final = ("sent", "history", "idempotency_key", "input", "edited", "result", "full", "raw")


class HasLog(Protocol):
    """A run, or a result: what has a log."""

    @property
    def log(self) -> Log:
        """Its log."""
        ...


Subject = Log | HasLog | str | os.PathLike[str]


def check_log(subject: Subject) -> tuple[str, ...]:
    """What is wrong with a log, in words: broken invariants, and the first move that the machine makes otherwise.

    subject: a log, the path of one, or a run. Raises UsageError for a file that cannot be read.
    """
    log = _log_of(subject)
    report = verify(log)
    if not report.ok:
        return tuple(map(str, report.violations))
    again = replay(log)
    return () if again.ok else (str(again.difference),)


def assert_valid(subject: Subject, status: Status | None = None) -> None:
    """Raise AssertionError, which says what is wrong, unless the log of `subject` is right.

    status: how far the run must have come ("sealed", "open", "suspended", "in_doubt"); None for any.
    """
    if status is not None and status not in get_args(Status):
        raise UsageError(
            "status", f"{brief(status)} is not known", f"Give one of {', '.join(get_args(Status))}, or None"
        )
    log = _log_of(subject)
    problems = check_log(log)
    if problems:
        raise AssertionError("the log is not valid:\n" + "\n".join(problems))
    found = verify(log).status
    if status is not None and found != status:
        raise AssertionError(f"the run is {found}, not {status}")


def assert_matches(subject: Subject, golden: str | os.PathLike[str], *, rewrite: bool = False) -> None:
    """Raise AssertionError unless the log of `subject` tells the same as the file `golden`, but for what no two runs
    have in common (times, hashes, the run's id, salts).

    rewrite: write the file instead. Raises AssertionError, too, where there is no such file.
    """
    check_switch("rewrite", rewrite)
    file = path_of("golden", golden)
    lines = [orjson.dumps(one, option=orjson.OPT_SORT_KEYS) for one in comparable(_log_of(subject).records)]
    if rewrite:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"".join(line + b"\n" for line in lines))
        return
    if not file.is_file():
        raise AssertionError(f"there is no {file}; write it with --looplatch-rewrite (or rewrite=True)")
    wanted = file.read_bytes().splitlines()
    for place, (is_, was) in enumerate(zip(lines, wanted, strict=False), 1):
        if is_ != was:
            raise AssertionError(f"{file}, line {place}{_differing(orjson.loads(is_), was)}")
    if len(lines) != len(wanted):
        raise AssertionError(f"{file} and the log differ in length: {len(wanted)} and {len(lines)} records")


def _differing(now: dict[str, Any], line: bytes) -> str:
    """The first thing in which a record is not what a line of the file says."""
    try:
        was = orjson.loads(line)
    except orjson.JSONDecodeError:
        return f": it is no JSON: {line[:200]!r}"
    found = unlike(was, now)
    if found is None:
        return ": the same values stand there in another form; write the file anew"
    return f" ({now['kind']}): {found.path or 'the record'}: recorded {shown(found.one)}, found {shown(found.other)}"


def comparable(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """What of each record two runs of the same script have in common."""
    for record in records:
        yield {name: _stripped(value) for name, value in record.data.items() if name not in (*_OWN, *_CHAINED)}


def _stripped(value: Any) -> Any:
    if isinstance(value, list):
        return [_stripped(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {k: _stripped(v) for k, v in value.items() if k not in ("commitment", "raw")}  # pyright: ignore[reportUnknownVariableType]
    return value


def _log_of(subject: Subject) -> Log:
    if isinstance(subject, Log):
        return subject
    if isinstance(subject, str | os.PathLike):
        return read(subject)
    log: object = getattr(subject, "log", None)
    if not isinstance(log, Log):
        raise UsageError("subject", f"{brief(subject)} has no log", "Give a log, the path of one, or a run")
    return log
