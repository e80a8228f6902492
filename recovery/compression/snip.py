"""Snip, the first level: what later results repeat goes out of the old ones, and what is too long in them is cut."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from looplatch.recovery.compression import markers
from looplatch.recovery.compression.cutting import Content, content_tokens, cut_content, text_tokens
from looplatch.recovery.compression.edits import Edit
from looplatch.recovery.compression.exchanges import outline
from looplatch.recovery.compression.results import Result, results_of, with_content
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.compression.thinking import editable_from, with_thinking_dropped
from looplatch.recovery.weights import Message, encoded

LEAST_GAIN_TOKENS: Final = 16  # below this, a marker is not worth its place

# What names the thing that a call reads, and what picks a part of it.
_PATHS: Final = frozenset({"path", "file_path", "filepath", "filename", "file", "notebook_path", "uri", "url"})
_RANGES: Final = frozenset(
    {"offset", "limit", "start", "end", "start_line", "end_line", "line_start", "line_end"}
    | {"line", "lines", "range", "view_range", "page", "pages"}
)

IsRead = Callable[[Mapping[str, Any]], bool]
"""Whether a tool_use block is a call that only reads."""


def snip(
    messages: Sequence[Message],
    settings: Compression,
    is_read: IsRead | None = None,
) -> tuple[Edit, ...]:
    """The edits that cut old results; none where that makes nothing shorter.

    A result goes where the same was read again later without an error, where a part of a file was read and the whole of
    it later, and where a later result is equal; one that is too long is cut to head and tail. The newest exchanges are
    left alone. `is_read(call)`: whether a tool_use block only reads; None: all do. It is asked only where a call was
    made again.
    """
    parts = outline(messages)
    old = parts.before_newest(settings.keep_exchanges)
    bound = old[-1].stop if old else 0
    floor = editable_from(messages, parts, settings)
    if floor >= bound:
        return ()
    later = _Later(is_read)
    contents: list[tuple[Result, Content]] = []
    for result in reversed(results_of(messages, parts.exchanges)):
        if not result.direct:
            continue
        asked = _asked(result.call)
        new = _shorter(result, asked, later, settings) if floor <= result.place < bound else None
        if new is not None:
            contents.append((result, new))
        later.add(result, asked, new)
    return with_thinking_dropped(messages, parts, with_content(messages, contents), settings)


def _shorter(result: Result, asked: "_Asked", later: "_Later", settings: Compression) -> Content | None:
    content = result.content
    tokens = content_tokens(content)
    if tokens <= LEAST_GAIN_TOKENS:
        return None
    if later.supersedes(result.call, asked):
        new: Content = markers.superseded(tokens)
    elif later.has(content) and not markers.is_cut(content):
        new = markers.repeated(tokens)
    elif tokens > settings.long_result_tokens < text_tokens(content):
        new = cut_content(content, settings.long_result_tokens // 2)
    else:
        return None
    return new if tokens - content_tokens(new) >= LEAST_GAIN_TOKENS else None


_Asked = tuple[tuple[object, ...] | None, tuple[object, ...] | None]
"""What a call asks for, and what it reads of, where it names a path and nothing else but a part of that.

One that names no part asks for the thing itself. None: the call is not known; no path is named.
"""


def _asked(call: Mapping[str, Any]) -> _Asked:
    if not call:
        return None, None
    toolset, tool = call.get("toolset_name"), call["name"]
    given: Mapping[str, Any] = call["input"]
    name = _path_in(given)
    if name is None:
        return (toolset, tool, encoded(given)), None
    path = given[name]
    thing = (toolset, tool, name, path if isinstance(path, str) else encoded(path))
    return (thing if len(given) == 1 else (toolset, tool, encoded(given))), thing


def _path_in(given: Mapping[str, Any]) -> str | None:
    """The field that names what is read, where all others pick a part of that."""
    named = given if len(given) == 1 else [name for name in given if name not in _RANGES]
    if len(named) != 1:
        return None
    [name] = named
    return name if name in _PATHS else None


@attrs.define
class _Later:
    """What the results brought that stand after the one that is looked at."""

    _is_read: IsRead | None
    _calls: dict[tuple[object, ...] | None, Mapping[str, Any]] = attrs.field(
        factory=dict[tuple[object, ...] | None, Mapping[str, Any]]
    )
    _outputs: set[str | bytes] = attrs.field(factory=set[str | bytes])

    def add(self, result: Result, asked: _Asked, new: Content | None) -> None:
        """Take in a result; `new`: what its content becomes, None where it stays."""
        if new is None or not markers.is_whole(new):
            self._outputs.add(_identity(result.content))
        if (same := asked[0]) is not None and not result.is_error:
            self._calls[same] = result.call

    def supersedes(self, call: Mapping[str, Any], asked: _Asked) -> bool:
        """Whether the same was read again, or the whole of it."""
        same, thing = asked
        if same in self._calls:
            return self._reads(call)
        whole = None if thing is None else self._calls.get(thing)
        return whole is not None and self._reads(call) and self._reads(whole)

    def _reads(self, call: Mapping[str, Any]) -> bool:
        return self._is_read is None or self._is_read(call)

    def has(self, content: Content) -> bool:
        """Whether the same came again."""
        return _identity(content) in self._outputs


def _identity(content: Content) -> str | bytes:
    return content if isinstance(content, str) else encoded(content)
