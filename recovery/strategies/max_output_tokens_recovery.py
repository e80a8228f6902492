"""max_output_tokens_recovery: the answer was cut by max_tokens, and a higher limit is no way out.

Guard: `recoveries_left` (asked to go on fewer than three times in this turn). Action: the text of the cut answer is
kept, or the sealed prefix with its results if a tool had begun; a cut call is never run; the model is asked to go on.
"""

from typing import Final

from looplatch.states.reasons import Strategy
from looplatch.states.recover_guards import recoveries_left

STRATEGY: Final = Strategy.MAX_OUTPUT_TOKENS_RECOVERY
GUARDS: Final = (recoveries_left,)

GO_ON: Final = (
    "Your answer was cut off because it reached the output limit. Go on exactly where it stopped: do not repeat what "
    "you already wrote and do not apologise. Break the remaining work into smaller steps."
)
