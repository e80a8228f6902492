"""Payloads that are gone, and records whose plain fields make no sense."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.record import MAX_INT
from looplatch.states.verify.log import verify_lines
from tests.forge import Fields, Forge, altered, broken, call, hexed, result, text
from tests.forged_runs import (
    begun,
    complete,
    one_turn,
    short_run,
    streaming,
)


def i4_time() -> Forge:
    return altered(*_first(begun()), ts="yesterday")


def i4_library() -> Forge:
    return altered(*_first(begun()), library=5)


def p4_parent() -> Forge:
    return altered(*_first(begun()), parent="x")


def withdrawn(parent: Fields | None) -> Forge:
    """The budget of a run is withdrawn before it asks anything."""
    forge = begun()
    forge.records[0]["parent"] = parent
    forge.send(on.BudgetWithdrawn())
    return forge


def p4_withdrawn() -> Forge:
    """It answers no call, so that nobody can have withdrawn it."""
    return withdrawn(None)


def test_the_budget_of_a_run_inside_another_can_be_withdrawn() -> None:
    report = verify_lines(withdrawn({"run": "r", "seq": 1, "hash": hexed("call")}).lines())
    assert report.ok, str(report)


def _first(forge: Forge) -> tuple[Forge, Fields]:
    return forge, forge.records[0]


def c2_attempt() -> Forge:
    forge = streaming()
    forge.ask()["attempt"] = 77
    return forge


def p3_tombstone() -> Forge:
    """A tombstone that is for nothing."""
    forge = begun()
    forge.add("tombstone", of=1)
    return forge


def i4_field() -> Forge:
    """A field that no move has."""
    forge = short_run()
    return altered(forge, forge.find(event="ContextReady"), mood="good")


def i4_block() -> Forge:
    """A field that no block has."""
    forge = short_run()
    forge.find(kind="message")["blocks"][0]["text"] = "what was said"
    return forge


def i4_inside() -> Forge:
    """A field of a field."""
    forge = short_run()
    forge.find(kind="effect_end", class_="model")["held"] = {"prompt": 10, "output": 10, "joules": 7}
    return forge


BAD: tuple[Callable[[], Forge], ...] = (
    i4_time, i4_library, p4_parent, p4_withdrawn, c2_attempt, p3_tombstone, i4_field, i4_block, i4_inside,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


def kept_run(payloads: str = "keep") -> tuple[Forge, dict[str, tuple[bytes, bytes]]]:
    """A question whose payload is kept, and an answer whose payload is gone."""
    forge = begun()
    forge.records[0]["payloads"] = payloads
    block = forge.find(kind="message")["blocks"][0]
    store = {block["commitment"]: (b"", b"question")}
    forge.send(on.ContextReady(tokens=100, window=200_000))
    return complete(forge), store


def test_a_payload_that_is_gone_without_a_tombstone_is_told() -> None:
    forge, store = kept_run()
    lines = forge.lines()
    assert broken(verify_lines(lines, payloads=store.get)) == {"P3"}
    assert len(verify_lines(lines, payloads=lambda _: None).violations) == 2
    assert verify_lines(lines).ok
    assert verify_lines(kept_run("digest")[0].lines(), payloads=store.get).ok


def test_a_tombstone_says_that_a_payload_is_gone() -> None:
    forge, store = kept_run()
    forge.add("tombstone", commitment=hexed("answer"), of=1)
    report = verify_lines(forge.lines(), payloads=store.get)
    assert report.ok, str(report)


def test_a_torn_line_after_the_seal_is_no_crash() -> None:
    lines = kept_run()[0].lines()
    report = verify_lines([*lines, lines[-1][:20]])
    assert (broken(report), report.torn) == ({"I8"}, 20)


def test_totals_stop_where_a_record_can_hold_no_more() -> None:
    forge = streaming()
    forge.answered(forge.ask(), "tool_use", MAX_INT)
    forge.join("assistant", call("a"), message_id="msg")
    tokens = {"input_tokens": MAX_INT, "output_tokens": MAX_INT}
    forge.send(on.ModelResponded(stop_reason="tool_use", calls=("a",), begun=0, **tokens))
    forge.send(on.ToolsRequested(calls=1))
    forge.join("user", result("a", is_error=True))
    forge.send(on.ToolsAnswered(results=1, errors=1))
    forge.send(on.ContextReady(tokens=100, window=200_000))
    forge.answered(forge.ask(), "end_turn", 10)
    forge.join("assistant", text("answer"), message_id="msg")
    moved = forge.send(on.ModelResponded(stop_reason="end_turn", calls=(), begun=0, input_tokens=10, output_tokens=10))
    moved["change"] = {name: value for name, value in moved["change"].items() if not name.endswith("tokens")}
    report = verify_lines(forge.lines())
    assert report.ok, str(report)


# --- contents that stand beside those of messages


def all_kept() -> tuple[Forge, dict[str, tuple[bytes, bytes]]]:
    """A run with two tools, one with a result that was cut to be sent, of which all contents are kept."""
    forge = one_turn()
    forge.records[0]["payloads"] = "keep"
    forge.find(kind="effect_end", class_="tool")["full"] = {"commitment": hexed("all of it"), "bytes": 9}
    store = {hexed(said): (b"", said.encode()) for said in CONTENTS}
    for record in forge.records:
        for block in record.get("blocks", []):
            block["bytes"] = len(store[block["commitment"]][1])
        if "result" in record:
            record["bytes"] = len(b"result a")
    return forge, store


CONTENTS = ("question", "answer", "call a", "call b", "result a", "result b", "all of it")


def test_all_contents_are_looked_at() -> None:
    forge, store = all_kept()
    report = verify_lines(forge.lines(), payloads=store.get)
    assert report.ok, str(report)


@pytest.mark.parametrize("said", CONTENTS)
def test_a_content_that_is_another_is_told_wherever_it_is_named(said: str) -> None:
    forge, store = all_kept()
    store[hexed(said)] = (b"", b"?" * len(said))
    assert broken(verify_lines(forge.lines(), payloads=store.get)) == {"P2"}


@pytest.mark.parametrize("said", CONTENTS)
def test_a_content_that_is_gone_is_told_wherever_it_is_named(said: str) -> None:
    forge, store = all_kept()
    del store[hexed(said)]
    assert broken(verify_lines(forge.lines(), payloads=store.get)) == {"P3"}
    forge.add("tombstone", commitment=hexed(said), of=0)
    report = verify_lines(forge.lines(), payloads=store.get)
    assert report.ok, str(report)


def test_a_size_that_is_told_wrong_is_p2_although_the_content_is_right() -> None:
    forge, store = all_kept()
    forge.find(kind="effect_end", class_="tool")["full"]["bytes"] = 8
    assert broken(verify_lines(forge.lines(), payloads=store.get)) == {"P2"}
