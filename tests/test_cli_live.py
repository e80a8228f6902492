"""The live view: text as it comes on a terminal, whole lines elsewhere, and nothing that a model could steer."""

import io
from typing import Any

import attrs
import pytest

from looplatch.audit import Log, MemoryLog
from looplatch.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from looplatch.cli.live import LiveView
from looplatch.cli.screen import Screen, Style
from looplatch.messages import (
    AssistantMessage,
    ResultMessage,
    StreamEvent,
    Subtype,
    SystemMessage,
    ToolMessage,
    ToolPhase,
    TransitionMessage,
    UserMessage,
)
from looplatch.states.reasons import Terminal
from looplatch.states.record import Record


class Terminal80(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def delta(text: str) -> StreamEvent:
    return StreamEvent(event={"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})


START = StreamEvent(
    event={"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
)
STOP = StreamEvent(event={"type": "content_block_stop", "index": 0})


def answer(*blocks: Any) -> AssistantMessage:
    return AssistantMessage(content=blocks, message_id="msg_1", model="m")


def move(source: str, target: str, event: str, **fields: Any) -> TransitionMessage:
    return TransitionMessage(
        record=Record({"kind": "transition", "source": source, "target": target, "event": event, **fields})
    )


def test_a_terminal_shows_text_piece_by_piece_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal80()
    view = LiveView(Screen(out))
    assert view.partial
    view.show(START)
    view.show(delta("Hel"))
    assert out.getvalue() == "Hel"
    view.show(delta("lo \x1b["))
    view.show(delta("31mworld"))
    view.show(STOP)
    view.show(answer(TextBlock(text="Hello \x1b[31mworld")))
    view.show(answer(TextBlock(text="whole")))
    assert out.getvalue() == "Hello world\nwhole\n"


def test_what_a_sub_agent_writes_is_shown_when_it_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """It writes beside the model: piece by piece the two texts would be mixed up."""
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal80()
    view = LiveView(Screen(out))
    view.show(attrs.evolve(START, parent_tool_use_id="t1"))
    view.show(attrs.evolve(delta("below"), parent_tool_use_id="t1"))
    assert out.getvalue() == ""
    view.show(attrs.evolve(answer(TextBlock(text="below")), parent_tool_use_id="t1"))
    assert out.getvalue() == "below\n"


def test_elsewhere_whole_blocks_are_shown_as_lines() -> None:
    out = io.StringIO()
    view = LiveView(Screen(out))
    assert not view.partial
    view.show(answer(TextBlock(text="one\r\ntwo\x1b[2J")))
    assert out.getvalue() == "one\ntwo\n"


def test_tools_are_shown_with_what_they_were_given_and_how_they_ended() -> None:
    out = io.StringIO()
    view = LiveView(Screen(out))
    view.show(answer(ToolUseBlock(id="t1", name="read", input={"path": "a\x1b[31m.txt"})))
    view.show(ToolMessage(phase=ToolPhase.START, tool_use_id="t1", name="read"))
    view.show(ToolMessage(phase=ToolPhase.PROGRESS, tool_use_id="t1", name="read", progress=("half", 50)))
    view.show(ToolMessage(phase=ToolPhase.END, tool_use_id="t1", name="read", cause="answered"))
    view.show(UserMessage(content=(ToolResultBlock(tool_use_id="t1", content="line 1\nline 2"),)))
    view.show(ToolMessage(phase=ToolPhase.END, tool_use_id="t2", name="nope", cause="unknown_tool", is_error=True))
    assert out.getvalue().splitlines() == [
        r"> read path='a\x1b[31m.txt'",
        r". read path='a\x1b[31m.txt': half 50",
        r"< read path='a\x1b[31m.txt': answered",
        r"= read path='a\x1b[31m.txt': 13 characters: line 1 line 2",
        "< nope: unknown_tool",
    ]


def test_states_are_shown_with_the_reason_and_moves_that_stay_are_not() -> None:
    out = io.StringIO()
    view = LiveView(Screen(out))
    view.show(move("prepare", "prepare", "RunStarted"))
    view.show(move("prepare", "stream", "ContextReady"))
    view.show(move("orchestrate", "prepare", "ToolsAnswered", reason="next_turn"))
    how = {"reason": "max_output_tokens_recovery", "strategy": "max_output_tokens_escalate"}
    view.show(move("recover", "prepare", "TroubleNamed", **how))
    view.show(move("decide", "completed", "StopHooksPassed", terminal="answered"))
    assert out.getvalue().splitlines() == [
        "[prepare -> stream] ContextReady",
        "[orchestrate -> prepare] ToolsAnswered, next_turn",
        "[recover -> prepare] TroubleNamed, max_output_tokens_escalate",
        "[decide -> completed] StopHooksPassed, answered",
    ]


def test_a_line_on_the_screen_is_ended_before_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal80()
    view = LiveView(Screen(out))
    view.show(START)
    view.show(delta("half a sen"))
    view.show(SystemMessage(subtype="api_retry", data={"attempt": 1, "delay_ms": 1500, "error": "overloaded\x07"}))
    assert out.getvalue() == "half a sen\nretry 1 in 1.5 s: overloaded\n"


def test_the_result_says_how_it_ended_and_what_went_wrong() -> None:
    out = io.StringIO()
    result = ResultMessage(
        subtype=Subtype.ERROR_MAX_TURNS,
        is_error=True,
        num_turns=1,
        total_cost_usd=None,
        usage={"input_tokens": 1000, "cache_read_input_tokens": 234, "output_tokens": 5},
        result=None,
        session_id="r",
        terminal=Terminal.MAX_TURNS,
        error="too many\x1b[5m turns",
        messages=[],
        log=Log.of(MemoryLog("r")),
    )
    LiveView(Screen(out)).show(result)
    assert out.getvalue() == "\nerror_max_turns: max_turns, 1 turn, 1,234 tokens read, 5 written\ntoo many turns\n"


def test_a_narrow_window_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal80()
    LiveView(Screen(out)).show(move("orchestrate", "prepare", "ToolsAnswered", reason="next_turn"))
    assert out.getvalue() == "[orchestrate -> prepa...\n"


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False), ({"TERM": "xterm", "NO_COLOR": "1"}, False)],
)
def test_colours_are_for_terminals_that_want_them(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out, plain = Terminal80(), io.StringIO()
    Screen(out).line("x", Style.BAD)
    Screen(plain).line("x", Style.BAD)
    assert (out.getvalue() == "\x1b[31mx\x1b[0m\n") is coloured
    assert plain.getvalue() == "x\n"


def test_a_character_that_the_output_lacks_is_escaped() -> None:
    raw = io.BytesIO()
    screen = Screen(io.TextIOWrapper(raw, encoding="ascii"))
    screen.line("21 °C → 你")
    assert raw.getvalue() == b"21 \\xb0C \\u2192 \\u4f60\n"
