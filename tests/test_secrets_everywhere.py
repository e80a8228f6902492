"""Every text that comes from outside holds a secret, and nothing that is written has one of them; the run goes on."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from structlog.testing import CapturingLogger

import looplatch
from looplatch import Allow, Ask, Block, Deny, Hooks, Log, Pass, Tool, ToolResult
from looplatch.analysis import explain
from looplatch.audit import Secrets, mirror_to, read
from looplatch.diagrams import render
from looplatch.export import export
from looplatch.messages import Message
from looplatch.testing import FakeClock, ScriptedAPI, block, error, reply, text, thinking, tool_use
from tests.playing import ANYTHING, assistant, result, scripted, use, user

# Secrets that are told apart by a number; each is made up. Those of one's own are ids that nobody else knows.
KINDS: dict[str, Callable[[int], str]] = {
    "anthropic_key": lambda number: f"sk-ant-api03-{number:020d}x",
    "aws_access_key": lambda number: "AKIA" + f"{number:016d}".translate(str.maketrans("0189", "WXYZ")),
    "github_token": lambda number: f"ghp_{number:036d}",
    "jwt": lambda number: f"eyJhbGciOiJIUzI1.eyJzdWIiOiIx{number:06d}.SflKxwRJSMeKKF2Q",
    "url_password": lambda number: f"postgres://app:hunter{number:05d}@db/app",
    "badge": lambda number: f"badge{number:07d}",
    "hash": lambda number: f"{number:064x}",
    "uuid": lambda number: f"{number:08x}-0000-4000-8000-{number:012x}",
}
OWN = Secrets(
    own={
        "badge": r"badge\d{7}",
        "hash": r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])",
        "uuid": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    }
)


def bare(kind: str, secret: str) -> str:
    """What of a secret must not be found."""
    return re.sub(".*:|@.*", "", secret) if kind == "url_password" else secret


class Outside:
    """Makes secrets of some kinds in turn, and remembers what of them must not be found."""

    def __init__(self, kinds: list[str]) -> None:
        self._kinds = kinds
        self.hidden: list[str] = []

    def __call__(self, around: str = "%s") -> str:
        number = len(self.hidden) + 11
        kind = self._kinds[number % len(self._kinds)]
        secret = KINDS[kind](number)
        self.hidden.append(bare(kind, secret))
        return around % secret

    def id_(self, around: str = "%s") -> str:
        """One that the API takes as the id of a call."""
        usable = [kind for kind in self._kinds if re.fullmatch(r"[a-zA-Z0-9_-]+", KINDS[kind](1))]
        self._kinds, kinds = usable or ["anthropic_key"], self._kinds
        made = self(around)
        self._kinds = kinds
        return made

    def found_in(self, written: bytes | str) -> list[str]:
        content = written.encode() if isinstance(written, str) else written
        return [secret for secret in self.hidden if secret.encode() in content]


def class_named(name: str) -> type[Exception]:
    return type(name, (Exception,), {})


def hook_named(name: str, says: Callable[[Any], Any]) -> Any:
    async def hook(context: Any) -> Any:
        answer = says(context)
        if isinstance(answer, Exception):
            raise answer
        return answer

    hook.__qualname__ = hook.__name__ = name
    return hook


def in_turn(*answers: Any) -> Callable[[Any], Any]:
    """The answers one after the other, and then the last one."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class Story:
    """Two loops, one the tool of the other, in which whatever a stranger can name is a secret.

    rests: calls wait for approval. What a call gets that is carried out later, and signed thinking, is then no secret:
    the log has not kept them, so that nobody could go on.
    """

    def __init__(self, kinds: list[str], *, rests: bool) -> None:
        self.secret = secret = Outside(kinds)
        self.rests = rests

        def later(around: str = "%s") -> str:
            return around % "nothing" if rests else secret(around)

        calls = [secret(around) for around in ("%s", "toolu_%s", "%s", "%s", "%s", "%s")]
        given = [secret.id_(), secret.id_("call-%s")]
        self.history = [
            user(secret("Use %s.")),
            assistant(thinking_of(secret), use(given[0], "tell", at=secret()), use(given[1], "tell", at={secret(): 1})),
            user(result(given[0], secret("It is %s.")), result(given[1], [{"type": "text", "text": secret()}])),
            assistant(secret("Then %s.")),
            user(secret("And %s?")),
        ]
        strange = block({"type": later("a_%s_block"), "data": secret()})
        self.script: list[Any] = [
            error(529, secret(), secret("Overloaded: %s"), {"request-id": secret("req_%s")}),
            error(500, secret(), secret()),
            reply(
                thinking(later("I see %s.")),
                text(secret("It says %s.")),
                tool_use(calls[0], "tell", {"password": secret(), secret(): [secret()], "signature": secret()}),
                tool_use(calls[1], "fail", {"data": secret(), "type": "base64"}),
                tool_use(calls[2], secret("none_%s"), {}),
                id=secret("msg_%s"),
                model=secret(),
            ),
            reply(strange, tool_use(calls[3], "ask", {"who": later()})),
            reply(tool_use(calls[0], "helper", {"prompt": later("Help %s.")}), tool_use(calls[4], "ask", {"a": 1})),
            reply("Now I can.", tool_use(calls[5], "edit", {"path": "a"})),
            reply(secret("It is %s.")),
            reply(secret("Done: %s."), stop=secret(), stop_details={"type": secret(), "why": secret()}),
        ]
        self.inner: list[Any] = [
            reply(tool_use(secret(), "ask", {"who": later()}), id=secret()),
            reply(tool_use(secret(), "tell", {})),
            reply(secret("Helped with %s.")),
        ]
        say, fail, note, long = secret("I tell %s."), secret(), secret("I noted %s."), secret(" %s")

        async def tell(given: dict[str, Any], ctx: Any) -> Any:
            return [
                {"type": "text", "text": say, "signature": long},
                {"type": "text", "text": "x" * 200_000 + " " + long},
            ]

        async def failing_tool(given: dict[str, Any], ctx: Any) -> Any:
            raise class_named(fail)(fail)

        async def ask(given: dict[str, Any], ctx: Any) -> Any:
            return ToolResult({"answer": say, "signature": say}, is_error=True)

        self.asked = [secret("Not with %s."), secret(), secret("Go on for %s.")]
        edit = {secret(): secret(), "encrypted_content": secret()}
        words = {"edit": Allow(edit)} | ({"ask": Ask()} if rests else {})
        before = hook_named(secret(), lambda call: words.get(call.name, Allow()))
        self.tools = [
            Tool("tell", "", ANYTHING, tell, read_only=True),
            Tool("fail", "", ANYTHING, failing_tool, read_only=True),
            Tool("ask", "", ANYTHING, ask),
            Tool("edit", "", ANYTHING, ask, idempotent=True),
        ]
        self.hooks = Hooks(
            before_tool=before,
            after_tool=hook_named(secret(), lambda outcome: None),
            after_tools=hook_named(secret(), in_turn(note, class_named(secret())(secret()), note)),
            stop=[hook_named(secret(), in_turn(Block(secret("Not yet: %s.")), Pass()))],
        )
        self.options: dict[str, Any] = {
            "system": secret(),
            "params": {"metadata": {"user_id": secret()}},
            "tools": self.tools,
            "hooks": self.hooks,
            "secrets": OWN,
        }


def thinking_of(secret: Outside) -> dict[str, Any]:
    return {"type": "text", "text": secret("I think of %s.")}


async def told(story: Story, log: Any, **options: Any) -> tuple[list[Any], list[Message], list[ScriptedAPI]]:
    """Run the story to its end, with everyone asked whenever the run rests."""
    clock = FakeClock()
    inner_api, api = ScriptedAPI(story.inner), ScriptedAPI(story.script)
    seen: list[Message] = []
    results: list[Any] = []
    async with scripted(
        inner_api, clock=clock, tools=story.tools[:3], rules=[looplatch.Rule("ask", "ask")] if story.rests else ()
    ) as inner:
        given = {**story.options, **options, "clock": clock}
        given["tools"] = [*story.tools, inner.as_tool("helper", "Helps.")]
        async with scripted(api, **given) as loop:
            run: Any = loop.run(story.history, log=log)
            for word in (Deny(story.asked[0]), Allow({"with": story.asked[1]}), Deny(story.asked[2]), None):
                seen += [message async for message in run]
                results.append(run.result)
                if run.result.subtype != "suspended":
                    break
                assert word is not None
                calls = [call.id for call in run.result.pending]
                run = loop.resume(
                    run.log if log is None else log, approvals=dict.fromkeys(calls, word), accept_changes=True
                )
    assert api.refusals == []
    assert inner_api.refusals == []
    return results, seen, [api, inner_api]


def written_of(log: Log) -> Iterator[str]:
    """All that others see of a log, and of those of the runs inside its calls."""
    for to in ("xes", "otel", "aat", "csv"):
        yield from export(log, to)
    yield render(log)
    yield render(log, kind="sequence")
    yield render(log, format="html")
    yield str(explain(log))
    yield str(log.messages)
    yield repr(log)
    yield str(looplatch.verify(log, secrets=OWN))
    for inner in log.children.values():
        yield from written_of(inner)


def check_nothing_is_left(story: Story, log: Log) -> None:
    report = looplatch.verify(log, secrets=OWN)
    assert report.ok, str(report)
    assert report.status == "sealed"
    assert log.children
    assert story.secret.found_in(str(list(log.children))) == []
    for written in written_of(log):
        assert story.secret.found_in(written) == []


KIND_LISTS = st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=4, unique=True)


@settings(
    max_examples=4, deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=[HealthCheck.too_slow]
)
@given(KIND_LISTS, st.booleans())
def test_no_secret_is_left_in_a_log_and_the_run_goes_on(kinds: list[str], rests: bool) -> None:
    story, mirrored = Story(kinds, rests=rests), CapturingLogger()
    results, seen, apis = asyncio.run(told(story, None, mirror=mirror_to(cast("Any", mirrored))))
    assert [one.subtype for one in results] == ["suspended"] * 2 * rests + ["error_during_execution"]
    assert results[-1].terminal == "unknown_stop_reason"
    check_nothing_is_left(story, results[-1].log)
    assert story.secret.found_in(str(mirrored.calls)) == []
    assert len(mirrored.calls) >= len(results[-1].log)
    # What is not the log has all of it: the model, which was sent what it said, and the consumer.
    assert len(story.secret.found_in(str([request.body for api in apis for request in api.requests]))) > 20
    assert len(story.secret.found_in(str(seen))) > 20


@pytest.mark.parametrize(
    ("name", "options"), [("run.jsonl", {}), ("run.jsonl", {"segment_bytes": 16_384}), ("run.sqlite", {})]
)
@pytest.mark.parametrize("rests", [True, False])
def test_no_secret_is_left_in_a_file(tmp_path: Path, name: str, options: dict[str, Any], rests: bool) -> None:
    story = Story(list(KINDS), rests=rests)
    results, _, _ = asyncio.run(told(story, tmp_path / name, **options))
    assert results[-1].terminal == "unknown_stop_reason"
    check_nothing_is_left(story, read(tmp_path / name))
    files = list(tmp_path.iterdir())
    assert len(files) > 2 or name == "run.sqlite"
    for file in files:
        assert story.secret.found_in(file.read_bytes()) == [], file.name
        assert story.secret.found_in(file.name) == []
