"""The library call: a table, and a run if one is given, in the format asked for."""

from typing import Final, Literal, get_args, overload

from looplatch.diagrams.dot import dot
from looplatch.diagrams.graph import graph_of
from looplatch.diagrams.mermaid import mermaid
from looplatch.diagrams.png import png
from looplatch.diagrams.svg import svg
from looplatch.diagrams.text import text
from looplatch.diagrams.walk import walk_of
from looplatch.states.errors import UsageError
from looplatch.states.table import TABLE
from looplatch.states.transition import Table

Format = Literal["mermaid", "dot", "svg", "png", "text"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)


@overload
def render(log_or_run: object = None, *, table: Table = TABLE, format: Literal["png"], fold: bool = False) -> bytes: ...
@overload
def render(
    log_or_run: object = None,
    *,
    table: Table = TABLE,
    format: Literal["mermaid", "dot", "svg", "text"] = "mermaid",
    fold: bool = False,
) -> str: ...
@overload
def render(log_or_run: object = None, *, table: Table = TABLE, format: Format, fold: bool = False) -> str | bytes: ...
def render(
    log_or_run: object = None,
    *,
    table: Table = TABLE,
    format: Format = "mermaid",  # noqa: A002 - the public name, as in the command line
    fold: bool = False,
) -> str | bytes:
    """Draw `table`; with `log_or_run`, what it walked is counted and what it never walked is faint.

    log_or_run: a log, a run, or a list of records; None draws the table alone.
    format: "mermaid", "dot", "svg" or "text" give str; "png" gives bytes and needs `looplatch[diagrams]`.
    fold: moves that stay are counted instead of listed.
    The same arguments give the same result. Raises UsageError for an unknown format, for a log or run that is none or
    that ran on another table, and where the packages of the extra are missing.
    """
    if format not in FORMATS:
        raise UsageError("format", f"{format!r} is not known", f"Take one of {', '.join(FORMATS)}")
    graph = graph_of(table, None if log_or_run is None else walk_of(log_or_run, table), fold=fold)
    match format:
        case "mermaid":
            return mermaid(graph)
        case "dot":
            return dot(graph)
        case "svg":
            return svg(graph)
        case "png":
            return png(graph)
        case "text":
            return text(graph)
