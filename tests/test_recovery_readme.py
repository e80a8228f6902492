"""What recovery/README.md says of the levels, the strategies and the state is so."""

import importlib
import re
from pathlib import Path

import attrs
import pytest

from looplatch import Compression
from looplatch.states.context import Context
from looplatch.states.level import Level
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue, Strategy
from looplatch.states.table import TABLE

# The fields of the loop's state in the documents that this loop follows.
THERE = (
    "messages",
    "toolUseContext",
    "autoCompactTracking",
    "maxOutputTokensRecoveryCount",
    "hasAttemptedReactiveCompact",
    "maxOutputTokensOverride",
    "pendingToolUseSummary",
    "stopHookActive",
    "turnCount",
    "transition",
)


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "recovery" / "README.md").read_text(encoding="utf-8")


def section(page: str, title: str) -> str:
    return page.partition(f"\n## {title}")[2].partition("\n## ")[0]


def rows(text: str) -> list[list[str]]:
    """The cells of each row of the only table in `text`."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def names(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def test_the_thresholds_are_the_defaults(page: str) -> None:
    told = {
        names(row[0])[0]: [float(number) for number in row[1].split(", ")] for row in rows(section(page, "Compression"))
    }
    usual = Compression()
    assert told == {
        "snip": [usual.snip_at],
        "micro": [usual.micro_at],
        "collapse": [usual.stage_at, usual.collapse_at],
        "compact": [usual.compact_at],
    }
    assert list(told) == [str(level) for level in Level]


def test_every_setting_that_is_named_is_one(page: str) -> None:
    named = re.findall(r"`(\w+)=True`|`(cool_down_s)`", section(page, "Compression"))
    fields = {field.name for field in attrs.fields(Compression)}
    assert {one or other for one, other in named} <= fields
    assert len(named) == 4


def test_each_strategy_has_its_reason_and_its_guards(page: str) -> None:
    told = rows(section(page, "Recovery"))
    assert [names(row[0])[0] for row in told[:1]] == [str(Continue.NEXT_TURN)]
    pairs = [(names(row[1])[0], names(row[0])[0]) for row in told[1:]]
    assert pairs == [
        (str(strategy), str(next(row.reason for row in TABLE if row.strategy is strategy))) for strategy in Strategy
    ]
    for row in told[1:]:
        module = importlib.import_module(f"looplatch.recovery.strategies.{names(row[1])[0]}")
        assert names(row[3]) == [guard.name for guard in module.GUARDS]
    limits = {field.name for field in attrs.fields(Limits)}
    assert {name for row in told for name in names(row[4])} <= limits


def test_the_state_of_the_source_and_our_context_are_both_whole(page: str) -> None:
    told = section(page, "The loop's state")
    assert [names(row[0])[0] for row in rows(told)] == list(THERE)
    ours = [name for row in rows(told) for name in names(row[1])]
    rest = names(told.partition("What our `Context` has beside that:")[2])
    fields = [field.name for field in attrs.fields(Context)]
    assert sorted([*ours, *rest]) == sorted(fields)
