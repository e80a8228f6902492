"""A graph as DOT, the language of Graphviz."""

from collections.abc import Iterable
from html import escape

from looplatch.diagrams.graph import Edge, Graph, Node, NodeKind
from looplatch.diagrams.overlay import Tone
from looplatch.diagrams.palette import FAINT, FLOW, INK, PALE, colour_of, ink_of

_HEAD = (
    'digraph "agent_loop" {',
    "  rankdir=TB; nodesep=0.35; ranksep=0.7; newrank=true",
    f'  graph [fontname="Helvetica", fontsize=11, fontcolor="{INK}"]',
    f'  node [shape=box, style="rounded", fontname="Helvetica", fontsize=11, color="{FLOW}", fontcolor="{INK}"]',
    f'  edge [fontname="Helvetica", fontsize=10, color="{FLOW}", fontcolor="{INK}"]',
)
_LEFT = '<BR ALIGN="LEFT"/>'


def dot(graph: Graph) -> str:
    """The diagram's text; the same graph gives the same text."""
    return "\n".join((*_HEAD, *_nodes(graph), *(_edge(edge) for edge in graph.edges), *_legend(graph), "}", ""))


def _nodes(graph: Graph) -> Iterable[str]:
    for node in graph.nodes:
        if node.initial:
            yield '  "start" [shape=point, width=0.15, label=""]'
            yield f'  "start" -> {_quoted(node.name)}'
        if node.kind is not NodeKind.FINAL:
            yield "  " + _node(graph, node)
    final = graph.of_kind(NodeKind.FINAL)
    if final:
        yield "  subgraph cluster_final {"
        yield f'    label="final"; style="rounded,dashed"; color="{FAINT}"; rank=same'
        for node in final:
            yield "    " + _node(graph, node)
        yield "  }"


def _node(graph: Graph, node: Node) -> str:
    inside = "".join(f"{_tinted(text, tone)}{_LEFT}" for text, tone in graph.inside(node))
    label = f"<B>{escape(node.head)}</B>" + (f"<BR/>{inside}" if inside else "")
    styles = ["rounded"]
    if node.kind is NodeKind.SHARED:
        styles.append("dashed")
    if node.last:
        styles.append("bold")
    tint = _tint(node.tone)
    return f'{_quoted(node.name)} [label=<{label}>, style="{",".join(styles)}"{tint}]'


def _edge(edge: Edge) -> str:
    colour = colour_of(edge)
    lines = [_tinted(line.trigger, line.tone) for line in edge.lines]
    if edge.outcome:
        tint = PALE if edge.tone is Tone.NEVER else colour
        lines.append(f'<FONT COLOR="{tint}"><B>{escape(edge.outcome)}</B></FONT>')
    label = "".join(line + _LEFT for line in lines)
    width = ", penwidth=1.8" if edge.reason is not None and edge.tone is not Tone.NEVER else ""
    return f'  {_quoted(edge.source)} -> {_quoted(edge.target)} [label=<{label}>, color="{colour}"{width}]'


def _legend(graph: Graph) -> Iterable[str]:
    if graph.legend:
        label = "".join(f"{_tinted(text, tone)}{_LEFT}" for text, tone in graph.legend)
        yield f'  "legend" [shape=note, label=<{label}>, style="dashed", color="{FAINT}"]'


def _tint(tone: Tone) -> str:
    if tone in (Tone.PLAIN, Tone.WALKED):
        return ""
    colour = ink_of(tone)
    return f', color="{FAINT if tone is Tone.NEVER else colour}", fontcolor="{colour}"'


def _tinted(text: str, tone: Tone) -> str:
    return escape(text) if tone in (Tone.PLAIN, Tone.WALKED) else f'<FONT COLOR="{ink_of(tone)}">{escape(text)}</FONT>'


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
