"""looplatch.export: a log in the formats of others: process mining, tracing, audit trails, spreadsheets.

`looplatch.export.live` shows runs as spans while they go on; it is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING

from looplatch.export.exporting import FORMATS, Format, export

if TYPE_CHECKING:
    from looplatch.export import live as live

__all__ = ["FORMATS", "Format", "export"]


def __getattr__(name: str) -> object:
    if name == "live":
        return importlib.import_module("looplatch.export.live")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "live"})
