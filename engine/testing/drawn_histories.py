"""A Hypothesis strategy for histories: what a conversation with tools may look like before its next request."""

import itertools
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st

from looplatch.testing.blocks import redacted_thinking, server_tool_use, text, thinking, tool_use

Message: TypeAlias = dict[str, Any]
Said: TypeAlias = dict[str, Any]

_WORDS: Final = st.sampled_from(["ok", "a line of output\n" * 3, "déjà vu " * 40, "line of a long file\n" * 50, "\n"])
_PATHS: Final = st.sampled_from(["a.py", "b.py", "c.py"])
_INPUTS: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {}, optional={"path": _PATHS, "offset": st.integers(0, 2)}
)
_NAMES: Final = st.sampled_from(["read", "list", "write"])
_PIXELS: Final = "A" * 512  # base64, long enough to weigh as a picture


@st.composite
def histories(draw: st.DrawFn, *, thinks: bool = True, min_size: int = 0, max_size: int = 12) -> list[Message]:
    """Lists of messages, as plain API dicts, that the API takes: a prompt, then `min_size` to `max_size` exchanges.

    There are parallel calls, failed and empty results, pictures, turns split into several messages, notes of the
    system's, summaries, and calls by the server's tools; ids never repeat. The last answer may wait: for the results of
    its calls, or to be continued. thinks: whether answers may begin with thinking, signed or redacted.
    """
    writer = _Writer(draw, thinks=thinks)
    messages = writer.prompt()
    for _ in range(draw(st.integers(min_size, max_size))):
        messages += writer.served_exchange() if writer.chance(15) else writer.exchange()
    return messages + writer.ending()


class _Writer:
    """Writes a history, with ids that never repeat."""

    def __init__(self, draw: st.DrawFn, *, thinks: bool) -> None:
        self._draw = draw
        self._thinks = thinks
        self._numbers = itertools.count(1)

    def chance(self, of: int) -> bool:
        return self._draw(st.integers(1, of)) == 1

    def prompt(self) -> list[Message]:
        said = [_text(self._draw(st.sampled_from(["Do the task.", "Do the task. " * 30])))]
        if self.chance(6):
            said.append(_picture())
        if self.chance(6):
            said.append(_text("[Summary of the conversation so far, which is no longer shown]\nMuch was done. " * 5))
        if len(said) == 1 and self.chance(2):
            return [{"role": "user", "content": said[0]["text"]}]
        return [{"role": "user", "content": said}]

    def exchange(self) -> list[Message]:
        own = [self._call() for _ in range(self._draw(st.sampled_from([0, 1, 1, 1, 2, 3])))]
        answer = [*self._opening(), *own]
        if not own:
            answer.append(_text(f"Answer {next(self._numbers)}."))
        said = [self._result(block["id"]) for block in own]
        if not own or self.chance(6):
            said.append(_text(f"The user says {next(self._numbers)}."))
        messages = [*self._split("assistant", answer), *self._split_user(said)]
        if self.chance(12):
            messages.append({"role": "system", "content": f"Note {next(self._numbers)}."})
        return messages

    def served_exchange(self) -> list[Message]:
        """A tool of the server's own calls ours, and goes on in the next answer."""
        served = f"srvtoolu_{next(self._numbers)}"
        own = self._call({"type": "code_execution_20260120", "tool_id": served})
        begun = dict(server_tool_use(served, "code_execution", {"code": "x()"}).whole)
        done = {"type": "code_execution_tool_result", "tool_use_id": served, "content": {"stdout": "y"}}
        said = self._draw(st.sampled_from(["and so on", "so it is"]))
        return [
            {"role": "assistant", "content": [*self._opening(), begun, own]},
            {"role": "user", "content": [self._result(own["id"])]},
            {"role": "assistant", "content": [done, _text(said)]},
            {"role": "user", "content": f"The user says {next(self._numbers)}."},
        ]

    def ending(self) -> list[Message]:
        """What waits: calls for approval, a paused turn; or nothing."""
        match self._draw(st.sampled_from(["none", "none", "none", "approval", "pause", "answer"])):
            case "approval":
                return [{"role": "assistant", "content": [*self._opening(), self._call(), self._call()]}]
            case "pause":
                search = server_tool_use(f"srvtoolu_{next(self._numbers)}", "web_search", {"query": "q"})
                return [{"role": "assistant", "content": [*self._opening(), dict(search.whole)]}]
            case "answer":
                return [{"role": "assistant", "content": "All is done."}]
            case _:
                return []

    def _opening(self) -> list[Said]:
        blocks: list[Said] = []
        if self._thinks and self.chance(2):
            number = next(self._numbers)
            if self.chance(4):
                blocks.append(dict(redacted_thinking(f"redacted-{number}").whole))
            blocks.append(dict(thinking(f"thought {number}", f"signed-{number}").whole))
        if self.chance(2):
            blocks.append(_text(self._draw(st.sampled_from(["I look.", "\n\n", "I look at it again. " * 10]))))
        return blocks

    def _call(self, caller: dict[str, Any] | None = None) -> Said:
        own, name, given = f"toolu_{next(self._numbers)}", self._draw(_NAMES), self._draw(_INPUTS)
        return dict(tool_use(own, name, given, caller=caller).whole)

    def _result(self, answers: str) -> Said:
        words = self._draw(_WORDS)
        block: Said = {"type": "tool_result", "tool_use_id": answers}
        match self._draw(st.sampled_from(["text", "text", "blocks", "picture", "error", "empty"])):
            case "blocks":
                return {**block, "content": [_text(words), _text("end")]}
            case "picture":
                return {**block, "content": [_text(words), _picture()]}
            case "error":
                return {**block, "content": f"failed: {words}", "is_error": True}
            case "empty":
                return block
            case _:
                return {**block, "content": words}

    def _split(self, role: str, blocks: list[Said]) -> list[Message]:
        """One message, or one a block: the API makes one turn of them."""
        if len(blocks) > 1 and self.chance(5):
            return [{"role": role, "content": [block]} for block in blocks]
        return [{"role": role, "content": blocks}]

    def _split_user(self, blocks: list[Said]) -> list[Message]:
        results = [block for block in blocks if block["type"] == "tool_result"]
        others = blocks[len(results) :]
        if results and others and self.chance(3):
            return [{"role": "user", "content": results}, {"role": "user", "content": others}]
        return [{"role": "user", "content": blocks}]


def _text(words: str) -> Said:
    return dict(text(words).whole)


def _picture() -> Said:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": _PIXELS}}
