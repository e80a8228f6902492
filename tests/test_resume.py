"""Taking a run up again: after a suspension, a pause, or an abort that was cut; what is refused, and what is not."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from looplatch import (
    Allow,
    Ask,
    Deny,
    Hooks,
    Limits,
    Log,
    Loop,
    Run,
    SystemMessage,
    Tool,
    ToolMessage,
    UsageError,
    read,
)
from looplatch.audit import LogInUse, MemoryLog
from looplatch.blocks import blocks_of
from looplatch.hooks import ToolCallContext
from looplatch.messages import Message, ResultMessage, ToolPhase
from looplatch.recovery.resume.errors import CannotResume, LoopChanged
from looplatch.resuming.restoring import STOPPED
from looplatch.states.record import Kind
from looplatch.states.verify.log import verify_lines
from looplatch.testing import Answer, FakeClock, ScriptedAPI, reply, tool_use
from tests.playing import MODEL, Play, moves_of, play, rounds, scripted, user
from tests.resuming import Resumed, cut_after, resumed
from tests.tales import Ran, noted

TWO_WRITES = reply("Both.", tool_use("r1", "read", {}), tool_use("w1", "write", {"n": 1}), tool_use("w2", "write", {}))
DONE = reply("Done.")


def tools(ran: Ran) -> list[Tool]:
    return [noted("read", ran, read_only=True), noted("write", ran)]


def asking(*names: str) -> Hooks:
    """Hooks that have someone asked about the tools named."""

    async def before(context: ToolCallContext) -> Allow | Ask:
        return Ask() if context.name in names else Allow()

    return Hooks(before_tool=before)


async def run_of(script: Sequence[Any], *, log: Path | None = None, **options: Any) -> ResultMessage:
    """The result of a run that need not come to its end."""
    api = ScriptedAPI(script)
    deadline = options.pop("deadline_s", None)
    pauses = {name: options.pop(name) for name in ("pause_before", "pause_after") if name in options}
    async with scripted(api, **options) as loop:
        return await loop.run("Go.", log=log, deadline_s=deadline, **pauses)


def suspended(ran: Ran, *, log: Path | None = None) -> Log:
    """The log of a run that waits for someone's word on two writes."""
    result = asyncio.run(run_of([TWO_WRITES], log=log, tools=tools(ran), hooks=asking("write")))
    assert [call.id for call in result.pending] == ["w1", "w2"]
    return read(log) if log is not None else result.log


def go_on(log: Log, ran: Ran, script: Sequence[Any] = (), **options: Any) -> Resumed:
    given: dict[str, Any] = {"tools": tools(ran), "hooks": asking("write"), **options}
    return asyncio.run(resumed(log, script, **given))


def results(run: Run) -> dict[str, str]:
    """What the calls were answered, by call."""
    blocks = [block for message in run.messages for block in blocks_of(message)]
    return {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}


# --- approvals


def test_approved_calls_run_once_and_denied_ones_are_told_why() -> None:
    before, after = Ran(), Ran()
    log = suspended(before)
    went_on = go_on(log, after, [DONE], approvals={"w1": Allow(), "w2": Deny("not today")})
    assert (before, after) == (["r1"], ["w1"])
    assert results(went_on.run) == {
        "r1": "read did r1 {}",
        "w1": "write did w1 {'n': 1}",
        "w2": "denied. The call was not run: not today",
    }
    assert moves_of(went_on.run.log)[4:] == [
        "ApprovalAwaited > suspended",
        "RunResumed",
        "ApprovalGiven > orchestrate",
        "ToolsAnswered > prepare: next_turn",
        "ContextReady > stream",
        "ModelResponded > decide",
        "AnswerGiven",
        "StopHooksPassed > completed: answered",
    ]


def test_an_approval_may_change_the_input_and_the_log_says_so() -> None:
    after = Ran()
    went_on = go_on(suspended([]), after, [DONE], approvals={"w1": Allow({"n": 7}), "w2": Deny("no")})
    assert results(went_on.run)["w1"] == "write did w1 {'n': 7}"
    [begun] = [one for one in went_on.run.log.records if one.get("tool_use_id") == "w1"]
    found = went_on.run.log.payloads.find(begun["edited"])
    assert found is not None
    assert found[1] == b'{"n":7}'


def test_some_approved_and_some_awaited_stays_suspended_and_forgets_nothing() -> None:
    log = suspended([])
    first = go_on(log, ran := Ran(), approvals={"w2": Allow()}, sealed=False)
    assert ran == []
    assert first.result.subtype == "suspended"
    assert [call.id for call in first.result.pending] == ["w1"]
    assert verify_lines(first.run.log.lines).status == "suspended"
    second = go_on(first.run.log, ran, [DONE], approvals={"w1": Allow()})
    assert ran == ["w1", "w2"]
    assert second.result.terminal == "answered"


def test_without_a_decision_a_suspended_run_stays_suspended() -> None:
    once = go_on(suspended([]), ran := Ran(), sealed=False)
    again = go_on(once.run.log, ran, sealed=False)
    assert [call.id for call in again.result.pending] == ["w1", "w2"]
    assert ran == []
    assert [record["epoch"] for record in again.run.log.records if record.kind is Kind.RESUMED] == [1, 2]


def test_a_denial_with_interrupt_ends_the_run() -> None:
    went_on = go_on(suspended([]), ran := Ran(), approvals={"w1": Deny("stop it", interrupt=True), "w2": Allow()})
    assert went_on.result.terminal == "denied"
    assert ran == []
    assert results(went_on.run)["w1"] == "denied. The call was not run: stop it"


def test_a_denial_with_interrupt_ends_the_run_wherever_the_process_died() -> None:
    log = suspended([])
    decided = {"w1": Deny("stop it", interrupt=True), "w2": Allow()}
    whole = go_on(log, [], approvals=decided).run.log
    for count in range(len(log) + 1, len(whole)):
        went_on = go_on(cut_after(whole, count), ran := Ran())
        assert (went_on.result.terminal, ran) == ("denied", []), count


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_decision_survives_the_process_that_took_it(cut: int) -> None:
    """Cut anywhere after the decision is on record, the run needs no second one, and takes it again all the same."""
    log = suspended([])
    decided = {"w1": Allow(), "w2": Deny("no")}
    whole = go_on(log, [], [DONE], approvals=decided)
    ran = Ran()
    for given in ({}, decided):
        went_on = go_on(cut_after(whole.run.log, len(log) + cut), ran := Ran(), [DONE], approvals=given)
        begun = any(record.get("tool_use_id") == "w1" for record in whole.run.log.records[: len(log) + cut])
        assert ran == ([] if begun else ["w1"])
        assert results(went_on.run)["w2"] == "denied. The call was not run: no"


@pytest.mark.parametrize(
    ("approvals", "problem"),
    [
        ({"w3": Allow()}, "'w3' is not awaited. Awaited are: w1, w2"),
        ({"r1": Allow()}, "'r1' is not awaited"),
        ({"w1": True}, "True is no decision"),
        ({"w1": Ask()}, "no decision"),
    ],
)
def test_a_decision_on_what_is_not_awaited_is_refused(approvals: Any, problem: str) -> None:
    log = suspended([])
    with pytest.raises(UsageError, match=problem):
        go_on(log, [], approvals=approvals)


def test_a_decision_cannot_be_taken_back() -> None:
    first = go_on(suspended([]), [], approvals={"w1": Allow()}, sealed=False)
    with pytest.raises(UsageError, match="w1 was allowed already"):
        go_on(first.run.log, [], approvals={"w1": Deny("no")})


def test_suspended_in_a_file_and_taken_up_from_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    suspended([], log=path)

    async def main() -> Run:
        async with scripted(ScriptedAPI([DONE]), tools=tools(ran), hooks=asking("write")) as loop:
            run = loop.resume(path, approvals={"w1": Allow(), "w2": Allow()})
            await run
            return run

    ran = Ran()
    run = asyncio.run(main())
    assert ran == ["w1", "w2"]
    log = read(path)
    assert log.messages == run.messages
    assert verify_lines(log.lines, payloads=log.payloads.find).status == "sealed"


# --- pauses


@pytest.mark.parametrize("state", ["prepare", "stream", "decide", "orchestrate"])
@pytest.mark.parametrize("when", ["pause_before", "pause_after"])
def test_a_paused_run_goes_on(when: str, state: str) -> None:
    script = [reply("One.", tool_use("r1", "read", {}), tool_use("w1", "write", {})), DONE]
    ran = Ran()
    whole = play(script, tools=tools([]))
    options: dict[str, Any] = {when: [state]}
    result = asyncio.run(run_of(script, tools=tools(ran), **options))
    assert result.subtype == "suspended"
    assert verify_lines(result.log.lines).status == "suspended"
    went_on = asyncio.run(resumed(result.log, script[_had(result.log) :], tools=tools(ran)))
    assert went_on.run.messages == whole.run.messages
    assert ran == ["r1", "w1"]


def _had(log: Log) -> int:
    return sum(effect.kind == "model" and effect.end is not None for effect in log.effects)


def test_a_pause_after_calls_that_wait_for_approval_is_the_wait_itself() -> None:
    script = [reply(tool_use("w1", "write", {}))]
    options: dict[str, Any] = {"tools": tools(Ran()), "hooks": asking("write")}
    told = asyncio.run(run_of(script, pause_after=["orchestrate"], **options))
    assert (told.subtype, told.terminal, [call.id for call in told.pending]) == ("suspended", None, ["w1"])
    assert verify_lines(told.log.lines, payloads=told.log.payloads.find).status == "suspended"
    went_on = asyncio.run(resumed(told.log, [DONE], approvals={"w1": Allow()}, **options))
    assert (went_on.result.terminal, went_on.result.result) == ("answered", "Done.")


# --- what stopped a run from outside, cut before it was a move


def aborted_at(watched: str, script: Sequence[Any], **options: Any) -> Play:
    def watch(message: Message, run: Run) -> None:
        here = f"{message.phase} {message.tool_use_id}" if isinstance(message, ToolMessage) else type(message).__name__
        if here == watched:
            run.abort()

    return play(script, watch=watch, **options)


@pytest.mark.parametrize("watched", ["start r1", "start w1", "end r1", "AssistantMessage"])
def test_a_run_whose_abort_was_cut_goes_on(watched: str) -> None:
    """Once its tools are stopped and its history is closed, the run may be taken up all the same, at any record."""
    script = [reply("Now.", tool_use("r1", "read", {}), tool_use("w1", "write", {}), tool_use("w2", "write", {}))]
    whole = aborted_at(watched, script, tools=tools([]))
    assert whole.result.terminal == "aborted"
    begun = next(record.seq for record in whole.log.records if record.kind is Kind.EFFECT_BEGIN)
    for count in range(begun + 1, len(whole.log)):
        before = cut_after(whole.log, count)
        ended = {e.begin["tool_use_id"] for e in before.effects if e.kind == "tool" and e.end is not None}
        ran = Ran()
        went_on = asyncio.run(resumed(before, _by_request(script[0]), tools=tools(ran)))
        assert went_on.error is None
        assert not set(ran) & ended
        assert went_on.result.terminal == ("aborted" if before.transitions[-1].terminal else "answered")


def _by_request(first: Answer) -> Any:
    def answer(request: dict[str, Any]) -> Answer:
        return DONE if "tool_result" in str(request["messages"]) else first

    return answer


def test_a_text_that_was_stopped_is_gone_on_from() -> None:
    """An answer without calls, stopped while it was written, stays; the model is asked to go on from it."""

    def watch(message: Message, run: Run) -> None:
        if type(message).__name__ == "StreamEvent" and "world" in str(message):
            run.abort()

    whole = play([reply("Hello", "world")], watch=watch, partial=True)
    joined = next(r.seq for r in whole.log.records if r.kind is Kind.MESSAGE and r["role"] == "assistant")
    went_on = asyncio.run(resumed(cut_after(whole.log, joined + 1), [DONE]))
    said = went_on.run.messages
    assert [message["role"] for message in said] == ["user", "assistant", "user", "assistant"]
    assert said[1] == whole.run.messages[1]
    assert said[2] == user({"type": "text", "text": STOPPED})


def test_results_that_the_end_of_a_run_said_are_not_said_again() -> None:
    """A hook fails, and a slow consumer learns it when the answer is whole; the process dies before that is a move."""

    async def fails(context: ToolCallContext) -> Allow:
        if context.name == "write":
            raise ValueError("the hook failed")
        return Allow()

    def slowly(message: Message, run: Run) -> Any:
        return rounds()

    script = [reply(tool_use("r1", "read", {}), tool_use("w1", "write", {}))]
    options: dict[str, Any] = {"tools": tools(Ran()), "hooks": Hooks(before_tool=fails)}
    whole = play(script, watch=slowly, **options)
    end = whole.log.transitions[-1]
    assert (end.source, end.terminal) == ("stream", "internal_error")
    went_on = asyncio.run(resumed(cut_after(whole.log, end.seq), [DONE], **options))
    assert went_on.result.terminal == "answered"
    assert [message["role"] for message in went_on.run.messages] == ["user", "assistant", "user", "assistant"]
    assert [block["tool_use_id"] for block in went_on.run.messages[2]["content"]] == ["r1", "w1"]


# --- the deadline


def test_the_deadline_rests_while_nobody_has_the_run() -> None:
    clock = FakeClock()

    async def slow(given: dict[str, Any], ctx: Any) -> str:
        await clock.sleep(4)
        return "read"

    reading = Tool("read", "", {"type": "object"}, slow, read_only=True)
    writing = noted("write", [])
    options: dict[str, Any] = {"tools": [reading, writing], "hooks": asking("write")}
    result = asyncio.run(run_of([TWO_WRITES], clock=clock, deadline_s=10, **options))
    assert result.subtype == "suspended"
    clock.advance(1_000)
    went_on = asyncio.run(
        resumed(
            result.log,
            [reply(tool_use("r2", "read", {})), reply(tool_use("r3", "read", {})), DONE],
            clock=clock,
            approvals={"w1": Allow(), "w2": Allow()},
            **options,
        )
    )
    [claim] = [record for record in went_on.run.log.records if record.kind is Kind.RESUMED]
    assert claim["deadline_ms"] == 6_000
    assert went_on.result.terminal == "deadline"
    assert results(went_on.run)["r2"] == "read"
    assert results(went_on.run)["r3"].startswith("interrupted, no effect")


def test_a_new_deadline_may_be_given() -> None:
    log = asyncio.run(run_of([TWO_WRITES], deadline_s=10, tools=tools([]), hooks=asking("write"))).log

    async def main() -> ResultMessage:
        api = ScriptedAPI([DONE])
        async with scripted(api, tools=tools([]), hooks=asking("write")) as loop:
            return await loop.resume(log, approvals={"w1": Allow(), "w2": Allow()}, deadline_s=0)

    assert asyncio.run(main()).terminal == "deadline"


# --- what is refused

STAMPED = ("v", "run", "seq", "epoch", "ts", "mono_ns", "kind", "prev", "hash")


def changed(log: Log, *, accept_changes: bool = False, **options: Any) -> Resumed:
    given: dict[str, Any] = {"tools": tools([]), **options}
    return asyncio.run(resumed(log, [DONE], accept_changes=accept_changes, **given))


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("model", {"model": "claude-opus-4-5"}),
    ("system", {"system": "Be brief."}),
    ("tools", {"tools": [noted("read", [], read_only=True)]}),
    ("params", {"params": {"temperature": 0}}),
    ("limits.max_turns", {"limits": Limits(max_turns=7)}),
]


def half_done() -> Log:
    whole = play([reply("One.", tool_use("r1", "read", {})), DONE], tools=tools([]))
    return cut_after(whole.log, len(whole.log) - 8)


@pytest.mark.parametrize(("name", "options"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_loop_that_has_changed_is_refused_with_the_difference_named(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(LoopChanged, match=name) as caught:
        changed(half_done(), **options)
    assert [difference.name for difference in caught.value.changes] == [name.partition(".")[0]]


@pytest.mark.parametrize(("name", "options"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_change_is_accepted_on_demand_and_recorded(name: str, options: dict[str, Any]) -> None:
    went_on = changed(half_done(), accept_changes=True, **options)
    assert went_on.result.terminal == "answered"
    [claim] = [record for record in went_on.run.log.records if record.kind is Kind.RESUMED]
    assert list(claim["changes"]) == [name.partition(".")[0]]
    again = cut_after(went_on.run.log, len(went_on.run.log) - 2)
    assert changed(again, **options).result.terminal == "answered", "it is the run's own from then on"


def test_other_limits_hold_from_then_on() -> None:
    script = [reply(tool_use(f"r{turn}", "read", {})) for turn in range(1, 5)]
    whole = play(script, tools=tools([]), limits=Limits(max_turns=4))
    early = cut_after(whole.log, next(one.seq for one in whole.log.records if one.reason == "next_turn") + 1)
    went_on = asyncio.run(resumed(early, script[1:], tools=tools([]), limits=Limits(max_turns=2), accept_changes=True))
    assert (went_on.result.terminal, went_on.result.num_turns) == ("max_turns", 2)


def test_a_run_that_kept_no_contents_is_refused() -> None:
    result = asyncio.run(run_of([TWO_WRITES], payloads="digest", tools=tools([]), hooks=asking("write")))
    with pytest.raises(CannotResume, match="kept no contents"):
        go_on(result.log, [])


def test_a_content_that_is_gone_is_refused_and_nothing_is_written() -> None:
    log = suspended([])
    lost = Log(log.lines, MemoryLog("other").payloads)
    with pytest.raises(CannotResume, match="not kept any more"):
        go_on(lost, [], approvals={"w1": Allow(), "w2": Allow()})


def test_a_log_that_is_not_valid_is_refused() -> None:
    """The chain is whole, but a move is not the table's: that is for the verifier to see."""
    log = MemoryLog("forged")
    for record in half_done().records:
        own = {name: value for name, value in record.data.items() if name not in STAMPED}
        log.append(record.kind, own | ({"target": "decide"} if record.event == "RunStarted" else {}))
    with pytest.raises(CannotResume, match="the log is not valid: line 3: M3"):
        changed(Log.of(log))


def test_a_log_that_is_not_there_is_refused(tmp_path: Path) -> None:
    loop = Loop(model=MODEL)
    with pytest.raises(UsageError, match="cannot be read"):
        loop.resume(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UsageError, match="holds no run"):
        loop.resume(tmp_path / "empty.jsonl")


def test_a_run_that_is_going_on_is_not_taken_up_by_another(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    async def main() -> None:
        gate = asyncio.Event()

        async def wait(given: dict[str, Any], ctx: Any) -> str:
            await gate.wait()
            return "read"

        waiting = Tool("read", "", {"type": "object"}, wait, read_only=True)
        async with scripted(ScriptedAPI([reply(tool_use("r1", "read", {})), DONE]), tools=[waiting]) as loop:
            run = loop.run("Go.", log=path)
            task = asyncio.ensure_future(_awaited(run))
            while run.state != "orchestrate":
                await rounds(5)
            size = path.stat().st_size
            with pytest.raises(LogInUse):
                await loop.resume(path)
            assert path.stat().st_size == size
            gate.set()
            assert (await task).terminal == "answered"

    asyncio.run(main())


async def _awaited(run: Run) -> ResultMessage:
    return await run


# --- what there is to see


def test_a_resumed_run_says_so_and_shows_its_history_before_it_begins() -> None:
    log = suspended([])

    async def main() -> None:
        async with scripted(ScriptedAPI([DONE]), tools=tools([]), hooks=asking("write")) as loop:
            run = loop.resume(log, approvals={"w1": Allow(), "w2": Allow()})
            assert run.id == log.run
            assert run.messages == log.messages
            async with run:
                first = await anext(run)
            assert isinstance(first, SystemMessage)
            assert (first.subtype, first.data["run_id"], first.data["resumed"]) == ("init", log.run, True)

    asyncio.run(main())


def test_calls_that_had_ended_are_not_told_again() -> None:
    went_on = go_on(suspended([]), [], [DONE], approvals={"w1": Allow(), "w2": Allow()})
    ended = [one.tool_use_id for one in went_on.seen if isinstance(one, ToolMessage) and one.phase is ToolPhase.END]
    assert ended == ["w1", "w2"]
