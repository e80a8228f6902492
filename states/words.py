"""Words that the API or the log has a meaning for, and that no request or no log is without."""

from typing import Final

from looplatch.states.level import Level
from looplatch.states.reasons import Continue, Strategy, Terminal
from looplatch.states.record import Kind
from looplatch.states.state import State
from looplatch.states.trouble import TroubleKind
from looplatch.states.vocabulary import EffectClass, EffectOutcome, Op

_BLOCKS: Final = (
    *("text", "thinking", "redacted_thinking", "image", "document", "search_result", "base64", "compaction"),
    *("tool_use", "server_tool_use", "mcp_tool_use", "tool_result", "mcp_tool_result"),
)
_STOPS: Final = (
    *("end_turn", "stop_sequence", "max_tokens", "tool_use", "pause_turn", "refusal"),
    "model_context_window_exceeded",
)
_ENDS: Final = (
    *("Allow", "Deny", "Ask", "Pass", "Block", "Halt"),
    *("answered", "failed", "unknown_tool", "invalid_input", "denied", "not_started", "timed_out"),
    *("interrupted_no_effect", "interrupted_effect_unknown"),
)
_RECORDED: Final = (
    *("user", "assistant", "system", "blocks", "read", "write", "send", "api"),
    *("before_tool", "after_tool", "after_tools", "after_response", "stop", "fallback_model"),
    *("none", "group", "barrier", "keep", "digest", "direct"),
)

_NAMED: Final = (
    *(*State, *Terminal, *Continue, *Strategy, *TroubleKind, *Level),
    *(*Kind, *EffectClass, *EffectOutcome, *Op),
)

WORDS: Final = tuple(dict.fromkeys((*_BLOCKS, *_STOPS, *_ENDS, *_RECORDED, *map(str, _NAMED))))
"""Whatever stands for a secret is none of them."""
