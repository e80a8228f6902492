"""collapse_drain_retry: the prompt is too long, and summaries of finished spans wait beside the history.

Guard: `collapses_staged` (something is staged, and it was not drained in this turn). Action: every staged summary
takes the place of its span (`compression.collapse.drain`), and the request is made anew. It costs no model call, so it
comes first.
"""

from typing import Final

from looplatch.states.reasons import Strategy
from looplatch.states.recover_guards import collapses_staged

STRATEGY: Final = Strategy.COLLAPSE_DRAIN_RETRY
GUARDS: Final = (collapses_staged,)
