"""Whatever stands in a record: the verifier reports, and never raises, whoever hashes the file anew."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from looplatch.cli import main
from looplatch.cli.exits import Exit
from looplatch.proving.tables import known_table
from looplatch.states.record import MAX_INT
from looplatch.states.verify.log import verify_lines
from looplatch.states.verify.values import is_list, is_object
from tests.forge import Fields, broken
from tests.test_verify import rehashed

LOGS = sorted((Path(__file__).parent / "golden").glob("v*/*.jsonl"))
Way = tuple[str | int, ...]

NUMBERS = st.integers(-MAX_INT, MAX_INT) | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="utf-8"), max_size=4)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@cache
def records_of(log: Path) -> tuple[Fields, ...]:
    return tuple(json.loads(line) for line in log.read_bytes().splitlines())


def places(value: Any, path: Way = ()) -> list[Way]:
    """The ways to all values inside of `value`."""
    inner: list[tuple[str | int, Any]] = []
    if is_object(value):
        inner = list(value.items())
    elif is_list(value):
        inner = list(enumerate(value))
    return [way for name, held in inner for way in ((*path, name), *places(held, (*path, name)))]


def with_value(record: Fields, path: Way, value: Any) -> Fields:
    changed: Fields = json.loads(json.dumps(record))
    held: Any = changed
    for step in path[:-1]:
        held = held[step]
    held[path[-1]] = value
    return changed


@given(st.data())
@settings(max_examples=250)
def test_no_value_in_any_field_makes_the_verifier_raise(data: st.DataObject) -> None:
    records = list(records_of(data.draw(st.sampled_from(LOGS))))
    place = data.draw(st.integers(0, len(records) - 1) | st.just(0))
    path = data.draw(st.sampled_from([path for path in places(records[place]) if path[0] not in ("kind", "op")]))
    records[place] = with_value(records[place], path, data.draw(VALUES))
    try:
        lines = rehashed(records, requests=True)
    except (TypeError, KeyError, ValueError, IndexError, AttributeError):
        reject()  # the forger could not even say what it stands for
    verify_lines(lines, past=known_table)


GENESIS_LIMITS: list[Any] = [None, 5, "none", [], {}, [["max_turns", 5]], {"max_turns": 5}, {"strange": 1}]


@pytest.mark.parametrize("limits", GENESIS_LIMITS)
def test_a_genesis_without_its_limits_is_found(limits: Any) -> None:
    assert found_with_limits(limits) == {"I4"}


COUNTS = ("max_turns", "max_blocks", "max_low_progress", "breaker_threshold")  # at least one
BUDGETS = ("output_target", "max_total_tokens", "max_cost_micro_usd", "max_wall_ms")


@pytest.mark.parametrize("value", [0, None, -1, "x", True, [], {}])
def test_a_limit_that_is_none_is_found(value: Any) -> None:
    limits = records_of(LOGS[-1])[0]["limits"]
    names = COUNTS if value == 0 else limits.keys() - (BUDGETS if value is None else ())
    for name in names:
        assert found_with_limits({**limits, name: value}) == {"I4"}, name


def found_with_limits(limits: Any) -> set[str]:
    records = list(records_of(LOGS[-1]))
    records[0] = {**records[0], "limits": limits}
    return broken(verify_lines(rehashed(records, requests=True), past=known_table))


@pytest.mark.parametrize("log", [LOGS[0], LOGS[-1]], ids=lambda log: f"{log.parent.name}-{log.stem}")
def test_every_byte_of_a_genesis_is_watched(log: Path) -> None:
    """Each byte replaced in several ways, among them other digits: another value of the same form."""
    first, *rest = log.read_bytes().splitlines(keepends=True)
    unseen: list[tuple[int, int]] = []
    for place, old in enumerate(first):
        for new in {*b'09a"', old ^ 1, old ^ 32, old ^ 128} - {old}:
            line = first[:place] + bytes([new]) + first[place + 1 :]
            report = verify_lines([line, *rest[:1]], past=known_table)
            if not any(one.line == 1 for one in report.violations):
                unseen.append((place, new))
    assert unseen == []


# What is said twice, or follows from what else is said: the log, the record, the field, values, what is broken.
FORGERIES: list[tuple[str, Fields, str, list[Any], str]] = [
    ("hooks", {"event": "StopHooksPassed"}, "fields.new_tokens", [0, 35, 37, -1, 1_036], "C4"),
    ("hooks", {"event": "ModelResponded"}, "fields.begun", [1, 1_000], "M13"),
    ("hooks", {"kind": "effect_begin", "class": "hook"}, "name", ["", 7, None], "I4"),
    ("hooks", {"kind": "effect_begin", "class": "hook"}, "point", ["", "stops", 7, None], "I4"),
    ("tools", {"kind": "effect_begin", "class": "tool"}, "access", ["", None], "T5"),
    ("hooks", {"kind": "effect_end", "class": "hook", "outcome": "Pass"}, "reason", [1, "x", "", "ab" * 32], "I4"),
    ("hooks", {"kind": "effect_end", "class": "hook", "outcome": "Pass"}, "bytes", [1, -1, True, "x", None], "I4"),
    ("hooks", {"kind": "effect_end", "class": "hook", "outcome": "Block"}, "reason", [None, 1, "x", "AB" * 32], "I4"),
    ("hooks", {"kind": "effect_end", "class": "hook", "outcome": "Block"}, "bytes", [0, -1, True, None], "I4"),
    ("hooks", {"kind": "effect_end", "class": "hook", "outcome": "ok"}, "outcome", ["", 7, None], "I4"),
    ("hooks", {"event": "TroubleNamed"}, "fields.new_tokens", [0, 1_000_000], "C4"),
    ("refused", {"event": "TroubleNamed"}, "fields.new_tokens", [1, -1], "M8"),
    ("refused", {"event": "TroubleNamed"}, "fields.staged", [1, -1], "M8"),
    ("refused", {"event": "TroubleNamed"}, "fields.output_limit", [1, -1], "M8"),
    ("refused", {"event": "TroubleNamed"}, "fields.can_summarise", [True], "M8"),
    ("refused", {"event": "TroubleNamed"}, "fields.breaker_cooled", [True], "M8"),
]


@pytest.mark.parametrize(("name", "wanted", "field", "values", "invariant"), FORGERIES)
def test_what_follows_from_other_records_cannot_be_forged(
    name: str, wanted: Fields, field: str, values: list[Any], invariant: str
) -> None:
    (log,) = (log for log in LOGS if log.stem == name and log.parent.name == "v2")
    records = list(records_of(log))
    place = max(n for n, one in enumerate(records) if all(one.get(key) == value for key, value in wanted.items()))
    for value in values:
        forged = list(records)
        forged[place] = with_value(records[place], tuple(field.split(".")), value)
        report = verify_lines(rehashed(forged, requests=True), past=known_table)
        found = [(one.invariant, one.line) for one in report.violations]
        assert (invariant, place + 1) in found, (value, found)


COMMANDS = (
    ("verify", Exit.FAILED),
    ("verify --format json", Exit.FAILED),
    ("verify --format sarif", Exit.FAILED),
    ("view -o page.html", Exit.GOOD),
    ("explain", Exit.GOOD),
    ("export --to csv", Exit.GOOD),
    ("export --to xes", Exit.GOOD),
    ("diagram --log", Exit.GOOD),
    (f"diff {LOGS[-1]}", Exit.FAILED),
)


@pytest.mark.parametrize(("command", "code"), COMMANDS)
def test_every_command_copes_with_limits_that_are_none(
    command: str, code: Exit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written = LOGS[-1].read_bytes()
    Path("flipped.jsonl").write_bytes(written.replace(b'"max_blocks":5', b'"max_blocks":0', 1))
    assert main([*command.split(), "flipped.jsonl"]) == code
    shown = capsys.readouterr()
    assert shown.err == ""
    if command == "verify --format json":
        found = [(one["invariant"], one["line"]) for one in json.loads(shown.out)["violations"]]
        assert found[:2] == [("I3", 1), ("I4", 1)]


@pytest.mark.parametrize("depth", [200, 253, 254, 1000, 1023, 2000])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_record_that_is_nested_deeply_is_found(depth: int, place: int) -> None:
    lines = LOGS[-1].read_bytes().splitlines(keepends=True)
    lines[place] = lines[place][:-2] + b',"zz":' + b"[" * depth + b"]" * depth + b"}\n"
    report = verify_lines(lines, past=known_table)
    assert report.violations[0].line == (place if place >= 0 else len(lines) - 1) + 1
    assert "I4" in broken(report)
