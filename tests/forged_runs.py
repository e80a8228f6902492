"""Right logs of small runs, made by the forge: what the tests of the verifier damage."""

from looplatch.states import events as on
from looplatch.states.context import TOTALS
from looplatch.states.level import Level
from looplatch.states.limits import Limits
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.trouble import TroubleKind
from tests.forge import Fields, Forge, call, hexed, result, text

API_ERROR = {"type": "api_error", "status": None, "retry_after_ms": None}
OVERLOADED = {"type": "overloaded_error", "status": 529, "retry_after_ms": 500}


def begun(limits: Limits | None = None, table: Table = TABLE, deadline_ms: int | None = None) -> Forge:
    """A run that has begun, in prepare."""
    forge = Forge(limits, table, deadline_ms)
    forge.join("user", text("question"), form="text")
    forge.send(on.RunStarted())
    return forge


def streaming(
    limits: Limits | None = None, table: Table = TABLE, deadline_ms: int | None = None, tokens: int = 100
) -> Forge:
    """A run that is about to ask the model."""
    forge = begun(limits, table, deadline_ms)
    forge.send(on.ContextReady(tokens=tokens, window=200_000))
    return forge


def respond(forge: Forge, stop_reason: str | None, calls: tuple[str, ...] = (), started: int = 0) -> None:
    """The answer joins the history, and is whole."""
    blocks = [text("answer"), *(call(name) for name in calls)]
    forge.join("assistant", *blocks, message_id="msg", model="m", stop_reason=stop_reason)
    tokens = {"input_tokens": 10, "output_tokens": 10}
    forge.send(on.ModelResponded(stop_reason=stop_reason, calls=calls, begun=started, **tokens))


def complete(forge: Forge) -> Forge:
    """From stream to the end, without calls."""
    forge.answered(forge.ask(), "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    return finish(forge)


def finish(forge: Forge) -> Forge:
    """The stop hook passes, and the log is sealed."""
    forge.end(forge.begin("hook", name="guardian"), "Pass")
    forge.send(on.StopHooksPassed(new_tokens=10))
    forge.seal()
    return forge


def short_run() -> Forge:
    """A question and an answer."""
    return complete(streaming())


def retry(forge: Forge, delay_ms: int = 500, max_tokens: int = 80) -> None:
    """The model call fails and is about to be made again: from stream to stream."""
    forge.answered(forge.ask(max_tokens), None, 0, OVERLOADED)
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="overloaded_error", status=529))
    forge.send(on.TroubleNamed(trouble=TroubleKind.TRANSIENT, delay_ms=delay_ms))
    slept = forge.begin("sleep", delay_ms=delay_ms)
    forge.wait(delay_ms)
    forge.end(slept)
    forge.send(on.BackoffElapsed())


def long_run() -> Forge:
    """An overload and a retry; a turn with a read started mid-stream, a read and a write after it; an answer."""
    forge = streaming()
    retry(forge)
    asked = forge.ask()
    first = forge.tool("a")
    second = forge.tool("b")
    forge.did(second)
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", ("a", "b", "c"), started=2)
    forge.send(on.ToolsRequested(calls=3))
    forge.did(first, is_error=True)
    forge.did(forge.tool("c", access="write"))
    forge.join("user", result("a", is_error=True), result("b"), result("c"))
    forge.send(on.ToolsAnswered(results=3, errors=1))
    forge.send(on.ContextReady(tokens=200, window=200_000))
    return complete(forge)


def overflowing() -> Forge:
    """A run whose prompt does not fit, in recover."""
    forge = begun()
    forge.send(on.ContextReady(tokens=300, window=200))
    return forge


def written(forge: Forge, level: str, outcome: str = "ok", **more: object) -> Fields:
    """A summary is asked for, and ends so."""
    asked: Fields = {"model": "m", "level": level, "by": "model", "max_tokens": 10, "span": None, **more}
    begun = forge.begin("summary", **asked)
    told = {"result": hexed("summary"), "bytes": 9} if outcome == "ok" else {"result": None, "bytes": 0}
    return forge.end(begun, outcome, usage=dict.fromkeys(TOTALS, 0), **told)


def drained() -> Forge:
    """A staged summary is applied, and the run completes."""
    forge = begun()
    forge.send(on.SummaryDue(level=Level.COLLAPSE, breaker_cooled=True))
    written(forge, "collapse", span=[0, 1])
    forge.send(on.CollapseStaged(span_tokens=50, summary_tokens=5))
    forge.send(on.ContextReady(tokens=300, window=200))
    forge.send(on.TroubleNamed(trouble=TroubleKind.OVERFLOW, staged=1, breaker_cooled=True))
    forge.send(on.ContextReady(tokens=100, window=200))
    return complete(forge)


def one_turn(calls: tuple[str, ...] = ("a", "b")) -> Forge:
    """A run that waits in orchestrate for the results of calls that have all ended; their history is still to come."""
    forge = streaming()
    asked = forge.ask()
    for name in calls:
        forge.did(forge.tool(name))
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", calls, started=len(calls))
    forge.send(on.ToolsRequested(calls=len(calls)))
    return forge


def answered(forge: Forge, results: int, errors: int = 0) -> Forge:
    """From orchestrate to the end by way of another answer."""
    forge.send(on.ToolsAnswered(results=results, errors=errors))
    forge.send(on.ContextReady(tokens=200, window=200_000))
    return complete(forge)


def aborted(forge: Forge) -> Forge:
    """The end from outside."""
    forge.send(on.RunAborted())
    forge.seal()
    return forge
