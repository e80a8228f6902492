"""The named states of a run."""

from enum import StrEnum


class State(StrEnum):
    """Where a run is; see `WORKING`, `WAITING` and `FINAL` for what each group means."""

    PREPARE = "prepare"  # bring the history under the model's window
    STREAM = "stream"  # send the request, read the answer, start tools meanwhile
    DECIDE = "decide"  # read the stop reason, run the stop hooks
    ORCHESTRATE = "orchestrate"  # finish the tools and answer every call
    RECOVER = "recover"  # apply the one strategy that fits the trouble
    SUSPENDED = "suspended"  # wait for approvals from outside
    COMPLETED = "completed"  # the model gave its answer
    ABORTED = "aborted"  # ended from outside: abort, stop, deadline, close
    FAILED = "failed"  # ended by a limit, a refusal or an error


INITIAL = State.PREPARE
WORKING = (State.PREPARE, State.STREAM, State.DECIDE, State.ORCHESTRATE, State.RECOVER)
WAITING = (State.SUSPENDED,)
FINAL = (State.COMPLETED, State.ABORTED, State.FAILED)
