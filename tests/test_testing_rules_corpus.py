"""The recorded traffic as a judge of the rules: they refuse what was refused, and accept what was answered."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from looplatch.testing import refusal

pytestmark = pytest.mark.corpus

ASSISTANT_FIRST = 'messages: first message must use the "user" role'
MALFORMED_ORDER = "opencode__rejects-malformed-assistant-tool-order"
"""A talk that the assistant begins, with a text behind a call: we refuse it too, for the former."""

NO_RESULT = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
STRICTER = {
    # Some models accept a talk that the assistant begins; others refuse it, and so do we.
    "rig__empty_end_turn.raw_followup_empty_end_turn_normalizes_to_empty_text_choice__1": ASSISTANT_FIRST,
    # As the one before, and the id of the server tool's result was replaced in the recording.
    "rig__opus_4_8.messages_preserve_system_role_after_server_tool_result__1": "messages.0: `web_search` tool use",
    # The id of the result was changed by hand after the recording.
    "dd-trace-py__anthropic_completion_tools_call_with_tool_result_stream": NO_RESULT,
    "dd-trace-py__anthropic_completion_tools_call_with_tool_result_stream_helper": NO_RESULT,
}
"""Recorded requests that were answered and that we refuse on purpose, with the opening words of the refusal."""


def corpus() -> Iterator[dict[str, Any]]:
    folder = Path(os.environ.get("LOOPLATCH_CORPUS", Path(__file__).parent.parent / "../shared/corpus"))
    if not folder.is_dir():
        pytest.skip("the recorded traffic is not here")
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["authenticity"].startswith("recorded") and isinstance(row["request"], dict):
                yield row


def test_every_recorded_request_that_the_api_answered_is_accepted() -> None:
    refused: dict[str, str] = {}
    accepted = 0
    for row in corpus():
        if row["response"]["status"] == 200:
            counting = "count_tokens" in row["endpoint"]
            message = refusal(row["request"], counting=counting)
            if message is None:
                accepted += 1
            else:
                refused[row["name"]] = message
    assert refused.keys() == STRICTER.keys()
    assert all(refused[name].startswith(words) for name, words in STRICTER.items())
    assert accepted > 1_000


def test_recorded_refusals_of_our_kinds_are_refused_in_the_same_words() -> None:
    kinds = (
        "tool_use` ids were found",
        "unexpected `tool_use_id`",
        "temperature: range",
        "input_schema.type",
        "expected shape",
    )
    seen = 0
    for row in corpus():
        if row["response"]["status"] == 400:
            recorded = json.loads(row["response"]["body"])["error"]["message"]
            if any(kind in recorded for kind in kinds):
                message = refusal(row["request"])
                assert message == (ASSISTANT_FIRST if row["name"] == MALFORMED_ORDER else recorded)
                seen += 1
    assert seen == 7
