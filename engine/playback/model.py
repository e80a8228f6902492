"""The recorded model: answers each request with what the log says was answered, in the order of the log."""

import asyncio
import itertools
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from looplatch.analysis.fields import list_in, object_in
from looplatch.encoding import encode
from looplatch.model.inputs import parse_input
from looplatch.playback.recording import Call, calls_of
from looplatch.ports import ModelRequest
from looplatch.recovery.failure import Failure, MeasuredOverflow, ModelCallFailed
from looplatch.recovery.windows import ModelSize
from looplatch.resuming.contents import Contents
from looplatch.states.record import Kind, Record
from looplatch.states.table import DECISIONS
from looplatch.states.trouble import TroubleKind
from looplatch.states.vocabulary import EffectClass, EffectOutcome

Event = dict[str, Any]

_ROUNDS: Final = 2_000  # of the event loop, in which tools that had begun when an answer was cut must have begun
_OVERFLOW: Final = "recorded_overflow"
_USAGE: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_input_tokens",
    "cache_write_tokens": "cache_creation_input_tokens",
}


class PlaybackOver(Exception):
    """The recording has nothing more to answer with."""


def is_overflow(failure: Failure) -> bool:
    """Whether a recorded failure was a prompt too long."""
    return failure.code == _OVERFLOW


class RecordedModel:
    """A ModelClient that plays what one part of a log holds. begun: the calls whose tools have begun by now."""

    def __init__(self, records: Sequence[Record], contents: Contents, begun: Collection[str]) -> None:
        self._cost_micro_usd = 0
        self._contents = contents
        self._begun = begun
        self._answers = deque(calls_of(records, EffectClass.MODEL, EffectClass.SUMMARY))
        self._counts = deque(calls_of(records, EffectClass.COUNT))
        self._sizes = deque(calls_of(records, EffectClass.SIZE))
        self._transient = {  # whether a summary that failed could be asked for again, by the record of its end
            before.seq: bool(record["fields"].get("transient"))
            for before, record in itertools.pairwise(records)
            if record.kind is Kind.TRANSITION and record.event == "SummaryFailed"
        }

    def price(self, model: str, tokens: Mapping[str, int]) -> int:
        """What the call that is being played cost, in millionths of a US dollar."""
        return self._cost_micro_usd

    async def open(self, request: ModelRequest) -> "RecordedStream":
        """Answer with what comes next in the log; the request itself is compared by its records."""
        if not self._answers:
            raise PlaybackOver
        call = self._answers.popleft()
        if call.end is None:
            raise PlaybackOver
        self._cost_micro_usd = object_in(call.end, "usage").get("cost_micro_usd", 0)
        if call.begin.effect_class is EffectClass.SUMMARY:
            return self._summary(call, call.end)
        return self._answer(call, call.end)

    async def count(self, request: ModelRequest) -> int:
        """What was counted. Raises ModelCallFailed where it was not."""
        end = self._next(self._counts)
        tokens = end.get("tokens")
        if tokens is None:
            raise ModelCallFailed(Failure(type=end["outcome"], should_retry=bool(self._counts)))
        return int(tokens)

    async def size(self, model: str) -> ModelSize:
        """What was said of the model's size. Raises ModelCallFailed where nothing was."""
        end = self._next(self._sizes)
        if end["outcome"] != EffectOutcome.OK:
            raise ModelCallFailed(Failure(type=end["outcome"]))
        return ModelSize(window=end.get("window"), output=end.get("output"))

    def _next(self, calls: deque[Call]) -> Record:
        if not calls or (end := calls.popleft().end) is None:
            raise PlaybackOver
        return end

    # --- answers

    def _answer(self, call: Call, end: Record) -> "RecordedStream":
        failure = _failure(end)
        if failure is not None and end.get("message_id") is None and not call.blocks:
            raise ModelCallFailed(failure)
        cut = failure is not None or end.get("stop_reason") in DECISIONS.cut
        blocks: list[tuple[int, Any]] = list(enumerate(call.blocks))
        if cut:  # what came after the last call that had begun did not happen, and what had not begun is dropped
            last = max((place for place, block in blocks if block.get("id") in call.begun), default=-1)
            if last >= 0:
                blocks = blocks[: last + 1]
            else:
                blocks = [(place, block) for place, block in blocks if block["type"] != "tool_use"]
        head = [_start(end, call.begin["model"])]
        head += [event for place, block in blocks for event in self._block(place, block)]
        if cut and call.begun:  # the model had moved on from what had begun; by what block, nothing depends on
            head.append(_opened(blocks[-1][0] + 1, {"type": "text", "text": ""}))
        if failure is not None and end.get("stop_reason") is not None:
            head.append(_delta(end["stop_reason"]))
        tail: list[Event] = []
        if not (cut and call.begun):
            for place, block in enumerate(list_in(end, "unfinished"), len(call.blocks)):
                tail.append(_opened(place, self._contents.block(block)))
        if failure is None:
            tail += _stop(end.get("stop_reason"))
        elif end["outcome"] == EffectOutcome.INTERRUPTED:
            raise PlaybackOver
        return RecordedStream(head, tail, failure, self._begun, call.begun if cut else ())

    def _block(self, place: int, skeleton: Mapping[str, Any]) -> list[Event]:
        """The events of a finished block, as the model wrote it."""
        block = self._contents.block(dict(skeleton))
        stop = {"type": "content_block_stop", "index": place}
        if block.get("type") != "tool_use":
            return [_opened(place, block), stop]
        own: Event = {
            **block,
            "id": skeleton.get("model_id", block["id"]),
            "name": skeleton.get("model_name", block["name"]),
            "input": {},
        }
        delta = {"type": "input_json_delta", "partial_json": self._written(block["input"], skeleton)}
        written = {"type": "content_block_delta", "index": place, "delta": delta}
        return [_opened(place, own), written, stop]

    def _written(self, given: Any, skeleton: Mapping[str, Any]) -> str:
        """The text of an input, as far as it is on record."""
        if "raw" in skeleton:
            return str(self._contents.value(skeleton["raw"]))
        match given:
            case {"INVALID_JSON": str(raw)} if len(given) == 1 and parse_input(raw, None).error is not None:
                return raw
            case _:
                return encode(given).decode()

    # --- summaries

    def _summary(self, call: Call, end: Record) -> "RecordedStream":
        head = [_start(end, call.begin["model"])]
        if end["outcome"] != EffectOutcome.OK:
            failure = Failure(type=end["outcome"], status=200, should_retry=self._transient.get(end.seq))
            return RecordedStream(head, [], failure)
        made: Any = self._contents.value(end["result"])
        block = {"type": "text", "text": made} if isinstance(made, str) else made
        head += [_opened(0, block), {"type": "content_block_stop", "index": 0}]
        return RecordedStream(head, _stop("end_turn"), None)


class RecordedStream:
    """A ModelStream of recorded events: `head`, then `tail` or a failure, once the `awaited` calls have begun."""

    def __init__(
        self,
        head: Sequence[Event],
        tail: Sequence[Event],
        failure: Failure | None,
        begun: Collection[str] = (),
        awaited: Iterable[str] = (),
    ) -> None:
        self.request_id = None
        self._head = deque(head)
        self._tail = deque(tail)
        self._failure = failure
        self._begun = begun
        self._awaited = set(awaited)

    async def read(self) -> list[Event]:
        """The next event. Raises ModelCallFailed where the recorded answer failed."""
        if self._head:
            return [self._head.popleft()]
        for _ in range(_ROUNDS):
            if self._awaited.issubset(self._begun):
                break
            await asyncio.sleep(0)
        self._awaited.clear()
        if self._tail:
            return [self._tail.popleft()]
        if self._failure is not None:
            raise ModelCallFailed(self._failure)
        return []

    async def close(self) -> None:
        """There is nothing to let go of."""


def _start(end: Record, model: str) -> Event:
    usage: dict[str, Any] = {api: object_in(end, "usage").get(name, 0) for name, api in _USAGE.items()}
    held = object_in(end, "held")
    if held:
        usage["iterations"] = [
            {"type": "message", "input_tokens": held["prompt"], "output_tokens": held["output"]},
        ]
    message: Event = {"id": end.get("message_id"), "model": model, "usage": usage, "content": []}
    return {"type": "message_start", "message": message}


def _opened(place: int, block: Any) -> Event:
    return {"type": "content_block_start", "index": place, "content_block": block}


def _stop(reason: str | None) -> list[Event]:
    return [_delta(reason), {"type": "message_stop"}]


def _delta(reason: str | None) -> Event:
    return {"type": "message_delta", "delta": {"stop_reason": reason}}


def _failure(end: Record) -> Failure | None:
    """Why there was no whole answer, so that it is the same trouble again."""
    error = object_in(end, "error")
    if not error:
        return None
    measured = error.get("measured")
    return Failure(
        type=error["type"],
        status=error["status"],
        retry_after_ms=error["retry_after_ms"],
        code=_OVERFLOW if end["trouble"] == TroubleKind.OVERFLOW else None,
        should_retry=end["trouble"] == TroubleKind.TRANSIENT,
        measured=None if measured is None else MeasuredOverflow(**measured),
    )
