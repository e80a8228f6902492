"""The scripted API knows its own thinking again: forged, changed and lost blocks are refused."""

from typing import Any

from looplatch.testing import error, refusal, reply, text, thinking, tool_use
from looplatch.testing.issued import Issued

USER: dict[str, Any] = {"role": "user", "content": "hi"}
SAID: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}


def request(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"model": "claude", "max_tokens": 100, "messages": list(messages), **fields}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


class TestWhatTheServerGaveOut:
    def test_its_own_thinking_comes_back(self) -> None:
        assert refusal(self.returned("I see.", "sig_1"), issued=self.issued()) is None

    def test_thinking_that_it_did_not_write_is_refused(self) -> None:
        message = "messages.1.content.0: Invalid `signature` in `thinking` block"
        assert refusal(self.returned("I see.", "sig_2"), issued=self.issued()) == message
        assert refusal(self.returned("I see.", ""), issued=self.issued()) == message

    def test_changed_thinking_in_the_latest_answer_is_refused(self) -> None:
        assert refusal(self.returned("I saw.", "sig_1"), issued=self.issued()) == (
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
            "modified. These blocks must remain as they were in the original response."
        )

    def test_changed_thinking_in_an_older_answer_is_refused(self) -> None:
        body = self.returned("I saw.", "sig_1")
        body["messages"] += [SAID, USER]
        assert refusal(body, issued=self.issued()) == "messages.1.content.0: Invalid `signature` in `thinking` block"

    def test_redacted_thinking_that_it_did_not_write_is_refused(self) -> None:
        body = request(USER, assistant({"type": "redacted_thinking", "data": "forged"}, CALL), user(RESULT))
        assert (
            refusal(body, issued=self.issued()) == "messages.1.content.0: Invalid `data` in `redacted_thinking` block"
        )

    def test_thinking_before_a_call_may_not_be_left_out_where_thinking_is_enabled(self) -> None:
        body = request(USER, assistant(CALL), user(RESULT))
        assert refusal(body, issued=self.issued()) is None
        message = refusal({**body, "thinking": {"type": "enabled", "budget_tokens": 10}}, issued=self.issued())
        assert message is not None
        assert message.startswith(
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
        )

    def test_a_block_type_of_its_own_is_accepted(self) -> None:
        issued = self.issued()
        issued.learn(reply({"type": "novel", "data": 1}, "and a word"))
        assert refusal(request(USER, assistant({"type": "novel", "data": 1}), USER), issued=issued) is None

    def test_an_error_gives_nothing_out(self) -> None:
        issued = Issued()
        issued.learn(error(500, "api_error"))
        assert issued.types == set()

    @staticmethod
    def issued() -> Issued:
        issued = Issued()
        issued.learn(reply(thinking("I see.", "sig_1"), tool_use("toolu_1", "read"), text("go")))
        return issued

    @staticmethod
    def returned(thought: str, signature: str) -> dict[str, Any]:
        block = {"type": "thinking", "thinking": thought, "signature": signature}
        return request(USER, assistant(block, CALL), user(RESULT))
