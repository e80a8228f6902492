"""Old tool results cleared by the API: what is asked for, and what its answers tell of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from looplatch import Compression, Loop, UsageError
from looplatch.recovery.compression.server_edits import applied_edits, context_management
from looplatch.testing import ScriptedAPI, raw, reply, tool_use
from tests.playing import saying
from tests.recovering import WINDOW, effects, files, levels, meet, reads

EDITED = Compression(server_edits=True)


def test_the_api_clears_when_the_level_would_be_due_and_as_it_would() -> None:
    """Due at 0.7 of 20,000, of which the answer may take 8,000; a batch frees at least 0.05 of it."""
    assert context_management(EDITED, 20_000, 8_000) == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 6_000},
                "keep": {"type": "tool_uses", "value": 5},
                "clear_at_least": {"type": "input_tokens", "value": 1_000},
            }
        ]
    }


def test_where_the_window_is_not_known_the_api_decides_when() -> None:
    edits = context_management(Compression(server_edits=True, keep_results=3), None, 8_000)
    assert edits == {"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]}


@pytest.mark.parametrize("settings", [Compression(), Compression(server_edits=True, micro_at=None)])
def test_nothing_is_asked_for_unless_it_is_wanted(settings: Compression) -> None:
    assert context_management(settings, 20_000, 8_000) is None


def test_a_trigger_is_at_least_one_token() -> None:
    edits = context_management(EDITED, 10_000, 8_000)
    assert edits is not None
    assert edits["edits"][0]["trigger"]["value"] == 1


TOLD: list[tuple[object, list[dict[str, Any]]]] = [
    (None, []),
    ("x", []),
    ({}, []),
    ({"applied_edits": None}, []),
    ({"applied_edits": ["x", {}]}, [{"type": "unknown"}]),
    (
        {"applied_edits": [{"type": "t", "cleared_tool_uses": 3, "cleared_input_tokens": 2**60, "other": 1}]},
        [{"type": "t", "cleared_tool_uses": 3, "cleared_input_tokens": 2**53 - 1}],
    ),
    ({"applied_edits": [{"type": "t", "cleared_tool_uses": True, "cleared_input_tokens": -1}]}, [{"type": "t"}]),
]


@pytest.mark.parametrize(("told", "edits"), TOLD)
def test_what_an_answer_tells_of_edits_is_counted(told: object, edits: list[dict[str, Any]]) -> None:
    assert applied_edits(told) == edits


# --- in a run


def cleared(body: Mapping[str, Any], *applied: dict[str, Any]) -> Any:
    """An answer that tells of edits in its `message_delta`, as the API does."""
    message: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    message["stop_reason"] = None
    return raw(
        [
            {"type": "message_start", "message": {**message, "usage": {"input_tokens": 900, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Done."}},
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 5},
                "context_management": {"applied_edits": list(applied)},
            },
            {"type": "message_stop"},
        ]
    )


def test_each_request_asks_for_the_edits_with_the_beta_that_they_need() -> None:
    told = meet(
        [reply(tool_use("t1", "read", {})), reply("Done.")],
        tools=[saying("read", "a line")],
        window=WINDOW,
        compression=EDITED,
        params={"betas": ["mine-1"]},
    )
    for request in told.api.requests:
        assert request.body["context_management"] == context_management(EDITED, WINDOW, 8_000)
        assert request.headers["anthropic-beta"] == "mine-1,context-management-2025-06-27"
        assert request.query == "beta=true"


def test_what_was_cleared_is_in_the_record_of_the_call() -> None:
    applied = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 7, "cleared_input_tokens": 4_200}
    told = meet([lambda body: cleared(body, applied)], window=WINDOW, compression=EDITED)
    [(_, end)] = effects(told, "model")
    assert end is not None
    assert end["context_edits"] == [applied]


def test_nothing_is_cleared_here_then() -> None:
    """The same run without it clears results by itself."""
    there, here = (
        meet(
            [*reads(10), reply("Done.")],
            tools=[files(3_000)],
            compression=Compression(server_edits=edits, snip_at=None, collapse_at=None),
            window=WINDOW,
        )
        for edits in (True, False)
    )
    assert "micro" in levels(here)
    assert "micro" not in levels(there)


def test_a_loop_has_one_who_manages_the_context() -> None:
    given = {"edits": [{"type": "clear_thinking_20251015"}]}
    with pytest.raises(UsageError, match=r"params\['context_management'\]"):
        Loop(model="m", client=ScriptedAPI([]).client(), params={"context_management": given}, compression=EDITED)
