"""Exploring tables: the numbers of the table, and one small broken table for each fault."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from looplatch.cli import main
from looplatch.states import events as on
from looplatch.states import guards as when
from looplatch.states.check.explore import explore
from looplatch.states.check.longest import longest_way
from looplatch.states.commands import Command
from looplatch.states.context import Context
from looplatch.states.event import Event
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue, Terminal
from looplatch.states.state import State
from looplatch.states.table import TABLE
from looplatch.states.transition import Counter, Guard, Table, Transition

NOTHING = "sound"


def test_the_table_keeps_every_promise() -> None:
    """However often a run stumbles, it ends; nothing overlaps, nothing is missing, every row can be taken."""
    found = explore()
    assert found.faults == ()
    assert found.ok
    assert found.reasons == tuple(map(str, Continue))
    assert found.configurations > 50_000
    assert found.moves > found.configurations
    assert found.longest is not None
    assert found.longest > 100
    assert found.measure[0] == "turn"
    assert set(found.measure) <= {counter.name for counter in TABLE.counters}


# --- a small table: ask, fail and try again up to a limit, answer


@attrs.frozen
class Ask(Command):
    answers: ClassVar[tuple[type[Event], ...]] = (on.AnswerGiven, on.BackoffElapsed)


@attrs.frozen
class Wait(Command):
    answers: ClassVar[tuple[type[Event], ...]] = (on.BackoffElapsed,)


@attrs.frozen
class Shout(Command):
    """Nobody answers."""


def named(name: str, test: Callable[[Context, Any], bool], *reads: str) -> Guard[Any]:
    return Guard(name, test, reads, "")


LEFT = named("left", lambda c, e: c.attempts < c.limits.max_attempts, "attempts")
SPENT = named("spent", lambda c, e: c.attempts >= c.limits.max_attempts, "attempts")
ATTEMPTS = Counter(name="attempts", bound="max_attempts", doc="")


def row(event: type[Event], guard: Guard[Any], target: State | None, *commands: Command, **more: Any) -> Transition:
    return Transition(sources=(State.PREPARE,), event=event, guard=guard, target=target, commands=commands, **more)


ROWS = {
    "start": row(on.RunStarted, when.always, None, Ask()),
    "answer": row(on.AnswerGiven, when.always, State.COMPLETED, terminal=Terminal.ANSWERED),
    "again": row(on.BackoffElapsed, LEFT, None, Ask(), raises=("attempts",)),
    "over": row(on.BackoffElapsed, SPENT, State.FAILED, terminal=Terminal.MODEL_ERROR),
}


def table(**changes: Transition | None) -> Table:
    """The small table with rows changed, added, or left out."""
    rows = {**ROWS, **changes}
    return Table(rows=tuple(one for one in rows.values() if one is not None), counters=(ATTEMPTS,))


def changed(name: str, **changes: Any) -> Table:
    return table(**{name: attrs.evolve(ROWS[name], **changes)})


def test_the_numbers_of_a_small_table() -> None:
    """Counted by hand: the beginning, a question after 0, 1 and 2 failures, and the two ends; the one from outside
    that begins it leads from every question back to that one, which makes three moves more."""
    found = explore(table(), Limits(max_attempts=2))
    assert found.faults == ()
    assert found.configurations == 1 + 3 + 2
    assert found.moves == 1 + 3 + (2 + 2 + 2)
    assert found.longest == 3  # two failures and the third, or an answer
    assert found.measure == ("attempts",)


FAULTS: dict[str, Table] = {
    "prepare, BackoffElapsed: no guard holds for attempts=2": table(over=None),
    "prepare, BackoffElapsed: the guards left and spent both hold for attempts=1": changed(
        "over", guard=named("spent", lambda c, e: c.attempts > 0, "attempts")
    ),
    "prepare awaits AnswerGiven, and has no row": table(answer=None),
    "prepare cannot go on: no awaited event has a row that holds": table(answer=None, again=None, over=None),
    "the row prepare --AnswerGiven[always]--> stays orders nothing that would bring another event": table(
        answer=row(on.AnswerGiven, when.always, None, Shout())
    ),
    "the row prepare --BackoffElapsed[left]--> stays raises attempts past its bound of 2": table(
        again=attrs.evolve(ROWS["again"], guard=named("left", lambda c, e: True)), over=None
    ),
    "no run can take the row prepare --BackoffElapsed[spent]--> failed": changed(
        "again", raises=(), sets=(("attempts", 0),)
    ),
    "no run goes on for the reason next_turn": table(
        next=row(on.ToolsAnswered, when.always, State.PREPARE, Ask(), reason=Continue.NEXT_TURN)
    ),
    "a run may go round for ever: prepare --BackoffElapsed[left]--> stays": changed("again", raises=()),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named(fault: str) -> None:
    found = explore(FAULTS[fault], Limits(max_attempts=2))
    assert fault in found.faults
    assert not found.ok


def test_a_run_that_may_go_round_has_no_longest() -> None:
    assert explore(changed("again", raises=()), Limits(max_attempts=2)).longest is None


def test_a_cycle_that_a_reset_opens_is_named_in_full() -> None:
    """One row takes back what the other raises."""
    reset = row(on.AnswerGiven, when.always, None, Ask(), resets=("attempts",))
    found = explore(table(answer=reset), Limits(max_attempts=2))
    (cycle,) = [fault for fault in found.faults if "for ever" in fault]
    assert "prepare --AnswerGiven[always]--> stays" in cycle


GRAPHS: list[tuple[list[list[int]], int, list[int]]] = [
    ([[]], 0, []),
    ([[1, 2], [2], []], 2, []),
    ([[1], [2], [1]], 0, [1, 2]),
    ([[0]], 0, [0]),
    ([[1, 2, 3], [3], [1], [4], []], 4, []),
]


@pytest.mark.parametrize(("forth", "length", "cycle"), GRAPHS)
def test_the_longest_way(forth: list[list[int]], length: int, cycle: list[int]) -> None:
    found = longest_way(forth)
    assert (found.length, found.cycle) == (length, cycle)


# --- the command


OWN = """
import sys
sys.path.insert(0, {root!r})
from tests.test_explore import ATTEMPTS, ROWS, Table, changed, table
GOOD, BAD, NUMBER = table(), changed("again", raises=()), 5
ONE = Table(rows=tuple(ROWS.values())[:1], counters=(ATTEMPTS,))
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path, request: pytest.FixtureRequest) -> str:
    """The name of a module of the user's, in the current folder."""
    name = f"tables_of_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{name}.py").write_text(OWN.format(root=str(root)))
    monkeypatch.chdir(tmp_path)
    return name


@pytest.mark.parametrize(
    ("named", "limits", "problem"),
    [
        ("GONE", [], "--table: {own}:GONE cannot be had"),
        ("NUMBER", [], "--table: {own}:NUMBER is a int. Name a looplatch.states.Table"),
        ("GOOD", ["--limit", "mood=5"], "--limit: 'mood=5' is none"),
        ("GOOD", ["--limit", "max_turns=many"], "--limit: 'max_turns=many' is none"),
    ],
)
def test_what_cannot_be_checked_is_told(
    named: str, limits: list[str], problem: str, own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--table", f"{own}:{named}", *limits]) == 2
    assert problem.format(own=own) in capsys.readouterr().err


def test_a_table_whose_shape_is_wrong_is_not_explored(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of so few rows leaves most events and reasons without one."""
    assert main(["check", "--table", f"{own}:BAD"]) == 1
    told = capsys.readouterr().out
    assert "the reason next_turn has no row" in told
    assert "configurations" not in told


def test_one_row_is_no_rows(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--table", f"{own}:ONE"]) == 1
    assert capsys.readouterr().out.startswith("1 row, 1 counter, fingerprint ")


def test_the_table_is_checked_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--limit", "max_continuations=0", "--limit", "max_blocks=1", "--limit", "max_turns=1"]) == 1
    told = capsys.readouterr().out
    assert f"fingerprint {TABLE.fingerprint}" in told
    assert "bounded by output_recoveries" in told or "bounded by turn" in told
    assert "no run can take the row recover --TroubleNamed[blocks_left]--> prepare" in told
