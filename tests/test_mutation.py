"""The mutants of `make mutate`: that they are all that guards may get wrong, and that one is what runs then."""

from typing import Any

import pytest

from looplatch.states import events as on
from looplatch.states import guards
from looplatch.states.context import Context
from looplatch.states.level import Level
from looplatch.states.table import TABLE
from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.mutants import MODULES, codes, function_named, mutants

ALL = list(mutants())
LEVELS = "edited, levels_spent, summarised, summary_allowed, summary_withheld"


def changes_of(names: str) -> list[tuple[str, str]]:
    return [(one.was, one.now) for one in ALL if ", ".join(sorted(one.names)) == names]


def test_each_guard_has_mutants() -> None:
    bare = {"summary_pending"}  # it asks for one field
    assert {row.guard.name for row in TABLE} - {name for one in ALL for name in one.names} == bare
    assert {"Decisions.event", "Decisions.is_whole"} <= {name for one in ALL for name in one.names}
    assert EQUIVALENT.keys() <= {one.description for one in ALL}


def test_every_part_of_a_guard_is_changed() -> None:
    trouble, asked, turns = "c.trouble is None", "e.stop_asked is False", "c.turn >= c.limits.max_turns"
    whole = f"{trouble} and {asked} and ({turns})"
    assert sorted(changes_of("turns_spent")) == sorted(
        [
            (whole, f"{trouble} or {asked} or {turns}"),
            (whole, f"{asked} and {turns}"),
            (whole, f"{trouble} and {turns}"),
            (whole, f"{trouble} and {asked}"),
            (trouble, "c.trouble is not None"),
            (asked, "e.stop_asked is not False"),
            ("False", "True"),
            (turns, "c.turn > c.limits.max_turns"),
            (turns, "c.turn < c.limits.max_turns"),
        ]
    )
    assert ("not c.sealed", "c.sealed") in changes_of("unsealed")
    assert changes_of(LEVELS) == [("8", "9"), ("8", "7")]


@pytest.mark.parametrize(
    ("names", "now", "event"),
    [
        ("turns_spent", "c.turn > c.limits.max_turns", on.ToolsAnswered(results=1)),
        (LEVELS, "9", on.SummaryDue(level=Level.COMPACT)),
    ],
)
def test_what_is_installed_is_what_runs(names: str, now: str, event: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [mutant] = [one for one in ALL if (", ".join(sorted(one.names)), one.now) == (names, now)]
    guard = guards.turns_spent if "turns_spent" in mutant.names else guards.levels_spent
    at_the_bound = Context(turn=100, level=8)
    kept = {(module, name): code for module in MODULES for name, code in codes(vars(module)).items()}
    monkeypatch.setattr(guards, "MAX_LEVELS", guards.MAX_LEVELS)  # puts it back in the end
    try:
        before = guard(at_the_bound, event)
        mutant.install()
        assert (before, guard(at_the_bound, event)) == (True, False)
    finally:
        for (module, name), code in kept.items():
            function_named(module, name).__code__ = code
    assert guard(Context(turn=100, level=9), event) is True
