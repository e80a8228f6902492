"""The rendered files: those of the standard loop, and those of a recorded run, which the README shows."""

import re
from importlib.resources import files
from typing import Any, Final

import orjson

from looplatch.diagrams.rendering import render
from looplatch.diagrams.timeline import timeline_svg

_MERMAID_BLOCK: Final = re.compile(r"(?<=^```mermaid\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def rendered() -> dict[str, str]:
    """Every committed file, by name, as it should be."""
    run = example_run()
    return {
        "agent_loop.mmd": render(format="mermaid"),
        "agent_loop.dot": render(format="dot"),
        "agent_loop.svg": render(format="svg"),
        "agent_loop.txt": render(format="text"),
        "example_run.svg": render(run, format="svg", fold=True),
        "example_sequence.mmd": render(run, kind="sequence"),
        "example_sequence.svg": render(run, kind="sequence", format="svg"),
        "example_timeline.svg": timeline_svg(run),
    }


def example_run() -> list[dict[str, Any]]:
    """The records of a real run over the scripted API: three reads, an overload, a write and an answer cut short."""
    lines = (files("looplatch.diagrams") / "example_run.jsonl").read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]


def with_diagram(page: str) -> str:
    """The Markdown `page` with the current diagram in its Mermaid blocks; unchanged where it has none."""
    return _MERMAID_BLOCK.sub(lambda _found: render(format="mermaid"), page)
