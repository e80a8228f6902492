"""The readers of common records: they take what the schema allows, and nothing that its fields do not."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.states.record import SCHEMA
from looplatch.states.shapes import BLOCK, EVERY, INSIDE, RECORDS
from looplatch.states.verify.kinds import COMMON, common_of, move_kind
from looplatch.states.verify.shapes import shape_of
from looplatch.states.verify.values import is_list, is_object
from tests.forge import Fields, encode
from tests.forged_runs import long_run, one_turn, short_run
from tests.test_verify_mutated import LOGS, VALUES, places, records_of, with_value

RUNS = [
    *(records for log in LOGS if (records := records_of(log))[0]["v"] == SCHEMA),
    *(tuple(map(json.loads, run.lines())) for run in (short_run(), long_run(), one_turn())),
]


def is_common(record: Fields) -> bool:
    return (move_kind(record["event"]) if record["kind"] == "transition" else shape_of(record)) in COMMON


def read(line: bytes) -> Fields:
    common = common_of(line)
    if common is None:
        raise ValueError("the line is of no common kind")
    return common.read(line)


COMMON_RECORDS = [record for run in RUNS for record in run if is_common(record)]


def no_float(spelled: str) -> Any:
    raise AssertionError(f"{spelled} was taken")


def names_in(record: Fields) -> set[str]:
    """The names that are not in the schema."""
    strange = set(record) - {*EVERY, *RECORDS[shape_of(record)]}
    for name, value in record.items():
        if name in INSIDE and is_object(value):
            strange |= set(value) - set(INSIDE[name])
        elif name in ("blocks", "unfinished") and is_list(value):
            strange |= {inner for block in value for inner in block if inner not in BLOCK}
    return strange


@pytest.mark.parametrize("run", RUNS, ids=range(len(RUNS)))
def test_every_common_record_of_a_good_log_is_taken_as_it_stands(run: tuple[Fields, ...]) -> None:
    common = [record for record in run if is_common(record)]
    assert len(common) >= 5
    assert [json.loads(json.dumps(read(line))) for line in map(encode, common)] == common


@given(st.data())
@settings(max_examples=300)
def test_a_reader_refuses_what_is_not_in_the_schema_or_leaves_it_out(data: st.DataObject) -> None:
    """What it leaves out is missed when the record is encoded again, so the line is looked at closely."""
    record = data.draw(st.sampled_from(COMMON_RECORDS))
    path = data.draw(st.sampled_from(places(record)))
    line = encode(with_value(record, path, data.draw(VALUES)))
    try:
        taken = read(line)
    except ValueError:
        return
    if orjson.dumps(taken, option=orjson.OPT_SORT_KEYS) == line:
        assert json.dumps(taken, sort_keys=True) == json.dumps(json.loads(line, parse_float=no_float), sort_keys=True)
        assert names_in(taken) == set()


WRONG: list[tuple[str, str, Any]] = [
    ("message", "index", True),
    ("message", "index", 1.0),
    ("message", "op", "edit"),
    ("message", "role", None),
    ("message", "redacted", []),
    ("transition", "fields", {"tokens": 1.5}),
    ("transition", "fields", []),
    ("transition", "guards", [["always", 1]]),
    ("transition", "guards", [["always", True, True]]),
    ("transition", "event", "RunStopped"),
    ("transition", "change", {"turn": []}),
    ("transition", "kind", "rejected"),
    ("effect_begin", "class", "count"),
    ("effect_begin", "effect", None),
    ("effect_end", "usage", {"input_tokens": 0.5}),
]


@pytest.mark.parametrize(("kind", "name", "value"), WRONG)
def test_a_field_of_another_type_is_refused(kind: str, name: str, value: Any) -> None:
    records = [record for record in COMMON_RECORDS if record["kind"] == kind and name in record and record[name] != {}]
    for record in records:
        line = encode({**record, name: value})
        with pytest.raises(ValueError, match=r"Expected|Invalid|missing|no common kind"):
            read(line)


@pytest.mark.parametrize("name", ["v", "run", "seq", "epoch", "ts", "mono_ns", "kind", "prev", "hash"])
def test_a_record_without_its_stamps_is_refused(name: str) -> None:
    for record in COMMON_RECORDS:
        line = encode({field: value for field, value in record.items() if field != name})
        with pytest.raises(ValueError, match=r"missing|no common kind"):
            read(line)
