"""How a notebook shows a loop, a run and a log: as pictures. All text in them is escaped; nothing in them can run."""

from html import escape

from looplatch.diagrams.rendering import render
from looplatch.diagrams.source import Source
from looplatch.diagrams.timeline import timeline_svg
from looplatch.states.errors import LooplatchError
from looplatch.states.table import TABLE
from looplatch.states.transition import Table


def machine_svg(source: Source | None = None, table: Table = TABLE) -> str | None:
    """The machine, with the run of `source` laid over it; None where it cannot be drawn."""
    try:
        return render(source, table=table, format="svg", fold=source is not None)
    except LooplatchError:
        return None


def run_html(source: Source, table: Table = TABLE) -> str | None:
    """The timeline of a run, and its way through the machine to unfold; None where it cannot be drawn."""
    machine = machine_svg(source, table)
    if machine is None:
        return None
    return (
        f'<div class="looplatch"><div><code>{escape(repr(source))}</code></div>{timeline_svg(source)}'
        f"<details><summary>its way through the machine</summary>{machine}</details></div>"
    )
