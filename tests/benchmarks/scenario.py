"""A scenario: what the scripted model answers, and what the loops on the other side do. It travels in the URL."""

from functools import lru_cache
from typing import Any, Final, Self

import attrs
import orjson

PROMPT: Final = "Use the tool until you are done."
MODEL: Final = "claude-sonnet-5"
MAX_TOKENS: Final = 8_000
TOOL: Final = "work"
TOOL_ABOUT: Final = "Do a unit of work."
TOOL_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"x": {"type": "string"}}}

_WORDS: Final = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore "


@attrs.frozen(kw_only=True)
class Scenario:
    """The numbers of one scenario.

    turns: answers that call the tool, before the last one that does not. calls: tool calls in each of them. text,
    final: text deltas of such an answer, and of the last one. piece: characters of a text delta. input_bytes: of a
    call's input, which comes in deltas of `input_piece` bytes; `nested` makes it an object of lists of objects.
    hold_ms: how long an answer waits between its last call and its end. tool_ms: how long the tool takes.
    loops: how many loops run at once. repeats: how often one after the other.
    """

    turns: int = 1
    calls: int = 1
    text: int = 3
    final: int = 3
    piece: int = 6
    input_bytes: int = 24
    input_piece: int = 16
    nested: int = 0
    hold_ms: int = 0
    tool_ms: int = 0
    loops: int = 1
    repeats: int = 1

    def path(self) -> str:
        """The scenario as a part of a URL; what is as usual is left out, since each client pays for a long address."""
        usual = attrs.asdict(Scenario())
        numbers = {name: value for name, value in attrs.asdict(self).items() if value != usual[name]}
        return ",".join(f"{name}={value}" for name, value in (numbers or {"turns": self.turns}).items())

    @classmethod
    @lru_cache
    def read(cls, path: str) -> Self:
        """The scenario of such a part."""
        return cls(**{name: int(value) for name, _, value in (item.partition("=") for item in path.split(","))})

    @property
    def runs(self) -> int:
        """How many loops run in all."""
        return self.loops * self.repeats

    @property
    def requests(self) -> int:
        """How many requests all loops send."""
        return self.runs * (self.turns + 1)

    @property
    def tool_calls(self) -> int:
        """How many calls all loops make."""
        return self.runs * self.turns * self.calls

    @property
    def deltas(self) -> int:
        """How many text deltas all loops read."""
        return self.runs * (self.turns * self.text + self.final)

    @property
    def characters(self) -> int:
        """How many characters of text all loops read."""
        return self.deltas * self.piece

    def pieces(self, count: int) -> list[str]:
        """The texts of so many text deltas."""
        source = _WORDS * (1 + count * self.piece // len(_WORDS))
        return [source[place * self.piece : (place + 1) * self.piece] for place in range(count)]

    def input_json(self) -> str:
        """The input of a call, as the model writes it."""
        return _nested(self.input_bytes) if self.nested else f'{{"x":"{"a" * self.input_bytes}"}}'


@lru_cache
def _nested(size: int) -> str:
    edit = {"line": 17, "old": "before", "new": "after", "why": {"rule": "naming", "certain": True, "score": 0.75}}
    files: list[dict[str, Any]] = []
    while len(made := orjson.dumps({"x": "edit", "files": files})) < size:
        files += [{"path": f"src/module_{len(files) + n}.py", "edits": [edit] * 8} for n in range(8)]
    return made.decode()


def tool_use_id(turn: int, place: int) -> str:
    """The id of a call; of the same length for every turn."""
    return f"toolu_{turn:06d}_{place:02d}"
