"""What can go wrong with an audit log: each error says why, and names the log where it knows its file or its run."""

from enum import StrEnum
from pathlib import Path
from typing import Final

from looplatch.states.errors import LooplatchError


class AuditError(LooplatchError):
    """The base of the errors of audit logs: one could not be opened, written or read."""


class LogInUse(AuditError):
    """Another run, in this process or another, has the log open; `file` names it."""

    def __init__(self, file: Path) -> None:
        super().__init__(f"{file}: another run is writing to this log. Give each run a log of its own, or wait")
        self.file = file


class LogExists(AuditError):
    """The file is not empty; `run` is the run that it belongs to, or None where that is unknown."""

    def __init__(self, file: Path, run: str | None) -> None:
        owner = "something that is no log of looplatch" if run is None else f"the run {run}"
        super().__init__(f"{file}: it holds {owner}, and a log belongs to one run. Give another path, or move it away")
        self.file = file
        self.run = run


class LogFailed(AuditError):
    """The log could not be written or made durable, so nothing more is written to it and nothing may be done.

    `file` names it, `action` is what failed, `cause` the error of the operating system.
    """

    def __init__(self, file: Path, action: str, cause: BaseException) -> None:
        super().__init__(
            f"{file}: {action} failed: {cause}. The log is complete up to its last whole line; "
            "mend the disk and go on from there, or start a new run"
        )
        self.file = file
        self.action = action
        self.cause = cause


class SigningFailed(AuditError):
    """The key `key_id` did not sign, for the reason `cause`; what was to be signed was not written or handed out."""

    def __init__(self, key_id: str, cause: Exception) -> None:
        super().__init__(
            f"the key {key_id} did not sign: {type(cause).__name__}: {cause}. The log is complete but for what was to "
            "be signed; mend the signer and resume the run"
        )
        self.key_id = key_id
        self.cause = cause


class LogState(StrEnum):
    """The state of a log that refused what it was given."""

    REOPENED = "reopened"  # and not resumed: another process's records go on in it
    IN_USE = "in_use"  # by this process, so that it cannot be resumed, or have payloads deleted
    NOT_RESUMED = "not_resumed"  # since that failed
    BROKEN_OFF = "broken_off"  # in the middle of a record
    SEALED = "sealed"
    CLOSED = "closed"


_STATES: Final = {
    LogState.REOPENED: "is reopened, but not resumed; it takes no records before that",
    LogState.IN_USE: "is in use already; only a log that was reopened can be resumed, or have payloads deleted",
    LogState.NOT_RESUMED: "was not resumed, since that failed; open it again",
    LogState.BROKEN_OFF: "was broken off in the middle of a record; open it again and resume the run",
    LogState.SEALED: "is sealed; it takes no more records",
    LogState.CLOSED: "is closed; it takes no more records",
}


class LogClosed(AuditError):
    """The log of `run` refused what it was given, because of its state: `state`, such as sealed or closed."""

    def __init__(self, run: str, state: LogState) -> None:
        super().__init__(f"the log of run {run} {_STATES[state]}")
        self.run = run
        self.state = state


class BadRecord(AuditError):
    """A record or a payload has a value that a log cannot hold; nothing was written.

    `kind` is the record's ("payload" for a payload), `problem` says why.
    """

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(f"a record of kind {kind} was refused: {problem}")
        self.kind = kind
        self.problem = problem


class LogDamaged(AuditError):
    """A log cannot be read: `problem` says what is wrong with its line `line`, counted from 1. `file` may be None."""

    def __init__(self, file: Path | None, line: int, problem: str) -> None:
        super().__init__(f"{file or 'the log'}, line {line}: {problem}. `looplatch verify` lists all that is wrong")
        self.file = file
        self.line = line
        self.problem = problem
