"""Bad logs for the invariants of tools and effects, each rejected for its own alone."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.log import verify_lines
from tests.forge import RUN, Forge, altered, broken, call, hexed, result, text
from tests.forged_runs import (
    API_ERROR,
    aborted,
    answered,
    begun,
    complete,
    finish,
    long_run,
    one_turn,
    respond,
    retry,
    short_run,
    streaming,
)

# --- tools


def t1() -> Forge:
    """Another turn asks with an id that was there before (it is not carried out, or its key would occur twice, too)."""
    forge = one_turn(("a",))
    forge.join("user", result("a"))
    forge.send(on.ToolsAnswered(results=1))
    forge.send(on.ContextReady(tokens=200, window=200_000))
    forge.answered(forge.ask(), "tool_use", 10)
    respond(forge, "tool_use", ("a",))
    forge.send(on.ToolsRequested(calls=1))
    forge.join("user", result("a", is_error=True))
    return answered(forge, 1, 1)


def t2_missing() -> Forge:
    forge = one_turn()
    forge.join("user", result("a"))
    return answered(forge, 1)


def t2_none() -> Forge:
    """The run ends from outside, and its calls stay without results."""
    return aborted(one_turn())


def t2_twice() -> Forge:
    forge = one_turn()
    forge.join("user", result("a"), result("a"), result("b"))
    return answered(forge, 3)


def t2_count() -> Forge:
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    return answered(forge, 1)


def t3_orphan() -> Forge:
    forge = streaming()
    forge.extend("user", result("z", is_error=True))
    return complete(forge)


def t3_late() -> Forge:
    """A text before the results, in what the run started from."""
    forge = Forge()
    forge.join("user", text("question"))
    forge.join("assistant", call("a"))
    forge.join("user", text("well"), result("a"))
    forge.send(on.RunStarted())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def t4() -> Forge:
    forge = one_turn()
    forge.join("user", result("b"), result("a"))
    return answered(forge, 2)


def _overlapping(first: str, second: str) -> Forge:
    forge = streaming()
    asked = forge.ask()
    one, two = forge.tool("a", access=first), forge.tool("b", access=second)
    forge.did(one)
    forge.did(two)
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", ("a", "b"), started=2)
    forge.send(on.ToolsRequested(calls=2))
    forge.join("user", result("a"), result("b"))
    return answered(forge, 2)


def t5_write_beside_read() -> Forge:
    return _overlapping("read", "write")


def t5_read_beside_write() -> Forge:
    return _overlapping("write", "read")


def t5_many() -> Forge:
    """Eleven reads at once."""
    names = tuple("abcdefghijk")
    forge = streaming()
    asked = forge.ask()
    for tool in [forge.tool(name) for name in names]:
        forge.did(tool)
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", names, started=11)
    forge.send(on.ToolsRequested(calls=11))
    forge.join("user", *(result(name) for name in names))
    return answered(forge, 11)


def t7_mark() -> Forge:
    """A tool failed, and its result is marked as none."""
    forge = one_turn()
    forge.find(kind="effect_end", class_="tool")["is_error"] = True
    forge.join("user", result("a"), result("b"))
    return answered(forge, 2)


def t7_never_ran() -> Forge:
    """A call that never began has a result that is no error."""
    forge = streaming()
    forge.answered(forge.ask(), "tool_use", 10)
    respond(forge, "tool_use", ("a",))
    forge.send(on.ToolsRequested(calls=1))
    forge.join("user", result("a"))
    return answered(forge, 1)


def t7_other_result() -> Forge:
    forge = one_turn()
    forge.join("user", result("a"), result("b") | {"commitment": hexed("another")})
    return answered(forge, 2)


def t8_name() -> Forge:
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.find(kind="genesis")["reads"] = ["look", "delete"]
    return altered(answered(forge, 2), forge.find(class_="tool"), name="delete")


def t8_input() -> Forge:
    forge = long_run()
    return altered(forge, forge.find(tool_use_id="c"), input=hexed("another input"))


def t9() -> Forge:
    """A call was carried out, the answer was cut, and what stays of it does not show the call."""
    forge = streaming()
    asked = forge.ask()
    forge.did(forge.tool("a"))
    forge.answered(asked, None, error=API_ERROR)
    forge.send(on.ModelFailed(trouble=TroubleKind.TRANSIENT, failure="api_error", begun=1))
    return aborted(forge)


# --- effects


def e1_twice() -> Forge:
    forge = short_run()
    hook = forge.find(kind="effect_end", class_="hook")
    forge.records.insert(forge.records.index(hook), dict(hook))
    return forge


def e1_class() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(kind="effect_end", class_="hook"), **{"class": "sleep"})


def e1_number() -> Forge:
    """An effect that is named by another record's number than its own."""
    forge = short_run()
    return altered(forge, forge.find(kind="effect_begin", class_="hook"), effect=1)


def e2_state() -> Forge:
    """A hook in prepare."""
    forge = begun()
    forge.end(forge.begin("hook", name="guardian"))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def e2_left() -> Forge:
    """Orchestrate is left while a tool still runs."""
    forge = streaming()
    asked = forge.ask()
    tool = forge.tool("a")
    forge.answered(asked, "tool_use", 10)
    respond(forge, "tool_use", ("a",), started=1)
    forge.send(on.ToolsRequested(calls=1))
    forge.join("user", result("a"))
    forge.send(on.ToolsAnswered(results=1))
    forge.did(tool)
    forge.send(on.ContextReady(tokens=200, window=200_000))
    return complete(forge)


def e3() -> Forge:
    forge = streaming()
    forge.answered(forge.ask(), None)
    first, second = forge.ask(), forge.ask()
    forge.answered(first, None)
    forge.answered(second, "end_turn", 10)
    respond(forge, "end_turn")
    forge.send(on.AnswerGiven())
    return finish(forge)


def e4_key() -> Forge:
    forge = long_run()
    return altered(forge, forge.find(tool_use_id="c"), idempotency_key=f"{RUN}:d")


def e4_twice() -> Forge:
    forge = one_turn()
    forge.did(forge.tool("b"))
    forge.join("user", result("a"), result("b"))
    return answered(forge, 2)


def e5() -> Forge:
    """The retry asks for more tokens than the request that failed."""
    forge = streaming(tokens=4_100)
    retry(forge, max_tokens=40)
    return complete(forge)


def e6_message_missing() -> Forge:
    """The request names one message record more than the log has."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    answered(forge, 2)
    last = [one for one in forge.records if one.get("class") == "model" and one["kind"] == "effect_begin"][-1]
    return altered(forge, last, sent={"count": 4, "digest": hexed("four records")})


def e6_index() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(kind="message", role="assistant"), index=2)


def e6_left() -> Forge:
    """A message leaves where nothing is compressed."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.join("user", text("and hurry"))
    forge.leave(3)
    return answered(forge, 2)


def e6_role() -> Forge:
    forge = Forge()
    forge.join("assistant", text("answer"))
    forge.send(on.RunStarted())
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


def e6_empty() -> Forge:
    forge = begun()
    forge.extend("user")
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge)


BAD: tuple[Callable[[], Forge], ...] = (
    t1, t2_missing, t2_none, t2_twice, t2_count, t3_orphan, t3_late, t4, t5_write_beside_read,
    t5_read_beside_write, t5_many, t7_mark, t7_never_ran, t7_other_result, t8_name, t8_input, t9, e1_twice,
    e1_class, e1_number, e2_state, e2_left, e3, e4_key, e4_twice, e5, e6_message_missing, e6_index, e6_left,
    e6_role,     e6_empty,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)
