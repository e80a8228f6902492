"""The page's script: its modules, each in a scope of its own, joined into one.

The modules are ordinary ones, and import one another by name. A page that is a file cannot load modules, so each
becomes a function whose result is what it exports, in an order in which each stands after those that it needs.
"""

import re
from collections.abc import Mapping
from graphlib import TopologicalSorter
from typing import Final

_IMPORT: Final = re.compile(r'^import \{ (?P<names>[^}]*) \} from "\./(?P<module>\w+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?=(?:async )?(?:function\*?|class|const) (?P<name>\w+))", re.MULTILINE)


def joined(modules: Mapping[str, str]) -> str:
    """The script for `modules`, sources by name. What they import must be among them, and never in a circle."""
    needs = {name: {found["module"] for found in _IMPORT.finditer(source)} for name, source in modules.items()}
    order = TopologicalSorter({name: sorted(needs[name]) for name in sorted(needs)}).static_order()
    return '"use strict";\n' + "".join(_room(name, modules[name]) for name in order)


def _room(name: str, source: str) -> str:
    exported = ", ".join(found["name"] for found in _EXPORT.finditer(source))
    taken = _IMPORT.sub(lambda found: f"const {{ {found['names']} }} = {found['module']}_js;\n", source)
    body = _EXPORT.sub("", taken)
    return f"\nconst {name}_js = (() => {{\n{body}return {{ {exported} }};\n}})();\n"
