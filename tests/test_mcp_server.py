"""MCP servers of the `mcp` package, over stdio and HTTP: what they offer, return, and how they fail."""

import asyncio
import importlib.util
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.types import ListToolsResult
from mcp.types import Tool as McpTool

from looplatch import UsageError
from looplatch.testing import ScriptedAPI, reply, tool_use
from looplatch.tools import AbortSignal, Cause, Outcome, Tool, Toolbox
from looplatch.tools.execution import execute
from looplatch.tools.servers import ServerFailed, mcp_server
from tests.mcp_program import made
from tests.playing import check, result, scripted, user

PROGRAM = Path(__file__).with_name("mcp_program.py")
OVER_STDIO = [sys.executable, str(PROGRAM)]


async def call(tools: list[Tool], tool: str, progress: list[Any] | None = None, /, **given: Any) -> Outcome:
    asked = Toolbox(tools).call(tool_use_id="toolu_1", name=tool, given=given, index=0)
    told = [] if progress is None else progress
    return await execute(asked, run_id="run_1", abort=AbortSignal(), on_progress=lambda _, args: told.append(args))


def text(content: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": content}]


def test_a_server_over_stdio_offers_its_tools_as_it_marks_them() -> None:
    async def scenario() -> None:
        async with mcp_server(OVER_STDIO, only=["add", "contradict", "put", "fail"], timeout_s=5) as tools:
            assert [(tool.name, tool.read_only, tool.idempotent, tool.timeout_s) for tool in tools] == [
                ("add", True, False, 5),
                ("contradict", False, False, 5),
                ("put", False, True, 5),
                ("fail", False, False, 5),
            ]
            add = tools[0]
            assert add.description == "Add two numbers."
            assert add.input_schema["properties"].keys() == {"a", "b"}
            assert (await call(tools, "add", a=1, b=2)).content == text("3")
            wrong = await call(tools, "add", a="one", b=2)
            assert (wrong.cause, '"one" is not of type "integer"' in str(wrong.content)) == (Cause.INVALID_INPUT, True)

    asyncio.run(scenario())


def test_hints_of_a_server_that_is_not_trusted_count_for_nothing() -> None:
    async def scenario() -> None:
        async with mcp_server(made(), trust_hints=False) as tools:
            assert not any(tool.read_only or tool.idempotent for tool in tools)

    asyncio.run(scenario())


def test_names_get_a_prefix_and_lose_what_the_api_does_not_take() -> None:
    async def scenario() -> None:
        async with mcp_server(made(), prefix="my.server/", only=["dotted.name/x"]) as tools:
            assert [tool.name for tool in tools] == ["my_server_dotted_name_x"]
            assert (await call(tools, "my_server_dotted_name_x")).content == text("dotted")

    asyncio.run(scenario())


def test_results_become_blocks_and_what_has_none_is_named() -> None:
    async def scenario() -> None:
        async with mcp_server(made()) as tools:
            shown = await call(tools, "show")
            assert shown.content == [
                *text("look"),
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "ZGF0YQ=="}},
                *text("[image, image/tiff: cannot be shown]"),
                *text("[audio, audio/wav: cannot be shown]"),
                *text("[resource link, more, test://more: cannot be shown] More of it."),
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a page"}},
            ]
            assert (await call(tools, "structured")).content == '{"only":"this"}'
            assert (await call(tools, "facts")).content == text('{\n  "rain": 3\n}')

    asyncio.run(scenario())


def test_an_error_of_a_tool_is_one_with_all_that_it_shows() -> None:
    async def scenario() -> None:
        async with mcp_server(made()) as tools:
            failed = await call(tools, "fail")
            assert failed.is_error
            assert "it broke" in str(failed.content)
            refused = await call(tools, "refuse")
            assert refused.is_error
            assert refused.content == [*text("no"), *text("[image left out: an error can only be told in text]")]

    asyncio.run(scenario())


def test_progress_reaches_whoever_listens() -> None:
    async def scenario() -> None:
        told: list[Any] = []
        async with mcp_server(made()) as tools:
            assert (await call(tools, "step", told)).content == text("done")
        assert told == [(1, 2, "half")]

    asyncio.run(scenario())


def test_a_command_gets_its_folder_and_variables_and_not_our_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")

    async def scenario() -> None:
        async with mcp_server(OVER_STDIO, env={"GIVEN": "x"}, folder=tmp_path) as tools:
            assert (await call(tools, "place", variable="GIVEN")).content == text(f"x {tmp_path}")
            assert (await call(tools, "place", variable="ANTHROPIC_API_KEY")).content == text(f"- {tmp_path}")

    asyncio.run(scenario())


def test_several_calls_go_on_at_once() -> None:
    async def scenario() -> None:
        async with mcp_server(made()) as tools:
            outcomes = await asyncio.gather(*(call(tools, "add", a=number, b=1) for number in range(20)))
            assert [outcome.content for outcome in outcomes] == [text(str(number + 1)) for number in range(20)]

    asyncio.run(scenario())


def test_a_server_that_dies_fails_its_calls_and_nobody_else() -> None:
    async def scenario() -> None:
        async with mcp_server(OVER_STDIO) as tools:
            died = await call(tools, "die")
            assert died.is_error
            assert "MCP server" in str(died.content)
            assert (await call(tools, "add", a=1, b=1)).is_error
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_after_the_connection_is_closed_a_call_says_so() -> None:
    async def scenario() -> None:
        async with mcp_server(made()) as tools:
            pass
        outcome = await call(tools, "add", a=1, b=1)
        assert outcome.is_error
        assert "its connection is closed" in str(outcome.content)

    asyncio.run(scenario())


def test_the_connection_may_be_left_by_another_task_and_by_an_exception() -> None:
    async def scenario() -> None:
        with pytest.raises(ZeroDivisionError):
            async with mcp_server(OVER_STDIO):
                raise ZeroDivisionError
        entered = mcp_server(OVER_STDIO)
        tools = await asyncio.create_task(entered.__aenter__())
        assert (await call(tools, "add", a=1, b=1)).content == text("2")
        await asyncio.create_task(entered.__aexit__(None, None, None))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


def test_a_cancel_while_it_connects_leaves_nothing_behind(tmp_path: Path) -> None:
    """The command says that it began, and then nothing: it is no MCP server."""
    began = tmp_path / "began"
    os.mkfifo(began)

    async def scenario() -> None:
        connecting = asyncio.create_task(mcp_server(["sh", "-c", f"echo $$ > {began}; cat >&2"]).__aenter__())
        pid = int(await asyncio.get_running_loop().run_in_executor(None, began.read_text))
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "server", [["no-such-command-anywhere"], [sys.executable, "-c", "raise SystemExit(1)"], "http://127.0.0.1:1/mcp"]
)
def test_a_server_that_cannot_be_reached_is_named(server: Any) -> None:
    async def scenario() -> None:
        with pytest.raises(ServerFailed) as caught:
            async with mcp_server(server):
                pass
        assert caught.value.server == (server if isinstance(server, str) else " ".join(server))
        assert caught.value.problem

    asyncio.run(scenario())


def test_a_tool_that_cannot_be_offered_is_named_with_its_server() -> None:
    async def offer(*_: Any) -> ListToolsResult:
        schema = {"type": "object", "properties": {"a": {"type": "nonsense"}}}
        return ListToolsResult(tools=[McpTool(name="bad", input_schema=schema)])

    async def scenario() -> None:
        with pytest.raises(UsageError) as caught:
            async with mcp_server(Server("odd", on_list_tools=offer)):
                pass
        assert caught.value.what == "MCP server Server, tool 'bad'"
        assert "input_schema.properties.a.type" in caught.value.problem
        assert "leave the tool out by `only`" in caught.value.mend

    asyncio.run(scenario())


def test_a_tool_that_is_not_there_cannot_be_wanted() -> None:
    async def scenario() -> None:
        with pytest.raises(UsageError, match="MCPServer has no tool 'substract'"):
            async with mcp_server(made(), only=["add", "substract"]):
                pass

    asyncio.run(scenario())


@asynccontextmanager
async def over_http(server: MCPServer[Any]) -> AsyncGenerator[tuple[str, list[dict[str, str]]]]:
    """The address of the server, and the headers of the requests to it."""
    headers: list[dict[str, str]] = []
    app = server.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await app(scope, receive, send)

    config = uvicorn.Config(noting, host="127.0.0.1", port=0, log_level="error", ws="none", lifespan="on")
    listening = config.bind_socket()
    serving = uvicorn.Server(config)
    task = asyncio.create_task(serving.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", headers
    finally:
        serving.should_exit = True
        await task


def test_a_server_over_http_is_the_same_and_gets_the_headers() -> None:
    async def scenario() -> None:
        async with (
            over_http(made()) as (url, headers),
            mcp_server(url, headers={"Authorization": "Bearer word"}, only=["add", "refuse"]) as tools,
        ):
            assert [(tool.name, tool.read_only) for tool in tools] == [("add", True), ("refuse", False)]
            assert (await call(tools, "add", a=1, b=2)).content == text("3")
            assert (await call(tools, "refuse")).is_error
            assert {one.get("authorization") for one in headers} == {"Bearer word"}

    asyncio.run(scenario())


def test_a_run_calls_the_tools_of_a_server() -> None:
    async def scenario() -> None:
        calls = reply(tool_use("toolu_1", "add", {"a": 1, "b": 2}), tool_use("toolu_2", "fail", {}))
        api = ScriptedAPI([calls, reply("Three, and a failure.")])
        async with mcp_server(OVER_STDIO) as tools, scripted(api, tools=tools) as loop:
            run = loop.run("Go.")
            await run
            check(run, api)
            failed = result("toolu_2", text("Error executing tool fail: it broke"), is_error=True)
            assert api.requests[1].messages[2] == user(result("toolu_1", text("3")), failed)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("server.py", "'server.py' is no address"),
        ([], r"\[\] is no command"),
        ([3], r"\[3\] is no command"),
    ],
)
def test_what_cannot_be_a_server_is_refused(server: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        mcp_server(server)


def test_without_its_package_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    with pytest.raises(UsageError, match=r"looplatch\[mcp\]"):
        mcp_server(OVER_STDIO)
