"""A model and a server that say anything: odd stops, broken calls, errors of every kind, answers cut anywhere."""

import random
from typing import Any, Final

from looplatch.testing import (
    Answer,
    Block,
    block,
    cut,
    disconnected,
    error,
    event_count,
    failing,
    reply,
    server_tool_use,
    text,
    thinking,
    tool_use,
)
from looplatch.testing.answers import Reply
from tests.soak.hostile_temper import Temper, key

MOST: Final = 2_000  # requests in one life: a run that asks more will never end

TOO_LONG: Final = "prompt is too long: 9500 tokens > 9000 maximum"
NOTHING_MORE: Final = ("max_tokens", "refusal", "model_context_window_exceeded")
STOPS: Final = (*NOTHING_MORE, "max_tokens", "pause_turn", "stop_sequence", "tomorrow", "end_turn", "tool_use")
TEXTS: Final = ("hello", "x" * 300, " ", "\ud83d", key("A"), "word " * 50)
IDS: Final = ("dup", "bad id!", key("B"), "x" * 300, "")
HEADERS: Final[tuple[dict[str, str], ...]] = (
    {"retry-after": "2"},
    {"retry-after": "0"},
    {"retry-after": "99999"},
    {"retry-after-ms": "17"},
    {"x-should-retry": "true"},
    {"x-should-retry": "false"},
    {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"},
)


class HostileModel:
    """Answers each request with what it draws."""

    def __init__(self, rnd: random.Random, temper: Temper, names: tuple[str, ...]) -> None:
        self._rnd = rnd
        self._temper = temper
        self._names = names
        self._number = 0

    def __call__(self, request: dict[str, Any]) -> Answer:
        """The answer; raises AssertionError where the run asks without end."""
        self._number += 1
        assert self._number <= MOST, f"the run asks for the {self._number}th time"
        if self._temper.has_tools and "tools" not in request and self._is(0.9):
            return self._summary()
        size = len(str(request["messages"])) // 4
        if self._is(self._temper.errors):
            return self._error(size, int(request["max_tokens"]))
        return self._broken(self._answer(size))

    def _is(self, chance: float) -> bool:
        return self._rnd.random() < chance

    def _summary(self) -> Answer:
        """Of what is asked without tools: summaries, and notes."""
        below = self._rnd.randrange
        match below(20):
            case 0 | 1:
                return error(529, "overloaded_error")
            case 2:
                return error(400, "invalid_request_error", "no")
            case 3:
                return error(400, "invalid_request_error", TOO_LONG)
            case 4:
                return reply("x", stop="max_tokens")
            case 5:
                return reply(usage={"input_tokens": 5, "output_tokens": 1})
            case _:
                usage = {"input_tokens": below(100), "output_tokens": below(100)}
                return reply("Sum: " + "s" * below(200), usage=usage)

    def _error(self, size: int, wanted: int) -> Answer:
        rnd = self._rnd
        headers = rnd.choice(HEADERS) if self._is(0.3) else {}
        match rnd.randrange(10):
            case 0 | 1:
                return error(529, "overloaded_error", "o", headers)
            case 2:
                return error(500, "api_error", "x", headers)
            case 3:
                return error(429, "rate_limit_error", "", headers)
            case 4:
                return error(413, "request_too_large", "", headers)
            case 5:
                return disconnected()
            case 6:
                most = max(1, size + rnd.randrange(-500, 500))
                said = f"prompt is too long: {size + rnd.randrange(3_000)} tokens > {most} maximum"
                return error(400, "invalid_request_error", said, headers)
            case 7:
                window = size + wanted - rnd.randrange(1, 500)
                said = f"input length and `max_tokens` exceed context limit: {size} + {wanted} > {window}, decrease"
                return error(400, "invalid_request_error", said, headers)
            case 8:
                return error(400, "invalid_request_error", "prompt is too long", headers)
            case _:
                status = rnd.choice([400, 401, 404, 418, 503])
                return error(status, rnd.choice(["weird_error", "authentication_error", "x" * 400, "é"]), "", headers)

    def _answer(self, size: int) -> Reply:
        rnd, number = self._rnd, self._number
        blocks: list[Block] = []
        if self._is(self._temper.thinks):
            blocks.append(thinking("Hm" * rnd.randrange(3), f"sig{number}"))
        blocks += [self._text() for _ in range(rnd.choice([0, 1, 1, 2]))]
        if self._temper.has_tools:
            blocks += [self._call(place) for place in range(rnd.choice([0, 1, 1, 2, 3, 5]))]
        if self._is(0.1):
            blocks.append(server_tool_use(f"s{number}", "web_search", {"query": "q"}))
            if self._is(0.6):
                blocks.append(block({"type": "web_search_tool_result", "tool_use_id": f"s{number}", "content": []}))
        stop = rnd.choice(STOPS) if self._is(self._temper.odd_stops) else None
        if stop in NOTHING_MORE and self._is(0.5):
            blocks.append(self._unfinished())
        return reply(*blocks, stop=stop, usage=self._usage(size))

    def _text(self) -> Block:
        said = self._rnd.choice(TEXTS)
        return text(said, self._rnd.choice([1, 2]) if len(said) > 1 else 1)

    def _call(self, place: int) -> Block:
        rnd = self._rnd
        name = rnd.choice([*self._names, "nope"] if self._is(0.3) else self._names)
        inputs: list[Any] = [{}, {"n": self._number}, {"n": "x" * 500}, '{"n": ', '{"a": 1}}', {"key": key("C")}]
        id_ = rnd.choice(IDS) if self._is(0.05) else f"t{self._number}_{place}_{rnd.randrange(10**6)}"
        return tool_use(id_, name, rnd.choice(inputs))

    def _unfinished(self) -> Block:
        match self._rnd.randrange(3):
            case 0:
                return text("unfin", closed=False)
            case 1:
                return tool_use(f"u{self._number}", self._rnd.choice(self._names), '{"n": "', closed=False)
            case _:
                return thinking("hm", "", closed=False)

    def _usage(self, size: int) -> dict[str, int]:
        rnd = self._rnd
        usage = {"output_tokens": rnd.randrange(2_000)}
        if self._is(0.7):
            usage["input_tokens"] = max(0, size + rnd.randrange(-200, 200))
        if self._is(0.2):
            usage["cache_read_input_tokens"] = rnd.randrange(500)
        if self._is(0.01):
            usage["input_tokens"] = 2**60
        return usage

    def _broken(self, answer: Reply) -> Answer:
        """The answer, or what comes of it before the stream breaks."""
        rnd = self._rnd
        if not self._is(self._temper.breaks):
            return answer
        after = rnd.randrange(event_count(answer))
        if self._is(0.5):
            kind = rnd.choice(["overloaded_error", "api_error", "invalid_request_error"])
            return failing(answer, after=after, error_type=kind, message=rnd.choice(["Overloaded", TOO_LONG]))
        return cut(answer, after=after, clean=self._is(0.5))
