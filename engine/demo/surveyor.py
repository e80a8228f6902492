"""The embedded model: no model at all, but a script that surveys a folder and answers with what the tools returned."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from looplatch.demo.found import Found, found_in
from looplatch.demo.report import report
from looplatch.states.counted import counted
from looplatch.testing.answers import Answer, Reply, event_count, reply, stalled
from looplatch.testing.blocks import Block, text, tool_use

READS: Final = 10
"""How many files are read at once."""

_ALL_READ: Final = 30  # text files; of a folder with more, only the first `READS`
_REPORT_TOKENS: Final = 4_000  # what the report needs; with less it is cut
_MOST_EVENTS: Final = 120  # of one answer, so that a long one does not take long to show


class Pause(asyncio.Event):
    """A gate of the scripted API that opens by itself after `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def wait(self) -> Literal[True]:
        """Wait that long."""
        await asyncio.sleep(self._seconds)
        return True


class Surveyor:
    """The script, for `ScriptedAPI`: glob and grep, then the files, then a report that one `max_tokens` cuts.

    It knows nothing but the request: every choice comes from the results that stand in it. `pace_s` is the time between
    two events of an answer, in seconds; 0 sends them all at once.
    """

    def __init__(self, pace_s: float = 0.0) -> None:
        self._pace_s = pace_s

    def __call__(self, body: dict[str, Any]) -> Answer:
        """Answer one request."""
        return self._paced(_answer(found_in(body), body))

    def _paced(self, answer: Reply) -> Answer:
        paced: Answer = answer
        if self._pace_s > 0:
            for place in range(1, event_count(answer)):
                paced = stalled(paced, after=place, gate=Pause(self._pace_s))
        return paced


def _answer(found: Found, body: Mapping[str, Any]) -> Reply:
    if not found.surveyed:
        return reply(
            _said("I list the files of the folder, and look for the first lines of each, at the same time. "),
            _call(0, "glob", {"pattern": "**"}),
            _call(1, "grep", {"text": "", "per_file": 2}),
        )
    wanted = list(_to_read(found))
    if wanted and found.calls < 2 + _ALL_READ:
        count = counted(len(wanted), "file")
        return reply(
            _said(f"I read {count}; each begins while I still ask for more. "),
            *(_call(found.calls + number, "read", {"path": path}) for number, path in enumerate(wanted)),
        )
    whole = report(found)
    if body["max_tokens"] < _REPORT_TOKENS:
        return reply(_said(whole[: len(whole) // 2 + 1]), stop="max_tokens")
    return reply(_said(whole))


def _to_read(found: Found) -> Iterator[str]:
    """The next files to read: those with text, changed last first, as many as can be read at once."""
    with_text = {line.path for line in found.lines}
    paths = [file.path for file in found.files if file.path in with_text]
    if len(paths) > _ALL_READ:
        paths = paths[:READS]
    asked = found.texts.keys() | found.refused.keys()
    yield from [path for path in paths if path not in asked][:READS]


def _said(said: str) -> Block:
    """A text in pieces as a model writes it: word by word, or in larger ones where it is long."""
    words = re.findall(r"\s*\S+\s*", said) or [said]
    size = -(-len(words) // _MOST_EVENTS)
    return text(said, pieces=["".join(words[at : at + size]) for at in range(0, len(words), size)])


def _call(number: int, name: str, given: Mapping[str, Any]) -> Block:
    return tool_use(f"toolu_{number + 1:02}", name, given, pieces=2)
