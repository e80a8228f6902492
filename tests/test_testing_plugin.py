"""The pytest plugin, in pytest runs of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from looplatch.testing import assert_matches, reply
from tests.playing import play

pytest_plugins = ("pytester",)

RUN = """
import asyncio
import looplatch
from looplatch.testing import FakeClock, reply, tool_use

async def ran(api, log, prompt="Go.", **options):
    async with api.client() as client:
        loop = looplatch.Loop(model="claude-sonnet-4-5", client=client, clock=FakeClock(), **options)
        return await loop.run(prompt, log=log)
"""
GOOD = """
def test_good(scripted_api, looplatch_log):
    api = scripted_api([reply("Done.")])
    assert asyncio.run(ran(api, looplatch_log)).result == "Done."
"""
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly")


def ran(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(RUN + code)
    return pytester.runpytest_subprocess(*QUIET, *arguments)


def test_a_good_run_passes(pytester: pytest.Pytester) -> None:
    ran(pytester, GOOD).assert_outcomes(passed=1)


def test_a_log_that_is_broken_is_an_error_at_teardown(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        GOOD
        + """
    import os
    with open(os.fspath(looplatch_log), "r+b") as file:
        file.seek(200)
        file.write(b"#")
""",
    )
    result.assert_outcomes(passed=1, errors=1)


def test_a_log_that_lies_is_told_with_its_invariant(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        GOOD
        + """
    lines = open(os.fspath(looplatch_log), "rb").read().splitlines(keepends=True)
    open(os.fspath(looplatch_log), "wb").writelines(lines[:4] + lines[5:])

import os
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the log is not valid:*", "*I1: the records are not numbered one by one*"])


def test_an_answer_that_nobody_asked_for_is_an_error(pytester: pytest.Pytester) -> None:
    result = ran(pytester, GOOD.replace('[reply("Done.")]', '[reply("Done."), reply("And?")]'))
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1 of 2 answers were never asked for*"])


def test_further_logs_are_verified_too(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_two(scripted_api, looplatch_log):
    api = scripted_api([reply("One."), reply("Two.")])
    asyncio.run(ran(api, looplatch_log))
    second = looplatch_log("second")
    asyncio.run(ran(api, second))
    second.write_bytes(second.read_bytes().replace(b'"completed"', b'"c0mpleted"'))
    assert looplatch_log.read().terminal.terminal == "answered"
""",
    )
    result.assert_outcomes(passed=1, errors=1)


GOLDEN = """
def test_golden(scripted_api, looplatch_log):
    api = scripted_api([reply("Done."){more}])
    asyncio.run(ran(api, looplatch_log{options}))
    looplatch_log.assert_matches("golden/run.jsonl")
"""


def test_golden_logs_are_compared_and_rewritten_on_demand(pytester: pytest.Pytester) -> None:
    same = GOLDEN.format(more="", options="")
    result = ran(pytester, same)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no golden/run.jsonl; write it with --looplatch-rewrite*"])
    ran(pytester, same, "--looplatch-rewrite").assert_outcomes(passed=1)
    ran(pytester, same).assert_outcomes(passed=1)
    other = GOLDEN.format(more="", options=", max_tokens=99")
    result = ran(pytester, other)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*golden/run.jsonl, line * (*): *: recorded *, found *"])
    told = [json.loads(line) for line in (pytester.path / "golden" / "run.jsonl").read_text().splitlines()]
    assert [record["kind"] for record in told][0 :: len(told) - 1] == ["genesis", "terminal"]
    assert not any({"hash", "ts", "run"} & set(record) for record in told)


def test_rows_that_nothing_walked_fail_the_session_and_are_drawn(pytester: pytest.Pytester) -> None:
    result = ran(pytester, GOOD, "--looplatch-coverage", "walked.svg")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["never walked: decide --StopHooksHalted[[]always[]]--> failed", "*drawn in walked.svg"]
    )
    assert "never walked: prepare --RunStarted[always]--> stays" not in result.outlines
    assert (pytester.path / "walked.svg").read_text().startswith("<svg")


def test_without_the_switch_nothing_is_drawn(pytester: pytest.Pytester) -> None:
    assert ran(pytester, GOOD).ret == pytest.ExitCode.OK
    assert not list(pytester.path.glob("*.svg"))


def test_the_plugin_loads_nothing_that_is_not_used(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_nothing():
    import sys
    print("LOADED", [name for name in ("hypothesis", "anthropic", "httpx2") if name in sys.modules])
""",
        "-s",
        "-p",
        "no:hypothesispytest",
    )
    # The module of the test imports looplatch.testing, which loads nothing, and no more.
    result.stdout.fnmatch_lines(["*LOADED []*"])


def test_it_is_loaded_in_isolated_mode_too(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(looplatch_log):\n    assert str(looplatch_log)\n")
    done = subprocess.run(
        [sys.executable, "-Im", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_golden_log_that_differs_is_told_by_the_field(tmp_path: Path) -> None:
    log, golden = tmp_path / "run.jsonl", tmp_path / "golden.jsonl"
    play([reply("Done.")], log=log)
    assert_matches(log, golden, rewrite=True)
    lines = golden.read_bytes().splitlines()
    [place] = [place for place, line in enumerate(lines) if json.loads(line)["kind"] == "terminal"]
    record = json.loads(lines[place])
    record["terminal"] = "denied"
    lines[place] = json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
    golden.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(AssertionError) as caught:
        assert_matches(log, golden)
    told = f'{golden}, line {place + 1} (terminal): terminal: recorded "denied", found "answered"'
    assert str(caught.value) == told
