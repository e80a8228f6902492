"""The library calls: a table, and what is laid over it, in the format asked for."""

from collections.abc import Iterable
from typing import Any, Final, Literal, cast, get_args, overload

from looplatch.diagrams.dot import dot
from looplatch.diagrams.graph import Graph, graph_of
from looplatch.diagrams.mermaid import mermaid
from looplatch.diagrams.overlay import Kind, Overlay
from looplatch.diagrams.png import png
from looplatch.diagrams.sequence_mermaid import sequence_mermaid
from looplatch.diagrams.sequence_svg import sequence_svg
from looplatch.diagrams.source import Source
from looplatch.diagrams.svg import svg
from looplatch.diagrams.text import text
from looplatch.diagrams.timeline import timeline_svg
from looplatch.diagrams.viewer import page
from looplatch.diagrams.walk import Walk, together, walk_of
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_kind, check_switch
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, check_is_table

TextFormat = Literal["mermaid", "dot", "svg", "text", "html"]
Format = Literal["mermaid", "dot", "svg", "png", "text", "html"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
Picture = Literal["machine", "sequence", "timeline"]
PICTURES: Final[dict[str, tuple[Format, ...]]] = {
    "machine": FORMATS,
    "sequence": ("mermaid", "svg", "png"),
    "timeline": ("svg", "png"),
}


@overload
def render(
    log_or_run: Source | None = None,
    *,
    kind: Picture = "machine",
    table: Table = TABLE,
    format: Literal["png"],
    fold: bool = False,
) -> bytes: ...
@overload
def render(
    log_or_run: Source | None = None,
    *,
    kind: Picture = "machine",
    table: Table = TABLE,
    format: TextFormat = "mermaid",
    fold: bool = False,
) -> str: ...
@overload
def render(
    log_or_run: Source | None = None,
    *,
    kind: Picture = "machine",
    table: Table = TABLE,
    format: Format,
    fold: bool = False,
) -> str | bytes: ...
def render(
    log_or_run: Source | None = None,
    *,
    kind: Picture = "machine",
    table: Table = TABLE,
    format: Format = "mermaid",  # noqa: A002 - the public name, as in the command line
    fold: bool = False,
) -> str | bytes:
    """Draw `table`; with `log_or_run`, what it walked is counted and timed, and what it never walked is faint.

    log_or_run: a log, a run, or a list of records; None draws the table alone.
    kind: "machine" is that; "sequence" draws who said what to whom in the run (as "mermaid", "svg" or "png"),
    "timeline" who was busy when (as "svg" or "png").
    format: "mermaid", "dot", "svg", "text" and "html" give str; "png" gives bytes and needs `looplatch[diagrams]`.
        "html" is a page that shows every record of the log, its contents and what the verifier says, too.
    fold: moves that stay are counted instead of listed.
    The same arguments give the same result. Raises UsageError for an unknown kind or format, for a log or run that is
    none, that is missing, or that ran on another table, and where the packages of the extra are missing.
    """
    check_format(format, kind)
    check_switch("fold", fold)
    check_is_table(table)
    if kind == "sequence":
        run = _given(log_or_run, kind)
        return sequence_mermaid(run) if format == "mermaid" else _painted(sequence_svg(run), format)
    if kind == "timeline":
        return _painted(timeline_svg(_given(log_or_run, kind)), format)
    if format == "html":
        return page(log_or_run, table=table)
    overlay = None if log_or_run is None else Overlay(kind=Kind.RUN, walks=(walk_of(log_or_run, table),))
    return _drawn(graph_of(table, overlay, fold=fold), format)


@overload
def diff(
    a: Source,
    b: Source,
    *,
    names: tuple[str, str] = ...,
    table: Table = TABLE,
    format: Literal["png"],
    fold: bool = False,
) -> bytes: ...
@overload
def diff(
    a: Source,
    b: Source,
    *,
    names: tuple[str, str] = ...,
    table: Table = TABLE,
    format: TextFormat = "svg",
    fold: bool = False,
) -> str: ...
@overload
def diff(
    a: Source, b: Source, *, names: tuple[str, str] = ..., table: Table = TABLE, format: Format, fold: bool = False
) -> str | bytes: ...
def diff(
    a: Source,
    b: Source,
    *,
    names: tuple[str, str] = ("the first run", "the second run"),
    table: Table = TABLE,
    format: Format = "svg",  # noqa: A002 - the public name, as in the command line
    fold: bool = False,
) -> str | bytes:
    """Draw two runs on `table`: what only `a` walked in one colour, what only `b` walked in another, with a legend.

    names: what the legend calls them. The rest, and what is raised, is as in `render`.
    """
    check_format(format)
    check_switch("fold", fold)
    given: Any = names
    if not isinstance(given, list | tuple) or [type(name) for name in cast("list[object]", given)] != [str, str]:
        raise UsageError("names", f"{brief(given)} is not allowed", "Give two texts: names=('before', 'after')")
    overlay = Overlay(kind=Kind.DIFF, walks=(walk_of(a, table), walk_of(b, table)), names=names)
    return _drawn(graph_of(table, overlay, fold=fold), format)


@overload
def coverage(
    logs: Iterable[Source | Walk], *, table: Table = TABLE, format: Literal["png"], fold: bool = False
) -> bytes: ...
@overload
def coverage(
    logs: Iterable[Source | Walk], *, table: Table = TABLE, format: TextFormat = "svg", fold: bool = False
) -> str: ...
@overload
def coverage(
    logs: Iterable[Source | Walk], *, table: Table = TABLE, format: Format, fold: bool = False
) -> str | bytes: ...
def coverage(
    logs: Iterable[Source | Walk],
    *,
    table: Table = TABLE,
    format: Format = "svg",  # noqa: A002 - the public name, as in the command line
    fold: bool = False,
) -> str | bytes:
    """Draw what `logs`, those of a test run, walked together of `table`: walked rows in one colour, others in another.

    logs: logs, runs, lists of records, or their walks; read one after the other. None draws what nothing walked.
    The rest, and what is raised, is as in `render`.
    """
    check_format(format)
    check_switch("fold", fold)
    check_kind("logs", logs, Iterable, "Give a list of logs, runs or lists of records")
    walks = [log if isinstance(log, Walk) else walk_of(log, table) for log in logs]
    overlay = Overlay(kind=Kind.COVERAGE, walks=(together(walks),), runs=len(walks))
    return _drawn(graph_of(table, overlay, fold=fold), format)


def way(log_or_run: Source, *, table: Table = TABLE) -> str:
    """What a run walked of `table`, as text, and nothing else of it. Raises UsageError as `render` does."""
    overlay = Overlay(kind=Kind.RUN, walks=(walk_of(log_or_run, table),))
    return text(graph_of(table, overlay).way())


def check_format(format: str, kind: str = "machine") -> None:  # noqa: A002 - as the argument it checks
    """Raise UsageError where `kind` is no picture, or is not drawn as `format`."""
    if not isinstance(kind, str) or kind not in PICTURES:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("kind", f"{brief(kind)} is not known", f"Take one of {', '.join(PICTURES)}")
    if format not in FORMATS:
        raise UsageError("format", f"{brief(format)} is not known", f"Take one of {', '.join(PICTURES[kind])}")
    if format not in PICTURES[kind]:
        raise UsageError(
            "format", f"a {kind} is not drawn as {brief(format)}", f"Take one of {', '.join(PICTURES[kind])}"
        )


def _given(log_or_run: Source | None, kind: Picture) -> Source:
    if log_or_run is None:
        raise UsageError("log_or_run", f"a {kind} needs a run", "Give a log, a run, or a list of records")
    return log_or_run


def _drawn(graph: Graph, format: Format) -> str | bytes:  # noqa: A002 - as the argument it is
    match format:
        case "mermaid":
            return mermaid(graph)
        case "dot":
            return dot(graph)
        case "text":
            return text(graph)
        case "svg" | "png":
            return _painted(svg(graph), format)
        case "html":
            raise UsageError("format", "a page shows one run", "Take one of mermaid, dot, svg, png, text")


def _painted(picture: str, format: Format) -> str | bytes:  # noqa: A002 - as the argument it is
    return png(picture) if format == "png" else picture
