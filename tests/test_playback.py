"""A recorded run through the same loop is the same run; through another one, what is another is named."""

import asyncio
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from looplatch import Allow, Block, Compression, Deny, Hooks, Limits, Log, Loop, Pass, Rule, UsageError
from looplatch.analysis import explain
from looplatch.analysis.fields import list_in
from looplatch.audit.payloads import MemoryPayloads
from looplatch.hooks import StopContext, ToolsContext
from looplatch.playback import CannotReplay, Playback, RunDiffers
from looplatch.states.record import Kind
from looplatch.testing import FakeClock, ScriptedAPI, error, failing, reply, scripts, text, tool_use
from tests.nesting import SPEND, Agents, ask
from tests.playing import MODEL, echo, play, saying, scripted
from tests.recovering import Model, files, meet, reads
from tests.resuming import cut_after
from tests.stories import STORIES, Story
from tests.suspending import resumed
from tests.tales import TALES, Tale
from tests.test_resume_cuts import taken_up
from tests.test_scripts import LIMITS, MANNERS, VERDICTS, Misbehaving, drawn, stop_hook


class Nowhere:
    """A client that must not be used."""

    def with_options(self, **options: Any) -> Any:
        return self

    async def post(self, path: str, **options: Any) -> Any:
        raise AssertionError(f"a playback asked the API for {path}")


def replayed(log: Log, *, how: Any = None, **options: Any) -> Playback:
    """The log through a loop of these options, which has no way to any API."""
    given: dict[str, Any] = {"model": MODEL, "client": Nowhere(), **options}
    how = how or {}
    return asyncio.run(Loop(**given).replay(log, **how))


def same(log: Log, **options: Any) -> Playback:
    outcome = replayed(log, **options)
    assert outcome.ok, str(outcome)
    return outcome


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_every_story_plays_again(story: Story) -> None:
    script, watch = story.script()
    log = play(script, watch=watch, **story.options).log
    outcome = same(log, **story.options)
    assert (outcome.moves, outcome.skipped) == (len(log.transitions), 0)


@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.name)
def test_every_tale_plays_again(tale: Tale) -> None:
    script, watch = tale.script()
    log = play(script, watch=watch, known=tale.known, **tale.options([])).log
    assert same(log, **tale.options([])).moves == len(log.transitions)


@drawn
@given(scripts(), MANNERS, VERDICTS, LIMITS)
def test_a_run_of_any_script_plays_again(script: Any, manners: list[str], verdicts: list[str], limits: Limits) -> None:
    clock = FakeClock()
    tools = Misbehaving(manners, clock).tools()
    log = play(script, tools=tools, clock=clock, hooks=Hooks(stop=[stop_hook(verdicts)]), limits=limits).log
    outcome = same(log, tools=tools, hooks=Hooks(stop=[stop_hook(verdicts)]), limits=limits)
    assert outcome.moves == len(log.transitions)


@drawn
@given(scripts(max_size=4), st.integers(1, 5), st.booleans())
def test_another_limit_is_named_whatever_the_script(script: Any, turns: int, accepted: bool) -> None:
    tools = [echo("read"), echo("write", read_only=False)]
    log = play(script, tools=tools, limits=Limits(max_turns=6)).log
    outcome = replayed(log, tools=tools, limits=Limits(max_turns=turns), how={"accept_changes": accepted})
    if not accepted:
        assert outcome.difference is not None
        told = (outcome.difference.path, outcome.difference.recorded, outcome.difference.came)
        assert told == ("limits.max_turns", 6, turns)
    elif log.transitions[-1]["source"] == "orchestrate" or any("turn" in move["change"] for move in log.transitions):
        used = 1 + sum("turn" in move["change"] for move in log.transitions)
        assert outcome.ok or turns <= used
    else:
        assert outcome.ok


# --- compression, with the recorded summaries

SMALL: dict[str, Any] = {"tools": [files(3_000)], "window": 20_000}
COMPRESSED: list[tuple[str, Any, dict[str, Any]]] = [
    ("in four levels", lambda: Model([*reads(30), reply("Done.")]), SMALL),
    (
        "a prompt too long",
        lambda: Model([*reads(3), error(400, "invalid_request_error", "prompt is too long"), reply("Done.")]),
        {"tools": [files(3_000)]},
    ),
    (
        "an overloaded summary",
        lambda: Model(
            [*reads(3), error(400, "invalid_request_error", "prompt is too long"), reply("Done.")],
            [error(529, "overloaded_error", "Overloaded"), "It was done."],
        ),
        {"tools": [files(3_000)]},
    ),
    (
        "a failing summary",
        lambda: Model([*reads(9), reply("Done.")], [error(400, "invalid_request_error", "no")]),
        {
            **SMALL,
            "compression": Compression(snip_at=None, micro_at=None, stage_at=None, collapse_at=None, compact_at=0.5),
        },
    ),
]


@pytest.mark.parametrize(("name", "model", "options"), COMPRESSED, ids=[case[0] for case in COMPRESSED])
def test_compressed_runs_play_again(name: str, model: Any, options: dict[str, Any]) -> None:
    log = meet(model(), **options).log
    assert same(log, **options).moves == len(log.transitions)


def test_a_measured_overflow_plays_again() -> None:
    too_long = error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 150000 maximum")
    log = play([CALLS[0], too_long], tools=TOOLS).log
    assert log.transitions[-1].terminal == "context_blocked"
    same(log, tools=TOOLS)


# --- what is another is named

CALLS = [
    reply("I look.", tool_use("t1", "read", {"n": 1}), tool_use("t2", "write", {"n": 2})),
    reply("Done."),
]
TOOLS = [echo("read"), echo("write", read_only=False)]


async def passes(context: StopContext) -> Pass:
    return Pass()


async def blocks(context: StopContext) -> Pass | Block:
    return Pass() if context.stop_hook_active else Block("More.")


async def forbids(context: Any) -> Allow | Deny:
    return Deny("Not now.") if context.name == "write" else Allow()


async def edits(context: Any) -> Allow:
    return Allow({"n": 9}) if context.name == "write" else Allow()


def difference(how: Any = None, **changed: Any) -> tuple[str, str, Any, Any]:
    """What is named when the loop has other options than the one that made the run."""
    log = play(CALLS, tools=TOOLS, system="Be brief.", hooks=Hooks(stop=[passes])).log
    base: dict[str, Any] = {"tools": TOOLS, "system": "Be brief.", "hooks": Hooks(stop=[passes])}
    assert replayed(log, how=how, **base).ok
    found = replayed(log, how=how, **{**base, **changed}).difference
    assert found is not None
    return found.what, found.path, found.recorded, found.came


def test_another_system_prompt_is_named() -> None:
    what, path, recorded, came = difference(system="Be long.")
    assert (what, path) == ("the loop", "system")
    assert recorded != came


def test_another_model_is_named() -> None:
    assert difference(model="claude-opus-4-5") == ("the loop", "model", MODEL, "claude-opus-4-5")


def test_another_result_of_a_tool_is_named() -> None:
    changed = [TOOLS[0], saying("write", "failed", read_only=False)]
    assert difference({"tools": "run"}, tools=changed) == (
        "the user message 2", "result of write #1.content", 'write {"n":2}', "failed",
    )  # fmt: skip


def test_recorded_results_are_taken_where_tools_do_not_run() -> None:
    log = play(CALLS, tools=TOOLS).log
    assert same(log, tools=[TOOLS[0], saying("write", "failed", read_only=False)]).ok


def test_another_stop_hook_is_named() -> None:
    told = difference(hooks=Hooks(stop=[blocks]))
    assert told == ("another step", "step", "the stop hook passes", "the stop hook blocks")


def test_the_same_hook_that_says_something_else_is_named() -> None:
    async def passes(context: StopContext) -> Block:
        return Block("No.")

    assert difference(hooks=Hooks(stop=[passes])) == ("the stop hook passes", "verdict", "Pass", "Block")


def test_a_hook_that_denies_a_call_is_named_by_the_calls_result() -> None:
    what, path, recorded, came = difference(hooks=Hooks(before_tool=forbids, stop=[passes]))
    assert (what, path, recorded) == ("the user message 2", "result of write #1.content", 'write {"n":2}')
    assert "Not now." in came


def test_a_hook_that_edits_an_input_is_named() -> None:
    told = difference(hooks=Hooks(before_tool=edits, stop=[passes]))
    assert told == ("the start of write #1", "edited input", None, {"n": 9})


def test_a_tool_that_is_gone_is_named() -> None:
    assert difference(tools=[TOOLS[0]])[:2] == ("the loop", "tools")
    what, path, *_ = difference({"accept_changes": True}, tools=[TOOLS[0]])
    assert (what, path) == ("the user message 2", "result of write #1.content")


def test_a_hook_that_raises_is_named() -> None:
    async def fails(context: StopContext) -> Pass:
        raise ValueError("broken")

    *_, came = difference(hooks=Hooks(stop=[fails]))
    assert came == "ValueError was raised: broken"


def test_a_difference_is_an_assertion_that_failed() -> None:
    log = play(CALLS, tools=TOOLS).log
    outcome = replayed(log, tools=TOOLS, limits=Limits(max_turns=1), how={"accept_changes": True})
    with pytest.raises(
        AssertionError, match=r"the move from orchestrate: verdicts\.turns_left: recorded was true"
    ) as raised:
        outcome.check()
    assert isinstance(raised.value, RunDiffers)
    assert raised.value.difference is outcome.difference
    same(log, tools=TOOLS).check()


# --- what came from outside


def test_approvals_are_given_again() -> None:
    script = [reply(tool_use("t1", "deploy", {}), tool_use("t2", "deploy", {"n": 2})), reply("Done.")]
    options: dict[str, Any] = {"tools": [echo("deploy", read_only=False)], "rules": [Rule("ask", "deploy")]}
    stays, _ = resumed(script, {"t1": Allow()}, {"t2": Deny("No.")}, **options)
    log = stays[-1].log
    assert same(log, **options).moves == len(log.transitions)
    unasked = replayed(log, tools=options["tools"])
    assert unasked.difference is not None
    assert unasked.difference.state == "orchestrate"


def test_a_paused_run_plays_again_from_where_it_went_on() -> None:
    stays, _ = resumed(CALLS, {}, tools=TOOLS, pause_after=["decide"])
    log = stays[-1].log
    paused = [move.seq for move in log.transitions if move.event == "RunPaused"]
    assert len(paused) == 1
    outcome = same(log, tools=TOOLS)
    assert (outcome.moves, outcome.skipped) == (len(log.transitions) - 1, 1)


@pytest.mark.parametrize("how", ["abort", "stop"])
def test_an_end_from_outside_ends_the_playback(how: str) -> None:
    def watch(message: Any, run: Any) -> None:
        if getattr(message, "record", None) is not None and message.record.event == "ToolsRequested":
            getattr(run, how)()

    log = play(CALLS, tools=TOOLS, watch=watch).log
    assert log.transitions[-1].terminal == {"abort": "aborted", "stop": "stopped"}[how]
    outcome = same(log, tools=TOOLS)
    assert (outcome.moves, outcome.skipped) == (len(log.transitions) - (how == "abort"), int(how == "abort"))


def test_what_was_sent_meanwhile_is_said_again() -> None:
    def watch(message: Any, run: Any) -> None:
        if getattr(message, "record", None) is not None and message.record.event == "ToolsRequested":
            run.send("Hurry.")

    log = play(CALLS, tools=TOOLS, watch=watch).log
    assert any("origin" in record.data for record in log.records)
    same(log, tools=TOOLS)


def test_notes_are_paid_again_and_not_taken() -> None:
    async def notes(context: ToolsContext) -> str:
        return await context.ask("What was done?")

    log = play([CALLS[0], reply("It read."), CALLS[1]], tools=TOOLS, hooks=Hooks(after_tools=notes)).log
    if not any(effect.kind == "note" and effect.end is not None for effect in log.effects):
        pytest.fail("there is no note")
    same(log, tools=TOOLS, hooks=Hooks(after_tools=notes))


@pytest.mark.parametrize("cut", range(1, 30, 3))
def test_an_open_log_plays_as_far_as_it_goes(cut: int) -> None:
    script = [
        failing(CALLS[0], after=12),
        CALLS[0],
        reply(text("Done.", closed=False), stop="max_tokens"),
        reply("So."),
    ]
    log = play(script, tools=TOOLS).log
    part = Log(log.lines[:cut], log.payloads)
    assert same(part, tools=TOOLS).moves == len(part.transitions)


def test_a_sub_agent_answers_as_recorded() -> None:
    async def main() -> tuple[Log, Playback]:
        inner = ScriptedAPI([reply("42")])
        outer = ScriptedAPI([reply(tool_use("t1", "research", {"prompt": "What?"})), reply("It is 42.")])
        async with scripted(inner) as sub, outer.client() as client:
            loop = Loop(model=MODEL, client=client, tools=[sub.as_tool("research", "Looks things up.")])
            run = loop.run("Go.")
            await run
            return run.log, await loop.replay(run.log)

    log, outcome = asyncio.run(main())
    assert outcome.ok, str(outcome)
    assert outcome.moves == len(log.transitions)


@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("first", [[], ["A text first. "]], ids=["at once", "after a text"])
def test_a_sub_agent_that_runs_again_is_counted_once(first: list[str], calls: int) -> None:
    """What it spent is on record; and its own bounds are those that it had, not what is left when it is done."""

    async def main() -> tuple[Log, Playback]:
        asking = [ask(f"t{number}", "What?") for number in range(calls)]
        inner = [reply(tool_use("c1", "read", {}), usage=SPEND), reply("42", usage=SPEND)]

        def answer(body: dict[str, Any]) -> Any:
            return inner[len(body["messages"]) // 2]

        agents = Agents(
            [reply(*first, *asking, usage=SPEND), reply("It is 42.", usage=SPEND)],
            answer,
            limits=Limits(max_total_tokens=120 + 240 * calls + 1),
            inner_options={"tools": [echo(read_only=False)]},
        )
        async with agents as loop:
            run = loop.run("Go.")
            await run
            outcome = await loop.replay(run.log, tools="run")
            assert len(agents.child.requests) == 4 * calls
            return run.log, outcome

    log, outcome = asyncio.run(main())
    assert log.transitions[-1]["terminal"] == "answered"
    assert outcome.ok, str(outcome)
    assert outcome.moves == len(log.transitions)


def test_a_sub_agent_that_waited_is_refused_by_name() -> None:
    async def main() -> Log:
        inner = ScriptedAPI([reply(tool_use("u1", "deploy", {}))])
        outer = ScriptedAPI([reply(tool_use("t1", "research", {"prompt": "What?"}))])
        own: dict[str, Any] = {"tools": [echo("deploy")], "rules": [Rule("ask", "deploy")]}
        async with scripted(inner, **own) as sub, outer.client() as client:
            loop = Loop(model=MODEL, client=client, tools=[sub.as_tool("research", "Looks things up.")])
            run = loop.run("Go.")
            await run
            return run.log

    log = asyncio.run(main())
    assert any("waits for" in one.text for turn in explain(log).turns for one in turn.sentences)
    with pytest.raises(CannotReplay, match="a sub-agent waited for an approval"):
        replayed(log)


@pytest.mark.parametrize("tale", TALES, ids=lambda tale: tale.name)
def test_a_run_that_was_cut_and_taken_up_again_plays_again(tale: Tale) -> None:
    script, watch = tale.script()
    whole = play(script, watch=watch, known=tale.known, **tale.options([])).log
    begun = next(place for place, record in enumerate(whole.records) if record.kind is Kind.TRANSITION)
    for count in range(begun + 1, len(whole), max(9, len(whole) // 5)):
        log = taken_up(tale, cut_after(whole, count), []).run.log
        assert same(log, **tale.options([])).moves > 0


# --- what cannot be played


def test_a_log_without_contents_is_refused_by_name() -> None:
    log = play(CALLS, tools=TOOLS, payloads="digest").log
    with pytest.raises(CannotReplay, match="keeps no contents"):
        replayed(log, tools=TOOLS)


def test_a_content_that_is_gone_is_refused_by_its_record() -> None:
    log = play(CALLS, tools=TOOLS).log
    result = next(record for record in log.records if record.kind is Kind.EFFECT_END and record["class"] == "tool")
    kept = MemoryPayloads()
    for record in log.records:
        for skeleton in list_in(record, "blocks"):
            if skeleton["commitment"] != result["result"] and (found := log.payloads.find(skeleton["commitment"])):
                kept.put(skeleton["commitment"], *found)
    with pytest.raises(CannotReplay, match=rf"record {result.seq}: .*{result['result']}"):
        replayed(Log(log.lines, kept), tools=TOOLS)


def test_what_is_no_log_or_no_way_of_tools_is_refused(tmp_path: Any) -> None:
    log = play(CALLS, tools=TOOLS).log
    with pytest.raises(UsageError, match="genesis"):
        replayed(Log(log.lines[1:], log.payloads))
    with pytest.raises(UsageError, match="cannot be read"):
        replayed(tmp_path / "none.jsonl")
    with pytest.raises(UsageError, match="'recorded' or 'run'"):
        replayed(log, how={"tools": "faked"})


def test_a_log_in_a_file_plays_again(tmp_path: Any) -> None:
    file = tmp_path / "run.jsonl"
    play(CALLS, tools=TOOLS, log=file)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    outcome: Any = replayed(file, tools=TOOLS)
    assert outcome.ok
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert attrs.asdict(outcome)["difference"] is None
