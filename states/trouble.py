"""What can go wrong in a run, by kind; a kind selects the recovery, so each trouble has exactly one."""

from enum import StrEnum
from typing import Final


class TroubleKind(StrEnum):
    """The kinds of trouble that lead to `recover`."""

    OVERFLOW = "overflow"  # the prompt does not fit the model's window
    TRUNCATED = "truncated"  # the answer was cut by max_tokens
    HOOK_BLOCKED = "hook_blocked"  # a stop hook wants the model to go on
    TARGET_UNMET = "target_unmet"  # less output than the run was asked for
    TRANSIENT = "transient"  # the same request may succeed later
    FATAL = "fatal"  # the same request will never succeed
    REFUSED = "refused"  # the model refused to answer


CALL_TROUBLES: Final = (TroubleKind.OVERFLOW, TroubleKind.TRANSIENT, TroubleKind.FATAL)  # how a model call can fail
