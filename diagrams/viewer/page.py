"""The page: template, style, script, diagram and log, put together into one file.

It runs no code but its own and loads nothing: a policy in its head says so to the browser, with the hashes of the one
script and the one style. The log stands in it as compressed bytes, out of which the script makes text, never markup.
"""

import base64
import gzip
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

import attrs

from looplatch.diagrams.graph import graph_of
from looplatch.diagrams.svg import svg
from looplatch.diagrams.viewer.colours import colours
from looplatch.diagrams.viewer.contents import Contents, contents_of
from looplatch.diagrams.viewer.script import joined
from looplatch.states.context import FIELDS, Context
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.states.verify.findings import Report

_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


def page(log_or_run: object = None, *, table: Table = TABLE, report: Report | None = None) -> str:
    """A log as a page that shows every record, what it did to the run, and what the verifier says of it.

    log_or_run: a log, a run, or a list of records; None gives a page with the machine alone. A damaged log is shown
    as far as it can be read. Payloads that are kept go into the page, up to 64 MiB: keep it as safe as they are.
    report: what the verifier said of the log; it is asked where this is None.
    The same arguments give the same page. Raises UsageError where `log_or_run` is none of these.
    """
    return _page(contents_of(log_or_run, table, report), table, live=False)


def live_page(file: str, *, table: Table = TABLE) -> str:
    """The page for a server, which it asks for the records of the log `file`, and for more as they are written."""
    return _page(attrs.evolve(contents_of(None, table), file=file), table, live=True)


def _page(contents: Contents, table: Table, *, live: bool) -> str:
    style, script = _style(), _script()
    parts = {
        "policy": _policy(style, script, live=live),
        "style": style,
        "diagram": svg(graph_of(table)),
        "about": _data(_about(contents, table, live=live)),
        "log": _packed(contents.lines),
        "payloads": _packed(contents.payloads),
        "script": script,
    }
    return _PLACE.sub(lambda found: parts[found[1]], _file("viewer.html"))


def _policy(style: str, script: str, *, live: bool) -> str:
    """What the browser is to allow: this style, this script; of images and connections, none from elsewhere."""
    own = "'self'" if live else "'none'"
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src {_source(script)}",
            f"style-src {_source(style)}",
            "img-src data:",
            f"connect-src {own}",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _about(contents: Contents, table: Table, *, live: bool) -> dict[str, Any]:
    context = Context()
    count, size = contents.left_out
    return {
        "file": contents.file,
        "live": live,
        "report": None if contents.report is None else attrs.asdict(contents.report),
        "left_out": {"count": count, "bytes": size} if count else None,
        "states": [str(state) for state in table.states],
        "initial": str(table.initial),
        "rows": [{**row.description(), "name": row.name} for row in table.rows],
        "guards": {row.guard.name: row.guard.doc for row in table.rows},
        "counters": [attrs.asdict(counter) for counter in table.counters],
        "context": {name: _plain(getattr(context, name)) for name in FIELDS},
    }


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, bool | int) else str(value)


def _data(value: object) -> str:
    """JSON that can stand in a script element: only ASCII, and nothing in it begins a tag."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, 6, mtime=0)).decode()


@cache
def _style() -> str:
    return _file("viewer.css") + colours()


@cache
def _script() -> str:
    folder = files("looplatch.diagrams.viewer") / "web"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".js"))
    return joined({name.removesuffix(".js"): _file(name) for name in names})


@cache
def _file(name: str) -> str:
    return (files("looplatch.diagrams.viewer") / "web" / name).read_text(encoding="utf-8")
