"""The viewer's page in a real Chromium: what it shows, how it is gone through, and that nothing in a log runs there."""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from playwright.sync_api import Browser, BrowserContext

import looplatch
from looplatch.audit.log import as_it_is
from looplatch.cli import main
from looplatch.diagrams.viewer import page
from tests import viewed
from tests.browsing import Scheme, Shown, browser, context, show

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page for each of the logs. They are made first: a browser's event loop holds the thread."""
    folder = tmp_path_factory.mktemp("<img src=x onerror=alert(0)>")
    for make in (viewed.ordinary, viewed.hostile, viewed.long, viewed.rewritten, viewed.edited, viewed.wrong):
        log = folder / f"{make.__name__}.jsonl"
        make(log)
        assert main(["view", str(log)]) == 0
    log = folder / "edited.jsonl"
    report = attrs.evolve(looplatch.verify(log), violations=(), notes=(f"the log is not there {viewed.MARKUP}",))
    (folder / "noted.html").write_text(page(as_it_is(log), report=report), "utf-8")
    return folder


@pytest.fixture(scope="module")
def chromium(logs: Path) -> Generator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def profile(chromium: Browser) -> Generator[BrowserContext]:
    with context(chromium) as opened:
        yield opened


@pytest.fixture
def ordinary(profile: BrowserContext, logs: Path) -> Shown:
    return show(profile, logs / "ordinary.html")


@pytest.fixture
def broke(logs: Path) -> tuple[int, int]:
    """The numbers of the records between which the tool `broken` ran: when it ends is the event loop's affair."""
    effects = looplatch.read(logs / "ordinary.jsonl").effects
    [(begin, end)] = [(one.begin.seq, one.end.seq) for one in effects if one.begin.get("name") == "broken" and one.end]
    return begin, end


# --- open, and step


def test_a_run_opens_at_its_beginning(ordinary: Shown) -> None:
    assert ordinary.chosen == "0 ● genesis the run begins, model claude-sonnet-4-5"
    assert ordinary.state == "prepare"
    assert ordinary.text("#outcome") == "completed: answered"
    assert ordinary.text("#verdict-link") == "verified: sealed"
    assert ordinary.text("#count") == "40 records"
    assert "3 turns" in ordinary.text("#totals")


def test_stepping_to_the_end_goes_through_every_record_and_lights_its_state(ordinary: Shown) -> None:
    states, places = [ordinary.state], [ordinary.chosen.split()[0]]
    for _ in range(39):
        ordinary.press("ArrowRight")
        places.append(ordinary.chosen.split()[0])
        if ordinary.state != states[-1]:
            states.append(ordinary.state)
    assert places == [str(seq) for seq in range(40)]
    turn = ["prepare", "stream", "decide", "orchestrate"]
    assert states == ["prepare", "stream", "recover", *turn[1:], *turn, *turn[:3], "completed"]
    assert ordinary.page.locator("#forward").is_disabled()
    walked = ordinary.text("#machine path.walked title")
    assert walked == "decide --StopHooksPassed[may_complete]--> completed"
    ordinary.press("ArrowRight", "ArrowLeft")
    assert ordinary.chosen.split()[0] == "38"


def test_a_move_tells_its_guards_its_fields_and_what_it_changed(ordinary: Shown) -> None:
    ordinary.press("2", "1", "Enter")
    assert ordinary.text("#panel-record h2") == (
        "#21 move orchestrate → prepare ToolsAnswered [turns_left] · next_turn"
    )
    guards = ordinary.page.locator(".guards tbody tr").all_text_contents()
    assert guards[2].startswith("✓ holdsturns_leftprepare, next_turn")
    assert [row.startswith("✓") for row in guards] == [False, False, True, False]
    changes = ordinary.page.locator(".changes tbody tr").all_text_contents()
    assert changes == ["reason\u2013next_turn", "turn12"]
    assert "errors1" in ordinary.text("#panel-record .section:nth-of-type(2) dl")


def test_an_effect_shows_its_contents_and_leads_to_its_other_end(ordinary: Shown, broke: tuple[int, int]) -> None:
    begin, end = broke
    ordinary.press(*str(end), "Enter")
    assert "no such file" in ordinary.text("#panel-record")
    ordinary.page.click("#panel-record .when .jump")
    ordinary.settle()
    assert ordinary.chosen.startswith(f"{begin} ▸ tool broken")
    assert '"path": "b"' in ordinary.text("#panel-record")


def test_the_conversation_is_that_of_the_chosen_record(ordinary: Shown) -> None:
    ordinary.press("2", "0", "Enter")
    ordinary.page.click("#tab-conversation")
    said = ordinary.page.locator("#panel-conversation article").all_text_contents()
    assert [message.split(" ")[0] for message in said] == ["user", "assistant", "user"]
    assert "Read them." in said[0]
    assert "I look." in said[1]
    assert "no such file" in said[2]
    ordinary.page.click("#records")
    ordinary.press("End")
    assert ordinary.page.locator("#panel-conversation article").count() == 6
    assert "Both are read." in ordinary.text("#panel-conversation article:last-of-type")
    ordinary.press("Home")
    assert ordinary.page.locator("#panel-conversation article").count() == 0


def test_the_conversation_follows_what_leaves_and_what_grows(profile: BrowserContext, logs: Path) -> None:
    """Forwards and backwards: how many blocks each message has, after records that join, leave and extend."""
    shown = show(profile, logs / "rewritten.html")
    shown.page.click("#tab-conversation")
    for seq, blocks in ((1, [1]), (3, [1, 2]), (4, [2]), (5, [3]), (4, [2]), (3, [1, 2]), (0, []), (5, [3])):
        shown.page.fill("#seq", str(seq))
        shown.press("Enter")
        found = [article.locator(".block").count() for article in shown.page.locator("article").all()]
        assert found == blocks, seq
    assert "1 byte, not kept with this log" in shown.text("article .absent >> nth=0")
    assert shown.text("#outcome") == "open in prepare"


def test_an_edit_tells_which_messages_became_what(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "edited.html")
    seq = next(record.seq for record in as_it_is(logs / "edited.jsonl") if record.get("op") == "edit")
    shown.page.fill("#seq", str(seq))
    shown.press("Enter")
    first, second = shown.page.locator("#panel-record .section:has(.edit)").all()
    assert first.locator("h3").text_content() == "Before message 0"
    assert first.locator(".edit").text_content() == "0 blocks of 0 bytes became 1 block of 9 bytes."
    assert first.locator(".block").count() == 1
    assert second.locator("h3").text_content() == "In the place of message 1"
    assert second.locator(".edit").text_content() == "2 blocks of 14 bytes became 2 blocks of 10 bytes."
    assert second.locator(".block").count() == 1
    assert "tool_result as it was" in second.locator(".absent").all_text_contents()
    shown.page.click("#tab-conversation")
    assert [article.locator(".block").count() for article in shown.page.locator("article").all()] == [1, 1, 2]


def test_notes_of_the_verifier_are_shown(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "noted.html")
    shown.page.click("#verdict-link")
    assert shown.text("#panel-verdict .note") == f"note: the log is not there {viewed.MARKUP}"
    assert (shown.complaints, shown.violations) == ([], [])


def test_tokens_and_verdict_have_their_panels(ordinary: Shown) -> None:
    ordinary.page.click("#tab-turns")
    assert ordinary.page.locator(".turn-rows [role=row]").count() == 4
    assert "overloaded_error" in ordinary.text(".turn-rows [role=row]:first-child")
    ordinary.page.click("#verdict-link")
    assert ordinary.text("#panel-verdict .verdict") == "verified: sealed"


def test_a_finding_leads_to_its_record(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "wrong.html")
    assert shown.text("#verdict-link") == "3 findings"
    shown.page.click("#verdict-link")
    shown.page.click("#panel-verdict .jump >> nth=0")
    shown.settle()
    assert shown.chosen.startswith("6 ")
    assert "I3" in shown.text("#panel-record .violation >> nth=0")
    assert shown.page.locator(".row.finding").count() == 2


# --- filter


def test_filters_choose_by_reason_state_tool_error_and_words(ordinary: Shown, broke: tuple[int, int]) -> None:
    begin, end = map(str, broke)

    def shown() -> list[str]:
        ordinary.settle()
        return ordinary.page.locator(".row .seq").all_text_contents()

    page = ordinary.page
    page.select_option("#filter-reason", "next_turn")
    assert shown() == ["21", "31"]
    assert ordinary.text("#count") == "2 of 40 records"
    page.click("#filter-clear")
    page.select_option("#filter-tool", "broken")
    assert shown() == [begin, end]
    page.select_option("#filter-tool", "write")
    assert len(shown()) == 4  # its begin and end, its call and its result
    page.click("#filter-clear")
    page.check("#filter-errors")
    assert shown() == ["5", "6", end, "20"]
    assert ordinary.chosen.startswith("20 ")
    page.click("#back")
    page.click("#back")
    ordinary.settle()
    assert ordinary.chosen.startswith("6 ")
    page.click("#filter-clear")
    page.select_option("#filter-state", "recover")
    assert shown() == ["6", "7", "8", "9", "10"]
    page.click("#filter-clear")
    page.fill("#filter-words", "NO SUCH file")
    ordinary.wait("document.getElementById('count').textContent === '2 of 40 records'")
    assert shown() == [end, "20"]
    page.fill("#filter-words", "nowhere at all")
    ordinary.wait("!document.getElementById('none').hidden")
    assert shown() == []


# --- keys alone


def test_everything_can_be_done_by_keys(ordinary: Shown) -> None:
    focused = "document.activeElement.id"
    assert ordinary.page.evaluate(focused) == "records"
    ordinary.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert ordinary.chosen.startswith("1 ")
    ordinary.press("End")
    assert ordinary.chosen.startswith("39 ")
    ordinary.press("Home", "PageDown")
    assert int(ordinary.chosen.split()[0]) > 10
    ordinary.press("PageUp")
    assert ordinary.chosen.startswith("0 ")
    ordinary.press("1", "7")
    assert ordinary.page.evaluate(focused) == "seq"
    ordinary.press("Enter")
    assert (ordinary.page.evaluate(focused), ordinary.chosen[:3]) == ("records", "17 ")
    assert ordinary.page.get_attribute("#records", "aria-activedescendant") == "row-17"
    ordinary.press("Tab")
    assert ordinary.page.evaluate(focused) == "tab-record"
    ordinary.press("ArrowRight", "ArrowRight")
    assert ordinary.page.evaluate("document.querySelector('[role=tabpanel]:not([hidden])').id") == "panel-turns"
    ordinary.press("Home", "Tab")
    assert ordinary.page.evaluate(focused) == "panel-record"
    ordinary.press("ArrowLeft")
    assert ordinary.chosen.startswith("16 ")
    ordinary.wait("document.getElementById('told').textContent.includes('record 16')")


# --- both colour schemes, and sizes

_CONTRASTS = """
() => {
  const number = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = number(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll("body *:not(svg *, option, script, noscript)")) {
    const said = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "");
    if (!said || element.disabled || element.getClientRects().length === 0) continue;
    const [over, under] = [light(number(getComputedStyle(element).color)), light(ground(element))];
    const contrast = (Math.max(over, under) + 0.05) / (Math.min(over, under) + 0.05);
    if (contrast < 4.5) found.push([contrast.toFixed(2), element.tagName, element.className, element.textContent]);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_both_colour_schemes(chromium: Browser, logs: Path, scheme: Scheme) -> None:
    """The contrast of each text with its ground is that of WCAG AA, 4.5."""
    grounds = {"light": "rgb(246, 247, 249)", "dark": "rgb(12, 15, 20)"}
    for log in ("ordinary", "hostile"):
        with context(chromium, scheme=scheme) as profile:
            shown = show(profile, logs / f"{log}.html")
            assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == grounds[scheme]
            for panel in ("record", "conversation", "turns", "verdict"):
                shown.press("2", "1", "Enter")
                shown.page.click(f"#tab-{panel}")
                shown.settle()
                assert shown.page.evaluate(_CONTRASTS) == []


@pytest.mark.parametrize("width", [1600, 1100, 900, 420, 320])
def test_nothing_is_wider_than_the_window(chromium: Browser, logs: Path, width: int) -> None:
    with context(chromium, width=width) as profile:
        shown = show(profile, logs / "hostile.html")
        shown.press("End")
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
        assert shown.page.evaluate("document.getElementById('records').clientHeight") > 150


# --- a hostile log


def test_a_hostile_log_runs_nothing_and_asks_for_nothing(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "hostile.html")
    page = shown.page
    records = int(shown.text("#count").split()[0])
    assert records == 26
    for _ in range(records):
        shown.press("ArrowRight")
        for fold in page.locator("#panel-record summary").all():
            fold.click()
    for panel in ("conversation", "turns", "verdict", "record"):
        page.click(f"#tab-{panel}")
        shown.settle()
    page.fill("#filter-words", viewed.MARKUP)
    shown.wait("document.getElementById('count').textContent.includes(' of ')")
    page.click("#filter-clear")
    shown.wait("document.getElementById('told').textContent !== ''")
    assert shown.requests == [(logs / "hostile.html").as_uri()]
    assert shown.complaints == []
    assert shown.violations == []
    assert page.locator("script").count() == 4
    assert (
        page.locator("img, iframe, object, embed, a, base, form[action], [href]:not(link), [style*=url]").count() == 0
    )
    assert page.evaluate("Object.keys(Object.prototype).length") == 0


def test_hostile_text_is_shown_as_the_text_that_it_is(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "hostile.html")
    shown.press("1", "Enter")
    said = shown.text("#panel-record .block .text")
    assert viewed.MARKUP in said
    assert viewed.LINK in said
    assert "\u27e8ESC\u27e9[31mred\u27e8ESC\u27e9[0m \u27e8BEL\u27e9" in said
    for name in ("U+009B", "U+202E", "U+200B", "U+2028", "U+FEFF", "NUL"):
        assert f"\u27e8{name}\u27e9" in said
    assert not set(said) & set("\x00\x07\x1b\x9b\u202e\u200b\u2028\u2029\ufeff")
    shown.page.evaluate("location.hash = '#20'")
    shown.settle()
    assert "half \u27e8U+D800\u27e9 of a pair, and \u27e8U+DFFF\u27e9" in shown.text("#panel-record")
    assert shown.complaints == []


def test_a_line_of_a_megabyte_is_cut_and_can_be_read_on(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "hostile.html")
    shown.page.click("#tab-conversation")
    shown.page.click("#records")
    shown.press("End")
    last = "#panel-conversation article:last-of-type"
    assert len(shown.text(last)) < 20_000
    assert "show 32,000 more of 1,000," in shown.text(last)
    shown.page.click(f"{last} .block-said .more")
    assert 36_000 < len(shown.text(last)) < 60_000


def test_the_policy_would_stop_what_got_through(ordinary: Shown) -> None:
    """The second line of defence by itself: markup, scripts, styles and addresses that a page is given are refused."""
    page = ordinary.page
    page.evaluate(
        """() => {
          for (const [name, fields] of [["script", {textContent: "alert(1)"}], ["style", {textContent: "*{top:0}"}],
              ["img", {src: "http://127.0.0.1:9/x.png"}], ["iframe", {src: "http://127.0.0.1:9/"}]]) {
            try { document.body.append(Object.assign(document.createElement(name), fields)); } catch (error) {}
          }
          try { document.body.innerHTML = "<p>"; } catch (error) {}
          fetch("http://127.0.0.1:9/").catch(() => {});
        }"""
    )
    ordinary.wait("window.violations.length >= 6")
    assert {directive.split("-")[0] for directive in ordinary.violations} >= {
        "require",
        "style",
        "img",
        "connect",
        "frame",
    }
    assert not [said for said in ordinary.complaints if said.startswith("dialog")]
    assert page.locator("#records").count() == 1


# --- a long log


def test_twenty_thousand_records_keep_a_bounded_number_of_rows_in_the_page(profile: BrowserContext, logs: Path) -> None:
    shown = show(profile, logs / "long.html")
    page = shown.page
    assert shown.text("#count") == "20,005 records"
    rows = "document.querySelectorAll('.row').length"
    assert 0 < page.evaluate(rows) < 80
    page.evaluate("document.getElementById('records').scrollTop = 260000")
    shown.wait("[...document.querySelectorAll('.row .seq')].some((seq) => seq.textContent === '10010')")
    assert 0 < page.evaluate(rows) < 80
    shown.press("End")
    assert shown.chosen.startswith("20004 ■ seal completed: answered")
    page.click("#tab-conversation")
    shown.settle()
    assert page.locator("#panel-conversation article").count() == 30
    page.click("#tab-turns")
    shown.settle()
    assert 0 < page.locator(".turn-rows [role=row]").count() < 80
    page.check("#filter-errors")
    shown.settle()
    assert shown.text("#count") == "18 of 20,005 records"  # nine calls: the end of each, and its result
    assert page.evaluate("document.querySelectorAll('*').length") < 3_000
    assert shown.complaints == []


# --- a live log


@contextmanager
def serving(log: Path) -> Generator[tuple[subprocess.Popen[str], str]]:
    """`looplatch view --serve` in a process of its own, and the address that it prints."""
    server = subprocess.Popen(
        [sys.executable, "-Im", "looplatch", "view", str(log), "--serve"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        with server.stdout as out:
            yield server, out.readline().strip()
    finally:
        server.kill()
        server.wait()


def test_a_live_log_is_followed_as_it_is_written(profile: BrowserContext, logs: Path, tmp_path: Path) -> None:
    lines = (logs / "ordinary.jsonl").read_bytes().splitlines(keepends=True)
    kept = (logs / "ordinary.payloads").read_bytes()
    log, payloads = tmp_path / "run.jsonl", tmp_path / "run.payloads"
    log.write_bytes(b"".join(lines[:5]))
    with serving(log) as (server, address):
        shown = show(profile, address)
        shown.wait("document.getElementById('count').textContent === '5 records'")
        assert shown.state == "stream"
        shown.wait("document.getElementById('verdict-link').textContent === '1 finding'")  # its payload is not there
        payloads.write_bytes(kept)
        with log.open("ab") as file:
            file.write(b"".join(lines[5:21]) + lines[21][:30])
        shown.wait("document.getElementById('count').textContent === '21 records'")
        shown.wait("document.querySelector('.row.chosen .seq').textContent === '20'")
        shown.wait("document.getElementById('panel-record').textContent.includes('no such file')")
        shown.wait("document.getElementById('verdict-link').textContent === 'verified: open'")
        shown.press("Home")
        with log.open("ab") as file:
            file.write(lines[21][30:] + b"".join(lines[22:]))
        shown.wait("document.getElementById('count').textContent === '40 records'")
        shown.wait("document.getElementById('verdict-link').textContent === 'verified: sealed'")
        assert shown.chosen.startswith("0 ")  # who looks elsewhere is not taken along
        assert {request.partition("?")[0].removeprefix(address) for request in shown.requests} == {
            "", "records", "payloads", "verdict",
        }  # fmt: skip
        assert shown.complaints == []
        assert shown.violations == []
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=30) == 130
