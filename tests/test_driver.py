"""The driver: a record before its commands, a step at each pull, and an end from outside in its order."""

import asyncio
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from looplatch import AssistantMessage, Hooks, IllegalTransition, Log, NoGuardPassed, ToolContext, TransitionMessage
from looplatch.audit import MemoryLog
from looplatch.audit.errors import LogFailed
from looplatch.driver import Driver
from looplatch.journal import Journal
from looplatch.opening import Opening, checked_messages, open_run
from looplatch.outbox import Outbox
from looplatch.requests.history import History
from looplatch.states import events as on
from looplatch.states.event import Event
from looplatch.states.record import Kind, Record
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from looplatch.testing import ScriptedAPI, reply, tool_use
from looplatch.workplace import Workplace
from tests.playing import check, moves_of, play, scripted, tool_named, user


@asynccontextmanager
async def driving(api: ScriptedAPI, **options: Any) -> AsyncGenerator[Driver]:
    """A driver that has made its first move."""
    async with scripted(api, **options) as loop:
        driver = open_run(loop.plan, Opening(run_id="run-1", messages=checked_messages("Go.")))
        yield driver
        driver.at.journal.log.close()


def kinds(driver: Driver) -> list[Kind]:
    return [record.kind for record in records(driver)]


def records(driver: Driver) -> list[Record]:
    return list(Log.of(driver.at.journal.log))


def handed_out(driver: Driver) -> list[str]:
    told: list[str] = []
    while driver.at.outbox:
        message = driver.at.outbox.pop()
        told.append(str(message.record.event) if isinstance(message, TransitionMessage) else type(message).__name__)
    return told


def test_a_run_opens_with_its_genesis_its_messages_and_its_first_move() -> None:
    async def main() -> None:
        async with driving(ScriptedAPI([])) as driver:
            assert kinds(driver) == [Kind.GENESIS, Kind.MESSAGE, Kind.TRANSITION]
            assert handed_out(driver) == ["SystemMessage", "RunStarted"]
            assert driver.state == "prepare"
            assert not driver.idle

    asyncio.run(main())


def test_a_step_ends_as_soon_as_there_is_something_to_hand_out() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("One.", "Two.")])
        async with driving(api) as driver:
            handed_out(driver)
            steps: list[list[str]] = []
            while not driver.idle:
                await driver.advance()
                steps.append(handed_out(driver))
            assert steps == [
                ["ContextReady"],
                ["AssistantMessage"],
                ["AssistantMessage"],
                ["ModelResponded"],
                ["AnswerGiven"],
                ["StopHooksPassed"],
                [],
            ]
            assert driver.terminal == "answered"

    asyncio.run(main())


def test_nothing_is_sent_before_the_record_of_the_move_that_orders_it() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with driving(api) as driver:
            handed_out(driver)
            await driver.advance()
            assert records(driver)[-1].target == "stream"
            assert api.requests == []
            handed_out(driver)
            await driver.advance()
            begun = [record for record in records(driver) if record.kind is Kind.EFFECT_BEGIN]
            assert [record["class"] for record in begun] == ["model"]
            assert len(api.requests) == 1

    asyncio.run(main())


@pytest.mark.parametrize("event", [on.BackoffElapsed(), on.ToolsRequested(calls=1)])
def test_a_refused_event_is_recorded_and_changes_nothing(event: Event) -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with driving(api) as driver:
            handed_out(driver)
            before = (driver.state, driver.context, len(records(driver)))
            with pytest.raises(IllegalTransition):
                driver.send(event)
            assert (driver.state, driver.context) == before[:2]
            *_, last = records(driver)
            assert len(records(driver)) == before[2] + 1
            assert last.kind is Kind.REJECTED
            assert (last.source, last.event, last.target) == ("prepare", type(event).__name__, "prepare")
            assert (last.reason, last.terminal, last["change"]) == (None, None, {})
            assert handed_out(driver) == [type(event).__name__]
            await driver.advance()
            assert driver.state == "stream", "the run goes on"
            report = verify_lines(driver.at.journal.log.lines())
            assert report.ok, str(report)

    asyncio.run(main())


def test_a_refusal_by_the_guards_is_recorded_with_their_verdicts() -> None:
    async def main() -> None:
        async with driving(ScriptedAPI([reply("Done.")])) as driver:
            handed_out(driver)
            await driver.advance()
            unguarded = on.ModelFailed(trouble=TroubleKind.FATAL, failure="a", begun=-1)
            with pytest.raises(NoGuardPassed):
                driver.send(unguarded)
            *_, last = records(driver)
            assert last.kind is Kind.REJECTED
            assert last["guards"] == [["no_call_begun", False], ["call_begun", False]]

    asyncio.run(main())


@pytest.mark.parametrize("steps", range(5))
def test_an_end_from_outside_drops_what_was_to_be_done(steps: int) -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("One.", "Two.", "Three.")])
        async with driving(api) as driver:
            for _ in range(steps):
                handed_out(driver)
                await driver.advance()
            await driver.end(on.RunAborted())
            assert driver.idle
            assert (driver.state, driver.terminal) == ("aborted", "aborted")
            assert len(api.requests) == (1 if steps > 1 else 0)
            assert all(exchange.ended.is_set() for exchange in api.exchanges)

    asyncio.run(main())


def test_the_transition_hook_sees_each_record_after_it_is_written() -> None:
    seen: list[Record] = []
    told = play([reply("Done.")], hooks=Hooks(on_transition=seen.append))
    assert tuple(seen) == told.log.transitions
    assert moves_of(told.log) == told.moves


def test_a_log_that_cannot_be_written_prevents_the_model_call(tmp_path: Path) -> None:
    """The disk is full from the first move on: the second move cannot be recorded, so its command is not performed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = tmp_path / "run.jsonl"

    def fill(record: Record) -> None:
        if record.event == "RunStarted":
            resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 10, hard))

    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api, durability="none", hooks=Hooks(on_transition=fill)) as loop:
            run = loop.run("Go.", log=log)
            try:
                with pytest.raises(LogFailed):
                    await run
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert api.requests == []
            assert run.messages == [user("Go.")]

    asyncio.run(main())


def test_each_pull_takes_no_more_than_it_needs() -> None:
    """A consumer that looks at one message at a time sees the state that belongs to it."""

    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop, loop.run("Go.") as run:
            async for message in run:
                if isinstance(message, TransitionMessage):
                    assert run.state == message.record.target
                if isinstance(message, AssistantMessage):
                    assert run.state == "stream"
        check(run, api)

    asyncio.run(main())


class Noting(MemoryLog):
    """A log that notes when it is made durable, and what was the last record then."""

    def __init__(self) -> None:
        super().__init__("run-1")
        self.noted: list[str] = []

    async def sync(self) -> None:
        *_, last = Log.of(self)
        self.noted.append(f"durable up to {last.kind}")


@pytest.mark.parametrize("read_only", [True, False])
def test_a_write_starts_when_its_record_is_durable_and_a_read_at_once(read_only: bool) -> None:
    async def main() -> None:
        log = Noting()

        def call(given: dict[str, Any], ctx: ToolContext) -> str:
            log.noted.append("the tool runs")
            return "ran"

        api = ScriptedAPI([reply(tool_use("t1", "call", {"n": 1})), reply("Done.")])
        async with scripted(api, tools=[tool_named("call", read_only=read_only, answer=call)]) as loop:
            at = Workplace(plan=loop.plan, journal=Journal(log), history=History(), outbox=Outbox(), partial=False)
            at.join("user", [at.journal.keep_text("Go.")], form="text")
            driver = Driver(at)
            driver.send(on.RunStarted())
            while not driver.idle:
                handed_out(driver)
                await driver.advance()
            durable = [] if read_only else ["durable up to effect_begin"]
            assert log.noted == [*durable, "the tool runs"]

    asyncio.run(main())
