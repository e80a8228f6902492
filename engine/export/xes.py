"""XES (IEEE 1849): the run as one trace of events, for process mining.

Moves are events of their own, with the lifecycle `complete`; an effect is a `start` and a `complete`. The attribute
`looplatch:kind` tells them apart: "move", "refused" and "effect".
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import quoteattr

from looplatch.analysis.reading import Readable
from looplatch.cleaning import visible
from looplatch.export.source import Open, effect_name, records_of
from looplatch.states.record import Kind, Record

_NO_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_EXTENSIONS: Final = (("Concept", "concept"), ("Lifecycle", "lifecycle"), ("Time", "time"), ("Organizational", "org"))
_MOVES: Final = ("source", "target", "reason", "strategy", "terminal")

Attributes = Mapping[str, str | int | bool | None]


def lines(log: Readable) -> Iterator[str]:
    """The document, line by line."""
    begun, opened = Open(), False
    for record in records_of(log):
        if not opened:
            opened = True
            yield from _head()
            yield "  <trace>\n"
            yield f"    {_attribute('concept:name', record.run)}\n"
            yield f"    {_attribute('looplatch:model', record.get('model'))}\n"
            yield f"    {_attribute('looplatch:table', record.get('table'))}\n"
        begin = begun.take(record)
        if record.kind in (Kind.TRANSITION, Kind.REJECTED):
            yield _event(record, _move(record))
        elif begin is not None:
            yield _event(record, _effect(record, begin))
    yield "  </trace>\n</log>\n"


def _head() -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<log xes.version="1849-2016" xes.features="" xmlns="http://www.xes-standard.org/">\n'
    for name, prefix in _EXTENSIONS:
        yield f'  <extension name="{name}" prefix="{prefix}" uri="http://www.xes-standard.org/{prefix}.xesext"/>\n'
    yield '  <global scope="trace"><string key="concept:name" value=""/></global>\n'
    yield '  <global scope="event">'
    yield '<string key="concept:name" value=""/><string key="lifecycle:transition" value="complete"/></global>\n'
    yield '  <classifier name="Event" keys="concept:name lifecycle:transition"/>\n'


def _move(record: Record) -> Attributes:
    return {
        "concept:name": record.event,
        "lifecycle:transition": "complete",
        "org:resource": "looplatch",
        "looplatch:kind": "move" if record.kind is Kind.TRANSITION else "refused",
        **{f"looplatch:{name}": record.get(name) for name in _MOVES},
    }


def _effect(record: Record, begin: Record) -> Attributes:
    ended = record.kind is Kind.EFFECT_END
    return {
        "concept:name": effect_name(begin),
        "concept:instance": str(begin["effect"]),
        "lifecycle:transition": "complete" if ended else "start",
        "org:resource": begin.get("name") or begin.get("model") or "looplatch",
        "looplatch:kind": "effect",
        "looplatch:class": begin["class"],
        "looplatch:outcome": record.get("outcome"),
        "looplatch:is_error": record.get("is_error"),
    }


def _event(record: Record, attributes: Attributes) -> str:
    inner = [_attribute(name, value) for name, value in attributes.items() if value is not None]
    inner.append(f'<date key="time:timestamp" value={_quoted(record["ts"])}/>')
    inner.append(_attribute("looplatch:seq", record.seq))
    return f"    <event>{''.join(inner)}</event>\n"


def _attribute(name: str, value: str | int | bool | None) -> str:
    match value:
        case bool():
            return f'<boolean key="{name}" value="{str(value).lower()}"/>'
        case int():
            return f'<int key="{name}" value="{value}"/>'
        case _:
            return f'<string key="{name}" value={_quoted("" if value is None else str(value))}/>'


def _quoted(text: str) -> str:
    quoted = quoteattr(_NO_XML.sub("\ufffd", text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
    return visible(quoted, lambda char: f"&#{ord(char)};")
