"""The entry of the exports: a log in, text out, piece by piece, so that a log of any length takes no more memory."""

from collections.abc import Callable, Iterator
from typing import Final, Literal, get_args

from looplatch.analysis.reading import Readable
from looplatch.export import aat, csv, otel, xes
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError

Format = Literal["xes", "otel", "aat", "csv"]
"""xes: an event log for process mining (IEEE 1849). otel: OpenTelemetry's GenAI spans, as a file of OTLP JSON.
aat: the records of the Agent Audit Trail draft, as JSON Lines. csv: one line a record, for spreadsheets."""

FORMATS: Final[tuple[Format, ...]] = get_args(Format)

_EXPORTS: Final[dict[Format, Callable[[Readable], Iterator[str]]]] = {
    "xes": xes.lines,
    "otel": otel.lines,
    "aat": aat.lines,
    "csv": csv.lines,
}


def export(log: Readable, to: Format) -> Iterator[str]:
    """The log in the format `to`, in pieces of text that belong together.

    Names, numbers and moves are exported, contents never. Raises UsageError for an unknown format and for a log that
    cannot be read, and LogDamaged, after what came before it, at a line that is no record.
    """
    if to not in FORMATS:
        raise UsageError("to", f"{brief(to)} is no format", f"Use {', '.join(FORMATS)}")
    return _EXPORTS[to](log)
