"""token_budget_continuation: the model is done, but less was written than `Limits.output_target` asks for.

Guard: `target_unmet` (under 90 % of the target, within all limits, still progressing) where the run would end, then
`progressing` or `little_progress`, which count continuations below 500 new tokens. Action: the model is told how much
it has written and asked to go on. Three continuations in a row with little progress complete the run.
"""

from typing import Final

from looplatch.states.guards import target_unmet
from looplatch.states.reasons import Strategy
from looplatch.states.recover_guards import little_progress, progressing

STRATEGY: Final = Strategy.TOKEN_BUDGET_CONTINUATION
GUARDS: Final = (target_unmet, progressing, little_progress)


def budget_prompt(written: int, target: int) -> str:
    """What the model is told; both in tokens of output."""
    return (
        f"You have written {written:,} of the {target:,} tokens that are wanted. "
        "Go on with the task: do not summarise, and do not repeat what you already wrote."
    )
