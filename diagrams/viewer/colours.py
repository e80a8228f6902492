"""The colours of the diagram and of what it means, as a style sheet for a light and a dark page."""

from collections.abc import Iterable
from typing import Final

from looplatch.diagrams.palette import FAINT, FLOW, INK, PALE, PAPER, REASONS, TARGETS
from looplatch.states.reasons import Continue
from looplatch.states.state import State

DARK: Final = {
    INK: "#e2e8f0",
    FLOW: "#9aa7b8",
    FAINT: "#3b4554",
    PALE: "#64748b",
    PAPER: "#12161d",
    "#f1f5f9": "#1f2733",  # the ground of a state's card, and of a final one's
    "#f8fafc": "#1b212b",
    "#fef08a": "#854d0e",
    REASONS[Continue.NEXT_TURN]: "#7ba7ff",
    REASONS[Continue.COLLAPSE_DRAIN_RETRY]: "#35c3dc",
    REASONS[Continue.REACTIVE_COMPACT_RETRY]: "#c78bff",
    REASONS[Continue.MAX_OUTPUT_TOKENS_RECOVERY]: "#fb923c",
    REASONS[Continue.STOP_HOOK_BLOCKING]: "#f57bb6",
    REASONS[Continue.TOKEN_BUDGET_CONTINUATION]: "#a3d14d",
    TARGETS[State.RECOVER]: "#e6b455",
    TARGETS[State.COMPLETED]: "#4ade80",
    TARGETS[State.ABORTED]: "#b3ada8",
    TARGETS[State.FAILED]: "#f98080",
}
"""What each colour of the diagram becomes on a dark ground."""


def colours() -> str:
    """The style sheet."""
    return "\n".join(
        (
            f":root{{{_variables({colour: colour for colour in DARK})}}}",
            *(f'.row[data-reason="{reason}"] .line{{color:var(--{reason})}}' for reason in REASONS),
            "@media (prefers-color-scheme: dark) {",
            f":root{{{_variables(DARK)}}}",
            *_repainted(),
            "}",
            "",
        )
    )


def _variables(shade: dict[str, str]) -> str:
    named = {str(reason): colour for reason, colour in REASONS.items()}
    named |= {str(state): colour for state, colour in TARGETS.items()}
    return "".join(f"--{name}:{shade[colour]};" for name, colour in named.items())


def _repainted() -> Iterable[str]:
    """Rules for the attributes of the SVG, whose colours are those of a light page."""
    for colour, dark in DARK.items():
        yield f'.machine svg [fill="{colour}"]{{fill:{dark}}}.machine svg [stroke="{colour}"]{{stroke:{dark}}}'
