"""max_output_tokens_escalate: the answer was cut by max_tokens, and no tool had begun.

Guard: `can_escalate` (a higher limit is possible and was not tried in this turn). Action: the cut answer is discarded
whole, and the same request is sent with up to 64,000 tokens, never above what the model writes or the window leaves.
"""

from collections.abc import Callable
from typing import Final

from looplatch.recovery.failure import Failure, trouble_of
from looplatch.states.reasons import Strategy
from looplatch.states.recover_guards import can_escalate
from looplatch.states.trouble import TroubleKind

STRATEGY: Final = Strategy.MAX_OUTPUT_TOKENS_ESCALATE
GUARDS: Final = (can_escalate,)
ESCALATED_TOKENS: Final = 64_000


def escalated_limit(max_tokens: int, model_output: int | None, room: int | None) -> int:
    """The max_tokens to ask for after a cut answer; 0 when no higher limit is possible.

    max_tokens: what the cut request asked for. model_output: the most that the model can write, None when unknown.
    room: what the window leaves beside the prompt, None when unknown. All in tokens.
    """
    bounds = [bound for bound in (ESCALATED_TOKENS, model_output, room) if bound is not None]
    target = min(bounds)
    return target if target > max_tokens else 0


def trouble_of_request(
    failure: Failure, *, is_overflow: Callable[[Failure], bool], max_tokens: int, ordinary: int
) -> TroubleKind:
    """Which trouble it is that a request for `max_tokens` failed; `ordinary` is the limit without an escalation.

    Where only the answer was to be longer than the window allows, the same request will do with a lower limit.
    """
    trouble = trouble_of(failure, is_overflow=is_overflow)
    if trouble is TroubleKind.OVERFLOW and asked_too_much(failure, max_tokens, ordinary):
        return TroubleKind.TRANSIENT
    return trouble


def asked_too_much(failure: Failure, max_tokens: int, ordinary: int) -> bool:
    """Whether the API refused a request only because of its higher limit: the prompt and an ordinary answer fit.

    The window was taken for larger than it is; now it has been measured, and the request is sent with what it leaves.
    """
    measured = failure.measured
    if measured is None or max_tokens <= ordinary:
        return False
    return measured.input_tokens + ordinary <= measured.window
