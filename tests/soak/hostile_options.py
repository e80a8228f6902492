"""The settings of a hostile loop: tools and hooks that do anything, tight limits, windows too small, own secrets."""

import asyncio
import random
from typing import Any, Final

from looplatch import (
    Allow,
    Ask,
    Block,
    Compression,
    Deny,
    Halt,
    Hooks,
    Limits,
    Pass,
    Price,
    Tool,
    ToolContext,
    ToolResult,
    UsageError,
)
from looplatch.audit import Secrets
from looplatch.hooks import ResponseContext, StopContext, ToolCallContext, ToolOutcomeContext, ToolsContext
from looplatch.recovery.failure import Failure, is_prompt_too_long
from looplatch.states.record import Record
from looplatch.testing import FakeClock
from tests.playing import ANYTHING, MODEL, rounds
from tests.soak.hostile_temper import Boom, Temper, key

NAMES: Final = ("read", "write", "put", "slow")
COUNTED: Final[dict[str, Any]] = {"type": "object", "properties": {"n": {"type": "integer"}}}
PIXELS: Final = {"type": "base64", "media_type": "image/png", "data": "A" * 1_000}
SEARCH: Final = {"type": "web_search_20250305", "name": "web_search"}
LEVELS: Final = ("snip_at", "micro_at", "stage_at", "collapse_at", "compact_at")
EARLY: Final = dict(zip(LEVELS, (0.1, 0.2, 0.2, 0.3, 0.5), strict=True))
LIMITS: Final[dict[str, list[Any]]] = {
    "max_attempts": [0, 1, 3],
    "max_output_recoveries": [0, 1],
    "output_target": [1, 3_000],
    "max_total_tokens": [100, 5_000, 50_000],
    "max_cost_usd": [0.001, 1.0],
    "max_wall_s": [1, 20, 500],
    "max_delay_ms": [0, 1_000],
    "max_pauses": [0],
}
OWN: Final = (
    "hello|t[0-9]_0|nope|Boom",
    "hello|word|t[0-9]_0|nope|tomorrow|Boom",
    "word|claude-haiku",
    r"hello|\bput\b",
)


class HostileOptions:
    """Draws the settings of loops; what its tools and hooks do is drawn as they are called."""

    def __init__(self, rnd: random.Random, temper: Temper, clock: FakeClock) -> None:
        self._rnd = rnd
        self._temper = temper
        self._clock = clock

    def drawn(self) -> dict[str, Any]:
        """The settings of one loop."""
        rnd = self._rnd
        spread = random.Random(rnd.random()).random
        options: dict[str, Any] = {
            "model": rnd.choice(["unknown-thing", "claude-3-haiku-20240307"]) if self._is(0.3) else MODEL,
            "hooks": self._hooks(),
            "clock": self._clock,
            "entropy": rnd.randbytes,
            "jitter": rnd.choice([lambda: 0.0, lambda: 1.0, spread, lambda: 7.0, lambda: -3.0]),
            "limits": self._limits(),
            "price": Price(input=1, output=5),
            "durability": rnd.choice(["none", "group", "barrier"]),
        }
        if self._temper.has_tools:
            options["tools"] = [*self._tools(), SEARCH] if self._is(0.3) else self._tools()
        if self._is(0.5):
            options["fallback_model"] = rnd.choice(["claude-haiku-4-5", "claude-3-opus-20240229", "unknown-model"])
        if self._is(0.6):
            options["window"] = rnd.choice([2_000, 6_000, 9_000, 30_000, 200_000])
        if self._is(0.7):
            options["max_tokens"] = rnd.choice([1, 100, 500, 4_000, 64_000])
        if self._is(0.5):
            options["compression"] = self._compression()
        if self._is(0.3):
            options["params"] = {"thinking": {"type": "enabled", "budget_tokens": rnd.choice([1_024, 2_000])}}
            options["max_tokens"] = max(options.get("max_tokens", 8_000), 4_000)
        if self._is(0.1):
            options["is_overflow"] = self._is_overflow
        return options

    def secrets(self) -> Secrets | None:
        """Those of all loops of a life; some hit what loops are made of, and are refused by those."""
        match self._rnd.randrange(6):
            case 0:
                return None
            case 1 | 2 | 3:
                return Secrets(own={"own": self._rnd.choice(OWN)})
            case _:
                return Secrets()

    def _is(self, chance: float) -> bool:
        return self._rnd.random() < chance

    def _limits(self) -> Limits:
        rnd = self._rnd
        chosen = {name: rnd.choice(values) for name, values in LIMITS.items() if self._is(0.2)}
        return Limits(max_turns=rnd.choice([1, 3, 8, 12]), **chosen)

    def _compression(self) -> Compression | None:
        """One, or None where what was drawn cannot be combined."""
        rnd = self._rnd
        chosen: dict[str, Any] = {name: None for name in LEVELS if self._is(0.4)}
        if self._is(0.3):
            chosen |= EARLY
        for name, chance in (("count_tokens", 0.3), ("server_edits", 0.2), ("api_compaction", 0.2)):
            chosen[name] = self._is(chance)
        if self._is(0.2):
            chosen["summary_model"] = "claude-haiku-4-5"
        try:
            return Compression(
                keep_results=rnd.choice([0, 1, 5]),
                span_exchanges=rnd.choice([1, 2, 8]),
                keep_exchanges=rnd.choice([1, 2]),
                thinking=rnd.choice(["drop", "keep", "drop_block"]),
                cool_down_s=rnd.choice([0, 60]),
                **chosen,
            )
        except UsageError:
            return None

    def _tools(self) -> list[Tool]:
        def reads(given: dict[str, Any]) -> bool:
            return bool(given.get("n"))

        return [
            Tool("read", "", ANYTHING, self._call, True),
            Tool("write", "", ANYTHING, self._call, False),
            Tool("put", "", ANYTHING, self._call, reads, idempotent=True),
            Tool("slow", "", COUNTED, self._call, True, timeout_s=2),
        ]

    async def _call(self, given: dict[str, Any], ctx: ToolContext) -> Any:
        rnd = self._rnd
        match rnd.randrange(20):
            case 0 | 1:
                raise ValueError("tool " + key("D"))
            case 2:
                raise asyncio.CancelledError
            case 3 | 4 | 5:
                await rounds(rnd.randrange(20))
            case 6 | 7:
                await self._clock.sleep(rnd.randrange(5))
            case 8 | 9:
                ctx.progress("x")
            case 10:
                return {"a": 1}
            case 11:
                return ToolResult("bad", is_error=True)
            case 12 | 13:
                return "y" * rnd.randrange(30_000)
            case 14:
                return rnd.choice([key("E"), None, [{"type": "image", "source": PIXELS}]])
            case _:
                pass
        return "ok"

    def _hooks(self) -> Hooks:
        every: dict[str, Any] = {
            "before_tool": self._before,
            "after_tool": self._after,
            "after_response": self._response,
            "stop": [self._stop, self._stop_again],
            "after_tools": self._note,
            "on_transition": self._moved,
        }
        return Hooks(**{name: hook for name, hook in every.items() if self._is(0.4)})

    async def _may_raise(self, where: str) -> None:
        await rounds(self._rnd.randrange(3))
        if self._is(self._temper.hooks_raise):
            raise Boom(where)

    async def _before(self, context: ToolCallContext) -> Allow | Deny | Ask:
        await self._may_raise(key("F"))
        drawn = self._rnd.random()
        if drawn < 0.1:
            return Deny("no way")
        if drawn < 0.12:
            return Deny("stop it", interrupt=True)
        if drawn < 0.2:
            return Allow({"n": 5})
        return Ask() if drawn < 0.2 + self._temper.asks else Allow()

    async def _after(self, context: ToolOutcomeContext) -> None:
        await self._may_raise("after a tool")

    async def _response(self, context: ResponseContext) -> None:
        await self._may_raise("after an answer")

    async def _stop(self, context: StopContext) -> Pass | Block | Halt:
        await self._may_raise("at the stop")
        if self._is(0.5):
            verdicts: list[Pass | Block | Halt] = [Pass(), Pass(), Pass(), Block("go on"), Block(""), Halt("halt")]
            return self._rnd.choice(verdicts)
        return Pass()

    async def _stop_again(self, context: StopContext) -> Pass | Block:
        return Block("again") if self._is(0.1) else Pass()

    async def _note(self, context: ToolsContext) -> str | None:
        await rounds(self._rnd.randrange(10))
        await self._may_raise("at the note")
        return await context.ask("what?") if self._is(0.5) else "noted"

    def _moved(self, record: Record) -> None:
        if self._is(self._temper.hooks_raise / 4):
            raise Boom("at a move")

    def _is_overflow(self, failure: Failure) -> bool:
        if self._is(self._temper.hooks_raise):
            raise Boom("at the judging of a failure")
        return is_prompt_too_long(failure)
