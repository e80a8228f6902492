"""The viewer's page as a file: it is whole by itself, says what a browser may do, and holds the log as data."""

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import looplatch
from looplatch.audit.log import as_it_is
from looplatch.audit.payloads import MemoryPayloads
from looplatch.diagrams import render
from looplatch.diagrams.viewer import contents, live_page, page
from looplatch.diagrams.viewer.colours import DARK
from looplatch.diagrams.viewer.script import joined
from looplatch.states.errors import UsageError
from looplatch.states.table import TABLE
from looplatch.states.transition import Table
from looplatch.testing import reply
from tests.forge import Forge
from tests.forged_runs import short_run
from tests.playing import play
from tests.viewed import hostile


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[dict[str, str | None], str]] = []
        self._open: dict[str, str | None] | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = {"tag": tag, **dict(attrs)} if tag in ("script", "style") else None

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.inside.append((self._open, data))

    def handle_endtag(self, tag: str) -> None:
        self._open = None

    def text(self, **wanted: str) -> str:
        """The text of the script or style with these attributes."""
        [text] = [text for has, text in self.inside if all(has.get(name) == value for name, value in wanted.items())]
        return text


def unpacked(text: str, name: str) -> bytes:
    """What is embedded in a page."""
    return gzip.decompress(base64.b64decode(Elements(text).text(id=name)))


def about(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Elements(text).text(id="about"))
    return found


@pytest.fixture
def log() -> looplatch.Log:
    return play([reply("Hello, </script> & you.")]).log


def test_the_policy_allows_the_pages_own_script_and_style_and_nothing_else(log: looplatch.Log) -> None:
    elements = Elements(page(log))
    [policy] = [has["content"] for _, has in elements.found if has.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.split(" ", 1) for rule in (policy or "").split("; "))
    [script] = [text for has, text in elements.inside if has["tag"] == "script" and "type" not in has]

    def source(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert rules == {
        "default-src": "'none'",
        "script-src": source(script),
        "style-src": source(elements.text(tag="style")),
        "img-src": "data:",
        "connect-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert "connect-src 'self'; " in live_page("run.jsonl")


def test_the_page_names_no_address_but_an_empty_icon(log: looplatch.Log) -> None:
    elements = Elements(page(log))
    addresses = {
        (tag, value)
        for tag, has in elements.found
        for name, value in has.items()
        if name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href", "style") or name.startswith("on")
    }
    assert addresses == {("link", "data:,")}
    assert [tag for tag, _ in elements.found if tag in ("img", "iframe", "object", "embed", "a")] == []


def test_the_page_holds_the_log_byte_for_byte_and_its_payloads(log: looplatch.Log) -> None:
    text = page(log)
    assert unpacked(text, "log") == b"".join(log.lines)
    kept = dict(line.split(b" ", 1) for line in unpacked(text, "payloads").splitlines())
    named = [block["commitment"] for record in log.records for block in record.get("blocks") or ()]
    assert list(kept) == [commitment.encode() for commitment in dict.fromkeys(named)]
    assert kept[named[-1].encode()] == b'{"type":"text","text":"Hello, </script> & you."}'
    assert about(text)["report"]["status"] == "sealed"
    assert about(text)["report"]["violations"] == []


def test_the_same_log_gives_the_same_page(log: looplatch.Log) -> None:
    assert page(log) == page(log) == render(log, format="html")


def test_hostile_contents_add_no_element(tmp_path: Path, log: looplatch.Log) -> None:
    path = tmp_path / "x.jsonl"
    hostile(path)
    tags = [tag for tag, _ in Elements(page(as_it_is(path))).found]
    assert tags == [tag for tag, _ in Elements(page(log)).found]


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_can_be_a_log(data: bytes) -> None:
    """The page holds them as they are, and its report is the verifier's."""

    class Bytes:
        lines = tuple(data.splitlines(keepends=True))
        payloads = MemoryPayloads()  # of which there are none

    text = page(Bytes())
    assert unpacked(text, "log") == data
    assert (about(text)["report"] is None) == (data == b"")


def test_a_run_records_and_nothing_can_be_shown(log: looplatch.Log) -> None:
    run = play([reply("Hi.")]).run
    assert unpacked(page(run), "log") == b"".join(run.log.lines)
    alone = page(log.records)
    assert unpacked(alone, "log") == b"".join(log.lines)
    assert (unpacked(alone, "payloads"), about(alone)["report"]) == (b"", None)
    assert (unpacked(page(), "log"), about(page())["report"]) == (b"", None)
    forged = [json.loads(line) for line in short_run().lines()]
    assert unpacked(page(forged), "log") == b"".join(short_run().lines())


@pytest.mark.parametrize("wrong", [7, "run.jsonl", b"", {}])
def test_what_is_no_log_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match="is neither a log nor a run nor a list of records"):
        render(wrong, format="html")


def test_payloads_beyond_the_bound_are_left_out_and_the_page_says_so(
    log: looplatch.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "MOST", 10)
    text = page(log)
    kept = unpacked(text, "payloads").splitlines()
    assert [line.split(b" ", 1)[1] for line in kept] == [b'"Go."']
    assert about(text)["left_out"] == {"count": 1, "bytes": len(b'{"type":"text","text":"Hello, </script> & you."}')}


def test_every_colour_of_the_diagram_has_one_for_a_dark_page() -> None:
    assert set(re.findall(r"#[0-9a-f]{6}", render(format="svg"))) <= set(DARK)


def test_a_log_of_an_earlier_table_is_judged_and_drawn_by_that() -> None:
    early = Table(rows=TABLE.rows[:-1], counters=TABLE.counters, decisions=TABLE.decisions)

    class Old:
        payloads = MemoryPayloads()

        def lines(self) -> list[bytes]:
            return Forge(table=early).lines()

    known, unknown = about(page(Old(), table=early)), about(page(Old()))
    assert (len(known["rows"]), len(unknown["rows"])) == (len(TABLE) - 1, len(TABLE))
    assert [one["invariant"] for one in known["report"]["violations"]] == []
    assert [one["invariant"] for one in unknown["report"]["violations"]] == ["I6"]


# --- the script


def test_modules_are_joined_in_the_order_of_their_needs() -> None:
    script = joined(
        {
            "a": 'import { two } from "./b.js";\nexport const one = () => two();\n',
            "b": "const inner = 2;\nexport function two() {\n  return inner;\n}\nexport class Three {}\n",
        }
    )
    assert script == (
        '"use strict";\n'
        "\nconst b_js = (() => {\nconst inner = 2;\nfunction two() {\n  return inner;\n}\nclass Three {}\n"
        "return { two, Three };\n})();\n"
        "\nconst a_js = (() => {\nconst { two } = b_js;\nconst one = () => two();\nreturn { one };\n})();\n"
    )


def test_the_script_makes_no_markup_of_text(root: Path) -> None:
    """The ways in which text becomes markup, code or an address are not used at all."""
    ways = re.compile(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|createContextual|\beval\b|new Function|"
        r"\.href\b|\.src\b|window\.open|import\(|setHTML|srcdoc ?="
    )
    for file in sorted((root / "diagrams" / "viewer" / "web").glob("*.js")):
        text = file.read_text(encoding="utf-8")
        assert ways.findall(text) == [], file.name
        assert "</script" not in text.lower(), file.name
        assert "<!--" not in text, file.name
        assert len(text.splitlines()) <= 350, file.name
