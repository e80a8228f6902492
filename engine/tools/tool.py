"""A tool: what the model may call, and what happens then."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import attrs

from looplatch.encoding import copied, decode, encode
from looplatch.recovery.naming import TOOL_NAME
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_function, check_kind, check_switch, is_switch
from looplatch.tools.context import ToolContext
from looplatch.tools.inputs import InputValidator
from looplatch.tools.leash import GRACE_S

__all__ = ["Close", "ReadOnly", "Tool", "ToolCall", "ToolResult"]

ReadOnly = bool | Callable[[dict[str, Any]], bool]
"""Whether calls of a tool only read: always, never, or as a predicate says of the input."""

ToolCall = Callable[[dict[str, Any], ToolContext], Awaitable[object]]
"""What a tool does: from the input, which fits its schema, and the context to the result."""

Close = Callable[[str], Awaitable[None]]
"""What ends all that a tool holds for a run: called with the run's id."""


@attrs.frozen
class ToolResult:
    """A result that says whether it is an error: `content` is anything that a tool may return."""

    content: object
    is_error: bool = attrs.field(default=False, validator=is_switch)


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
        raise UsageError(
            f"tool {brief(name)}",
            "the name must be 1 to 128 characters out of a-z, A-Z, 0-9, _ and -",
            "Rename the tool",
        )
    return name


def _kept_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the schema that nobody else can change; what is not JSON stays, for the check to name it."""
    try:
        return cast("dict[str, Any]", decode(encode(dict(schema))))
    except (TypeError, ValueError):
        return cast("dict[str, Any]", schema)


@attrs.frozen(eq=False)
class Tool:
    """A tool that the model may call.

    `name` is 1 to 128 characters out of letters, digits, `_` and `-`. `description` tells the model what it does.
    `input_schema` is a JSON Schema of type object; an input that breaks it is answered with an error and never reaches
    `call`, which is `async call(input, ctx)` and returns a str, a list of content blocks, a `ToolResult` or anything
    that can be written as JSON.
    `read_only` (default False): calls that only read run in parallel and while the model is still writing; other calls
    run alone and in order. It may be a predicate over the input. `timeout_s` (default None: no bound) is in seconds.
    `idempotent` (default False): a call that was in flight when the process died may be run again with its key.
    `close` (default None): awaited once at the end of a run, with the run's id; a tool that keeps something open from
    call to call (a shell, a connection) keeps it by `ctx.run_id` and ends it there. `sent` (default None: made of the
    fields above) is the definition that the API gets, where it is another. `grace_s` (default 2) is how long a call may
    take to end once it is asked to, in seconds; then it is abandoned.

    Raises `UsageError`, naming the tool and the place, for a bad name, schema or timeout.
    """

    name: str = attrs.field(converter=_checked_name)
    description: str
    input_schema: dict[str, Any] = attrs.field(converter=_kept_schema, repr=False)
    call: ToolCall = attrs.field(repr=False)
    read_only: ReadOnly = False
    timeout_s: float | None = None
    idempotent: bool = False
    close: Close | None = attrs.field(default=None, repr=False, kw_only=True)
    sent: Mapping[str, Any] | None = attrs.field(default=None, repr=False, kw_only=True)
    grace_s: float = attrs.field(default=GRACE_S, repr=False, kw_only=True)
    _validator: InputValidator = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        what = f"tool {self.name!r}"
        if not isinstance(cast("object", self.description), str):
            raise UsageError(what, "its description is no text", "Give a str; it may be empty")
        if not callable(self.call):
            raise UsageError(what, "its call is not callable", "Give an async function of (input, ctx)")
        if self.close is not None:
            check_function(f"{what}, close", self.close, "Give an async function of a run's id, or None")
        check_kind(f"{what}, sent", self.sent, Mapping | None, "Give a dict, or None: it is made of the other fields")
        check_switch(f"{what}, idempotent", self.idempotent)
        if not isinstance(cast("object", self.read_only), bool) and not callable(self.read_only):
            raise UsageError(what, "read_only is neither a bool nor a predicate", "Give True, False or a function")
        _check_seconds(what, "timeout_s", self.timeout_s)
        if cast("object", self.grace_s) is None:
            raise UsageError(what, "grace_s is None", "Give seconds above 0: every call can be ended")
        _check_seconds(what, "grace_s", self.grace_s)
        # A frozen class sets what it computes itself in this way.
        object.__setattr__(self, "_validator", InputValidator(self.input_schema, what=what))

    def definition(self) -> dict[str, Any]:
        """What is sent to the API: a new dict at each call."""
        if self.sent is not None:
            return dict(self.sent)
        described = {"description": self.description} if self.description else {}
        return {"name": self.name, **described, "input_schema": self.input_schema}

    def is_read_only(self, given: dict[str, Any]) -> bool:
        """Whether a call with this input only reads. A predicate that raises, or answers no bool, makes it a write.

        The predicate gets a copy: what it does to its input changes nothing of the call.
        """
        if isinstance(self.read_only, bool):
            return self.read_only
        try:
            return cast("object", self.read_only(copied(given))) is True
        except Exception:
            return False

    def problem(self, given: dict[str, Any]) -> str | None:
        """What is wrong with the input `given`, naming the fields; None when it fits the schema."""
        return self._validator.problem(given)


def _check_seconds(what: str, name: str, given: object) -> None:
    if given is None:
        return
    # `not 0 < x` also refuses NaN.
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1e9:
        raise UsageError(what, f"{name} is {brief(given)}", "Give seconds above 0, or None for no bound")
