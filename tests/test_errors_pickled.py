"""Errors go from one process to another whole: with their text, their fields and their kind."""

import copy
import errno
import pickle
from pathlib import Path

import pytest

from looplatch.audit.errors import LogClosed, LogFailed, LogState
from looplatch.machine import CounterExceeded
from looplatch.states.errors import HookMisbehaved, LooplatchError, NoGuardPassed, UsageError

VERDICTS = {"has_tools": False}
LEGAL = ("RunClosed",)


@pytest.mark.parametrize(
    "error",
    [
        UsageError("log", "there is none", "Give one"),
        HookMisbehaved("before_tool", 5, "a Deny"),
        NoGuardPassed("idle", "ModelDone", VERDICTS, LEGAL),
        CounterExceeded("turns", 3, "next turn", state="idle", event="ModelDone", verdicts=VERDICTS, legal=LEGAL),
        LogClosed("r", LogState.SEALED),
        LogFailed(Path("run.jsonl"), "fsync", OSError(errno.EIO, "broken")),
    ],
    ids=repr,
)
def test_an_error_that_was_pickled_is_the_same(error: LooplatchError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other)) == (type(error), str(error))
        assert {name: repr(value) for name, value in vars(other).items()} == {
            name: repr(value) for name, value in vars(error).items()
        }
