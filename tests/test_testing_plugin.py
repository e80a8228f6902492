"""The pytest plugin, in pytest runs of its own."""

import json
import subprocess
import sys
from pathlib import Path

import anthropic  # what is loaded here is not loaded anew in each run in this process
import pytest

from looplatch.states.errors import UsageError
from looplatch.states.events import RunAborted
from looplatch.states.table import TABLE
from looplatch.testing import assert_matches, reply
from looplatch.testing.covering import Coverage
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
assert anthropic
QUIET = ("-p", "no:cacheprovider", "-p", "no:randomly")


def ran(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(RUN + code)
    return pytester.runpytest_subprocess(*QUIET, *arguments)


def here(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    """The same in this process, where nothing but the runs is looked at: a second less."""
    pytester.makepyfile(RUN + code)
    return pytester.runpytest_inprocess(*QUIET, *arguments)


def test_a_good_run_passes(pytester: pytest.Pytester) -> None:
    ran(pytester, GOOD).assert_outcomes(passed=1)


def test_a_log_that_is_broken_is_an_error_at_teardown(pytester: pytest.Pytester) -> None:
    result = here(
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
    result = here(
        pytester,
        GOOD
        + """
    file = Path(str(looplatch_log))
    assert file == Path(looplatch_log)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:4] + lines[5:]))

from pathlib import Path
""",
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the log is not valid:*", "*I1: the records are not numbered one by one*"])


def test_an_answer_that_nobody_asked_for_is_an_error(pytester: pytest.Pytester) -> None:
    result = here(pytester, GOOD.replace('[reply("Done.")]', '[reply("Done."), reply("And?")]'))
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*1 of 2 answers were never asked for*"])


def test_further_logs_are_verified_too(pytester: pytest.Pytester) -> None:
    result = here(
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
    result = here(pytester, same)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no golden/run.jsonl; write it with --looplatch-rewrite*"])
    here(pytester, same, "--looplatch-rewrite").assert_outcomes(passed=1)
    here(pytester, same).assert_outcomes(passed=1)
    other = GOLDEN.format(more="", options=", max_tokens=99")
    result = here(pytester, other)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*golden/run.jsonl, line * (*): *: recorded *, found *"])
    told = [json.loads(line) for line in (pytester.path / "golden" / "run.jsonl").read_text().splitlines()]
    assert [record["kind"] for record in told][0 :: len(told) - 1] == ["genesis", "terminal"]
    assert not any({"hash", "ts", "run"} & set(record) for record in told)


def test_rows_that_nothing_walked_fail_the_session_and_are_drawn(pytester: pytest.Pytester) -> None:
    result = here(pytester, GOOD, "--looplatch-coverage", "walked.svg")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["never walked: decide --StopHooksHalted[[]always[]]--> failed", "*drawn in walked.svg"]
    )
    assert "never walked: prepare --RunStarted[always]--> stays" not in result.outlines
    assert (pytester.path / "walked.svg").read_text().startswith("<svg")


TWO = (
    GOOD
    + """
def test_tools(scripted_api, looplatch_log):
    api = scripted_api([reply(tool_use("t", "none", {})), reply("Done.")])
    assert asyncio.run(ran(api, looplatch_log)).result == "Done."
"""
)


def test_the_workers_of_xdist_walk_together(pytester: pytest.Pytester) -> None:
    result = ran(pytester, TWO, "--looplatch-coverage", "walked.txt", "-n", "2", "--dist", "each")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    left = [line.removeprefix("never walked: ") for line in result.outlines if line.startswith("never walked: ")]
    assert "orchestrate --ToolsAnswered[turns_spent]--> failed" in left
    assert "orchestrate --ToolsAnswered[turns_left]--> prepare" not in left
    result.stdout.fnmatch_lines([f"{len(left)} rows were never walked by the 4 logs; drawn in walked.txt"])
    [drawn] = pytester.path.glob("*.txt")
    assert "ToolsAnswered [turns_left] \u00d72 " in drawn.read_text()  # once by each worker
    assert "ModelResponded \u00d76 " in drawn.read_text()
    assert f"{len(left)} of {len(TABLE)} rows never walked" in drawn.read_text()


def test_only_the_rows_that_are_named_must_be_walked(pytester: pytest.Pytester) -> None:
    only = ("--looplatch-coverage-only", "decide", "--looplatch-coverage-only", "stream")
    result = here(pytester, TWO, "--looplatch-coverage", "walked.txt", *only, "--looplatch-coverage-without", "stream")
    left = [line.removeprefix("never walked: ") for line in result.outlines if line.startswith("never walked: ")]
    assert {line.split(" --")[0] for line in left if "|" not in line} == {"decide"}
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    again = [argument for line in left for argument in ("--looplatch-coverage-without", line)]
    result = here(pytester, TWO, "--looplatch-coverage", "walked.txt", "--looplatch-coverage-only", "decide", *again)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["0 rows were never walked by the 2 logs; drawn in walked.txt"])
    drawn = (pytester.path / "walked.txt").read_text()
    assert "3 of 3 rows walked, by 2 runs" in drawn  # ToolsRequested, AnswerGiven, StopHooksPassed[may_complete]


def test_what_cannot_be_covered_is_refused_before_any_test(pytester: pytest.Pytester) -> None:
    result = here(pytester, GOOD, "--looplatch-coverage", "--looplatch-coverage-only", "TurnPassed")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --looplatch-coverage: *'TurnPassed' names no row of the table*"])


@pytest.mark.parametrize("switch", ["only", "without"])
def test_rows_without_coverage_are_refused_before_any_test(pytester: pytest.Pytester, switch: str) -> None:
    result = here(pytester, GOOD, f"--looplatch-coverage-{switch}", "decide")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: --looplatch-coverage-{switch}: no coverage is counted. Give --looplatch-coverage as well"]
    )


@pytest.mark.parametrize(
    ("file", "only", "without", "told"),
    [
        ("walked.html", (), (), "a page shows one run"),
        ("walked.doc", (), (), "format: 'doc' is not known"),
        ("walked.svg", (), ("TurnPaused[fits]",), r"'TurnPaused\[fits\]' names no row of the table"),
        ("walked.svg", ("decide",), ("decide",), "no row of the table is left"),
    ],
)
def test_what_is_no_coverage_is_told(file: str, only: tuple[str, ...], without: tuple[str, ...], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Coverage(Path(file), only, without)


def test_a_row_of_several_states_is_wanted_from_those_that_are_not_left_out() -> None:
    [aborted] = [row for row in TABLE if row.event is RunAborted]
    wanted = Coverage(Path("a.svg"), only=["RunAborted"], without=["prepare", "suspended"])
    assert list(wanted.missed) == [aborted.name]
    wanted.take([[[[0, "prepare", 1]], []]])
    assert list(wanted.missed) == [aborted.name]
    wanted.take([[[[0, "recover", 1]], []]])
    assert list(wanted.missed) == []


STORES = {
    "segmented": ("looplatch_log", ", segment_bytes=4_096", """
    part = Path(os.fspath(looplatch_log) + ".2")
    part.write_bytes(part.read_bytes().replace(b'"seq":', b'"req":', 1))
"""),
    "a database": ("looplatch_log('other.sqlite')", "", """
    with closing(sqlite3.connect(looplatch_log("other.sqlite"))) as file:
        file.execute("DELETE FROM records WHERE place = 4")
        file.commit()
"""),
    "in memory": ("None", "", """
    log = MemoryLog("a-run")
    log.append("genesis", {})
    looplatch_log.watch(log)
"""),
}  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_every_store_is_verified_and_counted(pytester: pytest.Pytester, store: str) -> None:
    log, options, breaks = STORES[store]
    code = f"""
import os, sqlite3
from contextlib import closing
from pathlib import Path
from looplatch.audit import MemoryLog

def test_it(scripted_api, looplatch_log):
    turns = [reply(tool_use(f"t{{n}}", "none", {{}})) for n in range(9)]
    api = scripted_api([*turns, reply("Done.")])
    result = asyncio.run(ran(api, {log}{options}))
    assert result.num_turns == 10
    if {log} is None:
        looplatch_log.watch(result)
"""
    asked = ("--looplatch-coverage", "walked.txt", "--looplatch-coverage-only", "ToolsAnswered[turns_left]")
    result = here(pytester, code, *asked)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.OK
    assert "[turns_left] \u00d79" in (pytester.path / "walked.txt").read_text()
    here(pytester, code + breaks).assert_outcomes(passed=1, errors=1)


def test_sub_agents_are_verified_and_counted_too(pytester: pytest.Pytester) -> None:
    code = """
import os
from pathlib import Path

def test_ask(scripted_api, looplatch_log):
    inner = scripted_api([reply("Found.")])
    outer = scripted_api([reply(tool_use("t1", "ask", {"prompt": "Look."})), reply("Done.")])

    async def main():
        async with inner.client() as client:
            ask = looplatch.Loop(model="claude-sonnet-4-5", client=client, clock=FakeClock()).as_tool("ask", "Asks.")
            return await ran(outer, looplatch_log, tools=[ask])

    assert asyncio.run(main()).result == "Done."
    child = Path(looplatch_log).with_name("run.t1.jsonl")
    assert child.exists()
"""
    result = here(pytester, code, "--looplatch-coverage", "walked.txt", "--looplatch-coverage-only", "AnswerGiven")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["0 rows were never walked by the 2 logs; drawn in walked.txt"])
    broken = """
    lines = child.read_bytes().splitlines(keepends=True)
    child.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"prepare"', b'"decide"'), *lines[3:]]))
"""
    here(pytester, code + broken).assert_outcomes(passed=1, errors=1)


def test_without_the_switch_nothing_is_drawn(pytester: pytest.Pytester) -> None:
    assert here(pytester, GOOD).ret == pytest.ExitCode.OK
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
