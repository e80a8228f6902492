"""Hooks: the caller's own code at the points where a run asks it."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol, cast

import attrs

from looplatch.encoding import EncodeError, encode
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_function, is_switch
from looplatch.states.record import Record


def _is_text(value: object, attribute: "attrs.Attribute[str]", given: object) -> None:
    if not isinstance(given, str):
        what = f"{type(value).__name__}.{attribute.name}"
        raise UsageError(what, f"{brief(given)} is no text", "Say it in a str")


def _is_input(_: object, __: object, given: Any) -> None:
    if given is None:
        return
    if not isinstance(given, Mapping):
        raise UsageError("Allow.updated_input", f"{brief(given)} is no dict", "Give the whole input, as a dict")
    try:
        encode(dict(cast("Mapping[str, object]", given)))
    except EncodeError as error:
        raise UsageError("Allow.updated_input", f"it is no JSON: {error}", "Give plain values") from error


@attrs.frozen
class Pass:
    """The run may end."""


@attrs.frozen
class Block:
    """The model has to go on; it is sent `reason`. Raises UsageError for a reason that is no text."""

    reason: str = attrs.field(validator=_is_text)


@attrs.frozen
class Halt:
    """The run ends now, as failed; the caller gets `reason`. Raises UsageError for a reason that is no text."""

    reason: str = attrs.field(validator=_is_text)


@attrs.frozen
class Allow:
    """The call may run; with `updated_input`, with another input, which is recorded.

    Raises UsageError for an input that is no JSON object.
    """

    updated_input: Mapping[str, Any] | None = attrs.field(default=None, validator=_is_input)


@attrs.frozen
class Deny:
    """The call may not run; `message` tells the model why. `interrupt` ends the run as well.

    Raises UsageError for a message that is no text.
    """

    message: str = attrs.field(validator=_is_text)
    interrupt: bool = attrs.field(default=False, validator=is_switch)


@attrs.frozen
class Ask:
    """Someone has to decide: the run is suspended once all that may run has run."""


@attrs.frozen(kw_only=True)
class ToolCallContext:
    """A call that the model makes, before it runs. `input` fits the tool's schema."""

    run_id: str
    turn: int
    tool_use_id: str
    name: str
    input: dict[str, Any]
    read_only: bool


@attrs.frozen(kw_only=True)
class ToolOutcomeContext:
    """A call after its tool has run. `cause` says how it ended; `content` is what the model is told."""

    run_id: str
    turn: int
    tool_use_id: str
    name: str
    input: dict[str, Any]
    cause: str
    content: str | list[dict[str, Any]] = attrs.field(repr=False)
    is_error: bool


class AskModel(Protocol):
    """Asks a model beside the run, through the run's own client; what that costs is part of the run's totals."""

    async def __call__(
        self, prompt: str, *, model: str | None = None, system: str | None = None, max_tokens: int = 1_000
    ) -> str:
        """Return the text of the answer. model: None is the run's own. Raises ModelCallFailed where there is none."""
        ...


@attrs.frozen(kw_only=True)
class ToolsContext:
    """What the tools of a turn did: the answer's text, and its calls in order, as the model is told of them."""

    run_id: str
    turn: int
    text: str
    calls: tuple[ToolOutcomeContext, ...]
    ask: AskModel = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class StopContext:
    """What a stop hook is asked about: the answer that would end the run.

    `text` is the answer's text. `stop_hook_active` tells that the model is going on because a stop hook blocked; it
    stays so through the tool turns in between. `messages()` is the history, made anew at each call.
    """

    run_id: str
    turn: int
    text: str
    stop_hook_active: bool
    messages: Callable[[], list[dict[str, Any]]] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class ResponseContext:
    """A whole answer of the model: its blocks as plain API dicts, and the tokens it took by the context's names."""

    run_id: str
    turn: int
    stop_reason: str | None
    content: list[dict[str, Any]] = attrs.field(repr=False)
    usage: dict[str, int]


ResponseHook = Callable[[ResponseContext], Awaitable[None]]
BeforeTool = Callable[[ToolCallContext], Awaitable[Allow | Deny | Ask]]
AfterTool = Callable[[ToolOutcomeContext], Awaitable[None]]
AfterTools = Callable[[ToolsContext], Awaitable[str | None]]
StopHook = Callable[[StopContext], Awaitable[Pass | Block | Halt]]


def _functions(hooks: object) -> tuple[StopHook, ...]:
    mend = "Give a list of async functions of one argument"
    if not isinstance(hooks, Iterable):
        raise UsageError("Hooks.stop", f"{brief(hooks)} is no list of functions", mend)
    listed = tuple(cast("Iterable[StopHook]", hooks))
    for hook in listed:
        check_function("Hooks.stop", hook, mend)
    return listed


@attrs.frozen(kw_only=True)
class Hooks:
    """The hooks of a loop.

    before_tool: asked before each call that could run; a rule may be stricter. Where a rule asks someone, that decides
        on the call as the model made it: an input that the hook would put in its place is not used.
    after_tool: shown each call that ran, but for those that the end of the run interrupts.
    after_tools: asked for a note of what the tools of a turn did, beside the next model call
        (see `looplatch.hooks.notes`). The note is handed out as a SystemMessage of the subtype `tool_note`. One that
        raises, or is still at it when the run ends, leaves no note.
    after_response: shown each whole answer, before anything follows from it; it can change nothing.
    stop: asked in order when the model is done; the first that does not pass decides.
    on_transition: shown the record of each move after it is written; it can change nothing.

    Any other hook that raises ends the run as `internal_error`, and its exception is raised to the caller; so does one
    that returns what it may not, by HookMisbehaved. One that is asked when the run is ended is cancelled.
    Raises UsageError for what is no function, and for an on_transition that is async.
    """

    before_tool: BeforeTool | None = None
    after_tool: AfterTool | None = None
    after_tools: AfterTools | None = None
    after_response: ResponseHook | None = None
    stop: tuple[StopHook, ...] = attrs.field(default=(), converter=_functions)
    on_transition: Callable[[Record], None] | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("before_tool", "after_tool", "after_tools", "after_response", "on_transition"):
            hook = getattr(self, name)
            if hook is not None:
                check_function(f"Hooks.{name}", hook, "Give a function")
        moved = self.on_transition
        called: object = getattr(type(moved), "__call__", None)  # noqa: B004 (not whether it can be called, but how)
        if inspect.iscoroutinefunction(moved) or inspect.iscoroutinefunction(called):
            what = f"{hook_name(moved)} is async, and nobody would await it"
            raise UsageError("Hooks.on_transition", what, "Give a plain function: it is called with each record")


def hook_name(hook: object) -> str:
    """What a hook is called in the log."""
    return str(getattr(hook, "__name__", None) or type(hook).__name__)
