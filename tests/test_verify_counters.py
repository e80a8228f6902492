"""Bad logs for the invariants of the counters, each rejected for its own alone."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from looplatch.states import events as on
from looplatch.states.level import Level
from looplatch.states.limits import Limits
from looplatch.states.table import TABLE
from looplatch.states.transition import Guard, Table
from looplatch.states.verify.log import verify_lines
from tests.forge import Forge, altered, broken
from tests.forged_runs import (
    begun,
    complete,
    long_run,
    retry,
    short_run,
    streaming,
)


def c1() -> Forge:
    forge = long_run()
    change = forge.find(event="ToolsAnswered")["change"]
    return altered(forge, forge.find(event="ToolsAnswered"), change=change | {"turn": 3})


def c2_jump() -> Forge:
    forge = long_run()
    return altered(forge, forge.find(event="TroubleNamed"), change={"attempts": 2})


def _unbounded() -> Table:
    """A table whose compression no guard bounds."""
    rows = tuple(
        attrs.evolve(row, guard=_unguarded(row.guard, edited=True, summarised=False, levels_spent=False))
        if row.event is on.HistoryCompressed
        else row
        for row in TABLE.rows
    )
    return Table(rows=rows, counters=TABLE.counters, decisions=TABLE.decisions)


def _unguarded(old: Guard[Any], **verdicts: bool) -> Guard[Any]:
    return Guard(old.name, lambda c, e: verdicts[old.name], (), "")


def c2_bound() -> Forge:
    """More compression levels in one visit than there are."""
    forge = begun(table=_unbounded())
    for number in range(9):
        forge.send(on.HistoryCompressed(level=Level.SNIP, tokens_before=100 - number, tokens_after=99 - number))
    forge.send(on.ContextReady(tokens=171, window=200_000))
    return complete(forge)


def endless() -> Table:
    """A table whose retries raise no counter."""
    rows = tuple(attrs.evolve(row, raises=()) if row.raises == ("attempts",) else row for row in TABLE.rows)
    return Table(rows=rows, counters=TABLE.counters, decisions=TABLE.decisions)


def c3() -> Forge:
    forge = streaming(table=endless())
    for _ in range(4):
        retry(forge)
    return complete(forge)


def c4_total() -> Forge:
    forge = short_run()
    change = forge.find(event="ModelResponded")["change"]
    return altered(forge, forge.find(event="ModelResponded"), change=change | {"output_tokens": 9})


def c4_event() -> Forge:
    """The event brings other tokens than the model call used."""
    forge = short_run()
    forge.find(kind="effect_end", class_="model")["usage"]["output_tokens"] = 9
    return forge


def c5_other() -> Forge:
    forge = long_run()
    return altered(forge, forge.find(class_="sleep"), delay_ms=400)


def c5_retry_after() -> Forge:
    forge = streaming()
    retry(forge, delay_ms=399)
    return complete(forge)


def c5_short() -> Forge:
    forge = long_run()
    began = forge.find(kind="effect_begin", class_="sleep")["mono_ns"]
    return altered(forge, forge.find(kind="effect_end", class_="sleep"), mono_ns=began + 300_000_000)


def c6() -> Forge:
    forge = streaming(deadline_ms=1_000)
    forge.wait(2_000)
    return complete(forge)


def c7() -> Forge:
    forge = begun()
    forge.send(on.HistoryCompressed(level=Level.SNIP, tokens_before=100, tokens_after=100))
    forge.send(on.ContextReady(tokens=180, window=200_000))
    return complete(forge)


BAD: tuple[Callable[[], Forge], ...] = (
    c1, c2_jump, c4_total, c4_event, c5_other, c5_retry_after, c5_short, c6, c7,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


def test_a_circle_of_a_table_that_has_one_is_found() -> None:
    report = verify_lines(c3().lines(), table=endless())
    assert broken(report) == {"C3"}, str(report)


def test_a_counter_past_its_bound_is_found_whatever_the_table_lets_pass() -> None:
    report = verify_lines(c2_bound().lines(), table=_unbounded())
    assert broken(report) == {"C2"}, str(report)


def test_a_limit_of_the_run_is_taken_from_its_genesis() -> None:
    """With one turn allowed, a second one needs a guard that lies."""
    forge = long_run()
    forge.records[0]["limits"] = Limits(max_turns=1).fields()
    report = verify_lines(forge.lines())
    assert broken(report) == {"M5", "C1"}, str(report)
