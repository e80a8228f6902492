"""Checkpoints find what a chain alone cannot: that its end is gone, or that all of it was written anew."""

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import looplatch
from looplatch import UsageError
from looplatch.audit import read
from looplatch.cli import main
from looplatch.states.verify.invariants import INVARIANTS
from looplatch.testing import FakeClock, ScriptedAPI, reply
from tests.playing import played, scripted


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    asyncio.run(played([reply("Hello.")], log=path))
    return path


def broken(log: Path, expect: str) -> list[tuple[str, int]]:
    return [(one.invariant, one.line) for one in looplatch.verify(log, expect=expect).violations]


def test_a_run_hands_its_checkpoints_out(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    taken: list[str] = []

    async def go() -> None:
        async with scripted(ScriptedAPI([reply("Hello.")]), clock=FakeClock()) as loop:
            run = loop.run("Go.", log=log)
            with pytest.raises(UsageError, match="has not begun"):
                run.checkpoint()
            taken.extend([run.checkpoint() async for _ in run])

    asyncio.run(go())
    records = read(log).records
    assert taken[-1] == f"{len(records)}:{records[-1].hash}" == looplatch.verify(log).checkpoint
    for one in taken:
        assert looplatch.verify(log, expect=one).ok
    # Cut off anywhere, the log still verifies as an open one, but not against what was handed out after the cut.
    lines = read(log).lines
    for count in range(1, len(lines)):
        log.write_bytes(b"".join(lines[:count]))
        for one in taken:
            beyond = int(one.partition(":")[0]) > count
            assert [("I10", count)] * beyond == [found for found in broken(log, one) if found[0] == "I10"]


def test_another_log_of_the_same_length_is_not_the_one_expected(log: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    asyncio.run(played([reply("Hello.")], log=other))
    expected = looplatch.verify(log).checkpoint
    assert looplatch.verify(other).ok
    assert broken(other, expected) == [("I10", len(read(log)))]
    assert broken(log, f"0:{'0' * 64}") == []


@pytest.mark.parametrize("text", ["", "5", "x:y", f"01:{'0' * 64}", f"5:{'G' * 64}", f" 5:{'0' * 64}"])
def test_what_is_no_checkpoint_is_refused(log: Path, text: str) -> None:
    with pytest.raises(UsageError, match="checkpoint"):
        looplatch.verify(log, expect=text)
    assert main(["verify", str(log), "--expect", text]) == 2


def test_the_command_compares_too(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = looplatch.verify(log).checkpoint
    assert main(["verify", str(log), "--expect", expected]) == 0
    assert f"checkpoint {expected}" in capsys.readouterr().out
    log.write_bytes(b"".join(read(log).lines[:-1]))
    assert main(["verify", str(log), "--expect", expected]) == 1
    assert "I10" in capsys.readouterr().out


def test_a_report_as_json(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(log), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    records = read(log).records
    assert (told["ok"], told["status"], told["count"], told["violations"]) == (True, "sealed", len(records), [])
    assert told["checkpoint"] == f"{len(records)}:{records[-1].hash}"


# What SARIF 2.1.0 asks for of the parts that we write.
SARIF: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string", "format": "uri"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string", "pattern": r"^\d+\.\d+\.\d+"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "properties": {"shortDescription": {"required": ["text"]}},
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {"type": "array", "items": {"required": ["executionSuccessful"]}},
                    "artifacts": {"type": "array", "uniqueItems": True},
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"required": ["text"], "properties": {"text": {"type": "string"}}},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {"properties": {"uri": {"type": "string"}}},
                                                    "region": {"properties": {"startLine": {"minimum": 1}}},
                                                },
                                            }
                                        }
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_a_report_as_sarif(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(log), "--format", "sarif"]) == 0
    told = json.loads(capsys.readouterr().out)
    jsonschema_rs.validate(SARIF, told)
    assert told["runs"][0]["results"] == []
    lines = list(read(log).lines)
    lines[4] = lines[4].replace(b'"mono_ns":', b'"mono_ns":1')
    log.write_bytes(b"".join(lines))
    assert main(["verify", str(log), "--format", "sarif"]) == 1
    told = json.loads(capsys.readouterr().out)
    jsonschema_rs.validate(SARIF, told)
    (run,) = told["runs"]
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    first = run["results"][0]
    assert first["ruleId"] == "I3"
    assert first["locations"][0]["physicalLocation"]["region"]["startLine"] == 5
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == log.as_uri()
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "I3"
    assert run["properties"]["ok"] is False


def test_every_finding_of_the_verifier_is_about_an_invariant_that_is_described(root: Path) -> None:
    used = set[str]()
    for file in (root / "states" / "verify").glob("*.py"):
        if file.stem == "invariants":
            continue
        for word in file.read_text("utf-8").replace("(", " ").replace(",", " ").split():
            bare = word.strip('"')
            if word.startswith('"') and bare[:1] in set("IMTCERP") and bare[1:].isdigit():
                used.add(bare)
    assert len(used) > 30
    assert used <= INVARIANTS.keys()


def test_a_log_without_its_payloads_is_told_so_once(log: Path) -> None:
    log.with_suffix(".payloads").unlink()
    (found,) = looplatch.verify(log).violations
    assert (found.invariant, found.line, found.expected) == ("P3", 1, "run.payloads")
    assert "absent" in found.message
    assert read(log).messages[0]["content"].startswith("[text of ")


def test_a_log_of_digests_needs_no_payloads(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    asyncio.run(played([reply("Hello.")], log=path, payloads="digest"))
    assert not path.with_suffix(".payloads").exists()
    assert looplatch.verify(path).ok


def test_a_path_that_is_none_is_refused() -> None:
    for action in (looplatch.verify, read, looplatch.replay):
        with pytest.raises(UsageError, match="null"):
            action("a\0b")
