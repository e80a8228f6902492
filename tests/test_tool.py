"""Tools, their tools by name, and the calls that a model makes of them."""

import asyncio
import subprocess
import sys
from typing import Any, cast

import pytest

from looplatch.states.errors import UsageError
from looplatch.tools import Call, Cause, Tool, Toolbox, ToolContext
from looplatch.tools.calls import Problem

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


async def work(given: dict[str, Any], ctx: ToolContext) -> object:
    return given


def test_the_definition_is_what_the_api_takes() -> None:
    assert Tool("read", "Reads a file.", SCHEMA, work).definition() == {
        "name": "read",
        "description": "Reads a file.",
        "input_schema": SCHEMA,
    }


def test_a_tool_without_a_description_sends_none() -> None:
    assert Tool("read", "", SCHEMA, work).definition() == {"name": "read", "input_schema": SCHEMA}


def test_a_tool_is_called_with_the_input_and_the_context() -> None:
    context = ToolContext(tool_use_id="toolu_1", run_id="run_1")
    assert asyncio.run(_called(Tool("read", "", SCHEMA, work), context)) == {"path": "a"}


async def _called(tool: Tool, context: ToolContext) -> object:
    return await tool.call({"path": "a"}, context)


def test_a_change_of_the_schema_afterwards_changes_nothing() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    made = Tool("read", "", schema, work)
    schema["properties"]["late"] = {"type": "string"}
    assert made.definition()["input_schema"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("name", ["", "with space", "a" * 129, "näme", "dot.ted", "line\n", None])
def test_a_name_that_the_api_refuses_is_refused(name: Any) -> None:
    with pytest.raises(UsageError) as caught:
        Tool(name, "", SCHEMA, work)
    assert caught.value.what == f"tool {name!r}"
    assert "1 to 128 characters" in caught.value.problem


@pytest.mark.parametrize("name", ["a", "a" * 128, "read_file-2"])
def test_a_name_that_the_api_takes_is_taken(name: str) -> None:
    assert Tool(name, "", SCHEMA, work).name == name


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({}, "input_schema.type is None"),
        ({"type": "array"}, "input_schema.type is 'array'"),
        ({"type": ["object"]}, "input_schema.type is ['object']"),
        ("object", "input_schema is no dict"),
        (
            {"type": "object", "properties": {"a": {"type": "str"}}},
            "input_schema.properties.a.type is not valid JSON Schema",
        ),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "input_schema.properties.a.pattern is not valid"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}}, "does not exist"),
        ({"type": "object", "properties": {"a": {"$ref": "https://a.example/s"}}}, "is another document"),
        ({"type": "object", "properties": {1: {"type": "string"}}}, "input_schema cannot be read"),
        ({"type": "object", "default": object()}, "input_schema cannot be read"),
    ],
)
def test_a_bad_schema_is_refused_with_its_place(schema: Any, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        Tool("read", "", schema, work)
    assert caught.value.what == "tool 'read'"
    assert problem in caught.value.problem


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), float("inf"), 10**400, True, "5"])
def test_a_timeout_that_is_no_time_is_refused(timeout_s: Any) -> None:
    with pytest.raises(UsageError, match="timeout_s is"):
        Tool("read", "", SCHEMA, work, timeout_s=timeout_s)


def test_wrong_kinds_of_arguments_are_refused() -> None:
    with pytest.raises(UsageError, match="its description is no text"):
        Tool("read", cast("Any", None), SCHEMA, work)
    with pytest.raises(UsageError, match="its call is not callable"):
        Tool("read", "", SCHEMA, cast("Any", "work"))
    with pytest.raises(UsageError, match="read_only is neither"):
        Tool("read", "", SCHEMA, work, read_only=cast("Any", "yes"))


def test_a_tool_writes_unless_it_says_otherwise() -> None:
    assert not Tool("read", "", SCHEMA, work).is_read_only({"path": "a"})
    assert Tool("read", "", SCHEMA, work, read_only=True).is_read_only({"path": "a"})


def test_a_predicate_tells_reads_from_writes_by_the_input() -> None:
    made = Tool("read", "", SCHEMA, work, read_only=lambda given: given["path"] == "a")
    assert made.is_read_only({"path": "a"})
    assert not made.is_read_only({"path": "b"})


def test_a_predicate_has_an_input_of_its_own() -> None:
    def takes(given: dict[str, Any]) -> bool:
        return bool(given["where"].pop() == given.pop("path"))

    given = {"path": "a", "where": ["a"]}
    call = Toolbox([Tool("read", "", SCHEMA, work, read_only=takes)]).call(
        tool_use_id="toolu_1", name="read", given=given, index=0
    )
    assert call.read_only
    assert call.input == {"path": "a", "where": ["a"]}


def test_a_predicate_that_fails_or_answers_no_bool_makes_a_write() -> None:
    assert not Tool("read", "", SCHEMA, work, read_only=lambda given: given["none"]).is_read_only({"path": "a"})
    assert not Tool("read", "", SCHEMA, work, read_only=cast("Any", str)).is_read_only({"path": "a"})


# The tools by name


READ = Tool("read", "", SCHEMA, work, read_only=True)
WRITE = Tool("write", "", {"type": "object"}, work)
BOX = Toolbox([WRITE, READ])


def test_a_toolbox_keeps_the_order_of_its_tools() -> None:
    assert list(BOX) == ["write", "read"]
    assert len(BOX) == 2
    assert BOX["read"] is READ
    assert BOX.definitions() == [WRITE.definition(), READ.definition()]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="tool 'read': two tools have this name"):
        Toolbox([READ, WRITE, READ])


def test_a_good_call_is_looked_up() -> None:
    assert BOX.call(tool_use_id="toolu_1", name="read", given={"path": "a"}, index=2) == Call(
        id="toolu_1", name="read", input={"path": "a"}, index=2, tool=READ, read_only=True
    )


def test_an_empty_input_is_undecided_although_it_is_valid() -> None:
    call = BOX.call(tool_use_id="toolu_1", name="write", given={}, index=0, empty=True)
    assert call == Call(id="toolu_1", name="write", input={}, index=0, tool=WRITE, undecided=True)


def test_a_call_of_an_unknown_tool_is_told_the_names() -> None:
    call = BOX.call(tool_use_id="toolu_1", name="raed", given={"path": "a"}, index=0)
    text = "unknown tool: 'raed'. Did you mean read? The tools are: read, write."
    assert call.problem == Problem(cause=Cause.UNKNOWN_TOOL, text=text)
    assert call.tool is None
    assert not call.read_only


def test_a_call_where_there_are_no_tools_is_told_so() -> None:
    call = Toolbox().call(tool_use_id="toolu_1", name="read", given={}, index=0)
    assert call.problem == Problem(cause=Cause.UNKNOWN_TOOL, text="unknown tool: 'read'. There are no tools.")


def test_an_input_that_breaks_the_schema_is_told_the_field() -> None:
    call = BOX.call(tool_use_id="toolu_1", name="read", given={"path": 3}, index=0)
    text = 'invalid input. The tool was not run. Mend this and call it again:\npath: 3 is not of type "string"'
    assert call.problem == Problem(cause=Cause.INVALID_INPUT, text=text)
    assert call.input == {"path": 3}
    assert not call.read_only
    assert not call.undecided


def test_an_input_that_is_no_json_is_told_what_was_written_and_is_undecided() -> None:
    call = BOX.call(
        tool_use_id="toolu_1", name="read", given=None, index=0, raw='{"path": 1}}', error="trailing characters"
    )
    text = 'invalid input. The tool was not run: trailing characters\nWhat was written:\n{"path": 1}}'
    assert call.problem == Problem(cause=Cause.INVALID_INPUT, text=text)
    assert call.undecided
    assert call.input == {}


def test_a_raw_input_of_any_size_is_bounded() -> None:
    call = BOX.call(tool_use_id="toolu_1", name="read", given=None, index=0, raw="[" * 1_000_000)
    assert call.problem is not None
    assert len(call.problem.text) < 5_000
    assert "[… 995,904 characters left out …]" in call.problem.text


def test_importing_the_tools_imports_no_slow_dependency() -> None:
    program = (
        "import sys, looplatch.tools; "
        "print([name for name in ('anthropic', 'pydantic', 'jsonschema_rs') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
