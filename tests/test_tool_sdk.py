"""The SDK's function tools, as they are: what is sent, what is called, what is open when the run is over."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool, BetaBuiltinFunctionTool, ToolError
from anthropic.lib.tools.agent_toolset import AgentToolContext, beta_agent_toolset_20260401

from looplatch import Loop, UsageError
from looplatch.testing import reply, tool_use
from looplatch.tools import AbortSignal, Call, Outcome, Tool, Toolbox
from looplatch.tools.execution import execute
from looplatch.tools.offered import offered
from tests.playing import assistant, play, result, use, user


@beta_async_tool
async def weather(city: str, days: int = 1) -> str:
    """Forecast the weather.

    Args:
        city: Where.
    """
    return f"{city}: rain for {days} days"


@beta_tool
def whereami() -> str:
    """Say in which thread this runs."""
    return threading.current_thread().name


def own(*tools: object, read_only: tuple[str, ...] = ()) -> list[Tool]:
    return [tool for tool in offered(tools, read_only).own if isinstance(tool, Tool)]


def called(tool: object, given: dict[str, Any], run_id: str = "run_1") -> Outcome:
    return asyncio.run(call_of(Toolbox(own(tool)), given, run_id))


async def call_of(box: Toolbox, given: dict[str, Any], run_id: str = "run_1") -> Outcome:
    name = next(iter(box))
    call: Call = box.call(tool_use_id="toolu_1", name=name, given=given, index=0)
    return await execute(call, run_id=run_id, abort=AbortSignal())


def test_a_tool_is_sent_as_it_describes_itself() -> None:
    marked = beta_async_tool(
        weather.func, name="forecast", strict=True, defer_loading=True, cache_control={"type": "ephemeral"}
    )
    offer = offered([weather, marked])
    assert offer.definitions == (weather.to_dict(), marked.to_dict())
    assert [tool.definition() for tool in offer.own if isinstance(tool, Tool)] == [weather.to_dict(), marked.to_dict()]
    assert offer.definitions[1]["strict"] is True
    assert [tool.name for tool in offer.own] == ["weather", "forecast"]


def test_an_async_tool_is_called_with_the_input() -> None:
    assert called(weather, {"city": "Kiel", "days": 2}).content == "Kiel: rain for 2 days"


def test_a_sync_tool_runs_in_a_thread_of_its_own() -> None:
    assert called(whereami, {}).content == "tool whereami"


def test_unmarked_tools_are_writes_and_marked_ones_reads() -> None:
    assert [tool.read_only for tool in own(weather, whereami, read_only=("weather",))] == [True, False]


def test_an_input_that_breaks_the_schema_is_told_by_its_fields() -> None:
    outcome = called(weather, {"city": 3})
    told = "invalid input. The tool was not run. Mend this and call it again:"
    assert outcome.content == f'{told}\ncity: 3 is not of type "string"'


def test_an_input_that_only_the_function_refuses_is_told_by_its_fields() -> None:
    loose = beta_async_tool(weather.func, name="loose", input_schema={"type": "object"})
    outcome = called(loose, {"city": "Kiel", "days": "soon"})
    assert outcome.cause == "invalid_input"
    assert "days: Input should be a valid integer" in str(outcome.content)


def test_a_tool_error_is_the_result_with_its_blocks() -> None:
    @beta_async_tool
    async def look() -> str:
        """Look."""
        raise ToolError([{"type": "text", "text": "too dark"}])

    outcome = called(look, {})
    assert (outcome.content, outcome.is_error) == ([{"type": "text", "text": "too dark"}], True)


def test_another_exception_has_failed() -> None:
    @beta_tool
    def fall() -> str:
        """Fall."""
        raise ValueError("down")

    assert called(fall, {}).content == "failed: ValueError: down"


def test_any_iterable_of_blocks_is_a_result() -> None:
    @beta_async_tool
    async def blocks() -> Any:
        """Tell in pieces."""
        return iter([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])

    assert called(blocks, {}).content == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


def test_a_dict_is_no_iterable_of_its_keys() -> None:
    @beta_async_tool
    async def facts() -> Any:
        """Tell facts."""
        return {"rain": True}

    assert called(facts, {}).content == '{"rain":true}'


class Memory(BetaAsyncBuiltinFunctionTool):
    def to_dict(self) -> Any:
        return {"type": "memory_20250818", "name": "memory"}

    async def call(self, input: object) -> str:  # noqa: A002 -- the SDK's own name
        return f"remembered {cast('dict[str, str]', input)['command']}"


class Notes(BetaBuiltinFunctionTool):
    def to_dict(self) -> Any:
        return {"type": "memory_20250818", "name": "notes"}

    def call(self, input: object) -> str:  # noqa: A002 -- the SDK's own name
        return threading.current_thread().name


def test_a_tool_that_the_api_defines_is_sent_without_a_schema() -> None:
    assert offered([Memory()]).definitions == ({"type": "memory_20250818", "name": "memory"},)
    assert called(Memory(), {"command": "view"}).content == "remembered view"
    assert called(Notes(), {}).content == "tool notes"


def test_a_tool_that_cannot_be_described_is_refused() -> None:
    class Broken(Memory):
        def to_dict(self) -> Any:
            return {"type": "memory_20250818"}

    with pytest.raises(UsageError, match="cannot be described: KeyError"):
        offered([Broken()])


# What tools hold open


async def closed(box: Toolbox, run_id: str) -> list[str]:
    return [str(error) for error in await box.close(run_id)]


def test_a_close_is_called_when_the_last_run_that_called_the_tool_has_ended() -> None:
    log: list[str] = []

    async def close() -> None:
        log.append("closed")

    async def scenario() -> None:
        weather_ = beta_async_tool(weather.func)
        weather_.close = close
        box = Toolbox(own(weather_))
        await box.close("run_0")
        assert log == []
        for run in ("run_1", "run_2"):
            await call_of(box, {"city": "Kiel"}, run)
        assert await closed(box, "run_1") == []
        assert log == []
        await box.close("run_2")
        assert log == ["closed"]
        await box.close("run_2")
        assert log == ["closed"]
        assert (await call_of(box, {"city": "Kiel"}, "run_3")).content == "Kiel: rain for 1 days"
        await box.close("run_3")
        assert log == ["closed", "closed"]

    asyncio.run(scenario())


def test_an_async_context_manager_is_left_at_the_end_of_the_run_and_says_so_afterwards() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def counter() -> AsyncGenerator[Any]:
        """Count calls."""
        log.append("opened")

        async def count() -> str:
            log.append("called")
            return str(log.count("called"))

        yield count
        log.append("left")

    async def scenario() -> None:
        made = beta_async_tool(cast("Any", counter), name="counter", input_schema=cast("Any", {"type": "object"}))
        box = Toolbox(own(made))
        assert [(await call_of(box, {})).content for _ in range(2)] == ["1", "2"]
        await box.close("run_1")
        assert log == ["opened", "called", "called", "left"]
        after = await call_of(box, {}, "run_2")
        assert after.is_error
        assert "was closed at the end of an earlier run" in str(after.content)
        assert log[-1] == "left"

    asyncio.run(scenario())


def test_a_sync_context_manager_is_left_too() -> None:
    log: list[str] = []

    @contextmanager
    def counter() -> Generator[Any]:
        """Count calls."""
        log.append("opened")

        def count() -> str:
            return "counted"

        yield count
        log.append("left")

    async def scenario() -> None:
        box = Toolbox(own(beta_tool(cast("Any", counter), name="counter")))
        assert (await call_of(box, {})).content == "counted"
        await box.close("run_1")
        assert log == ["opened", "left"]

    asyncio.run(scenario())


def test_what_closing_raises_is_returned_after_all_has_been_closed() -> None:
    left: list[str] = []

    async def fail() -> None:
        raise OSError("stuck")

    @asynccontextmanager
    async def counter() -> AsyncGenerator[Any]:
        """Count."""

        async def count() -> str:
            return "1"

        yield count
        left.append("left")

    async def scenario() -> None:
        made = beta_async_tool(cast("Any", counter), name="counter", input_schema=cast("Any", {"type": "object"}))
        made.close = fail
        box = Toolbox(own(made))
        await call_of(box, {})
        assert await closed(box, "run_1") == ["stuck"]
        assert left == ["left"]

    asyncio.run(scenario())


# In a run


def test_a_run_calls_the_sdks_tools() -> None:
    script = [
        reply(tool_use("toolu_1", "weather", {"city": "Kiel"}), tool_use("toolu_2", "whereami", {})),
        reply("Rain."),
    ]
    went = play(script, tools=[weather, whereami], read_only={"weather"})
    assert went.sent[1] == [
        user("Go."),
        assistant(use("toolu_1", "weather", city="Kiel"), use("toolu_2", "whereami")),
        user(result("toolu_1", "Kiel: rain for 1 days"), result("toolu_2", "tool whereami")),
    ]
    assert went.api.requests[0].body["tools"] == [weather.to_dict(), whereami.to_dict()]


def test_the_readers_of_the_sdks_agent_toolset_are_known_as_reads() -> None:
    tools = own(*beta_agent_toolset_20260401(AgentToolContext(workdir=".")))
    assert {tool.name for tool in tools if tool.read_only} == {"read", "glob", "grep"}
    assert {tool.name for tool in tools if not tool.read_only} == {"edit", "write", "bash"}


def test_a_tool_of_that_name_that_is_not_the_sdks_is_a_write() -> None:
    mine = beta_async_tool(weather.func, name="read")
    assert [tool.read_only for tool in own(mine)] == [False]


def test_the_sdks_shell_is_closed_with_the_run(tmp_path: Any) -> None:
    async def scenario() -> None:
        [bash] = [tool for tool in beta_agent_toolset_20260401(AgentToolContext(tmp_path)) if tool.name == "bash"]
        box = Toolbox(own(bash))
        pid = str((await call_of(box, {"command": "echo $$"})).content)
        assert (await call_of(box, {"command": "echo $$"})).content == pid
        assert await box.close("run_1") == ()
        after = await call_of(box, {"command": "echo $$"}, "run_2")
        assert after.is_error

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("tools", "read_only", "problem"),
    [
        ([weather, weather], (), "two tools have the name 'weather'"),
        ([weather, {"type": "x", "name": "weather"}], (), "two tools have the name 'weather'"),
        ([weather], {"wether"}, "no tool of yours has the name 'wether'"),
        ([{"type": "web_search_20250305", "name": "web_search"}], {"web_search"}, "no tool of yours has the name"),
        ([weather], "weather", "'weather' is one text"),
        ([print], (), "is no tool. Make a tool of the function: decorate it with @looplatch.tool"),
        ([3], (), "3 is no tool"),
    ],
)
def test_a_loop_refuses_what_cannot_be(tools: list[Any], read_only: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Loop(model="m", tools=tools, read_only=read_only)


def test_a_tool_that_says_itself_which_calls_read_cannot_be_marked() -> None:
    async def work(given: dict[str, Any], ctx: object) -> str:
        return ""

    own_one = Tool("own", "", {"type": "object"}, work, read_only=lambda given: True)
    with pytest.raises(UsageError, match="says itself which of its calls only read"):
        offered([own_one], {"own"})
    assert [tool.read_only for tool in own(Tool("own", "", {"type": "object"}, work), read_only=("own",))] == [True]
