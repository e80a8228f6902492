"""reactive_compact_retry: the prompt is too long, and nothing is staged (any more).

Guard: `compaction_allowed` (there is something to summarise, it was not tried in this turn, and the breaker is closed
or half-open), then `shorter` on what came of it. Action: the model writes one summary of all before the latest
exchange (`compression.compact`), and the request is made anew. A second overflow in the turn ends the run as
`context_blocked`.
"""

from typing import Final

from looplatch.states.reasons import Strategy
from looplatch.states.recover_guards import compaction_allowed, shorter

STRATEGY: Final = Strategy.REACTIVE_COMPACT_RETRY
GUARDS: Final = (compaction_allowed, shorter)
