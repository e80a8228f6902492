"""Logs in which messages give way to others, all at once: what may be, and what may not."""

from collections.abc import Callable

import pytest

from looplatch.states import events as on
from looplatch.states.level import Level
from looplatch.states.verify.log import verify_lines
from tests.forge import Fields, Forge, altered, broken, call, hexed, result, text
from tests.forged_runs import answered, complete, one_turn
from tests.test_verify_beside import COMPACTION, compressed, turn


def cut(name: str) -> Fields:
    """A result whose content is another one now."""
    return {**result(name), "commitment": hexed(f"cut {name}")}


def message(role: str, *blocks: Fields, form: str = "blocks") -> Fields:
    return {"role": role, "form": form, "blocks": list(blocks)}


def results_were_cleared() -> Forge:
    forge = turn()
    forge.edit((2, 3, [message("user", cut("a"), cut("b"))]))
    return compressed(forge)


def many_places_at_once() -> Forge:
    """Two turns: the results of each are cut."""
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.send(on.ToolsAnswered(results=2))
    forge.send(on.ContextReady(tokens=200, window=200_000))
    asked = forge.ask()
    begins = [forge.tool(name) for name in ("c", "d")]
    for one in begins:
        forge.did(one)
    forge.answered(asked, "tool_use", 10)
    forge.join("assistant", text("answer"), call("c"), call("d"), message_id="msg", model="m", stop_reason="tool_use")
    tokens = {"input_tokens": 10, "output_tokens": 10}
    forge.send(on.ModelResponded(stop_reason="tool_use", calls=("c", "d"), begun=2, **tokens))
    forge.send(on.ToolsRequested(calls=2))
    forge.join("user", result("c"), result("d"))
    forge.send(on.ToolsAnswered(results=2))
    forge.edit((2, 3, [message("user", cut("a"), result("b"))]), (4, 5, [message("user", result("c"), cut("d"))]))
    forge.send(on.HistoryCompressed(level=Level.SNIP, tokens_before=300, tokens_after=150))
    forge.send(on.ContextReady(tokens=230, window=200_000))
    return complete(forge)


def a_summary_in_the_place_of_all_before() -> Forge:
    forge = turn()
    forge.edit((0, 3, [message("user", text("the summary"), form="text")]))
    return compressed(forge, Level.COMPACT)


def compacted_by_the_api() -> Forge:
    forge = turn()
    forge.edit((0, 1, [message("assistant", COMPACTION)]))
    return compressed(forge, Level.COMPACT)


def something_is_put_in() -> Forge:
    forge = turn()
    forge.edit((1, 1, [message("user", text("a summary"))]))
    return compressed(forge)


GOOD: tuple[Callable[[], Forge], ...] = (
    results_were_cleared, many_places_at_once, a_summary_in_the_place_of_all_before, compacted_by_the_api,
    something_is_put_in,
)  # fmt: skip


@pytest.mark.parametrize("build", GOOD, ids=lambda build: build.__name__)
def test_a_good_log_is_accepted(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert report.ok, str(report)


def e6_not_compressing() -> Forge:
    forge = one_turn()
    forge.join("user", result("a"), result("b"))
    forge.edit((2, 3, [message("user", result("a"), result("b"))]))
    return answered(forge, 2)


def e6_nothing() -> Forge:
    forge = turn()
    forge.edit()
    return compressed(forge)


def e6_nothing_in_the_place_of_nothing() -> Forge:
    forge = turn()
    forge.edit((1, 1, []))
    return compressed(forge)


def e6_no_content() -> Forge:
    forge = turn()
    forge.edit((0, 1, [message("user")]))
    return compressed(forge)


def e6_strange_form() -> Forge:
    forge = turn()
    forge.edit((0, 1, [message("user", text("question"), form="poem")]))
    return compressed(forge)


def e6_two_texts_in_one() -> Forge:
    forge = turn()
    forge.edit((0, 1, [message("user", text("question"), text("more"), form="text")]))
    return compressed(forge)


def e6_strange_role() -> Forge:
    forge = turn()
    forge.edit((0, 1, [message("user", text("question")), message("tool", text("more"))]))
    return compressed(forge)


def e6_digest_of_before() -> Forge:
    """The request names the records from before the edit."""
    forge = turn()
    forge.edit((2, 3, [message("user", cut("a"), cut("b"))]))
    compressed(forge)
    last = [one for one in forge.records if one.get("class") == "model" and one["kind"] == "effect_begin"][-1]
    return altered(forge, last, sent={"count": 3, "digest": hexed("three records")})


def t2_result_lost() -> Forge:
    forge = turn()
    forge.edit((2, 3, [message("user", cut("a"))]))
    return compressed(forge)


def t4_results_turned_round() -> Forge:
    forge = turn()
    forge.edit((2, 3, [message("user", cut("b"), cut("a"))]))
    return compressed(forge)


def i4_field_of_the_record() -> Forge:
    forge = turn()
    forge.edit((2, 3, [message("user", cut("a"), cut("b"))]), index=2)
    return compressed(forge)


def i4_field_of_an_edit() -> Forge:
    forge = turn()
    record = forge.edit((2, 3, [message("user", cut("a"), cut("b"))]))
    record["edits"][0]["why"] = "because"
    return compressed(forge)


def i4_field_of_a_message() -> Forge:
    forge = turn()
    forge.edit((2, 3, [{**message("user", cut("a"), cut("b")), "model": "m"}]))
    return compressed(forge)


def i4_field_of_a_block() -> Forge:
    forge = turn()
    forge.edit((2, 3, [message("user", {**cut("a"), "note": "x"}, cut("b"))]))
    return compressed(forge)


BAD: tuple[Callable[[], Forge], ...] = (
    e6_not_compressing, e6_nothing, e6_nothing_in_the_place_of_nothing, e6_no_content, e6_strange_form,
    e6_two_texts_in_one, e6_strange_role, e6_digest_of_before, t2_result_lost, t4_results_turned_round,
    i4_field_of_the_record, i4_field_of_an_edit, i4_field_of_a_message, i4_field_of_a_block,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


@pytest.mark.parametrize(
    "places",
    [[(2, 4)], [(3, 2)], [(-1, 1)], [(1, 3), (2, 3)], [(2, 3), (0, 1)], [(False, 1)]],
    ids=str,
)
def test_an_edit_that_does_not_fit_the_history_is_told(places: list[tuple[int, int]]) -> None:
    forge = turn()
    record = forge.edit((2, 3, [message("user", cut("a"), cut("b"))]))
    compressed(forge)
    [edit] = record["edits"]
    altered(forge, record, edits=[{**edit, "start": start, "stop": stop} for start, stop in places])
    report = verify_lines(forge.lines())
    assert "E6" in broken(report)
    assert any("the edit does not fit" in violation.message for violation in report.violations)


def left() -> Forge:
    forge = turn()
    forge.leave(2)
    forge.join("user", cut("a"), cut("b"))
    return compressed(forge)


def put() -> Forge:
    forge = turn()
    forge.put(1, "user", text("a summary"))
    return compressed(forge)


@pytest.mark.parametrize("build", [left, put], ids=lambda build: build.__name__)
def test_messages_leave_and_join_in_the_middle_in_older_logs_alone(build: Callable[[], Forge]) -> None:
    forge = build()
    assert verify_lines(forge.lines()).ok
    forge.schema = 3
    assert "E6" in broken(verify_lines(forge.lines()))


def test_an_older_log_has_no_edits() -> None:
    forge = results_were_cleared()
    forge.schema = 2
    report = verify_lines(forge.lines())
    assert "I4" in broken(report)


def test_a_run_goes_on_in_no_older_schema() -> None:
    forge = turn()
    forge.records.append({"kind": "resumed", "mono_ns": 10**12, "v": 2, "epoch": 1})
    told = [one.message for one in verify_lines(forge.lines()).violations if one.invariant == "I6"]
    assert told == ["the schema changes where nobody new writes"]


def test_what_was_edited_is_followed_to_the_end() -> None:
    """The answer after an edit names what stands there then, and is judged as any other."""
    forge = results_were_cleared()
    [seal] = [one for one in forge.records if one["kind"] == "terminal"]
    altered(forge, seal, history={"count": 4, "digest": hexed("another history")})
    assert broken(verify_lines(forge.lines())) == {"E6"}
