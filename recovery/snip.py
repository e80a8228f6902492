"""Snip, the first level: what later results repeat goes out of the old ones, and what is too long in them is cut."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from looplatch.recovery import markers
from looplatch.recovery.compression import Compression
from looplatch.recovery.cutting import Content, content_tokens, cut_content, text_tokens
from looplatch.recovery.edits import Edit, lowering
from looplatch.recovery.exchanges import outline
from looplatch.recovery.results import Result, results_of, with_content
from looplatch.recovery.thinking import editable_from, with_thinking_dropped
from looplatch.recovery.weights import Message, TokensOf, encoded, weigh

LEAST_GAIN_TOKENS: Final = 16  # below this, a marker is not worth its place

# What names the thing that a call reads, and what picks a part of it.
_PATHS: Final = ("path", "file_path", "filepath", "filename", "file", "notebook_path", "uri", "url")
_RANGES: Final = frozenset(
    {"offset", "limit", "start", "end", "start_line", "end_line", "line_start", "line_end"}
    | {"line", "lines", "range", "view_range", "page", "pages"}
)

IsRead = Callable[[str, Mapping[str, Any]], bool]


def snip(
    messages: Sequence[Message],
    settings: Compression,
    tokens_of: TokensOf = weigh,
    is_read: IsRead | None = None,
) -> tuple[Edit, ...]:
    """The edits that cut old results; none where that makes nothing shorter.

    A result goes where the same call was made again later and gave no error, where a part of a file was read and the
    whole of it later, and where a later result is equal; one that is too long is cut to head and tail. The newest
    exchanges are left alone. `is_read(name, input)`: which calls count as asking for the same thing again; None: all.
    """
    parts = outline(messages)
    old = parts.before_newest(settings.keep_exchanges)
    bound = old[-1].stop if old else 0
    floor = editable_from(messages, parts, settings)
    if floor >= bound:
        return ()
    later = _Later()
    contents: list[tuple[Result, Content]] = []
    for result in reversed(tuple(results_of(messages, parts.exchanges))):
        if not result.direct:
            continue
        asked = _asked(result, is_read)
        new = None
        if floor <= result.place < bound:
            new = _shorter(result, asked, later, settings)
        if new is not None:
            contents.append((result, new))
        later.add(result, asked, new)
    edits, _ = lowering(messages, with_content(messages, contents), tokens_of)
    return with_thinking_dropped(messages, parts, edits, settings)


def _shorter(result: Result, asked: "_Asked | None", later: "_Later", settings: Compression) -> Content | None:
    tokens = content_tokens(result.content)
    if tokens <= LEAST_GAIN_TOKENS:
        return None
    if later.supersedes(asked):
        new: Content = markers.superseded(tokens)
    elif not markers.is_cut(result.content) and later.has(result.content):
        new = markers.repeated(tokens)
    elif text_tokens(result.content) > settings.long_result_tokens:
        new = cut_content(result.content, settings.long_result_tokens // 2)
    else:
        return None
    return new if tokens - content_tokens(new) >= LEAST_GAIN_TOKENS else None


class _Asked(NamedTuple):
    """What a call asks for. `thing`: what it reads of, where it names a path and nothing else but a part of that."""

    call: tuple[str, bytes]
    thing: tuple[str, str, str] | None
    is_whole: bool  # it names no part


def _asked(result: Result, is_read: IsRead | None) -> _Asked | None:
    """What a result was asked for by; None where asking again would bring something else."""
    if not result.name or (is_read is not None and not is_read(result.name, result.input)):
        return None
    call = (result.name, encoded(result.input))
    named = [name for name in result.input if name not in _RANGES]
    if len(named) != 1 or named[0] not in _PATHS:
        return _Asked(call, None, is_whole=False)
    return _Asked(call, (result.name, named[0], str(result.input[named[0]])), is_whole=len(result.input) == 1)


@attrs.define
class _Later:
    """What the results brought that stand after the one that is looked at."""

    _calls: set[tuple[str, bytes]] = attrs.field(factory=set[tuple[str, bytes]])
    _wholes: set[tuple[str, str, str]] = attrs.field(factory=set[tuple[str, str, str]])
    _outputs: set[str | bytes] = attrs.field(factory=set[str | bytes])

    def add(self, result: Result, asked: _Asked | None, new: Content | None) -> None:
        """Take in a result; `new`: what its content becomes, None where it stays."""
        if new is None or not markers.is_whole(new):
            self._outputs.add(_identity(result.content))
        if asked is None or result.is_error:
            return
        self._calls.add(asked.call)
        if asked.thing is not None and asked.is_whole:
            self._wholes.add(asked.thing)

    def supersedes(self, asked: _Asked | None) -> bool:
        """Whether the same was asked for again."""
        return asked is not None and (asked.call in self._calls or asked.thing in self._wholes)

    def has(self, content: Content) -> bool:
        """Whether the same came again."""
        return _identity(content) in self._outputs


def _identity(content: Content) -> str | bytes:
    return content if isinstance(content, str) else encoded(content)
