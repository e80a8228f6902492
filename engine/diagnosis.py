"""The diagnosis: what the guards of `recover` need to know about a trouble."""

from looplatch.answering.answer import Answer
from looplatch.compressing.compressor import Compressor
from looplatch.recovery.strategies.request_retry import fallback_due, wait_ms
from looplatch.states.context import Context
from looplatch.states.events import TroubleNamed
from looplatch.states.trouble import TroubleKind
from looplatch.workplace import Workplace


async def name_trouble(
    at: Workplace, context: Context, answer: Answer | None, compressor: Compressor, *, new_tokens: int
) -> TroubleNamed:
    """Name the trouble that the run is in. new_tokens: of output, since the last continuation."""
    trouble = TroubleKind.FATAL if context.trouble is None else context.trouble
    failure = None if answer is None else answer.failure
    match trouble:
        case TroubleKind.TRUNCATED:
            return TroubleNamed(trouble=trouble, output_limit=await compressor.escalation(context))
        case TroubleKind.TRANSIENT:
            available = at.plan.fallback_model is not None
            return TroubleNamed(
                trouble=trouble,
                delay_ms=wait_ms(context.attempts, at.plan.jitter(), failure),
                fallback=context.fallback or fallback_due(context.attempts, failure, available=available),
            )
        case TroubleKind.HOOK_BLOCKED | TroubleKind.TARGET_UNMET:
            return TroubleNamed(trouble=trouble, new_tokens=new_tokens)
        case TroubleKind.OVERFLOW:
            return TroubleNamed(
                trouble=trouble,
                staged=compressor.staged,
                can_summarise=compressor.can_summarise,
                breaker_cooled=compressor.cooled,
            )
        case TroubleKind.FATAL | TroubleKind.REFUSED:
            return TroubleNamed(trouble=trouble)
