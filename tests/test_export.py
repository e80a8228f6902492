"""A log in the formats of others: read back by other readers, and complete, whatever names a run has."""

import csv
import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast, get_args

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from looplatch import Allow, Compression, Limits, Log, Rule, UsageError
from looplatch.audit import LogDamaged
from looplatch.cli import main
from looplatch.export import FORMATS, Format, export
from looplatch.export.otel import span_id, trace_id
from looplatch.states.record import Kind
from looplatch.testing import error, reply, scripts, tool_use
from tests.playing import echo, play
from tests.recovering import files, meet, reads
from tests.suspending import resumed

TOOLS = [echo("read"), echo("write", read_only=False)]
CALLS = [
    reply("I look.", tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2}), tool_use("t3", "no", {})),
    error(529, "overloaded_error"),
    reply("Done."),
]


def run(**options: Any) -> Log:
    return play(CALLS, tools=TOOLS, **options).log


def exported(log: Any, to: Format) -> str:
    return "".join(export(log, to))


def rows(log: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(exported(log, "csv"))))


XES = {"x": "http://www.xes-standard.org/"}


def events(log: Any) -> list[dict[str, str]]:
    """The attributes of each event, as the standard library reads them."""
    root = ET.fromstring(exported(log, "xes"))
    assert root.tag == "{http://www.xes-standard.org/}log"
    found = root.findall("x:trace/x:event", XES)
    return [{str(item.get("key")): str(item.get("value")) for item in event} for event in found]


def trail(log: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(log, "aat").splitlines()]


def spans(log: Any) -> list[dict[str, Any]]:
    told = json.loads(exported(log, "otel"))
    [resource] = told["resourceSpans"]
    [scope] = resource["scopeSpans"]
    assert scope["scope"]["name"] == "looplatch"
    found: list[dict[str, Any]] = scope["spans"]
    return found


def attributes(holder: dict[str, Any]) -> dict[str, Any]:
    def plain(value: dict[str, Any]) -> Any:
        match value:
            case {"intValue": str(number)}:
                return int(number)
            case {"arrayValue": {"values": items}}:
                return [plain(item) for item in items]
            case _:
                [only] = value.values()
                return only

    return {item["key"]: plain(item["value"]) for item in holder["attributes"]}


# --- CSV


def test_csv_has_a_line_for_each_record() -> None:
    log = run()
    found = rows(log)
    assert [row["seq"] for row in found] == [str(record.seq) for record in log.records]
    assert [row["event"] for row in found if row["event"]] == [move.event for move in log.transitions]
    turns = [row["turn"] for row in found]
    assert (turns[0], turns[-1]) == ("1", "2")
    [begun] = [row for row in found if row["tool_use_id"] == "t2"]
    assert (begun["name"], begun["access"]) == ("tool write", "write")
    assert any(row["guard"] == "turns_left" and row["reason"] == "next_turn" for row in found)


def test_csv_tells_what_an_edit_of_the_history_did() -> None:
    compression = Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None)
    log = meet([*reads(6), reply("Done.")], tools=[files(8_000)], window=20_000, compression=compression).log
    edit = next(record for record in log if record.get("op") == "edit")
    [one] = edit["edits"]
    assert one["start"] == 0
    joined = [record for record in log.records[: edit.seq] if record.kind == "message"]
    assert {record["op"] for record in joined} == {"join"}
    told = json.loads(rows(log)[edit.seq]["fields"])
    assert told == {
        "messages_before": one["stop"],
        "messages_after": len(one["messages"]),
        "bytes_before": sum(block["bytes"] for record in joined[: one["stop"]] for block in record["blocks"]),
        "bytes_after": sum(block["bytes"] for new in one["messages"] for block in new["blocks"]),
    }
    assert told["bytes_before"] > told["bytes_after"] > 0


NASTY = st.sampled_from(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", 'a"b', "a,b", "x\x00y", "é\u202e"])


@given(NASTY, NASTY)
@settings(max_examples=30, deadline=None)
def test_no_cell_is_taken_for_a_formula(id_: str, stop: str) -> None:
    log = play([reply(tool_use("t1", id_, {}), stop=stop)], tools=TOOLS).log
    for row in rows(log):
        assert None not in row
        for cell in row.values():
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")), cell


def texts(value: object) -> Iterator[str]:
    """All texts in a JSON value."""
    if isinstance(value, dict):
        value = list(cast("dict[str, object]", value).values())
    if isinstance(value, list):
        yield from (text for item in cast("list[object]", value) for text in texts(item))
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(
    "char", ["\x1b", "\x7f", "\x85", "\x9b", "\u200b", "\u202e", "\u2028", "\u2066", "\ufeff", "\U000e0041"]
)
def test_no_name_hides_or_reorders_text(to: Format, char: str) -> None:
    name = f"a{char}b"
    log = play([reply(tool_use("t1", name, {}), stop=name)], tools=TOOLS, model=name).log
    text = exported(log, to)
    assert char not in text
    match to:
        case "csv":
            assert "a\ufffdb" in text
        case "xes":
            assert any(value in (name, "a\ufffdb") for event in events(log) for value in event.values())
        case _:
            assert any(name in value for line in text.splitlines() for value in texts(json.loads(line)))


# --- XES


def test_xes_has_an_event_for_each_move_and_two_for_each_effect() -> None:
    log = run()
    found = events(log)
    moves = [event for event in found if event["looplatch:kind"] == "move"]
    assert [event["concept:name"] for event in moves] == [move.event for move in log.transitions]
    assert [event["looplatch:target"] for event in moves] == [move.target for move in log.transitions]
    effects = [event for event in found if event["looplatch:kind"] == "effect"]
    starts = [event["concept:instance"] for event in effects if event["lifecycle:transition"] == "start"]
    ends = [event["concept:instance"] for event in effects if event["lifecycle:transition"] == "complete"]
    assert sorted(starts) == sorted(ends)
    assert len(starts) == len(log.effects)
    assert [event["time:timestamp"] for event in found] == sorted(event["time:timestamp"] for event in found)
    assert "write" in {event["org:resource"] for event in effects}


@given(st.text(max_size=20) | NASTY)
@settings(max_examples=30, deadline=None)
def test_xes_is_well_formed_whatever_names_there_are(stop: str) -> None:
    assert events(play([reply("Hm.", stop=stop or "x")], model="claude-\x01-sonnet").log)


# --- Agent Audit Trail

MANDATORY = {
    "record_id", "timestamp", "agent_id", "agent_version", "session_id", "action_type", "action_detail", "outcome",
    "trust_level", "parent_record_id", "prev_hash", "record_phase",
}  # fmt: skip
ACTIONS = {"tool_call", "tool_response", "decision", "delegation", "escalation", "error", "lifecycle"}
OUTCOMES = {"success", "failure", "timeout", "denied", "escalated"}
PHASES = {"pre_execution", "post_execution", "concurrent"}


def check_trail(records: list[dict[str, Any]]) -> None:
    """What the draft asks of a trail, by its text and another encoder."""
    before: dict[str, Any] | None = None
    for record in records:
        assert set(record) == MANDATORY
        assert record["action_type"] in ACTIONS
        assert record["outcome"] in OUTCOMES
        assert record["record_phase"] in PHASES
        hashed = None if before is None else hashlib.sha256(rfc8785.dumps(before)).hexdigest()
        assert record["prev_hash"] == hashed
        assert record["parent_record_id"] == (None if before is None else before["record_id"])
        assert before is None or before["timestamp"] <= record["timestamp"]
        before = record
    assert len({record["record_id"] for record in records}) == len(records)


def test_a_trail_is_chained_by_the_drafts_own_rule_and_names_the_logs_records() -> None:
    log = run()
    found = trail(log)
    check_trail(found)
    hashes = {record.seq: record.hash for record in log.records}
    assert all(hashes[record["action_detail"]["seq"]] == record["action_detail"]["hash"] for record in found)
    tools = [(r["action_type"], r["record_phase"], r["outcome"]) for r in found if r["action_type"].startswith("tool")]
    assert sorted(tools) == sorted(
        [("tool_call", "pre_execution", "success"), ("tool_response", "post_execution", "success")] * 2
    )
    failed = [r for r in found if r["action_detail"].get("outcome") == "overloaded_error"]
    assert [r["outcome"] for r in failed] == ["failure"]


def test_an_approval_is_an_escalation() -> None:
    script = [reply(tool_use("t1", "deploy", {})), reply("Done.")]
    options: dict[str, Any] = {"tools": [echo("deploy", read_only=False)], "rules": [Rule("ask", "deploy")]}
    [_, last], _ = resumed(script, {"t1": Allow()}, **options)
    found = trail(last.log)
    check_trail(found)
    assert [r["outcome"] for r in found if r["action_type"] == "escalation"] == ["escalated"]


# --- OpenTelemetry


def test_spans_nest_as_the_conventions_have_it() -> None:
    log = run()
    root, *inner = spans(log)
    assert root["name"] == "invoke_agent looplatch"
    assert root["traceId"] == trace_id(str(log.run))
    assert "parentSpanId" not in root
    assert all(span["parentSpanId"] == root["spanId"] and span["traceId"] == root["traceId"] for span in inner)
    assert sorted(span["name"] for span in inner) == [
        "chat claude-sonnet-4-5",
        "chat claude-sonnet-4-5",
        "chat claude-sonnet-4-5",
        "execute_tool read",
        "execute_tool write",
    ]
    for span in [root, *inner]:
        assert len(bytes.fromhex(span["traceId"])) == 16
        assert len(bytes.fromhex(span["spanId"])) == 8
        assert int(root["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert int(span["endTimeUnixNano"]) <= int(root["endTimeUnixNano"])
    assert [attributes(event)["looplatch.event"] for event in root["events"]] == [m.event for m in log.transitions]


def test_spans_carry_the_conventions_names() -> None:
    log = run()
    root, *inner = spans(log)
    assert attributes(root)["gen_ai.operation.name"] == "invoke_agent"
    assert attributes(root)["gen_ai.conversation.id"] == log.run
    failed, whole = (
        [s for s in inner if s["name"].startswith("chat") and bool(s["status"]) is bad] for bad in (True, False)
    )
    assert [attributes(span)["error.type"] for span in failed] == ["overloaded_error"]
    assert failed[0]["status"] == {"code": 2, "message": "overloaded_error"}
    told = attributes(whole[0])
    assert told["gen_ai.provider.name"] == "anthropic"
    assert told["gen_ai.response.finish_reasons"] == ["tool_use"]
    ended = next(record for record in log.records if record.kind is Kind.EFFECT_END and record["class"] == "model")
    assert told["gen_ai.usage.input_tokens"] == ended["usage"]["input_tokens"]
    [write] = [attributes(span) for span in inner if span["name"] == "execute_tool write"]
    assert write["gen_ai.tool.call.id"] == "t2"
    assert write["gen_ai.operation.name"] == "execute_tool"


def test_what_never_ended_is_an_error() -> None:
    log = run()
    begun = next(effect.begin.seq for effect in log.effects if effect.kind == "tool")
    _, *inner = spans(Log(log.lines[: begun + 1], log.payloads))
    assert [(span["name"].split()[0], attributes(span)["error.type"]) for span in inner] == [
        ("chat", "unknown"),
        ("execute_tool", "unknown"),
    ]


def test_ids_are_the_same_in_every_export() -> None:
    assert trace_id("419e70fb-a6e3-4566-9af8-3a4961f4cd8d") == "419e70fba6e345669af83a4961f4cd8d"
    assert len(trace_id("any run")) == 32
    assert span_id("r", 1) != span_id("r", 2)
    log = run()
    assert exported(log, "otel") == exported(log, "otel")


# --- all of them


@settings(max_examples=20, deadline=None)
@given(scripts(max_size=4))
def test_every_run_is_exported_to_every_format(script: Any) -> None:
    log = play(script, tools=TOOLS, limits=Limits(max_turns=3)).log
    assert len(rows(log)) == len(log)
    assert len([event for event in events(log) if event["looplatch:kind"] == "move"]) == len(log.transitions)
    check_trail(trail(log))
    assert len(spans(log)[0]["events"]) == len(log.transitions)


SECRET = "the content of a run"


@pytest.mark.parametrize("to", FORMATS)
def test_contents_are_not_exported(to: Format) -> None:
    log = play([reply(SECRET, tool_use("t1", "read", {"x": SECRET})), reply(SECRET)], tools=TOOLS, prompt=SECRET).log
    assert SECRET not in exported(log, to)


@pytest.mark.parametrize("to", FORMATS)
def test_a_damaged_log_is_told_after_what_came_before(to: Format) -> None:
    log = run()
    pieces: list[str] = []
    with pytest.raises(LogDamaged, match="line 6"):
        pieces.extend(export(Log([*log.lines[:5], b"{}\n"], log.payloads), to))
    with pytest.raises(UsageError, match="no record"):
        list(export(Log([], log.payloads), to))


def peak(file: Path, to: Format) -> int:
    """The most memory that an export takes, in bytes."""
    tracemalloc.start()
    try:
        for _ in export(file, to):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("to", FORMATS)
def test_a_long_log_takes_no_more_memory(tmp_path: Path, to: Format) -> None:
    log = run()
    short, long = tmp_path / "short.jsonl", tmp_path / "long.jsonl"
    for file, times in ((short, 20), (long, 80)):
        with file.open("wb") as out:
            out.writelines(repeated(log, times))
    assert long.stat().st_size > 3 * short.stat().st_size
    assert peak(long, to) < peak(short, to) + 100_000


def repeated(log: Log, times: int) -> Iterator[bytes]:
    """The records after the genesis, many times: no valid log, but a long one."""
    yield log.lines[0]
    for _ in range(times):
        yield from log.lines[1:]


def test_an_unknown_format_is_refused() -> None:
    to: Any = "xml"
    with pytest.raises(UsageError, match="xes, otel, aat, csv"):
        export(run(), to)
    assert get_args(Format) == FORMATS


# --- the command


def test_the_command_writes_to_a_file_or_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = run(log=tmp_path / "run.jsonl")
    for to in FORMATS:
        assert main(["export", "run.jsonl", "--to", to, "-o", f"out.{to}"]) == 0
        assert Path(f"out.{to}").read_bytes().decode() == exported(log, to)
    assert main(["export", "run.jsonl", "--to", "aat"]) == 0
    assert capsys.readouterr().out == exported(log, "aat")
    assert main(["export", "none.jsonl", "--to", "csv", "-o", "none.csv"]) == 2
    assert not Path("none.csv").exists()
    assert main(["export", "run.jsonl", "--to", "csv", "-o", "no/such/folder.csv"]) == 2


def test_csv_to_a_pipe_is_the_same_as_to_a_file(tmp_path: Path) -> None:
    log = run(log=tmp_path / "run.jsonl")
    command = [sys.executable, "-Im", "looplatch", "export", str(tmp_path / "run.jsonl"), "--to", "csv"]
    done = subprocess.run(command, capture_output=True, timeout=60)
    assert done.stdout.decode() == exported(log, "csv")
