"""Logs for the viewer: an ordinary one, a hostile one, a damaged one, a long one."""

import json
import os
from pathlib import Path
from typing import Any

from looplatch.audit.payloads import payload_line, payloads_of
from looplatch.states import events as on
from looplatch.states.limits import Limits
from looplatch.states.record import commitment
from looplatch.testing import error, reply, text, thinking, tool_use
from tests.forge import Forge, result, sealed
from tests.forge import encode as encoded
from tests.forge import text as said
from tests.forged_runs import begun, complete, respond, streaming
from tests.playing import echo, play, saying, tool_named

MARKUP = "<script>alert(1)</script></script><script>alert(2)</script><!--<script><img src=x onerror=alert(3)>-->"
LINK = "[a](javascript:alert(4)) javascript:alert(5) https://example.org/"
STEERING = "\x1b[31mred\x1b[0m \x07 \x9b2J \u202edesrever\u202c \u200b \u2028 \u2029 \ufeff \r\n\x00"
HOSTILE = f"{MARKUP} {LINK} {STEERING}"
LONG_LINE = "x" * 1_000_000
LONE = '{"type":"text","text":"half \\ud800 of a pair, and \\udfff"}'  # JSON as it may stand in a store


def ordinary(path: Path) -> None:
    """Two turns with an overload, a failing tool and a thought; 3 calls of two tools."""

    def fail(given: dict[str, Any], ctx: object) -> str:
        raise ValueError("no such file")

    play(
        [
            error(529, "overloaded_error", "Overloaded"),
            reply("I look.", tool_use("t1", "read", {"path": "a"}), tool_use("t2", "broken", {"path": "b"})),
            reply(tool_use("t3", "write", {"path": "c"})),
            reply(thinking("It is a needle."), text("Both are read.")),
        ],
        prompt="Read them.",
        tools=[echo(), echo("write", read_only=False), tool_named("broken", answer=fail)],
        log=path,
    )


def hostile(path: Path) -> None:
    """A run whose model, tools and user say what would be markup, then lines that are no records, and odd payloads."""
    play(
        [
            reply(HOSTILE, tool_use("t1", "read", {"path": HOSTILE, "__proto__": {"x": MARKUP}})),
            reply(thinking(HOSTILE), text(LONG_LINE + HOSTILE), stop=f"tomorrow {MARKUP}"),
        ],
        prompt=HOSTILE,
        tools=[saying("read", HOSTILE)],
        log=path,
    )
    lines = path.read_bytes().splitlines(keepends=True)
    record = json.loads(lines[1])
    salt, payload = os.urandom(16), LONE.encode()
    name = commitment(salt, payload)
    kept = {"bytes": len(payload), "commitment": name}
    record["blocks"] = [{"type": "text", **kept}, {"type": MARKUP, **kept, "name": HOSTILE}]
    with path.open("ab") as file:
        file.write(encoded(sealed(record)) + b"\n")
        file.write(b'{"kind":"__proto__","a":"' + MARKUP.encode() + b'","change":[1],"guards":{"a":1},"fields":7}\n')
        file.write(b'{"kind":"transition","source":{"a":1},"event":[],"guards":[[],7],"change":{"__proto__":1}}\n')
        file.write(b"\xff\xfe " + MARKUP.encode() + b"\n")
        file.write(b"[" * 5_000 + b"\n")
        file.write(b'{"torn":"' + MARKUP.encode())
    with payloads_of(path).open("ab") as file:
        file.write(payload_line(name, salt, payload))


def long(path: Path, turns: int = 833) -> None:
    """A run of 20,005 records without payloads: 24 a turn, with eight calls, one of which fails now and then."""
    forge = streaming(Limits(max_turns=turns + 1))
    for turn in range(turns):
        calls = tuple(f"call-{turn}-{number}" for number in range(8))
        failed = turn % 100 == 7
        asked = forge.ask()
        for number, started in enumerate([forge.tool(name) for name in calls]):
            forge.wait(number)
            forge.did(started, is_error=failed and number == 0)
        forge.answered(asked, "tool_use", 10)
        respond(forge, "tool_use", calls, started=8)
        forge.send(on.ToolsRequested(calls=8))
        forge.join("user", *(result(name, is_error=failed and name == calls[0]) for name in calls))
        forge.send(on.ToolsAnswered(results=8, errors=int(failed)))
        forge.send(on.ContextReady(tokens=200, window=200_000))
    complete(forge)
    path.write_bytes(b"".join(forge.lines()))


def rewritten(path: Path) -> None:
    """A run that was begun: a message leaves its history, and another one is made longer."""
    forge = begun()
    forge.join("assistant", said("b"), said("c"))
    forge.leave(0)
    forge.extend("assistant", said("d"))
    path.write_bytes(b"".join(forge.lines()))


def edited(path: Path) -> None:
    """A run that was begun, whose history is edited: one result is cut, one stays, and a summary stands before them."""
    forge = begun()
    forge.join("user", result("a"), result("b"))
    cut = {**result("a"), **said("cut"), "type": "tool_result"}
    forge.edit(
        (0, 0, [{"role": "user", "form": "text", "blocks": [said("a summary")]}]),
        (
            1,
            2,
            [
                {
                    "role": "user",
                    "form": "blocks",
                    "blocks": [cut, result("b")],
                }
            ],
        ),
    )
    path.write_bytes(b"".join(forge.lines()))


def wrong(path: Path) -> int:
    """A short run in which one message record was changed afterwards; returns its number."""
    forge: Forge = complete(streaming())
    lines = forge.lines()
    place = next(place for place, line in enumerate(lines) if b'"kind":"message"' in line and place > 1)
    lines[place] = lines[place].replace(b'"role":"assistant"', b'"role":"user"')
    path.write_bytes(b"".join(lines))
    return place
