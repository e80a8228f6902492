"""Records: the canonical encoding is RFC 8785 within the values that records may hold, and a seal is its own hash."""

import hashlib
import json
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from looplatch.states.record import MAX_INT, ZEROS, Kind, Record, canonical, commitment, digest, seal

NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-MAX_INT, MAX_INT) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)
RECORDS = st.dictionaries(NAMES, VALUES, max_size=8)


@given(RECORDS)
def test_the_canonical_encoding_is_that_of_rfc_8785(value: dict[str, Any]) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(RECORDS)
def test_a_canonical_encoding_is_its_own(value: dict[str, Any]) -> None:
    assert canonical(orjson.loads(canonical(value))) == canonical(value)


@pytest.mark.parametrize("text", ["\x00\x1f\x7f", '"\\/', "é\u2028\u2029", "\U0001f600", "\ufffd\uffff"])
def test_texts_are_escaped_as_rfc_8785_has_it(text: str) -> None:
    assert canonical({"text": text}) == rfc8785.dumps({"text": text})


@given(RECORDS)
def test_a_seal_is_the_hash_of_the_record_without_it(value: dict[str, Any]) -> None:
    value.pop("hash", None)
    line = seal(dict(value))
    assert line.endswith(b"}\n")
    assert line.count(b"\n") == 1
    told = json.loads(line)
    own = told.pop("hash")
    assert told == value
    assert own == hashlib.sha256(rfc8785.dumps(told)).hexdigest()


def test_a_lone_surrogate_is_no_value_of_a_record() -> None:
    with pytest.raises(TypeError):
        canonical({"text": "\ud83d"})


def test_a_commitment_needs_its_salt() -> None:
    made = commitment(b"salt", b"payload")
    assert made == hashlib.sha256(b"saltpayload").hexdigest()
    assert made != commitment(b"", b"payload") != digest(b"salt")
    assert (len(ZEROS), set(ZEROS)) == (64, {"0"})


def test_a_record_reads_its_fields_by_name() -> None:
    move = {"run": "r", "seq": 3, "kind": "transition", "hash": "h", "source": "decide", "event": "AnswerGiven"}
    record = Record({**move, "target": "decide", "reason": None, "strategy": None, "terminal": "answered"})
    assert (record.run, record.seq, record.kind, record.hash) == ("r", 3, Kind.TRANSITION, "h")
    assert (record.source, record.event, record.target) == ("decide", "AnswerGiven", "decide")
    assert (record.reason, record.strategy, record.terminal) == (None, None, "answered")
    assert (record["seq"], record.get("seq"), record.get("root"), record.get("root", 1)) == (3, 3, None, 1)
    assert (Record({"kind": "message"}).source, Record({"kind": "message"}).target) == (None, None)
