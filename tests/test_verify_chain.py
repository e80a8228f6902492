"""Bad logs for the invariants of integrity, each rejected for its own alone."""

import hashlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch.states.verify.log import verify_lines
from tests.forge import ZEROS, Forge, altered, broken, encode, hexed, sealed
from tests.forged_runs import (
    aborted,
    complete,
    long_run,
    one_turn,
    short_run,
    streaming,
)


def i1() -> Forge:
    """Numbers jump by one in the middle."""
    forge = short_run()
    for place, record in enumerate(forge.records[6:], 6):
        record["seq"] = place + 1
    return forge


def i1_flag() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[1], seq=True)


def i2() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[5], prev=hexed("another record"))


def i2_genesis() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[0], prev=hexed("another log"))


def i4_float() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[3], more=10.5)


def i4_whole_float() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[3], more=[2.0])


def i4_exponent() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[3], more=1e16)


def i4_big() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[3], more=2**53)


def i4_key() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[3], größe=1)


def i4_kind() -> Forge:
    forge = short_run()
    return altered(forge, forge.find(kind="effect_end", class_="hook"), kind="confession", class_="") and _no_hook(
        forge
    )


def _no_hook(forge: Forge) -> Forge:
    forge.records.remove(forge.find(kind="effect_begin", class_="hook"))
    return forge


def i4_schema() -> Forge:
    """An effect ends without an outcome."""
    forge = long_run()
    del forge.find(kind="effect_end", class_="hook")["outcome"]
    return forge


def i5() -> Forge:
    forge = short_run()
    forge.records.insert(4, dict(forge.records[0]) | {"mono_ns": forge.records[4]["mono_ns"]})
    return forge


def i6_run() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[4], run="run-2")


def i6_version() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[4], v=1)


def i6_version_of_tomorrow() -> Forge:
    forge = short_run()
    for record in forge.records:
        record["v"] = 4
    return forge


def i6_table() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[0], table=ZEROS)


def i7_clock() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[4], mono_ns=0)


def i7_epoch() -> Forge:
    forge = short_run()
    for record in forge.records[4:]:
        record["epoch"] = 1
    return forge


def unsealed(forge: Forge) -> Forge:
    """As a process leaves it that dies between the last move and the seal."""
    forge.records.pop()
    return forge


def e2_unsealed() -> Forge:
    """A model call goes on when the run has ended."""
    forge = streaming()
    forge.ask()
    return unsealed(aborted(forge))


def t2_unsealed() -> Forge:
    """A run that ends with calls that nobody answered."""
    return unsealed(aborted(one_turn()))


def m9_unsealed() -> Forge:
    """A run that ends otherwise than its last row says."""
    forge = unsealed(short_run())
    return altered(forge, forge.records[-1], terminal="stopped")


def i8_after() -> Forge:
    forge = short_run()
    forge.add("checkpoint")
    return forge


def i8_other_end() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[-1], state="failed")


def i9_root() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[-1], root=hexed("root"))


def i9_count() -> Forge:
    forge = short_run()
    return altered(forge, forge.records[-1], count=7)


def i10() -> Forge:
    forge = streaming()
    forge.add("checkpoint", root=hexed("root"))
    return complete(forge)


BAD: tuple[Callable[[], Forge], ...] = (
    i1, i1_flag, i2, i2_genesis, i4_float, i4_whole_float, i4_exponent, i4_big, i4_key, i4_kind, i4_schema, i5,
    i6_run, i6_version, i6_version_of_tomorrow, i6_table, i7_clock, i7_epoch, i8_after, i8_other_end, i9_root,
    i9_count, i10, e2_unsealed, t2_unsealed, m9_unsealed,
)  # fmt: skip


@pytest.mark.parametrize("build", BAD, ids=lambda build: build.__name__)
def test_a_bad_log_is_rejected_for_its_own_invariant_alone(build: Callable[[], Forge]) -> None:
    report = verify_lines(build().lines())
    assert broken(report) == {build.__name__.split("_")[0].upper()}, str(report)


def test_a_run_that_has_ended_and_has_no_seal_yet_is_open_and_is_told_so() -> None:
    report = verify_lines(unsealed(short_run()).lines())
    assert (report.ok, report.status) == (True, "open")
    assert report.notes == ("the run has ended, and its seal is not set yet: resuming the run sets it",)


def reread(line: bytes, **fields: object) -> bytes:
    """The line with other fields, its hash left as it is."""
    return encode({**json.loads(line), **fields}) + b"\n"


def test_content_that_does_not_fit_its_hash_is_i3() -> None:
    lines = short_run().lines()
    lines[5] = reread(lines[5], ts="2026-11-30T12:00:01.000000Z")
    assert broken(verify_lines(lines)) == {"I3"}


def test_a_hash_that_hides_behind_a_second_field_of_its_name_is_i3() -> None:
    """The record without both fields has this hash; the record without its own has another."""
    forge = short_run()
    lines = forge.lines()
    bare = {name: value for name, value in json.loads(lines[-1]).items() if name != "hash"}
    told = hashlib.sha256(encode({**bare, "more": {"z": 1}})).hexdigest()
    lines[-1] = encode({**bare, "more": {"hash": told, "z": 1}, "hash": told}) + b"\n"
    assert broken(verify_lines(lines)) == {"I3", "I4"}  # there is no field `more`


@pytest.mark.parametrize(
    ("spelled", "respelled"),
    [
        (b'","', b'", "'),
        (b"{", b'{"v":1,'),
        (b'"event":"ContextReady"', b'"event":"ContextRead\\u0079"'),
        (b"\n", b"\r\n"),
    ],
    ids=["space", "double key", "escape", "return"],
)
def test_another_spelling_of_the_same_record_is_i4(spelled: bytes, respelled: bytes) -> None:
    lines = short_run().lines()
    place = next(n for n, line in enumerate(lines) if b"ContextReady" in line)
    assert spelled in lines[place]
    lines[place] = lines[place].replace(spelled, respelled, 1)
    assert broken(verify_lines(lines)) == {"I4"}


@pytest.mark.parametrize(
    "line", [b"\n", b"{}\n", b"[]\n", b"null\n", b'"text"\n', b"{\n", b"\xff\n", b'{"a":"\\ud800"}\n']
)
def test_a_line_that_is_no_record_is_i4_and_raises_nothing(line: bytes) -> None:
    lines = short_run().lines()
    lines[3] = line + b"\n"
    assert "I4" in broken(verify_lines(lines))


LONG = [json.loads(line) for line in long_run().lines()]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON, st.sampled_from(sorted({name for record in LONG for name in record})), st.integers(0, len(LONG) - 1))
def test_a_record_may_hold_anything_anywhere_and_nothing_is_raised(value: object, field: str, place: int) -> None:
    """Whatever a forger writes, and hashes anew, is judged."""
    lines: list[bytes] = []
    for number, record in enumerate(LONG):
        told = {**record, "prev": json.loads(lines[-1])["hash"] if lines else ZEROS}
        lines.append(encode(sealed({**told, field: value} if number == place else told)) + b"\n")
    assert verify_lines(lines).count == len(LONG)


def nested(value: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    """`value`, somewhere among others."""
    others = st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.sampled_from('e":,[.1tfx'), max_size=5)
    listed = st.lists(others, max_size=2)
    named = st.dictionaries(st.sampled_from("abxyz"), others, max_size=2)
    return st.recursive(
        value,
        lambda inner: (
            st.tuples(listed, inner, listed).map(lambda parts: [*parts[0], parts[1], *parts[2]])
            | st.tuples(named, inner).map(lambda parts: {**parts[0], "m": parts[1]})
        ),
        max_leaves=3,
    )


FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1e16, -3e22, 5e-324, -1e-7])


def said_of(value: object) -> list[str]:
    """What is said of a value in a record of the first schema, which takes fields that it does not name."""
    forge = short_run()
    for record in forge.records:
        record["v"] = 1
    return [
        violation.message for violation in verify_lines(altered(forge, forge.records[3], more=value).lines()).violations
    ]


@settings(max_examples=60)
@given(nested(FLOATS))
def test_no_float_is_overlooked(value: object) -> None:
    assert said_of(value)


@settings(max_examples=30)
@given(nested(st.text(st.sampled_from('e":,[.1tfx'), max_size=9)))
def test_what_looks_like_a_float_in_a_text_is_none(value: object) -> None:
    assert said_of(value) == []
