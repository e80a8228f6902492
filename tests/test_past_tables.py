"""Tables of earlier looplatches, and the logs that they judged: written once, valid for ever."""

import hashlib
import json
from pathlib import Path
from typing import Any, cast

import attrs
import orjson
import pytest

from looplatch import replay, verify
from looplatch.audit import Log, read
from looplatch.proving.tables import UnknownTable, known_table
from looplatch.states.check.domains import PROFILES, domain_of
from looplatch.states.check.guards import ask, trials
from looplatch.states.context import Context
from looplatch.states.past import table_of
from looplatch.states.record import seal
from looplatch.states.table import TABLE
from looplatch.states.transition import Guard, Table, fingerprint_of
from looplatch.states.verify.findings import Status
from looplatch.states.verify.log import verify_lines
from looplatch.testing import assert_valid
from tests.compressing import compressed
from tests.forge import broken

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
LOGS = sorted(GOLDEN.glob("*/*.jsonl"))
STATUS: dict[str, Status] = {"waiting": "suspended", "cut": "in_doubt"}  # by the log's name; the others are sealed
FINGERPRINTS = sorted(file.stem for file in (ROOT / "states" / "tables").glob("*.json"))
FIRST = "6c33559c8af6326bb144a4cf8cf4727d745036f1520867ecb86fad891a3babcb"


def table(fingerprint: str) -> Table:
    found = known_table(fingerprint)
    assert found is not None
    return found


def test_the_present_table_is_among_them() -> None:
    """A table that judges runs is written down before it gives way to another.

    After a change of the table: `python tests/golden/write.py table`.
    """
    assert TABLE.fingerprint in FINGERPRINTS
    assert table(TABLE.fingerprint).description == json.loads(json.dumps(TABLE.description))


@pytest.mark.parametrize("fingerprint", FINGERPRINTS)
def test_a_table_is_what_its_name_says(fingerprint: str) -> None:
    assert fingerprint_of(table(fingerprint).description) == fingerprint == table(fingerprint).fingerprint


@pytest.mark.parametrize("name", ["", "../table", "0" * 64, "Z" * 64])
def test_what_is_no_table_is_not_found(name: str) -> None:
    assert known_table(name) is None


def test_a_description_that_names_what_is_gone_is_refused() -> None:
    strange = {**TABLE.description, "guards": {**TABLE.description["guards"], "always": ["mood"]}}
    with pytest.raises(ValueError, match="always"):
        table_of(strange)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_log_of_an_earlier_looplatch_verifies(path: Path) -> None:
    report = verify(path)
    assert report.ok, str(report)
    assert report.status == STATUS.get(path.stem, "sealed")
    assert report.notes == ()


def test_a_log_of_the_first_table_is_judged_by_that_one() -> None:
    """Its compression raised a level where the present table raises none; each finds the other's log wrong."""
    log = read(GOLDEN / "v1" / "hooks.jsonl")
    assert log.records[0]["table"] == FIRST != TABLE.fingerprint
    assert verify_lines(log.lines, table(FIRST)).ok
    assert broken(verify_lines(log.lines)) == {"I6", "M5"}  # nobody knows the table, and its ToolsAnswered cost nothing


def test_the_first_table_and_the_present_one_differ_in_what_they_allow() -> None:
    def forbids(one: Table) -> set[str]:
        return {row.name for row in one if "levels_spent" in row.guard.name}

    assert (len(forbids(table(FIRST))), len(forbids(TABLE))) == (0, 2)


# --- guards keep their meaning


def guards() -> dict[str, tuple[Table, type[Any], Guard[Any]]]:
    """Every guard of every table with each event that it is asked about."""
    return {
        f"{row.guard.name} of {', '.join(row.guard.reads) or 'nothing'}, asked by {row.event.__name__}": (
            one, row.event, row.guard,
        )
        for one in map(table, FINGERPRINTS)
        for row in one
    }  # fmt: skip


def meaning(one: Table, event: type[Any], guard: Guard[Any]) -> str:
    """What a guard says to every combination of what it reads, in short."""
    told: list[Any] = []
    for limits in PROFILES:
        for trial in trials(domain_of(one.counters, cast("Any", event), limits), {}):
            verdict, _ = ask(guard, event, trial, limits)
            told.append([{name: str(value) for name, value in trial.values.items()}, verdict])
    return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def test_a_guard_says_for_ever_what_it_said() -> None:
    """A guard that is to mean something else gets another name, or moves to `past_guards` as it was.

    After a new guard: `python tests/golden/write.py guards`.
    """
    recorded = json.loads((GOLDEN / "guards.json").read_text("utf-8"))
    assert {name: meaning(*one) for name, one in guards().items()} == recorded


def no_limit(c: Context, e: Any) -> bool:
    return c.trouble is None and e.stop_asked is False


def test_a_weaker_guard_means_something_else() -> None:
    (one, event, guard) = next(value for name, value in guards().items() if name.startswith("turns_left of"))
    assert meaning(one, event, attrs.evolve(guard, test=no_limit)) != meaning(one, event, guard)


# --- replay goes by the table that the log names


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_log_of_an_earlier_looplatch_replays(path: Path) -> None:
    log = read(path)
    outcome = replay(log)
    assert outcome.ok, outcome
    assert outcome.agreed == len(log.transitions) + sum(record.kind == "rejected" for record in log.records)
    assert_valid(log, STATUS.get(path.stem, "sealed"))


def naming(fingerprint: str, log: Log) -> Log:
    """The log, as if another table had judged it."""
    genesis = {name: value for name, value in log.records[0].data.items() if name != "hash"}
    return Log([seal({**genesis, "table": fingerprint}), *log.lines[1:]], log.payloads)


def test_what_replays_by_the_present_table_does_not_by_the_first_where_they_differ() -> None:
    """A compression without a level left ends a run now, by a row that the first table had not."""
    logs = [one.log for one in compressed()]
    assert all(replay(log).ok for log in logs)
    assert not all(replay(naming(FIRST, log)).ok for log in logs)
    assert all(replay(naming(FIRST, log), table=TABLE).ok for log in logs)


def test_a_table_that_nobody_knows_is_named() -> None:
    strange = naming("ab" * 32, read(LOGS[-1]))
    with pytest.raises(UnknownTable, match=f"'{'ab' * 32}'.*`table`") as caught:
        replay(strange)
    assert caught.value.fingerprint == "ab" * 32
    assert replay(strange, table=TABLE).ok
