"""Counts what a run does: a model client that counts what it is sent, and a profiler that counts calls of functions."""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import attrs

from looplatch import Limits, Loop, Price, Tool, ToolContext
from looplatch.ports import ModelRequest
from looplatch.recovery.windows import ModelSize
from tests.playing import ANYTHING, MODEL


class Events:
    """A ModelStream over events that are there already; `at_hand`: as many as come in one piece of the network's."""

    def __init__(self, events: Iterable[dict[str, Any]], at_hand: int, ended: asyncio.Event) -> None:
        self._left = list(events)
        self._at_hand = at_hand
        self._ended = ended
        self.request_id = "req_1"

    async def read(self) -> list[dict[str, Any]]:
        events = [self._left.pop(0)] if self._left else []
        while len(events) < self._at_hand and self._left and _is_delta(events[0]) and _is_delta(self._left[0]):
            events.append(self._left.pop(0))
        return events

    async def close(self) -> None:
        self._left.clear()
        self._ended.set()


class CountingModel:
    """A model that calls the tool `work` in each of so many turns, and then answers. Counts what it is asked."""

    def __init__(self, turns: int, *, calls: int = 1, deltas: int = 2, at_hand: int = 1) -> None:
        self._turns = turns
        self._calls = calls
        self._deltas = deltas
        self._at_hand = at_hand
        self.bodies: list[bytes] = []
        self.counted = 0
        self.ended = asyncio.Event()  # the last answer that was opened

    async def open(self, request: ModelRequest) -> Events:
        self.bodies.append(request.body)
        self.ended.clear()
        return Events(self._events(len(self.bodies)), self._at_hand, self.ended)

    async def count(self, request: ModelRequest) -> int:
        self.counted += 1
        return len(request.body) // 4

    async def size(self, model: str) -> ModelSize:
        self.counted += 1
        return ModelSize(window=200_000, output=64_000)

    def _events(self, turn: int) -> list[dict[str, Any]]:
        last = turn > self._turns
        blocks = [_block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": "Go on."}] * self._deltas)]
        if not last:
            blocks += [_call(1 + place, f"toolu_{turn:04}_{place}") for place in range(self._calls)]
        started: dict[str, Any] = {"id": f"msg_{turn:04}", "model": MODEL, "content": [], "usage": {"input_tokens": 9}}
        return [
            {"type": "message_start", "message": started},
            *(event for block in blocks for event in block),
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn" if last else "tool_use"},
                "usage": {"output_tokens": 9},
            },
            {"type": "message_stop"},
        ]


def _is_delta(event: dict[str, Any]) -> bool:
    return bool(event["type"] == "content_block_delta")


def _call(index: int, id_: str) -> list[dict[str, Any]]:
    start: dict[str, Any] = {"type": "tool_use", "id": id_, "name": "work", "input": {}}
    return _block(index, start, [{"type": "input_json_delta", "partial_json": '{"n": 1}'}])


def _block(index: int, start: Mapping[str, Any], deltas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def counting_loop(model: CountingModel, *, read_only: bool = True, waiting: bool = False, **options: Any) -> Loop:
    """A loop over `model`, with a tool `work` that does nothing; `waiting`: until its answer has ended."""

    async def work(given: dict[str, Any], ctx: ToolContext) -> str:
        if waiting:
            await model.ended.wait()
        return "done"

    tool = Tool("work", "", ANYTHING, work, read_only)
    # A price of its own: the table of a package, where that is installed, is not ours to count.
    price = Price(input=3, output=15)
    loop = Loop(model=MODEL, tools=[tool], limits=Limits(max_turns=10_000), price=price, **options)
    loop.plan = attrs.evolve(loop.plan, connect=lambda: model)
    return loop


@attrs.define
class Tally:
    """How often each counted function was called, what it returned in bytes, and all calls there were."""

    calls: dict[str, int] = attrs.field(factory=dict[str, int])
    returned: dict[str, int] = attrs.field(factory=dict[str, int])
    python: int = 0  # calls of functions written in Python


@contextmanager
def tallied(**functions: Callable[..., Any]) -> Generator[Tally]:
    """Count the calls of Python functions, in all threads that start or go on meanwhile, by the names given.

    Without the garbage collector: its runs call back whoever asked for that, Hypothesis for one.
    """
    codes: dict[CodeType, str] = {function.__code__: name for name, function in functions.items()}
    tally = Tally(calls=dict.fromkeys(functions, 0), returned=dict.fromkeys(functions, 0))

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            tally.python += 1
            if (name := codes.get(frame.f_code)) is not None:
                tally.calls[name] += 1
        elif event == "return" and isinstance(arg, bytes) and (name := codes.get(frame.f_code)) is not None:
            tally.returned[name] += len(arg)

    before = sys.getprofile()
    gc.disable()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield tally
    finally:
        sys.setprofile(before)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]  # as its documentation says
        gc.enable()


def sent_messages(body: bytes) -> bytes:
    """The JSON text of the `messages` of a request: its last field."""
    return body[body.index(b',"messages":[') + 12 : -1]
