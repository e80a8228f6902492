"""A graph as Mermaid text (`stateDiagram-v2`), as GitHub and many editors show it.

The moves that stay stand as lines inside their state. State diagrams have no syntax for the colour of an edge, so the
reasons are coloured by style rules on the edges' ids, which number the edges in the order of the text.
"""

from collections.abc import Iterable

from looplatch.diagrams.graph import Edge, Graph, Node, NodeKind
from looplatch.diagrams.overlay import TIMES, Tone
from looplatch.diagrams.palette import FAINT, colour_of, ink_of

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
            *_legend(graph),
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
    return "<br/>".join(escaped(line) for line in lines)


def escaped(text: str) -> str:
    """`text` with every character that Mermaid might read as its own turned into a character code."""
    return "".join(char if char in _PLAIN else f"#{ord(char)};" for char in text)


def _rules(arrows: list[_Arrow]) -> str:
    rules: list[str] = []
    for index, arrow in enumerate(arrows):
        edge = arrow.edge
        if edge is not None and (edge.reason is not None or edge.tone not in (Tone.PLAIN, Tone.WALKED)):
            colour, width = colour_of(edge), 1 if edge.tone is Tone.NEVER else 2
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
    yield f'    state "{escaped(node.head)}" as {node.name}'
    for text, _tone in graph.inside(node):
        yield f"    {node.name} : {escaped(text)}"


def _legend(graph: Graph) -> Iterable[str]:
    if graph.legend:
        yield "    state legend {"
        for index, (text, _tone) in enumerate(graph.legend):
            yield f'        state "{escaped(text)}" as legend_{index}'
        yield "    }"


def _classes(graph: Graph) -> Iterable[str]:
    yield "    classDef shared stroke-dasharray:5"
    yield "    classDef final font-weight:bold"
    yield "    classDef last stroke-width:4px"
    styled = [(node.name, node.tone) for node in graph.nodes]
    styled += [(f"legend_{index}", tone) for index, (_text, tone) in enumerate(graph.legend)]
    styled = [(name, tone) for name, tone in styled if tone not in (Tone.PLAIN, Tone.WALKED)]
    for tone in Tone:
        if any(tone is used for _name, used in styled):
            yield f"    classDef {tone} stroke:{FAINT if tone is Tone.NEVER else ink_of(tone)},color:{ink_of(tone)}"
    for node in graph.nodes:
        styles = [kind.value for kind in (NodeKind.SHARED, NodeKind.FINAL) if node.kind is kind]
        for style in styles + ["last"] * node.last:
            yield f"    class {node.name} {style}"
    for name, tone in styled:
        yield f"    class {name} {tone}"
