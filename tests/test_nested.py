"""A run inside a tool of another run."""

import asyncio
from typing import Any

from looplatch import Loop, Run, Tool, ToolContext, ToolMessage
from looplatch.messages import ToolPhase
from looplatch.testing import ScriptedAPI, error, reply, stalled, tool_use
from tests.playing import assistant, check, echo, result, scripted, tool_named, use, user


def asking(inner: Loop, runs: list[Run], *, read_only: bool = True) -> Tool:
    """A tool that answers with what a run of `inner` answers."""

    async def call(given: dict[str, Any], ctx: ToolContext) -> str | None:
        async with inner.run(given["task"]) as run:
            runs.append(run)
            return (await run).result

    return tool_named("ask", read_only=read_only, answer=call)


def test_the_answer_of_the_inner_run_is_the_result_of_the_tool() -> None:
    async def main() -> None:
        runs: list[Run] = []
        below = ScriptedAPI([reply(tool_use("t1", "read", {"n": 1})), reply("Read it.")])
        above = ScriptedAPI([reply(tool_use("t1", "ask", {"task": "Read."})), reply("Done.")])
        async with scripted(below, tools=[echo()]) as inner, scripted(above, tools=[asking(inner, runs)]) as outer:
            run = outer.run("Go.")
            assert (await run).result == "Done."
            assert run.messages[1:3] == [assistant(use("t1", "ask", task="Read.")), user(result("t1", "Read it."))]
            assert runs[0].messages[0] == user("Read.")
            assert runs[0].id != run.id
            check(run, above)
            check(runs[0], below)

    asyncio.run(main())


def test_runs_of_one_loop_may_stand_inside_each_other() -> None:
    """Each level asks the same loop once more, until it is deep enough."""

    async def main() -> None:
        runs: list[Run] = []

        def answer(body: dict[str, Any]) -> Any:
            first, last = body["messages"][0]["content"], body["messages"][-1]["content"]
            if isinstance(last, list):
                return reply(f"{first}<{last[0]['content']}>")
            return reply("bottom") if first == "1111" else reply(tool_use("t1", "ask", {"task": f"{first}1"}))

        api = ScriptedAPI(answer)

        async def call(given: dict[str, Any], ctx: ToolContext) -> str | None:
            async with loop.run(given["task"]) as run:
                runs.append(run)
                return (await run).result

        async with scripted(api, tools=[tool_named("ask", answer=call)]) as loop:
            run = loop.run("1")
            assert (await run).result == "1<11<111<bottom>>>"
            for one in (run, *runs):
                check(one, api)

    asyncio.run(main())


def test_inner_runs_go_on_side_by_side() -> None:
    async def main() -> None:
        runs: list[Run] = []
        together = asyncio.Barrier(3)

        async def meet(given: dict[str, Any], ctx: ToolContext) -> str:
            await together.wait()
            return "met"

        below = ScriptedAPI(
            lambda body: reply("Met.") if len(body["messages"]) > 1 else reply(tool_use("t1", "meet", {"n": 1}))
        )
        calls = [tool_use(f"t{number}", "ask", {"task": "Meet."}) for number in range(3)]
        above = ScriptedAPI([reply(*calls), reply("Done.")])
        async with (
            scripted(below, tools=[tool_named("meet", answer=meet)]) as inner,
            scripted(above, tools=[asking(inner, runs)]) as outer,
            asyncio.timeout(30),
        ):
            run = outer.run("Go.")
            assert (await run).result == "Done."
            check(run, above)
            for one in runs:
                check(one, below)

    asyncio.run(main())


def test_an_abort_of_the_outer_run_closes_the_inner_one() -> None:
    async def main() -> None:
        runs: list[Run] = []
        below = ScriptedAPI([stalled(reply("Half"), after=0, gate=asyncio.Event())])
        above = ScriptedAPI([reply(tool_use("t1", "ask", {"task": "Wait."}))])
        async with (
            scripted(below) as inner,
            scripted(above, tools=[asking(inner, runs, read_only=False)]) as outer,
        ):
            run = outer.run("Go.")
            aborting = asyncio.create_task(abort_when_inner_waits(below, run))
            assert (await run).terminal == "aborted"
            await aborting
            [one] = runs
            assert one.result is not None
            assert one.result.terminal == "closed"
            assert asyncio.all_tasks() == {asyncio.current_task()}
            check(run, above)
            check(one, below)

    asyncio.run(main())


async def abort_when_inner_waits(below: ScriptedAPI, run: Run) -> None:
    await (await below.arrival(1)).stalled.wait()
    run.abort()


def test_a_failed_inner_run_is_a_result_like_any_other() -> None:
    async def main() -> None:
        runs: list[Run] = []
        below = ScriptedAPI([error(400, "invalid_request_error", "no")])
        above = ScriptedAPI([reply(tool_use("t1", "ask", {"task": "Fail."})), reply("Done.")])
        async with scripted(below) as inner, scripted(above, tools=[asking(inner, runs)]) as outer:
            run = outer.run("Go.")
            assert (await run).terminal == "answered"
            [one] = runs
            assert one.result is not None
            assert one.result.terminal == "model_error"
            check(run, above)

    asyncio.run(main())


def test_an_inner_run_that_cannot_begin_is_a_failed_call() -> None:
    async def main() -> None:
        runs: list[Run] = []
        below = ScriptedAPI([])
        above = ScriptedAPI([reply(tool_use("t1", "ask", {"task": ""})), reply("Done.")])
        async with scripted(below) as inner, scripted(above, tools=[asking(inner, runs)]) as outer:
            run = outer.run("Go.")
            await run
            [answered] = run.messages[2]["content"]
            assert answered["is_error"] is True
            assert "UsageError" in answered["content"]
            check(run, above)

    asyncio.run(main())


def test_an_inner_run_that_ends_its_outer_one_is_closed_with_it() -> None:
    outer_runs: list[Run] = []

    async def abort_above(given: dict[str, Any], ctx: ToolContext) -> str:
        outer_runs[0].abort()
        return "aborted"

    async def main() -> None:
        runs: list[Run] = []
        below = ScriptedAPI([reply(tool_use("t1", "up", {"n": 1})), reply("Never.")])
        above = ScriptedAPI([reply(tool_use("t1", "ask", {"task": "Abort."}))])
        async with (
            scripted(below, tools=[tool_named("up", answer=abort_above)]) as inner,
            scripted(above, tools=[asking(inner, runs)]) as outer,
        ):
            run = outer.run("Go.")
            outer_runs.append(run)
            assert (await run).terminal == "aborted"
            [one] = runs
            assert one.result is not None
            assert asyncio.all_tasks() == {asyncio.current_task()}
            check(run, above)
            check(one, below)

    asyncio.run(main())


def test_what_an_inner_run_tells_can_be_told_as_progress() -> None:
    async def main() -> None:
        below = ScriptedAPI([reply("One."), reply("Never.")])
        above = ScriptedAPI([reply(tool_use("t1", "ask", {"task": "Tell."})), reply("Done.")])
        async with scripted(below) as inner:

            async def call(given: dict[str, Any], ctx: ToolContext) -> str | None:
                async with inner.run(given["task"]) as run:
                    async for message in run:
                        ctx.progress(type(message).__name__)
                    return run.result.result if run.result is not None else None

            async with scripted(above, tools=[tool_named("ask", answer=call)]) as outer:
                run = outer.run("Go.")
                told = [
                    message.progress[0]
                    async for message in run
                    if isinstance(message, ToolMessage) and message.phase is ToolPhase.PROGRESS
                ]
                assert told[0] == "SystemMessage"
                assert told[-1] == "ResultMessage"
                assert "AssistantMessage" in told
                check(run, above)

    asyncio.run(main())
