"""Logs of this schema, written once: they show all that a log can show, and their runs go on for ever."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from looplatch import Allow, ResultMessage, verify
from looplatch.audit import Log, read
from looplatch.states.level import Level
from looplatch.states.reasons import Strategy
from looplatch.states.record import SCHEMA, SCHEMAS, Kind
from looplatch.testing import ScriptedAPI
from tests.golden_runs import ASKS, DONE, READ, RUNS, SECRET, WRITE
from tests.playing import result, scripted

GOLDEN = Path(__file__).parent / "golden"
PRESENT = GOLDEN / f"v{SCHEMA}"
UNKNOWN_EFFECT = "interrupted while running, effect unknown"


def logs() -> dict[str, Log]:
    return {path.stem: read(path) for path in sorted(PRESENT.glob("*.jsonl"))}


def test_every_schema_that_is_read_has_its_logs() -> None:
    """After a change of the schema: `python tests/golden/write.py logs`."""
    assert {path.name for path in GOLDEN.glob("v*")} == {f"v{schema}" for schema in SCHEMAS}
    assert RUNS.keys() <= logs().keys()
    assert {record["v"] for log in logs().values() for record in log.records} == {SCHEMA}


def test_they_show_all_that_a_log_can_show() -> None:
    records = [record for log in logs().values() for record in log.records]

    def told(kind: Kind, name: str) -> set[Any]:
        return {record.get(name) for record in records if record.kind is kind}

    assert {record.kind for record in records} == set(Kind) - {Kind.CHECKPOINT, Kind.REJECTED}
    assert told(Kind.MESSAGE, "op") == {"join", "extend", "edit"}
    assert told(Kind.EFFECT_BEGIN, "class") == {"model", "tool", "hook", "summary", "sleep", "note"}
    assert told(Kind.TRANSITION, "strategy") == {None, *Strategy}
    levels = {record["fields"].get("level") for record in records if record.event == "HistoryCompressed"}
    assert levels == set(Level)


def test_contents_are_kept_but_for_what_was_taken_out() -> None:
    kept = {path.stem: path.read_bytes() for path in PRESENT.glob("*.payloads")}
    assert RUNS.keys() - kept.keys() == {"digests"}
    assert all(SECRET.encode() not in told for told in kept.values())
    assert b"[redacted: anthropic_key]" in kept["redacted"]


def went_on(name: str, folder: Path, **options: Any) -> tuple[ResultMessage, list[dict[str, Any]]]:
    """The run of the log `name`, gone on with beside a copy of it, by the table of this looplatch."""
    for path in PRESENT.glob(f"{name}.*"):
        shutil.copy(path, folder)
    log = folder / f"{name}.jsonl"

    async def main() -> ResultMessage:
        async with scripted(ScriptedAPI([DONE], known=read(log).messages), tools=[READ, WRITE], rules=ASKS) as loop:
            return await loop.resume(log, accept_changes=True, **options)

    ended = asyncio.run(main())
    report = verify(log)
    assert (report.ok, report.status) == (True, "sealed"), str(report)
    return ended, read(log).messages


def test_a_run_that_waits_for_an_approval_goes_on_with_it(tmp_path: Path) -> None:
    ended, messages = went_on("waiting", tmp_path, approvals={"t1": Allow()})
    assert ended.result == "Done."
    assert messages[2]["content"] == [result("t0", "read {}"), result("t1", 'write {"n":1}')]


def test_a_run_whose_process_died_goes_on_without_calling_its_write_again(tmp_path: Path) -> None:
    ended, messages = went_on("cut", tmp_path)
    assert ended.result == "Done."
    [told] = messages[2]["content"]
    assert (told["tool_use_id"], told["is_error"]) == ("t1", True)
    assert UNKNOWN_EFFECT in told["content"]


def test_a_link_to_another_log_is_still_judged(tmp_path: Path) -> None:
    for path in PRESENT.glob("agents.*"):
        shutil.copy(path, tmp_path)
    shutil.copy(tmp_path / "agents.t2.jsonl", tmp_path / "agents.t1.jsonl")
    assert "P4" in {one.invariant for one in verify(tmp_path / "agents.jsonl").violations}
