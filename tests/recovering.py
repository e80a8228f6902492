"""Runs that get into trouble: a model that works by a script and writes summaries when it is asked, and what it met."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from looplatch import Compression, Tool, ToolContext
from looplatch.blocks import blocks_of
from looplatch.recovery.failure import Failure, is_prompt_too_long
from looplatch.states.record import Record
from looplatch.testing import Answer, FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import Play, Watch, check_history, check_log, scripted, tool_named

WINDOW = 20_000
SUMMARY = "The files were read and the change was made, as was asked for."

NO_LEVEL: dict[str, Any] = dict.fromkeys(("snip_at", "micro_at", "stage_at", "collapse_at", "compact_at"))

Item = Answer | Callable[[dict[str, Any]], Answer]


class Model:
    """Gives the answers of its script in order, whatever it is asked; transcripts it summarises.

    `summaries`: what it says to each transcript, the last one again and again. `asked`: the transcripts.
    """

    def __init__(self, answers: Iterable[Item], summaries: Sequence[Item | str] = (SUMMARY,)) -> None:
        self._answers = list(answers)
        self._summaries = list(summaries)
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Answer:
        transcript = transcript_in(body)
        if transcript is None:
            return made(self._answers.pop(0), body)
        self.asked.append(transcript)
        said = self._summaries.pop(0) if len(self._summaries) > 1 else self._summaries[0]
        return reply(said) if isinstance(said, str) else made(said, body)

    @property
    def left(self) -> int:
        """How many answers were not asked for."""
        return len(self._answers)


def made(item: Item, body: dict[str, Any]) -> Answer:
    return item(body) if callable(item) else item


def transcript_in(body: Mapping[str, Any]) -> str | None:
    """The transcript that a request has summarised; None where it is no such request."""
    content = body["messages"][0]["content"]
    text = content if isinstance(content, str) else str(content[0].get("text", ""))
    return text if "<transcript>" in text else None


async def met(
    api: ScriptedAPI,
    *,
    prompt: str | Iterable[Mapping[str, Any]] = "Go.",
    watch: Watch | None = None,
    clock: FakeClock | None = None,
    log: Any = None,
    deadline_s: float | None = None,
    **options: Any,
) -> Play:
    """Run `prompt` against `api`, and check what holds of every run. What the API may refuse is that it is too long."""
    clock = clock or FakeClock()
    seen: list[Any] = []
    async with scripted(api, clock=clock, **options) as loop:
        run = loop.run(prompt, log=log, deadline_s=deadline_s)
        async with run:
            async for message in run:
                seen.append(message)
                if watch is not None and (waiting := watch(message, run)) is not None:
                    await waiting
        assert [text for text in api.refusals if not too_long(text)] == []
        assert api.faults == []
        check_log(run)
        if options.get("payloads") != "digest":
            assert run.log.messages == run.messages
        check_history(ScriptedAPI([], known=answered(run.messages)), run.messages)
    return Play(run=run, api=api, clock=clock, seen=seen, error=None)


def answered(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks of the model's answers."""
    return [block for message in messages if message["role"] == "assistant" for block in blocks_of(message)]


def meet(answers: Iterable[Item] | Model, *, api: Mapping[str, Any] | None = None, **options: Any) -> Play:
    """A run in an event loop of its own; `api` are options of the `ScriptedAPI`."""
    model = answers if isinstance(answers, Model) else Model(answers)
    play = asyncio.run(met(ScriptedAPI(model, **(api or {})), **options))
    assert model.left == 0, "the run ended before its script"
    return play


def only(**given: Any) -> Compression:
    """No level but the ones that are given."""
    return Compression(**(NO_LEVEL | given))


def reads(count: int, *, first: int = 0) -> list[Item]:
    """So many answers, each of which reads another file."""
    return [reply(tool_use(f"t{number}", "read", {"path": f"f{number}"})) for number in range(first, first + count)]


def files(size: int, *, name: str = "read") -> Tool:
    """A tool whose results have about `size` bytes, and are all different."""

    def answer(given: dict[str, Any], ctx: ToolContext) -> str:
        line = f"line of {given.get('path', '')} {ctx.tool_use_id}\n"
        return line * max(1, size // len(line))

    return tool_named(name, answer=answer)


def too_long(text: str) -> bool:
    return is_prompt_too_long(Failure(type="invalid_request_error", status=400, message=text))


def moves(play: Play, *events: str) -> list[Record]:
    """The moves by these events."""
    return [move for move in play.log.transitions if move.event in events]


def strategies(play: Play) -> list[str]:
    """The strategies that were used, in order."""
    return [move.strategy for move in play.log.transitions if move.strategy is not None]


def levels(play: Play) -> list[str]:
    """The levels that shortened the history, in order."""
    return [move["fields"]["level"] for move in moves(play, "HistoryCompressed")]


def effects(play: Play, kind: str) -> list[tuple[Record, Record | None]]:
    """The effects of a class: how each began, and ended."""
    return [(effect.begin, effect.end) for effect in play.log.effects if effect.begin["class"] == kind]
