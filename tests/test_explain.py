"""A log in plain words: every turn of any log is explained, and nothing in it can steer a terminal."""

import asyncio
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import looplatch
from looplatch import Allow, Block, Deny, Hooks, Limits, Log, Pass, Rule, UsageError
from looplatch.analysis import Explanation, explain
from looplatch.cli import main
from looplatch.hooks import StopContext
from looplatch.testing import ScriptedAPI, error, reply, scripts, tool_use
from tests.compressing import compressed
from tests.playing import echo, play, saying, scripted
from tests.stories import STORIES, THREE_TURNS, TURN_LIMIT, Story
from tests.suspending import resumed


def of(story: Story) -> Log:
    script, watch = story.script()
    return play(script, watch=watch, **story.options).log


def texts(explanation: Explanation) -> list[str]:
    return [one.text for turn in explanation.turns for one in turn.sentences]


def has(explanation: Explanation, *parts: str) -> bool:
    """Whether one sentence holds all of the parts."""
    return any(all(part in text for part in parts) for text in texts(explanation))


def test_a_turn_is_explained_from_the_request_to_the_reason_to_go_on() -> None:
    explanation = explain(of(THREE_TURNS))
    assert [turn.number for turn in explanation.turns] == [1, 2, 3]
    assert [one.text for one in explanation.turns[1].sentences] == [
        "asked claude-sonnet-4-5 with 3 message records, for at most 8,000 tokens",
        "it answered, with the stop reason tool_use; 133 tokens read, 17 written; it called write (t3)",
        'ran write (write, t3) with {"path":"c"}: answered: "write {"path":"c"}"',
        "continued with next_turn because ToolsAnswered, turns_left holds (another turn may follow): turn 3 of 100",
    ]
    assert explanation.standing == "the run has ended: completed, answered"
    assert explanation.status == "sealed"


def test_a_spent_limit_is_explained_with_its_figures() -> None:
    explanation = explain(of(TURN_LIMIT))
    assert texts(explanation)[-1] == (
        "stopped: max_turns because ToolsAnswered, turns_spent holds (this was the last turn allowed): turn 2 of 2"
    )


def test_one_turn_can_be_asked_for() -> None:
    log = of(THREE_TURNS)
    assert [turn.number for turn in explain(log, turn=3).turns] == [3]
    with pytest.raises(UsageError, match=r"no turn 4.*1 to 3"):
        explain(log, turn=4)


def test_a_retry_is_explained_with_its_wait() -> None:
    explanation = explain(play([error(529, "overloaded_error"), reply("Done.")]).log)
    assert has(explanation, "the call failed: overloaded_error, status 529")
    assert has(explanation, "a retry in 0.5 s", "retry_allowed", "attempts 1 of 5")
    assert has(explanation, "waited 0.5 s")


def test_compressions_are_explained_with_their_tokens() -> None:
    explanations = [explain(run.log) for run in compressed()]
    sentences = [text for one in explanations for text in texts(one)]
    for part in ("compressed by micro, from ", "compressed by compact, from ", "a summary took the place", "breaker"):
        assert any(part in text for text in sentences), part


async def denies(context: Any) -> Allow | Deny:
    return Deny("not \x1b[31mhere") if context.name == "write" else Allow()


def test_a_denied_call_is_shown_as_not_run() -> None:
    script = [reply(tool_use("t1", "read", {}), tool_use("t2", "write", {"a": 1})), reply("Done.")]
    tools = [echo("read"), echo("write", read_only=False)]
    explanation = explain(play(script, tools=tools, hooks=Hooks(before_tool=denies)).log)
    assert has(explanation, "did not run write (t2):", "not here")
    assert has(explanation, "the hook denies (before_tool) said Deny")
    assert not has(explanation, "did not run read")


def test_a_stop_hook_is_explained_with_its_reason() -> None:
    async def once(context: StopContext) -> Pass | Block:
        return Pass() if context.stop_hook_active else Block("Say more.")

    explanation = explain(play([reply("One."), reply("Two.")], hooks=Hooks(stop=[once])).log)
    assert has(explanation, 'the hook once (stop) said Block: "Say more."')
    assert has(explanation, "continued with stop_hook_blocking because TroubleNamed, blocks_left", "blocks 1 of 5")


def test_a_suspended_run_says_what_it_waits_for() -> None:
    script = [reply(tool_use("t1", "deploy", {})), reply("Done.")]
    options: dict[str, Any] = {"tools": [echo("deploy", read_only=False)], "rules": [Rule("ask", "deploy")]}
    [first, last], _ = resumed(script, {"t1": Allow()}, **options)
    waiting = explain(first.log)
    assert waiting.status == "suspended"
    assert waiting.standing == "the run is suspended until someone decides on deploy (t1)"
    explanation = explain(last.log)
    assert has(explanation, "deploy (t1) was allowed from outside")
    assert has(explanation, "another process took the run over")
    assert explanation.status == "sealed"


def test_an_open_log_is_explained_as_far_as_it_goes() -> None:
    log = of(THREE_TURNS)
    begun = next(effect.begin.seq for effect in log.effects if effect.kind == "tool")
    explanation = explain(Log(log.lines[: begun + 1], log.payloads))
    assert explanation.status == "in_doubt"
    assert "is not recorded" in explanation.standing
    assert has(explanation, "the call read (read, t1)", "its end is not recorded: it only reads")
    assert explain(Log(log.lines[:3], log.payloads)).status == "open"


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_a_log_cut_anywhere_is_explained(data: st.DataObject) -> None:
    log = of(THREE_TURNS)
    whole = b"".join(log.lines)
    cut = data.draw(st.integers(1, len(whole)))
    *lines, torn = whole[:cut].split(b"\n")
    part = Log([line + b"\n" for line in lines], log.payloads, torn=torn)
    if not lines:
        with pytest.raises(UsageError, match="no record"):
            explain(part)
        return
    explanation = explain(part)
    assert sum(len(turn.sentences) for turn in explanation.turns) <= len(lines) + 3
    assert ("broke off" in explanation.standing) is bool(torn)


def test_damage_is_named_and_ends_the_explanation() -> None:
    log = of(THREE_TURNS)
    explanation = explain(Log([*log.lines[:10], b"{}\n", *log.lines[11:]], log.payloads))
    assert "line 11 is no record" in explanation.standing
    assert [turn.number for turn in explanation.turns] == [1]


@pytest.mark.parametrize("fields", [{"blocks": 5}, {"change": 7}, {"blocks": [3]}])
def test_a_record_that_is_none_of_its_kind_is_named_as_damage(fields: dict[str, Any]) -> None:
    log = of(THREE_TURNS)
    bent = [
        orjson.dumps({**record.data, **{k: v for k, v in fields.items() if k in record.data}}) + b"\n"
        for record in log.records
    ]
    explanation = explain(Log(bent, log.payloads))
    assert explanation.turns == () or "is not what a" in explanation.standing


NASTY = "a\x1b[31mred\x07\x9b2J\u202egnp\r\n\x00" + "x" * 5_000


def test_contents_are_quoted_shortly_and_steer_no_terminal() -> None:
    script = [reply(NASTY, tool_use("t1", "read", {"n": NASTY})), reply("Done.")]
    explanation = explain(play(script, tools=[saying("read", NASTY)], prompt=NASTY).log)
    for text in texts(explanation):
        assert text.isprintable(), text
        assert len(text) <= 600
    assert has(explanation, "aredgnp")


@settings(max_examples=30, deadline=None)
@given(scripts(max_size=5))
def test_every_run_can_be_explained_and_is_plain_json(script: Any) -> None:
    log = play(script, tools=[echo("read"), echo("write", read_only=False)], limits=Limits(max_turns=4)).log
    explanation = explain(log)
    assert json.loads(json.dumps(explanation.fields()))["run"] == log.run
    assert explanation.turns[-1].number == 1 + sum("turn" in move["change"] for move in log.transitions)
    ended = log.transitions[-1].terminal
    assert any(f"stopped: {ended} because" in text for text in texts(explanation))


def test_every_story_can_be_explained_without_its_contents() -> None:
    for story in STORIES:
        script, watch = story.script()
        explanation = explain(play(script, watch=watch, payloads="digest", **story.options).log)
        assert has(explanation, "the user's side said: (5 bytes, not kept)")


# --- the command


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    script, _ = THREE_TURNS.script()
    file = tmp_path / "run.jsonl"
    play(script, log=file, **THREE_TURNS.options)
    return file


def test_the_command_tells_it(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(kept)]) == 0
    out = capsys.readouterr().out
    assert out == str(looplatch.explain(kept)) + "\n"
    assert main(["explain", str(kept), "--turn", "2", "--json"]) == 0
    assert [turn["turn"] for turn in json.loads(capsys.readouterr().out)["turns"]] == [2]
    assert main(["explain", str(kept), "--turn", "9"]) == 2
    assert main(["explain", str(kept.with_name("none.jsonl"))]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_the_command_tells_a_log_with_a_torn_end(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, last = kept.read_bytes(), len(kept.read_bytes().splitlines(keepends=True)[-1])
    for torn, told in ((1, "1 byte"), (2, "2 bytes")):
        kept.write_bytes(whole[: len(whole) - last + torn])
        assert main(["explain", str(kept)]) == 0
        assert f"a write that broke off left {told} of a record after the last one" in capsys.readouterr().out


def test_a_call_that_was_allowed_and_never_began_is_named(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"

    async def main() -> None:
        api = ScriptedAPI([reply(tool_use("d1", "deploy", {}))])
        async with scripted(api, tools=[echo("deploy", read_only=False)], rules=[Rule("ask", "deploy")]) as loop:
            assert (await loop.run("Go.", log=log)).subtype == "suspended"
            assert (await loop.resume(log, approvals={"d1": Allow()}, deadline_s=0)).terminal == "deadline"

    asyncio.run(main())
    assert looplatch.explain(log).standing.endswith("deploy (d1) was allowed, and never began")
