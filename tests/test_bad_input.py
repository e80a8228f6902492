"""Bad input gets an error that names it and says how to mend it, before anything is sent or written."""

import asyncio
import os
from collections import ChainMap, UserDict
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import anthropic
import pytest

from looplatch import Hooks, Limits, Loop, LooplatchError, Tool, UsageError
from looplatch.audit.errors import LogExists, LogInUse
from looplatch.opening import checked_messages
from looplatch.testing import ScriptedAPI, reply
from tests.playing import MODEL, assistant, echo, play, result, scripted, use, user


def refused(what: str, *said: str, **options: Any) -> None:
    """Making a loop with these options is refused, with an error about `what`."""
    made: dict[str, Any] = {"model": MODEL, **options}
    with pytest.raises(UsageError) as caught:
        Loop(**made)
    about(caught.value, what, *said)


def about(error: UsageError, what: str, *said: str) -> None:
    assert isinstance(error, LooplatchError)
    assert error.what == what
    assert error.problem
    assert error.mend
    assert str(error) == f"{error.what}: {error.problem}. {error.mend}"
    for part in said:
        assert part in str(error)


def opening_refused(prompt: Any, what: str, *said: str) -> None:
    """A run that opens with `prompt` is refused, and nothing is sent."""

    async def main() -> None:
        api = ScriptedAPI([])
        async with scripted(api) as loop:
            with pytest.raises(UsageError) as caught:
                loop.run(prompt)
            about(caught.value, what, *said)
        assert api.requests == []

    asyncio.run(main())


# --- the loop


@pytest.mark.parametrize("model", ["", "  ", None, 7])
def test_the_model_needs_a_name(model: Any) -> None:
    refused("model", "name", model=model)


@pytest.mark.parametrize("name", ["max_tokens", "window"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "8000", True])
def test_a_number_of_tokens_is_a_whole_number_of_at_least_1(name: str, value: Any) -> None:
    refused(name, repr(value), "at least 1", **{name: value})


@pytest.mark.parametrize("name", ["max_tokens", "window", "segment_bytes"])
@pytest.mark.parametrize("value", [2**53, 10**400])
def test_a_number_that_no_record_can_hold_is_refused(name: str, value: int) -> None:
    refused(name, "at most 9,007,199,254,740,991", **{"max_tokens": 100, name: value})


def test_max_tokens_is_needed() -> None:
    refused("max_tokens", "None", max_tokens=None)


@pytest.mark.parametrize("name", ["payloads", "durability"])
def test_a_setting_has_the_values_it_has(name: str) -> None:
    refused(name, "'sometimes'", **{name: "sometimes"})


def test_two_tools_may_not_have_one_name() -> None:
    refused("tools", "'read'", "Rename", tools=[echo("read"), echo("read", read_only=False)])


def test_a_tool_and_a_tool_of_the_server_may_not_have_one_name() -> None:
    server = {"type": "web_search_20250305", "name": "web_search"}
    refused("tools", "'web_search'", tools=[server, echo("web_search")])


@pytest.mark.parametrize("tool", [None, "read", print, ("read",)])
def test_a_tool_is_a_tool(tool: Any) -> None:
    refused("tools", "is no tool", tools=[tool])


@pytest.mark.parametrize("tools", [echo(), 7, "read"])
def test_tools_are_a_list(tools: Any) -> None:
    refused("tools", tools=tools)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "object", "properties": {"a": {"type": "int"}}},
        {"type": "object", "required": 1},
        [],
    ],
)
def test_a_tool_needs_a_schema_that_holds(schema: Any) -> None:
    async def call(given: dict[str, Any], ctx: Any) -> str:
        return ""

    with pytest.raises(UsageError) as caught:
        Tool("read", "", schema, call)
    about(caught.value, caught.value.what, "'read'")


@pytest.mark.parametrize("limit", ["max_turns", "max_attempts", "max_pauses", "max_blocks", "max_output_recoveries"])
def test_no_counter_is_without_a_limit(limit: str) -> None:
    with pytest.raises(UsageError) as caught:
        Limits(**cast("Any", {limit: None}))
    about(caught.value, f"Limits.{limit}", "None", "whole number")


def test_max_turns_is_at_least_1() -> None:
    with pytest.raises(UsageError) as caught:
        Limits(max_turns=0)
    about(caught.value, "Limits.max_turns", "0", "at least 1")


@pytest.mark.parametrize("name", ["limits", "hooks", "params"])
def test_an_object_of_ours_is_one(name: str) -> None:
    refused(name, **{name: 7})


def test_limits_are_no_dict() -> None:
    refused("limits", "Limits(", limits={"max_turns": 3})


@pytest.mark.parametrize("system", [7, ["You are"], {"type": "text", "text": "You are"}])
def test_the_system_prompt_is_a_text_or_blocks(system: Any) -> None:
    refused("system", system=system)


@pytest.mark.parametrize("name", ["messages", "model", "max_tokens", "system", "tools", "stream"])
def test_what_has_a_place_of_its_own_does_not_go_into_params(name: str) -> None:
    refused(f"params[{name!r}]", params={name: 1})
    refused(f"params[{name!r}]", params={"extra_body": {name: 1}})


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"timeout": -1}, "params['timeout']"),
        ({"timeout": "5"}, "params['timeout']"),
        ({"timeout": 10**400}, "params['timeout']"),
        ({"timeout": float("nan")}, "params['timeout']"),
        ({"betas": "one-beta"}, "params['betas']"),
        ({"extra_headers": ["a"]}, "params['extra_headers']"),
        ({"extra_query": "a=b"}, "params['extra_query']"),
        ({"extra_body": ["a"]}, "params['extra_body']"),
        ({"thinking": {1, 2}}, "params"),
        ({"temperature": float("nan")}, "params"),
    ],
)
def test_params_that_cannot_be_sent_are_refused(params: Any, what: str) -> None:
    refused(what, params=params)


@pytest.mark.parametrize("stop", [7, "hook", [7], None])
def test_stop_hooks_are_functions(stop: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Hooks(stop=stop)
    about(caught.value, "Hooks.stop")


def test_the_transition_hook_is_a_function() -> None:
    with pytest.raises(UsageError) as caught:
        Hooks(on_transition=cast("Any", 7))
    about(caught.value, "Hooks.on_transition")


# --- the client


def test_no_key_and_no_client_is_said_before_anything_is_sent_or_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    log = tmp_path / "run.jsonl"

    async def main() -> None:
        run = Loop(model=MODEL).run("Go.", log=log)
        with pytest.raises(UsageError) as caught:
            await run
        about(caught.value, "client", "no API key", "ANTHROPIC_API_KEY")
        assert run.result is None
        assert not log.exists()

    asyncio.run(main())


@pytest.mark.parametrize("client", ["x", 7, object()])
def test_what_is_no_client_is_refused_at_once(client: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Loop(model=MODEL, client=client)
    about(caught.value, "client", type(client).__name__, "AsyncAnthropic()")


def test_a_synchronous_client_is_refused() -> None:
    async def main() -> None:
        with anthropic.Anthropic(api_key="k") as client, pytest.raises(UsageError) as caught:
            Loop(model=MODEL, client=cast("Any", client))
        about(caught.value, "client", "Anthropic", "AsyncAnthropic()")

    asyncio.run(main())


# --- the prompt


@pytest.mark.parametrize("prompt", ["", " ", "\n\t"])
def test_an_empty_prompt_is_refused(prompt: str) -> None:
    opening_refused(prompt, "prompt", "empty")


@pytest.mark.parametrize("prompt", [None, 7, b"Go.", {"role": "user", "content": "Go."}])
def test_a_prompt_is_a_text_or_a_list_of_messages(prompt: Any) -> None:
    opening_refused(prompt, "prompt", "neither a text nor a list")


@pytest.mark.parametrize("kind", [MappingProxyType, UserDict, ChainMap])
def test_messages_and_blocks_may_be_mappings_of_any_kind(kind: Callable[[dict[str, Any]], Any]) -> None:
    block = kind({"type": "text", "text": "Go."})
    assert checked_messages([kind({"role": "user", "content": [block]})]) == [user({"type": "text", "text": "Go."})]


def nested(depth: int) -> Any:
    value: Any = "Go."
    for _ in range(depth):
        value = [value]
    return value


def endless() -> Any:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = [message]
    return message


@pytest.mark.parametrize("message", [endless(), {"role": "user", "content": nested(5_000)}], ids=["endless", "deep"])
def test_a_message_that_has_no_end_is_refused(message: Any) -> None:
    opening_refused([message], "messages", "nested too deeply")


ANSWERED = [user("Go."), assistant(use("t1", "read", n=1)), user(result("t1", "1"))]


REFUSED: list[tuple[Any, str]] = [
    ([], "there are no messages"),
    (["Go."], "messages.0"),
    ([None], "messages.0"),
    ([{}], "messages.0"),
    ([{"role": "user"}], "messages.0"),
    ([{"content": "Go."}], "messages.0"),
    ([user("")], "messages.0"),
    ([{"role": "user", "content": []}], "messages.0"),
    ([{"role": "user", "content": [{"text": "Go."}]}], "messages.0"),
    ([{"role": "user", "content": [{"type": "text", "text": ""}]}], "messages.0"),
    ([{"role": "user", "content": 7}], "messages.0"),
    ([{"role": "tool", "content": "Go."}], "'tool'"),
    ([{"role": "user", "content": "Go.", "name": "me"}], "name"),
    ([assistant("Hello.")], "messages.0"),
    ([{"role": "system", "content": "You are"}, user("Go.")], "messages.0"),
    ([user("Go."), assistant(use("t1", "read"))], "t1"),
    ([user("Go."), assistant(use("t1", "read")), user("And?")], "t1"),
    ([user("Go."), assistant(use("t1", "read"), use("t2", "read")), user(result("t1", "1"))], "t2"),
    ([user("Go."), assistant(use("t1", "read")), user("And?", result("t1", "1"))], "t1"),
    ([user("Go."), user(result("t1", "1"))], "t1"),
    ([*ANSWERED, user(result("t1", "1"))], "t1"),
    ([user("Go."), assistant(use("t1", "read"), use("t1", "read")), user(result("t1", "1"))], "t1"),
    ([user("Go."), assistant({**use("t1", "read"), "input": "n"}), user(result("t1", "1"))], "t1"),
    ([user("Go."), assistant({**use("", "read")}), user(result("", "1"))], "id"),
    ([user({"type": "text", "text": {1, 2}})], "JSON"),
    ([user({"type": "text", "text": float("inf")})], "JSON"),
]


@pytest.mark.parametrize(("messages", "said"), REFUSED)
def test_messages_that_the_api_would_refuse_are_refused(messages: Any, said: str) -> None:
    opening_refused(messages, "messages", said)


def test_all_that_is_wrong_with_the_messages_is_said_at_once() -> None:
    opening_refused([assistant(""), user(result("t9", "1"))], "messages", "messages.0: the first", "empty", "'t9'")


def test_a_search_that_nobody_finished_is_refused_when_its_result_has_no_known_type() -> None:
    search: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "tool_of_tomorrow", "input": {}}
    opening_refused([user("Go."), assistant(search), user("And?")], "messages", "s1")


@pytest.mark.parametrize("deadline", [-1, "5", float("nan"), float("inf"), True])
def test_a_deadline_is_seconds(deadline: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Loop(model=MODEL).run("Go.", deadline_s=deadline)
    about(caught.value, "deadline_s", repr(deadline))


@pytest.mark.parametrize("log", [7, b"run.jsonl", ["run.jsonl"]])
def test_a_log_is_a_path(log: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Loop(model=MODEL).run("Go.", log=log)
    about(caught.value, "log")


# --- the log


def test_a_log_that_cannot_be_written_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            for path in (tmp_path / "absent" / "run.jsonl", tmp_path):
                run = loop.run("Go.", log=path)
                with pytest.raises(UsageError) as caught:
                    await run
                assert str(path) in str(caught.value)
                assert run.result is None
        assert api.requests == []

    asyncio.run(main())


def test_a_log_of_another_run_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    first = play([reply("Done.")], log=log)
    written = log.read_bytes()

    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            with pytest.raises(LogExists) as caught:
                await loop.run("Go.", log=log)
            assert caught.value.run == first.run.id
            assert caught.value.file == log
            assert first.run.id in str(caught.value)
        assert api.requests == []

    asyncio.run(main())
    assert log.read_bytes() == written


def test_a_log_in_use_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        log = tmp_path / "run.jsonl"
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop, loop.run("Go.", log=log):
            with pytest.raises((LogInUse, LogExists)) as caught:
                await loop.run("Go.", log=log)
            assert str(log) in str(caught.value)
        assert api.requests == []

    asyncio.run(main())


def test_a_run_whose_opening_failed_can_be_closed_and_gives_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        api = ScriptedAPI([])
        async with scripted(api) as loop:
            run = loop.run("Go.", log=tmp_path / "absent" / "run.jsonl")
            with pytest.raises(UsageError):
                async with run:
                    pass
            await run.aclose()
            assert [message async for message in run] == []
            with pytest.raises(UsageError):
                _ = run.log

    asyncio.run(main())


# --- the consumer


def test_a_second_consumer_is_refused_and_the_first_goes_on() -> None:
    async def main() -> None:
        api = ScriptedAPI([reply("Done.")])
        async with scripted(api) as loop:
            run = loop.run("Go.")

            async def consume() -> str | None:
                return (await run).result

            first = asyncio.create_task(consume())
            await api.arrival(1)
            with pytest.raises(UsageError) as caught:
                await anext(run)
            about(caught.value, "run", "consumed already")
            assert await first == "Done."

    asyncio.run(main())


def test_a_run_closed_before_it_began_says_so() -> None:
    async def main() -> None:
        api = ScriptedAPI([])
        async with scripted(api) as loop:
            run = loop.run("Go.")
            await run.aclose()
            with pytest.raises(UsageError) as caught:
                await run
            about(caught.value, "run", "closed, or failed, before it began")
            with pytest.raises(UsageError):
                async with run:
                    pass
        assert api.requests == []

    asyncio.run(main())


def test_the_log_of_a_run_that_has_not_begun_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        _ = Loop(model=MODEL).run("Go.").log
    about(caught.value, "run.log", "not begun")
