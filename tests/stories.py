"""Ten runs, written down by hand from the rules: what the model says, and what has to come of it.

The scripts are used twice: each story is compared with its run, and all of them count for the rows that runs walk.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen

from looplatch import Limits, Run, ToolMessage
from looplatch.messages import Message, ToolPhase
from looplatch.recovery.strategies.max_output_tokens_recovery import GO_ON
from looplatch.testing import block, error, failing, reply, server_tool_use, stalled, text, tool_use
from tests.playing import Watch, assistant, echo, result, use, user

GO = user("Go.")
ON = user({"type": "text", "text": GO_ON})

START = ["RunStarted"]
ANSWER = ["ContextReady > stream", "ModelResponded > decide"]
FAILURE = ["ContextReady > stream", "ModelFailed > recover"]
TOOLS = [*ANSWER, "ToolsRequested > orchestrate", "ToolsAnswered > prepare: next_turn"]
RETRY = ["TroubleNamed", "BackoffElapsed > stream"]
END = [*ANSWER, "AnswerGiven", "StopHooksPassed > completed: answered"]


@frozen(kw_only=True)
class Story:
    """`script` is made anew for each run. All else is what is expected: the moves, the messages and `max_tokens` of
    each request, the seconds slept, the history in the end, and the result's text or error."""

    name: str
    script: Callable[[], tuple[Sequence[Any], Watch | None]]
    options: dict[str, Any] = field(factory=dict[str, Any])
    moves: list[str]
    sent: list[list[dict[str, Any]]]
    max_tokens: list[int]
    slept: list[float] = field(factory=list[float])
    history: list[dict[str, Any]]
    subtype: str = "success"
    text: str | None = None
    error: str | None = None
    turns: int = 1


def plainly(*script: Any) -> Callable[[], tuple[Sequence[Any], Watch | None]]:
    """A script that needs nothing but its answers."""
    return lambda: (script, None)


# --- three turns with tools

_FIRST = assistant("Two files.", use("t1", "read", path="a"), use("t2", "read", path="b"))
_FIRST_RESULTS = user(result("t1", 'read {"path":"a"}'), result("t2", 'read {"path":"b"}'))
_SECOND = assistant(use("t3", "write", path="c"))
_SECOND_RESULTS = user(result("t3", 'write {"path":"c"}'))

THREE_TURNS = Story(
    name="a run of three turns with tools",
    script=plainly(
        reply("Two files.", tool_use("t1", "read", {"path": "a"}), tool_use("t2", "read", {"path": "b"})),
        reply(tool_use("t3", "write", {"path": "c"})),
        reply("All written."),
    ),
    options={"tools": [echo("read"), echo("write", read_only=False)]},
    moves=[*START, *TOOLS, *TOOLS, *END],
    sent=[
        [GO],
        [GO, _FIRST, _FIRST_RESULTS],
        [GO, _FIRST, _FIRST_RESULTS, _SECOND, _SECOND_RESULTS],
    ],
    max_tokens=[8_000] * 3,
    history=[GO, _FIRST, _FIRST_RESULTS, _SECOND, _SECOND_RESULTS, assistant("All written.")],
    text="All written.",
    turns=3,
)

# --- a call cut by max_tokens after a read ran: the turn is sealed, so there is no escalation

_CUT_CALL = assistant("I read.", use("t1", "read", path="a"))
_CUT_CALL_RESULTS = user(result("t1", 'read {"path":"a"}'), {"type": "text", "text": GO_ON})

CUT_CALL = Story(
    name="a call cut by max_tokens after a read ran",
    script=plainly(
        reply(
            "I read.",
            tool_use("t1", "read", {"path": "a"}),
            tool_use("t2", "write", '{"path": "b", "content": "hel'),
            stop="max_tokens",
        ),
        reply("Done."),
    ),
    options={"tools": [echo("read"), echo("write", read_only=False)]},
    moves=[
        *START,
        *ANSWER,
        "OutputTruncated > orchestrate",
        "ToolsAnswered > recover",
        "TroubleNamed > prepare: max_output_tokens_recovery (max_output_tokens_recovery)",
        *END,
    ],
    sent=[[GO], [GO, _CUT_CALL, _CUT_CALL_RESULTS]],
    max_tokens=[8_000, 8_000],
    history=[GO, _CUT_CALL, _CUT_CALL_RESULTS, assistant("Done.")],
    text="Done.",
)

# --- overload mid-stream after two tools finished: the prefix and both results are the next turn

_TWO = assistant("Both.", use("t1", "read", path="a"), use("t2", "read", path="b"))
_TWO_RESULTS = user(result("t1", 'read {"path":"a"}'), result("t2", 'read {"path":"b"}'))


def _overload_after_two_tools() -> tuple[Sequence[Any], Watch | None]:
    gate = asyncio.Event()
    ended: list[str] = []

    def watch(message: Message, run: Run) -> None:
        if isinstance(message, ToolMessage) and message.phase is ToolPhase.END:
            ended.append(message.tool_use_id)
            if len(ended) == 2:
                gate.set()

    whole = reply(
        "Both.",
        tool_use("t1", "read", {"path": "a"}),
        tool_use("t2", "read", {"path": "b"}),
        "And then I will",
    )
    # message_start, three events for each of the three blocks, then the opening of the last block
    broken = failing(whole, after=1 + 3 * 3 + 1)
    return [stalled(broken, after=1 + 3 * 3, gate=gate), reply("Done.")], watch


OVERLOAD_MIDWAY = Story(
    name="overload mid-stream after two tools finished",
    script=_overload_after_two_tools,
    options={"tools": [echo("read")]},
    moves=[
        *START,
        "ContextReady > stream",
        "ModelFailed > orchestrate",
        "ToolsAnswered > recover",
        "TroubleNamed",
        "BackoffElapsed > prepare: next_turn",
        *END,
    ],
    sent=[[GO], [GO, _TWO, _TWO_RESULTS]],
    max_tokens=[8_000, 8_000],
    slept=[0.5],
    history=[GO, _TWO, _TWO_RESULTS, assistant("Done.")],
    text="Done.",
    turns=2,
)

# --- overload before any content: the same request again, when the server asks for it

OVERLOAD_AT_ONCE = Story(
    name="overload before any content",
    script=plainly(error(529, "overloaded_error", "Overloaded", {"retry-after": "7"}), reply("Done.")),
    moves=[*START, *FAILURE, *RETRY, "ModelResponded > decide", *END[2:]],
    sent=[[GO], [GO]],
    max_tokens=[8_000, 8_000],
    slept=[7.0],
    history=[GO, assistant("Done.")],
    text="Done.",
)

# --- pause_turn with a server tool: the answer goes back as it is

_SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
_FOUND = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://example.org", "title": "T", "encrypted_content": "E"}],
}

PAUSE = Story(
    name="pause_turn with a server tool",
    script=plainly(
        reply("I search.", server_tool_use("srvtoolu_1", "web_search", {"query": "q"}), stop="pause_turn"),
        reply(block(_FOUND), "Found it."),
    ),
    options={"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    moves=[*START, *ANSWER, "TurnPaused > prepare: next_turn", *END],
    sent=[[GO], [GO, assistant("I search.", _SEARCH)]],
    max_tokens=[8_000, 8_000],
    history=[GO, assistant("I search.", _SEARCH), assistant(_FOUND, "Found it.")],
    text="Found it.",
    turns=2,
)

# --- refusal: nothing of it stays, nothing is sent again

REFUSAL = Story(
    name="refusal",
    script=plainly(reply("I would", stop="refusal", stop_details={"type": "refusal", "category": "cyber"})),
    moves=[*START, *ANSWER, "Refused > recover", "TroubleNamed > failed: refused"],
    sent=[[GO]],
    max_tokens=[8_000],
    history=[GO],
    subtype="error_during_execution",
    text="I would",
    error="the answer ended with the stop reason refusal (type: refusal, category: cyber)",
)

# --- a stop reason that nobody knows yet: the answer stays, the run ends

UNKNOWN = Story(
    name="unknown stop reason",
    script=plainly(reply("Done?", stop="stop_reason_of_tomorrow")),
    moves=[*START, *ANSWER, "StopReasonUnknown > failed: unknown_stop_reason"],
    sent=[[GO]],
    max_tokens=[8_000],
    history=[GO, assistant("Done?")],
    subtype="error_during_execution",
    text="Done?",
    error="the answer ended with the stop reason 'stop_reason_of_tomorrow', which looplatch does not know",
)

# --- three truncations in a row: the higher limit first, then asking to go on, twice

_ESCALATE = [
    "OutputTruncated > recover",
    "TroubleNamed > prepare: max_output_tokens_recovery (max_output_tokens_escalate)",
]
_GO_ON = [
    "OutputTruncated > recover",
    "TroubleNamed > prepare: max_output_tokens_recovery (max_output_tokens_recovery)",
]

TRUNCATIONS = Story(
    name="three truncations in a row",
    script=plainly(
        reply("Part", stop="max_tokens"),
        reply("Part one,", text(" and", closed=False), stop="max_tokens"),
        reply("part two,", stop="max_tokens"),
        reply("part three."),
    ),
    moves=[*START, *ANSWER, *_ESCALATE, *ANSWER, *_GO_ON, *ANSWER, *_GO_ON, *END],
    sent=[
        [GO],
        [GO],
        [GO, assistant("Part one,", " and"), ON],
        [GO, assistant("Part one,", " and"), ON, assistant("part two,"), ON],
    ],
    max_tokens=[8_000, 64_000, 64_000, 64_000],
    history=[GO, assistant("Part one,", " and"), ON, assistant("part two,"), ON, assistant("part three.")],
    text="part three.",
)

# --- retries spent

RETRIES_SPENT = Story(
    name="retries spent",
    script=plainly(
        error(529, "overloaded_error", "Overloaded"),
        failing(reply("Hello"), after=3),
        error(500, "api_error", "Internal server error"),
    ),
    options={"limits": Limits(max_attempts=2)},
    moves=[
        *START,
        *FAILURE,
        *RETRY,
        "ModelFailed > recover",
        *RETRY,
        "ModelFailed > recover",
        "TroubleNamed > failed: model_error",
    ],
    sent=[[GO]] * 3,
    max_tokens=[8_000] * 3,
    slept=[0.5, 1.0],
    history=[GO],
    subtype="error_during_execution",
    error="api_error: Internal server error",
)

# --- the turn limit

_CALL_1, _CALL_2 = assistant(use("t1", "read", n=1)), assistant(use("t2", "read", n=2))
_RESULT_1, _RESULT_2 = user(result("t1", 'read {"n":1}')), user(result("t2", 'read {"n":2}'))

TURN_LIMIT = Story(
    name="the turn limit",
    script=plainly(reply(tool_use("t1", "read", {"n": 1})), reply(tool_use("t2", "read", {"n": 2}))),
    options={"tools": [echo("read")], "limits": Limits(max_turns=2)},
    moves=[*START, *TOOLS, *ANSWER, "ToolsRequested > orchestrate", "ToolsAnswered > failed: max_turns"],
    sent=[[GO], [GO, _CALL_1, _RESULT_1]],
    max_tokens=[8_000, 8_000],
    history=[GO, _CALL_1, _RESULT_1, _CALL_2, _RESULT_2],
    subtype="error_max_turns",
    text="",
    turns=2,
)

STORIES = (
    THREE_TURNS,
    CUT_CALL,
    OVERLOAD_MIDWAY,
    OVERLOAD_AT_ONCE,
    PAUSE,
    REFUSAL,
    UNKNOWN,
    TRUNCATIONS,
    RETRIES_SPENT,
    TURN_LIMIT,
)
