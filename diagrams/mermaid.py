"""A graph as Mermaid text (`stateDiagram-v2`), as GitHub and many editors show it.

The moves that stay stand as lines inside their state. State diagrams have no syntax for the colour of an edge, so the
reasons are coloured by style rules on the edges' ids, which number the edges in the order of the text.
"""

from collections.abc import Iterable

from looplatch.diagrams.graph import TIMES, Edge, Graph, Node, NodeKind
from looplatch.diagrams.palette import FAINT, PALE, colour_of

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ,./[]()|" + TIMES)


def mermaid(graph: Graph) -> str:
    """The diagram's text; the same graph gives the same text."""
    arrows = [_Arrow("[*]", node.name, "", None) for node in graph.nodes if node.initial]
    arrows += [_Arrow(edge.source, edge.target, _label(edge), edge) for edge in graph.edges]
    return "\n".join(
        (
            f'%%{{init: {{"themeCSS": "{_rules(arrows)}"}}}}%%',
            "stateDiagram-v2",
            "    direction TB",
            *_nodes(graph),
            *(arrow.text for arrow in arrows),
            *_classes(graph),
            "",
        )
    )


class _Arrow:
    def __init__(self, source: str, target: str, label: str, edge: Edge | None) -> None:
        self.text = f"    {source} --> {target}" + (f" : {label}" if label else "")
        self.edge = edge


def _label(edge: Edge) -> str:
    lines = [line.trigger for line in edge.lines] + ([edge.outcome] if edge.outcome else [])
    return "<br/>".join(_escaped(line) for line in lines)


def _escaped(text: str) -> str:
    """`text` with every character that Mermaid might read as its own turned into a character code."""
    return "".join(char if char in _PLAIN else f"#{ord(char)};" for char in text)


def _rules(arrows: list[_Arrow]) -> str:
    rules: list[str] = []
    for index, arrow in enumerate(arrows):
        if arrow.edge is not None and (arrow.edge.reason is not None or arrow.edge.faint):
            colour, width = (FAINT, 1) if arrow.edge.faint else (colour_of(arrow.edge), 2)
            rules.append(f"[id$=edge{index}]{{stroke:{colour}!important;stroke-width:{width}px!important}}")
    return " ".join(rules)


def _nodes(graph: Graph) -> Iterable[str]:
    for node in graph.nodes:
        if node.kind is not NodeKind.FINAL:
            yield from _node(graph, node)
    final = graph.of_kind(NodeKind.FINAL)
    if final:
        yield "    state final {"
        for node in final:
            yield from ("    " + line for line in _node(graph, node))
        yield "    }"


def _node(graph: Graph, node: Node) -> Iterable[str]:
    yield f'    state "{_escaped(node.title)}" as {node.name}'
    for text, _faint in graph.inside(node):
        yield f"    {node.name} : {_escaped(text)}"


def _classes(graph: Graph) -> Iterable[str]:
    yield "    classDef shared stroke-dasharray:5"
    yield "    classDef final font-weight:bold"
    yield f"    classDef faint stroke:{FAINT},color:{PALE}"
    yield "    classDef last stroke-width:4px"
    for node in graph.nodes:
        styles = [kind.value for kind in (NodeKind.SHARED, NodeKind.FINAL) if node.kind is kind]
        styles += [name for name, holds in (("faint", node.faint), ("last", node.last)) if holds]
        for style in styles:
            yield f"    class {node.name} {style}"
