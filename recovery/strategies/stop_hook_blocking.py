"""stop_hook_blocking: the model is done, but a stop hook wants it to go on.

Guard: `blocks_left` (hooks blocked fewer times in a row than `Limits.max_blocks`). Action: the hook's reason is told to
the model. `stop_hook_active` stays true until the hooks pass, through the tool turns in between.
"""

from typing import Final

from looplatch.states.reasons import Strategy
from looplatch.states.recover_guards import blocks_left

STRATEGY: Final = Strategy.STOP_HOOK_BLOCKING
GUARDS: Final = (blocks_left,)


def hook_prompt(reason: str) -> str:
    """What the model is told. A reason without words still needs some: the API takes no empty text."""
    return reason if reason.strip() else "A check of your work says that it is not done yet. Go on."
