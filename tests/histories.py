"""Histories to compress: a few words to write them by hand, and a strategy that draws them at random."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from looplatch.recovery.validity import history_problems
from looplatch.testing import refusal
from looplatch.testing.issued import Issued

Message = dict[str, Any]
Block = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

PIXELS = "A" * 512  # base64, long enough to weigh as a picture


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def thinking(words: str, signature: str | None = None) -> Block:
    return {"type": "thinking", "thinking": words, "signature": signature or f"signed-{words}"}


def call(own: str, name: str = "read", /, **given: Any) -> Block:
    return {"type": "tool_use", "id": own, "name": name, "input": given}


def result(answers: str, content: Any = "done", *, is_error: bool = False) -> Block:
    block = {"type": "tool_result", "tool_use_id": answers, "content": content}
    return {**block, "is_error": True} if is_error else block


def picture() -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXELS}}


def user(*blocks: Block | str) -> Message:
    return _message("user", blocks)


def assistant(*blocks: Block | str) -> Message:
    return _message("assistant", blocks)


def system(words: str) -> Message:
    return {"role": "system", "content": words}


def _message(role: str, blocks: Sequence[Block | str]) -> Message:
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return {"role": role, "content": blocks[0]}
    return {"role": role, "content": [text(block) if isinstance(block, str) else block for block in blocks]}


def step(number: int, content: Any = None, name: str = "read", /, **given: Any) -> list[Message]:
    """A call and its result, of some 500 tokens unless `content` is given."""
    own = f"toolu_{number}"
    filled = f"result {number} " * 200 if content is None else content
    return [assistant(call(own, name, **(given or {"path": f"file-{number}"}))), user(result(own, filled))]


def steps(count: int, first: int = 1) -> list[Message]:
    return [message for number in range(first, first + count) for message in step(number)]


# --- what must hold


def blocks_of(message: Mapping[str, Any]) -> list[Block]:
    content = message["content"]
    return [text(content)] if isinstance(content, str) else content


def all_blocks(messages: Iterable[Message], role: str | None = None) -> Iterator[Block]:
    for message in messages:
        if role in (None, message["role"]):
            yield from blocks_of(message)


def of_type(messages: Iterable[Message], *kinds: str) -> list[Block]:
    return [block for block in all_blocks(messages) if block["type"] in kinds]


def problems(messages: list[Message], issued_by: list[Message] | None = None) -> list[str]:
    """What the validator and the scripted API have against a history, with thinking on and awaited calls answered.

    `issued_by`: the history whose answers the API gave out; None: this one.
    """
    messages = [*messages, *_answers(messages)]
    issued = Issued()
    for turn in _turns(messages if issued_by is None else issued_by):
        if turn[0]["role"] == "assistant":
            issued.learn_blocks(all_blocks(turn))
    thinking_on = {"type": "enabled", "budget_tokens": 1_024}
    body = {"model": "m", "max_tokens": 2_000, "thinking": thinking_on, "messages": messages}
    refused = refusal(body, issued=issued)
    return [*history_problems(messages), *([] if refused is None else [refused])]


def _answers(messages: list[Message]) -> list[Message]:
    """The message that answers the calls of the last turn, where it waits for one."""
    if not messages or messages[-1]["role"] != "assistant":
        return []
    awaited = of_type(list(_turns(messages))[-1], "tool_use")
    return [user(*(result(block["id"]) for block in awaited))] if awaited else []


def _turns(messages: Iterable[Message]) -> Iterator[list[Message]]:
    spoken = (message for message in messages if message["role"] != "system")
    for _, turn in itertools.groupby(spoken, key=lambda message: message["role"]):
        yield list(turn)


# --- at random

_WORDS = st.sampled_from(["ok", "a line of output\n" * 3, "déjà vu " * 40, "line of a long file\n" * 50, "\n"])
_PATHS = st.sampled_from(["a.py", "b.py", "c.py"])
_INPUTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {}, optional={"path": _PATHS, "offset": st.integers(0, 2)}
)
_NAMES = st.sampled_from(["read", "list", "write"])


class _Writer:
    """Writes a history, with ids that never repeat."""

    def __init__(self, draw: Draw, *, thinks: bool) -> None:
        self._draw = draw
        self._thinks = thinks
        self._numbers = itertools.count(1)

    def chance(self, of: int) -> bool:
        return bool(self._draw(st.integers(1, of)) == 1)

    def prompt(self) -> list[Message]:
        said: list[Block] = [text(self._draw(st.sampled_from(["Do the task.", "Do the task. " * 30])))]
        if self.chance(6):
            said.append(picture())
        if self.chance(6):
            said.append(text("[Summary of the conversation so far, which is no longer shown]\nMuch was done. " * 5))
        if len(said) == 1 and self.chance(2):
            return [{"role": "user", "content": said[0]["text"]}]
        return [user(*said)]

    def exchange(self) -> list[Message]:
        own = [self._new_call() for _ in range(self._draw(st.sampled_from([0, 1, 1, 1, 2, 3])))]
        answer = [*self._opening(), *own]
        if not own:
            answer.append(text(f"Answer {next(self._numbers)}."))
        said = [self._result(block["id"]) for block in own]
        if not own or self.chance(6):
            said.append(text(f"The user says {next(self._numbers)}."))
        messages = [*self._split("assistant", answer), *self._split_user(said)]
        if self.chance(12):
            messages.append(system(f"Note {next(self._numbers)}."))
        return messages

    def served_exchange(self) -> list[Message]:
        """A tool of the server's own calls ours, and goes on in the next answer."""
        served, own = f"srvtoolu_{next(self._numbers)}", self._new_call()
        own["caller"] = {"type": "code_execution_20260120", "tool_id": served}
        begun = {"type": "server_tool_use", "id": served, "name": "code_execution", "input": {"code": "x()"}}
        done = {"type": "code_execution_tool_result", "tool_use_id": served, "content": {"stdout": "y"}}
        said = self._draw(st.sampled_from(["and so on", "so it is"]))
        return [
            assistant(*self._opening(), begun, own),
            user(self._result(own["id"])),
            assistant(done, text(said)),
            user(f"The user says {next(self._numbers)}."),
        ]

    def ending(self) -> list[Message]:
        """What waits: calls for approval, a paused turn; or nothing."""
        match self._draw(st.sampled_from(["none", "none", "none", "approval", "pause", "answer"])):
            case "approval":
                return [assistant(*self._opening(), self._new_call(), self._new_call())]
            case "pause":
                own = {"type": "server_tool_use", "id": f"srvtoolu_{next(self._numbers)}", "name": "web_search"}
                return [assistant(*self._opening(), {**own, "input": {"query": "q"}})]
            case "answer":
                return [assistant("All is done.")]
            case _:
                return []

    def _opening(self) -> list[Block]:
        blocks: list[Block] = []
        if self._thinks and self.chance(2):
            number = next(self._numbers)
            if self.chance(4):
                blocks.append({"type": "redacted_thinking", "data": f"redacted-{number}"})
            blocks.append(thinking(f"thought {number}"))
        if self.chance(2):
            blocks.append(text(self._draw(st.sampled_from(["I look.", "\n\n", "I look at it again. " * 10]))))
        return blocks

    def _new_call(self) -> Block:
        return call(f"toolu_{next(self._numbers)}", self._draw(_NAMES), **self._draw(_INPUTS))

    def _result(self, answers: str) -> Block:
        words = self._draw(_WORDS)
        match self._draw(st.sampled_from(["text", "text", "blocks", "picture", "error", "empty"])):
            case "blocks":
                return result(answers, [text(words), text("end")])
            case "picture":
                return result(answers, [text(words), picture()])
            case "error":
                return result(answers, f"failed: {words}", is_error=True)
            case "empty":
                return {"type": "tool_result", "tool_use_id": answers}
            case _:
                return result(answers, words)

    def _split(self, role: str, blocks: list[Block]) -> list[Message]:
        """One message, or one a block: the API makes one turn of them."""
        if len(blocks) > 1 and self.chance(5):
            return [{"role": role, "content": [block]} for block in blocks]
        return [{"role": role, "content": blocks}]

    def _split_user(self, blocks: list[Block]) -> list[Message]:
        results = [block for block in blocks if block["type"] == "tool_result"]
        others = blocks[len(results) :]
        if results and others and self.chance(3):
            return [{"role": "user", "content": results}, {"role": "user", "content": others}]
        return [{"role": "user", "content": blocks}]


@st.composite
def histories(draw: Draw, *, thinks: bool = True, least: int = 0, most: int = 12) -> list[Message]:
    """A history that the API takes, which may end in an answer that waits."""
    writer = _Writer(draw, thinks=thinks)
    messages = writer.prompt()
    for _ in range(draw(st.integers(least, most))):
        messages += writer.served_exchange() if writer.chance(15) else writer.exchange()
    return messages + writer.ending()
