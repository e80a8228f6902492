"""Summaries: one call of the model beside the run, or the API's own compaction, whose answer is for the history."""

from collections.abc import Sequence
from typing import Any

import attrs

from looplatch.encoding import encode
from looplatch.model import Assembly
from looplatch.model.reading import read_answer, text_of
from looplatch.model.spending import spending
from looplatch.ports import ModelRequest
from looplatch.recovery.failure import Failure, ModelCallFailed
from looplatch.recovery.weights import Message
from looplatch.requests.request import RequestParts
from looplatch.states.level import Level
from looplatch.states.record import Record
from looplatch.workplace import Workplace


@attrs.frozen(kw_only=True)
class Summary:
    """What the model wrote, and what that cost, by the names of the context's totals."""

    text: str
    spent: dict[str, int]


@attrs.frozen(kw_only=True)
class Compaction:
    """The signed block that the API made of a history, and what that cost."""

    block: dict[str, Any]
    spent: dict[str, int]


class NoSummary(ModelCallFailed):
    """There is no summary; `spent` is what the attempt cost."""

    def __init__(self, failure: Failure, spent: dict[str, int]) -> None:
        super().__init__(failure)
        self.spent = spent


async def write_summary(
    at: Workplace,
    messages: Sequence[Message],
    level: Level,
    max_tokens: int,
    span: tuple[int, int] | None = None,
) -> Summary:
    """Have the model write a summary, between two records of the log; of the messages in `span`, or of all.

    Raises NoSummary, which carries why, when there is none: the call failed, or the answer was cut or empty.
    """
    model = at.plan.compression.summary_model or at.plan.parts.model
    parts = RequestParts(model=model, system=None, tools=(), params=at.plan.parts.beside)
    request = parts.request(encode(list(messages))[1:-1], max_tokens=max_tokens)
    begin = at.journal.summary_begins(model, level, max_tokens, span)
    assembly, spent = await _answered(at, begin, request, model)
    try:
        text = text_of(assembly)
    except ModelCallFailed as error:
        at.journal.summary_ends(begin, error.failure.type, spent, None)
        raise NoSummary(error.failure, spent) from error
    at.journal.summary_ends(begin, "ok", spent, at.journal.keep_value(text))
    return Summary(text=text, spent=spent)


async def request_compaction(at: Workplace, messages: Sequence[Message], model: str, max_tokens: int) -> Compaction:
    """Have the API compact `messages` into one signed block, between two records of the log.

    Raises NoSummary when it refuses, or its block holds nothing.
    """
    request = at.plan.parts.compaction_request(encode(list(messages))[1:-1], max_tokens=max_tokens, model=model)
    begin = at.journal.summary_begins(model, Level.COMPACT, max_tokens, by="api")
    assembly, spent = await _answered(at, begin, request, model)
    made = [block for block in assembly.content if block.get("type") == "compaction"]
    block: dict[str, Any] = made[0] if made else {}
    if not block.get("content"):
        failure = Failure(type="no_compaction", status=200, message="the block holds nothing", should_retry=False)
        at.journal.summary_ends(begin, failure.type, spent, None)
        raise NoSummary(failure, spent)
    at.journal.summary_ends(begin, "ok", spent, at.journal.keep_block(block))
    return Compaction(block=block, spent=spent)


async def _answered(at: Workplace, begin: Record, request: ModelRequest, model: str) -> tuple[Assembly, dict[str, int]]:
    """The whole answer to a request, and what it cost. When there is none, that ends the effect."""
    assembly = Assembly()
    try:
        await read_answer(at.plan.connect(), request, assembly)
    except ModelCallFailed as error:
        spent = spending(assembly.usage, model, at.plan.pricer)
        at.journal.summary_ends(begin, error.failure.type, spent, None)
        raise NoSummary(error.failure, spent) from error
    except BaseException:
        at.journal.summary_ends(begin, "interrupted", spending(assembly.usage, model, at.plan.pricer), None)
        raise
    return assembly, spending(assembly.usage, model, at.plan.pricer)
