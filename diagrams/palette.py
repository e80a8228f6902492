"""The colours of edges: one for each reason to go on, one for each end, one for trouble; and those of what is laid over
the machine. All readable on white.
"""

from typing import Final

from looplatch.diagrams.graph import Edge
from looplatch.diagrams.overlay import Tone
from looplatch.states.reasons import Continue
from looplatch.states.state import State

INK: Final = "#1e293b"
FLOW: Final = "#475569"
FAINT: Final = "#cbd5e1"  # lines that a run never walked
PALE: Final = "#94a3b8"  # their text
PAPER: Final = "#ffffff"

REASONS: Final = {
    Continue.NEXT_TURN: "#1d4ed8",
    Continue.COLLAPSE_DRAIN_RETRY: "#0e7490",
    Continue.REACTIVE_COMPACT_RETRY: "#7e22ce",
    Continue.MAX_OUTPUT_TOKENS_RECOVERY: "#c2410c",
    Continue.STOP_HOOK_BLOCKING: "#be185d",
    Continue.TOKEN_BUDGET_CONTINUATION: "#4d7c0f",
}
TARGETS: Final[dict[str, str]] = {
    State.RECOVER: "#92620a",
    State.COMPLETED: "#15803d",
    State.ABORTED: "#57534e",
    State.FAILED: "#b91c1c",
}
# Where these are, the colours of reasons and ends give way.
_TONES: Final = {
    Tone.FIRST: "#1d4ed8",
    Tone.SECOND: "#c2410c",
    Tone.BOTH: INK,
    Tone.COVERED: "#0f766e",
    Tone.MISSED: "#b91c1c",
}


def ink_of(tone: Tone, plain: str = INK) -> str:
    """The colour of text and of a state's sides; `plain` where nothing else is asked for."""
    return PALE if tone is Tone.NEVER else _TONES.get(tone, plain)


def colour_of(edge: Edge) -> str:
    """The edge's colour: that of what is laid over it, else its reason's, else its target's, else the ordinary one."""
    if edge.tone is Tone.NEVER:
        return FAINT
    if edge.tone in _TONES:
        return _TONES[edge.tone]
    if edge.reason is not None:
        return REASONS[edge.reason]
    return TARGETS.get(edge.target, FLOW)
