"""Two runs side by side: the same script is the same run, and what was changed is named, and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from looplatch import Block, Hooks, Limits, Log, Pass, UsageError
from looplatch.analysis import Comparison, diff
from looplatch.audit import LogDamaged
from looplatch.cli import main
from looplatch.hooks import StopContext
from looplatch.testing import error, reply, scripts, tool_use
from tests.playing import echo, play, saying
from tests.stories import STORIES, Story
from tests.test_replaying import tampered


def of(story: Story) -> Log:
    script, watch = story.script()
    return play(script, watch=watch, **story.options).log


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_a_story_that_is_run_twice_is_the_same(story: Story) -> None:
    found = diff(of(story), of(story))
    assert found.same, found
    assert found.counts == {}


def test_every_two_stories_part_and_diff_is_symmetric() -> None:
    logs = [of(story) for story in STORIES]
    for place, one in enumerate(logs):
        for other in logs[:place]:
            there, back = diff(one, other), diff(other, one)
            assert not there.same
            assert there.steps == back.steps
            assert {name: both[::-1] for name, both in there.counts.items()} == back.counts


@settings(max_examples=30, deadline=None)
@given(scripts(max_size=5))
def test_a_script_that_is_run_twice_is_the_same(script: Any) -> None:
    tools = [echo("read"), echo("write", read_only=False)]
    one, other = (play(script, tools=tools, limits=Limits(max_turns=4)).log for _ in range(2))
    assert diff(one, other).same, diff(one, other)


CALLS = [
    reply("I look.", tool_use("t1", "read", {"n": 1}), tool_use("t2", "read", {"n": 2})),
    reply(tool_use("t3", "write", {"n": 3})),
    reply("Done."),
]
TOOLS = [echo("read"), echo("write", read_only=False)]


async def passes(context: StopContext) -> Pass:
    return Pass()


async def blocks(context: StopContext) -> Pass | Block:
    return Pass() if context.stop_hook_active else Block("More.")


BASE: dict[str, Any] = {"script": CALLS, "tools": TOOLS, "prompt": "Go."}
CHANGES: list[tuple[str, dict[str, Any], str, str, Any, Any]] = [
    ("limit", {"limits": Limits(max_turns=7)}, "the beginning", "limits.max_turns", 100, 7),
    ("model", {"model": "claude-opus-4-5"}, "the beginning", "model", "claude-sonnet-4-5", "claude-opus-4-5"),
    ("prompt", {"prompt": "Come."}, "the user message 0", "text", "Go.", "Come."),
    (
        "result",
        {"tools": [TOOLS[0], saying("write", "no", read_only=False)]},
        "the user message 4",
        "result of write #1.content",
        'write {"n":3}',
        "no",
    ),
    (
        "answer",
        {"script": [CALLS[0], CALLS[1], reply("Done?")]},
        "the assistant message 5",
        "text.text",
        "Done.",
        "Done?",
    ),
    (
        "input",
        {"script": [CALLS[0], reply(tool_use("t3", "write", {"n": 4})), CALLS[2]]},
        "the assistant message 3",
        "call of write #1.input.n",
        3,
        4,
    ),
]


def run(**changed: Any) -> Log:
    given = {**BASE, **changed}
    return play(given.pop("script"), **given).log


@pytest.mark.parametrize(("name", "changed", "what", "path", "a", "b"), CHANGES, ids=[change[0] for change in CHANGES])
def test_what_was_changed_is_named(name: str, changed: dict[str, Any], what: str, path: str, a: Any, b: Any) -> None:
    difference = diff(run(), run(**changed)).difference
    assert difference is not None
    assert (difference.what, difference.path, difference.a, difference.b) == (what, path, a, b)


def test_another_hook_is_named_and_so_is_where_the_run_was() -> None:
    one, other = (run(hooks=Hooks(stop=[hook])) for hook in (passes, blocks))
    difference = diff(one, other).difference
    assert difference is not None
    assert (difference.what, difference.a, difference.b) == (
        "another step", "the stop hook passes", "the stop hook blocks",
    )  # fmt: skip
    assert difference.state == "decide"


def test_a_run_that_goes_on_is_told_from_one_that_does_not() -> None:
    log = run()
    part = Log(log.lines[:4], log.payloads)
    difference = diff(part, log).difference
    assert difference is not None
    assert (difference.what, difference.seq_a, difference.a) == ("one run goes on", None, "nothing more")


def test_ids_of_calls_and_the_order_of_what_runs_side_by_side_do_not_count() -> None:
    renamed = [
        reply("I look.", tool_use("u8", "read", {"n": 1}), tool_use("u9", "read", {"n": 2})),
        reply(tool_use("u7", "write", {"n": 3})),
        reply("Done."),
    ]
    found = diff(run(), run(script=renamed))
    assert found.same, found


def test_a_wait_of_another_length_is_no_other_run() -> None:
    one, other = (
        play([error(529, "overloaded_error", "", {"retry-after": wait}), reply("Done.")]).log for wait in ("1", "9")
    )
    found = diff(one, other)
    assert found.same
    assert found.counts == {"duration_ms": (1_000, 9_000)}


def test_the_counts_that_differ_are_listed() -> None:
    counts = diff(run(), run(script=[CALLS[1], CALLS[2]])).counts
    assert counts["turns"] == (3, 2)
    assert counts["calls of read"] == (2, 0)
    assert "calls of write" not in counts
    assert counts["requests"] == (3, 2)


def test_without_contents_sizes_are_compared() -> None:
    one, same, other = (run(payloads="digest", prompt=prompt) for prompt in ("Go.", "Do.", "Come."))
    assert diff(one, same).same
    difference = diff(one, other).difference
    assert difference is not None
    assert (difference.path, difference.a, difference.b) == ("text.not kept, bytes", 5, 7)


@pytest.mark.parametrize(
    ("first", "fields", "path"),
    [
        ("ToolsAnswered", {"target": "recover"}, "target"),
        ("ToolsAnswered", {"change": {"turn": 3, "reason": "next_turn"}}, "context.turn"),
        ("ContextReady", {"guards": [["fits", False]]}, "verdicts.fits"),
        ("ContextReady", {"fields": {"tokens": 1, "window": 2}}, "event fields.tokens"),
        ("ToolsRequested", {"event": "AnswerGiven"}, "event"),
    ],
)
def test_each_part_of_a_move_counts(first: str, fields: dict[str, Any], path: str) -> None:
    log = run()
    difference = diff(log, tampered(log, first, **fields)).difference
    assert difference is not None
    assert difference.path == path


def test_a_damaged_log_is_refused() -> None:
    log = run()
    with pytest.raises(LogDamaged):
        diff(log, Log([*log.lines[:-3], b"{}\n"], log.payloads))
    with pytest.raises(LogDamaged, match="not what its kind must be"):
        diff(tampered(log, "ToolsAnswered", guards=5), log)
    with pytest.raises(UsageError, match="no record"):
        diff(log, Log([], log.payloads))


# --- the command


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., list[str]]:
    def make(*changes: dict[str, Any]) -> list[str]:
        names: list[str] = []
        for number, changed in enumerate(changes):
            file = tmp_path / f"{number}.jsonl"
            run(log=file, **changed)
            names.append(str(file))
        return names

    return make


def test_the_command_says_same_or_differs(files: Any, capsys: pytest.CaptureFixture[str]) -> None:
    same, also, other = files({}, {}, {"prompt": "Co\x1b[31mme."})
    assert main(["diff", same, also]) == 0
    assert "the runs are the same" in capsys.readouterr().out
    assert main(["diff", same, other]) == 1
    out = capsys.readouterr().out
    assert 'the user message 0: text: "Go." and "Co' in out
    assert "\x1b" not in out
    assert main(["diff", same, other, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["same"], told["difference"]["path"], told["difference"]["b"]) == (False, "text", "Co\x1b[31mme.")
    assert main(["diff", same, "no such file"]) == 2


def test_a_comparison_reads_well() -> None:
    told = str(diff(run(), run(limits=Limits(max_turns=7))))
    assert told == (
        "the runs part after 0 steps\nrecords 0 and 0, in prepare: the beginning: limits.max_turns: 100 and 7"
    )
    assert isinstance(diff(run(), run()), Comparison)
