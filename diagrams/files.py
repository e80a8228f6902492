"""The rendered files of the standard loop, which are committed and shown in the README."""

import re
from typing import Final

from looplatch.diagrams.rendering import render

_MERMAID_BLOCK: Final = re.compile(r"(?<=^```mermaid\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def rendered() -> dict[str, str]:
    """Every committed file, by name, as it should be."""
    return {
        "agent_loop.mmd": render(format="mermaid"),
        "agent_loop.dot": render(format="dot"),
        "agent_loop.svg": render(format="svg"),
        "agent_loop.txt": render(format="text"),
    }


def with_diagram(page: str) -> str:
    """The Markdown `page` with the current diagram in its Mermaid blocks; unchanged where it has none."""
    return _MERMAID_BLOCK.sub(lambda _found: render(format="mermaid"), page)
