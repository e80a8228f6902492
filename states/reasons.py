"""Why a run goes on, how it was helped, and why it ended."""

from enum import StrEnum


class Continue(StrEnum):
    """Why the loop goes round again: the only six ways into `prepare`."""

    NEXT_TURN = "next_turn"
    COLLAPSE_DRAIN_RETRY = "collapse_drain_retry"
    REACTIVE_COMPACT_RETRY = "reactive_compact_retry"
    MAX_OUTPUT_TOKENS_RECOVERY = "max_output_tokens_recovery"
    STOP_HOOK_BLOCKING = "stop_hook_blocking"
    TOKEN_BUDGET_CONTINUATION = "token_budget_continuation"


class Strategy(StrEnum):
    """How `recover` mends a trouble: five of the reasons, `max_output_tokens_recovery` in its two forms."""

    COLLAPSE_DRAIN_RETRY = "collapse_drain_retry"
    REACTIVE_COMPACT_RETRY = "reactive_compact_retry"
    MAX_OUTPUT_TOKENS_ESCALATE = "max_output_tokens_escalate"
    MAX_OUTPUT_TOKENS_RECOVERY = "max_output_tokens_recovery"
    STOP_HOOK_BLOCKING = "stop_hook_blocking"
    TOKEN_BUDGET_CONTINUATION = "token_budget_continuation"


class Terminal(StrEnum):
    """Why a run ended."""

    ANSWERED = "answered"
    ABORTED = "aborted"
    STOPPED = "stopped"
    DEADLINE = "deadline"
    CLOSED = "closed"
    BUDGET_SPENT = "budget_spent"
    MAX_TURNS = "max_turns"
    PAUSE_LIMIT = "pause_limit"
    HOOK_HALTED = "hook_halted"
    UNKNOWN_STOP_REASON = "unknown_stop_reason"
    DENIED = "denied"
    CONTEXT_BLOCKED = "context_blocked"
    OUTPUT_TRUNCATED = "output_truncated"
    STOP_HOOK_LIMIT = "stop_hook_limit"
    MODEL_ERROR = "model_error"
    REFUSED = "refused"
    INTERNAL_ERROR = "internal_error"
