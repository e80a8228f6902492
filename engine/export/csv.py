"""CSV: one line a record, for spreadsheets. No cell can be taken for a formula, nor hide or reorder its text."""

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

from looplatch.analysis.fields import object_in
from looplatch.analysis.reading import Readable
from looplatch.cleaning import json_escape, visible
from looplatch.encoding import encode
from looplatch.export.source import Open, effect_name, records_of
from looplatch.export.weights import Weights
from looplatch.states.context import TOTALS
from looplatch.states.record import Kind

_FIELDS: Final = ("seq", "epoch", "ts", "mono_ns", "kind")
_MOVES: Final = ("source", "event", "target", "reason", "strategy", "terminal")
_OWN: Final = ("effect", "outcome", "tool_use_id", "access", "role")
COLUMNS: Final = (*_FIELDS, "turn", "name", *_MOVES, "fields", "guard", *_OWN, *TOTALS, "hash")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def lines(log: Readable) -> Iterator[str]:
    """The table, its head first. Tokens and cost are those of the effect or the move in the line.

    The fields of a move are those of its event; those of an edit of the history say how many messages, and bytes of
    them, gave way to how many.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    begun, weights, turn = Open(), Weights(), 1

    def line(cells: list[object]) -> str:
        writer.writerow([_cell(cell) for cell in cells])
        text = out.getvalue()
        out.seek(0)
        out.truncate()
        return text

    for number, record in enumerate(records_of(log)):
        if number == 0:
            yield line(list(COLUMNS))
        data = record.data
        begin = begun.take(record)
        fields = weights.take(record) or object_in(record, "fields")
        spent = object_in(record, "usage") or fields
        cells: dict[str, Any] = {name: data.get(name) for name in (*_FIELDS, *_MOVES, *_OWN, "hash")}
        cells |= {name: spent.get(name) for name in TOTALS}
        cells["name"] = None if begin is None else effect_name(begin)
        cells["fields"] = visible(encode(fields).decode(), json_escape) if fields else None
        cells["guard"] = next((name for name, verdict in data.get("guards") or () if verdict is True), None)
        cells["turn"] = turn
        if record.kind is Kind.TRANSITION:
            turn = object_in(record, "change").get("turn", turn)
        yield line([cells[name] for name in COLUMNS])


def _cell(value: object) -> object:
    """A value that no spreadsheet takes for a formula: a text that might be one begins with an apostrophe."""
    if value is None or isinstance(value, int):
        return value
    text = visible(str(value))
    return f"'{text}" if text.startswith(_FORMULA) else text
