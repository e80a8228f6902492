"""`@tool`: schema and texts come from the function, values arrive as its types, what cannot be described says so."""

import asyncio
import dataclasses
import datetime as dt
import enum
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Literal, NotRequired, TypedDict, cast

import attrs
import pydantic
import pytest

from looplatch.states.errors import UsageError
from looplatch.tools import InputRejected, Tool, ToolContext, tool

CONTEXT = ToolContext(tool_use_id="toolu_1", run_id="run_1")


def call(made: Tool, **given: Any) -> object:
    """Call the tool as the engine does: only with an input that fits its schema."""

    async def called() -> object:
        return await made.call(given, CONTEXT)

    assert made.problem(given) is None
    return asyncio.run(called())


def properties(function: Callable[..., object]) -> Any:
    return tool(function).input_schema["properties"]


def test_a_function_becomes_a_tool() -> None:
    @tool
    def read_file(path: str, limit: int = 100) -> str:
        """Read a file.

        Args:
            path: Where it is.
        """
        return f"{path}:{limit}"

    assert read_file.definition() == {
        "name": "read_file",
        "description": "Read a file.",
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where it is."},
                "limit": {"type": "integer", "default": 100},
            },
            "required": ["path"],
            "additionalProperties": False,
        },
    }
    assert (read_file.read_only, read_file.timeout_s, read_file.idempotent) == (False, None, False)
    assert call(read_file, path="a") == "a:100"
    assert call(read_file, path="a", limit=1) == "a:1"


def test_options_are_the_tools() -> None:
    @tool(name="other", description="Does it.", read_only=True, timeout_s=1.5, idempotent=True)
    async def work() -> str:
        """Not this."""
        return "done"

    assert work.definition() == {
        "name": "other",
        "description": "Does it.",
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
    }
    assert (work.read_only, work.timeout_s, work.idempotent) == (True, 1.5, True)
    assert call(work) == "done"


def test_an_async_function_runs_in_the_event_loop_and_any_other_in_a_thread() -> None:
    @tool
    async def here() -> int:
        await asyncio.sleep(0)
        return threading.get_ident()

    @tool
    def there() -> int:
        return threading.get_ident()

    assert call(here) == threading.get_ident()
    assert call(there) != threading.get_ident()


def test_the_context_is_passed_and_is_no_part_of_the_schema() -> None:
    @tool
    def work(path: str, ctx: ToolContext) -> str:
        return f"{path} {ctx.idempotency_key}"

    assert list(work.input_schema["properties"]) == ["path"]
    assert call(work, path="a") == "a run_1:toolu_1"


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Options(TypedDict):
    depth: int
    deep: NotRequired[bool]


@dataclasses.dataclass
class Area:
    width: int
    height: int = 2
    tags: list[str] = dataclasses.field(default_factory=list[str])


@attrs.frozen
class Point:
    x: int
    _y: int = 7
    labels: list[str] = attrs.field(factory=list[str])
    sum: int = attrs.field(init=False, default=0)


class Money(pydantic.BaseModel):
    amount: int
    currency: str = "EUR"


@dataclasses.dataclass
class Shape:
    at: Point
    options: Options


def identity(annotation: Any) -> Tool:
    """A tool whose one parameter has the annotation, and which returns what arrives."""

    def work(value: Any) -> object:
        return value

    work.__annotations__["value"] = annotation
    return tool(work)


@pytest.mark.parametrize(
    ("annotation", "given", "arrives"),
    [
        (str, "a", "a"),
        (float, 1, 1.0),
        (bool, True, True),
        (Any, {"a": [1]}, {"a": [1]}),
        (int | None, None, None),
        (list[int], [1], [1]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (set[int], [1], {1}),
        (Literal["a", 1], 1, 1),
        (Colour, "blue", Colour.BLUE),
        (dt.date, "2026-01-02", dt.date(2026, 1, 2)),
        (Options, {"depth": 1}, {"depth": 1}),
        (Area, {"width": 1}, Area(1)),
        (Area, {"width": 1, "height": 3, "tags": ["a"]}, Area(1, 3, ["a"])),
        (Point, {"x": 1}, Point(1)),
        (Point, {"x": 1, "y": 2, "labels": ["a"]}, Point(1, 2, ["a"])),
        (Money, {"amount": 1}, Money(amount=1)),
        (list[Point], [{"x": 1}, {"x": 2}], [Point(1), Point(2)]),
        (dict[str, Point] | None, {"a": {"x": 1}}, {"a": Point(1)}),
        (Annotated[Point | None, "where"], {"x": 1}, Point(1)),
        (Shape, {"at": {"x": 1}, "options": {"depth": 2}}, Shape(Point(1), {"depth": 2})),
        (list[Options], [{"depth": 1, "deep": True}], [{"depth": 1, "deep": True}]),
    ],
)
def test_values_arrive_as_the_types_that_the_function_declares(annotation: Any, given: object, arrives: object) -> None:
    result = call(identity(annotation), value=given)
    assert result == arrives
    assert type(result) is type(arrives)


@pytest.mark.parametrize(
    ("annotation", "given"),
    [
        (int, "1"),
        (list[int], ["a"]),
        (Literal["a"], "b"),
        (Colour, "green"),
        (Options, {"deep": True}),
        (Options, {"depth": 1, "dep": 2}),
        (Area, {"height": 1}),
        (Point, {"x": "a"}),
        (Point, {"x": 1, "sum": 2}),
        (Money, {"amount": None}),
        (tuple[int, str], [1]),
    ],
)
def test_the_schema_refuses_what_the_types_refuse(annotation: Any, given: object) -> None:
    assert identity(annotation).problem({"value": given}) is not None


def test_a_value_that_only_the_type_refuses_is_rejected_with_its_field() -> None:
    async def called() -> object:
        return await identity(list[dt.date]).call({"value": ["2026-01-02", "soon"]}, CONTEXT)

    with pytest.raises(InputRejected) as caught:
        asyncio.run(called())
    assert caught.value.problem.startswith("value[1]: ")


def test_texts_come_from_annotated_before_the_docstring() -> None:
    def work(
        a: Annotated[int, "from the annotation"],
        b: int,
        c: Annotated[int, pydantic.Field(ge=1, description="from the field")],
        d: Annotated[int, pydantic.Field(ge=1)],
    ) -> None:
        """Work.

        Args:
            a: from the docstring
            b: from the docstring
            d: from the docstring
        """

    assert properties(work) == {
        "a": {"type": "integer", "description": "from the annotation"},
        "b": {"type": "integer", "description": "from the docstring"},
        "c": {"type": "integer", "minimum": 1, "description": "from the field"},
        "d": {"type": "integer", "minimum": 1, "description": "from the docstring"},
    }


def test_records_are_described_by_what_builds_them() -> None:
    schema = identity(Point).input_schema
    assert schema["$defs"]["Point"] == {
        "type": "object",
        "properties": {
            "x": {"type": "integer"},
            "y": {"type": "integer", "default": 7},
            "labels": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["x"],
        "additionalProperties": False,
    }


def test_parameters_may_be_named_like_anything() -> None:
    @tool
    def work(title: str, json: int, model_config: int, _private: int, self_: int, schema: int, p0: int) -> object:
        return [title, json, model_config, _private, self_, schema, p0]

    names = ["title", "json", "model_config", "_private", "self_", "schema", "p0"]
    assert list(work.input_schema["properties"]) == names
    given = dict(zip(names, ["t", 1, 2, 3, 4, 5, 6], strict=True))
    assert call(work, **given) == ["t", 1, 2, 3, 4, 5, 6]


def test_positional_and_keyword_only_parameters_are_passed_as_they_must_be() -> None:
    @tool
    def work(a: int, b: int = 2, /, c: int = 3, *, d: int = 4) -> object:
        return [a, b, c, d]

    assert call(work, a=1) == [1, 2, 3, 4]
    assert call(work, a=1, b=5, c=6, d=7) == [1, 5, 6, 7]


def test_a_positional_default_that_is_left_out_does_not_shift_the_others() -> None:
    @tool
    def work(a: int = 1, b: int = 2, c: int = 3, /) -> object:
        return [a, b, c]

    assert call(work, b=5) == [1, 5, 3]


def test_a_default_that_is_no_json_stays_the_functions_own() -> None:
    default = object()

    @tool
    def work(value: Any = default) -> object:
        return value

    assert work.input_schema["properties"] == {"value": {}}
    assert call(work) is default


def test_a_bound_method_and_a_callable_object_are_tools_too() -> None:
    class Store:
        def read(self, key: str) -> str:
            """Read it."""
            return f"value of {key}"

        async def __call__(self, key: str) -> str:
            """Call it."""
            return f"called with {key}"

    assert call(tool(Store().read), key="a") == "value of a"
    assert call(tool(name="store")(Store()), key="a") == "called with a"


def test_a_wrapped_function_is_described_by_the_function_within() -> None:
    def traced(function: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(function)
        def wrapper(*args: object, **kwargs: object) -> object:
            return ["traced", function(*args, **kwargs)]

        return wrapper

    @tool
    @traced
    def work(count: int) -> int:
        """Work."""
        return count

    assert work.name == "work"
    assert call(work, count=1) == ["traced", 1]


def test_annotations_that_are_strings_may_name_the_callers_own_types() -> None:
    class Local(TypedDict):
        a: int

    def work(value: "Local") -> object:
        return value

    assert call(tool(work), value={"a": 1}) == {"a": 1}


class Opaque:
    """Nothing that JSON could hold."""


@attrs.frozen
class Tree:
    children: "list[Tree]"


Untyped = attrs.make_class("Untyped", ["field"])


def takes_opaque(path: str, thing: Opaque) -> None: ...


def takes_callback(path: str, back: Callable[[], None]) -> None: ...


def takes_anything(*args: int) -> None: ...


def takes_any_name(**kwargs: int) -> None: ...


def takes_tree(tree: Tree) -> None: ...


def takes_untyped(value: object) -> None: ...


def takes_missing(value: object) -> None: ...


def untyped(path: object) -> None: ...


# Annotations that a type checker would not let pass.
takes_untyped.__annotations__["value"] = Untyped
takes_missing.__annotations__["value"] = "Missing"
untyped.__annotations__.clear()


def generator(path: str) -> Iterator[str]:
    yield path


async def async_generator(path: str) -> AsyncIterator[str]:
    yield path


class Owner:
    def method(self, path: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "what", "problem"),
    [
        (takes_opaque, "tool 'takes_opaque'", "the parameter thing: "),
        (takes_callback, "tool 'takes_callback'", "the parameter back: "),
        (takes_anything, "tool 'takes_anything'", "the parameter *args: int has no schema"),
        (takes_any_name, "tool 'takes_any_name'", "the parameter **kwargs: int has no schema"),
        (takes_tree, "tool 'takes_tree', parameter tree", "the class Tree contains itself"),
        (takes_untyped, "tool 'takes_untyped', parameter value", "the field Untyped.field has no type"),
        (takes_missing, "tool 'takes_missing'", "its annotations cannot be read: name 'Missing' is not defined"),
        (untyped, "tool 'untyped'", "the parameter path has no type"),
        (Owner.method, "tool 'method'", "the parameter self has no type"),
        (generator, "tool 'generator'", "it is a generator"),
        (async_generator, "tool 'async_generator'", "it is a generator"),
        (functools.partial(takes_opaque), "@tool", "has no name"),
        (Owner, "@tool", "is no function"),
        ("text", "@tool", "is no function"),
        (lambda: None, "tool '<lambda>'", "the name must be"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_defined(function: Any, what: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        tool(cast("Callable[..., object]", function))
    assert caught.value.what == what
    assert problem in caught.value.problem
