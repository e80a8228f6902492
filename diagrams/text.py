"""A graph as plain text for a terminal: one block a state, one line a row."""

from collections.abc import Iterable

from looplatch.diagrams.graph import Graph, Line, Node, NodeKind


def text(graph: Graph) -> str:
    """The diagram's text; the same graph gives the same text."""
    blocks = ["\n".join(_block(graph, node)) for node in graph.nodes if node.kind is not NodeKind.FINAL]
    final = graph.of_kind(NodeKind.FINAL)
    if final:
        blocks.append("\n".join(["final", *(f"  {_head(node)}" for node in final)]))
    if graph.legend:
        blocks.append("\n".join(text for text, _tone in graph.legend))
    return "\n\n".join(blocks) + "\n"


def _head(node: Node) -> str:
    marks = [mark for mark, holds in (("starts here", node.initial), ("the run is here", node.last)) if holds]
    dwelt = f", {node.dwelt}" if node.dwelt else ""
    return f"{node.head}{dwelt}" + (f" ({', '.join(marks)})" if marks else "")


def _block(graph: Graph, node: Node) -> Iterable[str]:
    """The node's title, then its rows in columns: where to, by what, why, and the commands."""
    yield _head(node)
    rows: list[tuple[str, str, str, str]] = []
    if graph.fold and node.stays:
        rows.append(("stays", graph.folded(node)[0], "", ""))
    else:
        rows += [("stays", *_cells(line, "")) for line in node.stays]
    rows += [(f"-> {e.target}", *_cells(line, e.outcome)) for e in graph.leaving(node.name) for line in e.lines]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:3], widths, strict=True) if width]
        yield ("  " + "  ".join([*cells, row[3]])).rstrip()


def _cells(line: Line, outcome: str) -> tuple[str, str, str]:
    return line.trigger, outcome, f"/ {line.commands}" if line.commands else ""
