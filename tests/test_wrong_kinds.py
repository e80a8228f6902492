"""A value of the wrong kind, at any argument of the public surface, gets an error that names the argument."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import looplatch
from looplatch import Allow, Deny, Hooks, Limits, Loop, LooplatchError, Price, Rule, Tool, ToolResult, diagrams, testing
from looplatch.audit import Secrets, redact
from looplatch.export import export
from looplatch.states import check_table, faults
from looplatch.testing import FakeClock, ScriptedAPI, reply
from looplatch.tools import Toolset
from tests.playing import MODEL, play, scripted


class Odd:
    """Something that is of no use anywhere."""


def odd(*_: object) -> None:
    """A plain function."""


async def do(*_: object) -> str:
    """What a tool does."""
    return ""


async def named(city: str) -> str:
    """What becomes a tool."""
    return city


# One or more values of each kind. What an argument takes is named by these kinds; all else must be refused there.
VALUES: dict[str, tuple[Any, ...]] = {
    "none": (None,),
    "bool": (True,),
    "int": (3,),
    "negative": (-1,),
    "float": (1.5,),
    "nan": (float("nan"),),
    "text": ("x",),
    "empty": ("",),
    "bytes": (b"x",),
    "list": (["a"], [1], [None]),
    "nothing": ([], ()),
    "dict": ({"a": 1}, {1: 2}),
    "empty_dict": ({},),
    "object": (Odd(),),
    "function": (odd,),
    "class": (Odd,),
}
FLAG = "bool"
PATH = "text empty"
NOTHING = "nothing empty_dict empty"  # a list of nothing, however it is spelled
CALLABLE = "function class"

_LOOP = {
    "tools": NOTHING, "read_only": "nothing empty_dict", "client": "none", "system": "none text empty nothing",
    "max_tokens": "int", "params": "none dict empty_dict", "limits": "none", "hooks": "none", "rules": NOTHING,
    "compression": "none", "fallback_model": "none text", "price": "none", "log_dir": f"none {PATH}", "payloads": "",
    "durability": "", "secrets": "none", "segment_bytes": "none", "window": "none int", "is_overflow": CALLABLE,
    "clock": "none", "entropy": CALLABLE, "jitter": CALLABLE, "mirror": "none", "signer": "none",
}  # fmt: skip
_RUN = {
    "include_partial_messages": FLAG, "deadline_s": "none int float", "pause_before": "nothing empty_dict",
    "pause_after": "nothing empty_dict",
}  # fmt: skip
_TOOL: dict[str, Any] = {"name": "n", "description": "d", "input_schema": {"type": "object"}, "call": do}
_CALL = {"id": "t1", "name": "n", "input": {"a": 1}}
_CALL_TAKES = {
    "id": PATH, "name": PATH, "input": "none text empty dict empty_dict", "pieces": "none int", "closed": FLAG,
    "caller": "none dict empty_dict",
}  # fmt: skip
_PIECES = {"pieces": "none text", "closed": FLAG}
_DRAWN = {"table": "", "format": "", "fold": FLAG}


def _cases(log: Path, paused: Path) -> Iterator[tuple[str, Callable[..., Any], dict[str, Any], dict[str, str]]]:
    """What is called, the arguments that are right, and by argument the kinds that it takes."""
    loop = Loop(model=MODEL)
    read = looplatch.read(log)
    answer = reply("Done.")
    yield "Loop", Loop, {"model": MODEL}, {"model": "text", **_LOOP}
    yield "Loop.run", loop.run, {"prompt": "Go."}, {"log": f"none {PATH}", **_RUN}
    yield "Loop.resume", loop.resume, {"log": paused}, {
        "log": "", "approvals": "none empty_dict", "accept_changes": FLAG, **_RUN,
    }  # fmt: skip
    yield "Loop.replay", loop.replay, {"log": log}, {"log": "", "tools": "", "accept_changes": FLAG}
    yield "Loop.as_tool", loop.as_tool, {"name": "n", "description": "d"}, {"name": "text", "description": PATH}
    yield "Tool", Tool, _TOOL, {
        "name": "text", "description": PATH, "input_schema": "empty_dict", "call": CALLABLE,
        "read_only": f"bool {CALLABLE}", "timeout_s": "none int float", "idempotent": FLAG, "grace_s": "int float",
        "close": f"none {CALLABLE}", "sent": "none dict empty_dict",
    }  # fmt: skip
    yield "tool", _made_tool, {}, {
        "name": "none text", "read_only": f"bool {CALLABLE}", "timeout_s": "none int float", "idempotent": FLAG,
        "description": f"none {PATH}",
    }  # fmt: skip
    yield "Toolset", Toolset, {"definition": {"type": "browser_toolset_20260801"}, "act": do}, {
        "definition": "", "act": CALLABLE, "timeout_s": "none int float",
    }  # fmt: skip
    yield "ToolResult", ToolResult, {"content": ""}, {"is_error": FLAG}
    yield "Hooks", Hooks, {}, {
        **dict.fromkeys(["before_tool", "after_tool", "after_tools", "after_response"], f"none {CALLABLE}"),
        "stop": NOTHING, "on_transition": f"none {CALLABLE}",
    }  # fmt: skip
    yield "Limits", Limits, {}, {"max_turns": "int", "max_cost_usd": "none int float", "max_total_tokens": "none int"}
    yield "Price", Price, {"input": 1, "output": 2}, {
        "input": "int float", "output": "int float", "cache_read": "none int float", "cache_write": "none int float",
    }  # fmt: skip
    yield "Rule", Rule, {"decision": "ask"}, {"decision": "", "tool": PATH, "input": "empty_dict"}
    yield "Allow", Allow, {}, {"updated_input": "none dict empty_dict"}
    yield "Deny", Deny, {"message": "no"}, {"message": PATH, "interrupt": FLAG}
    yield "Secrets", Secrets, {}, {"own": "empty_dict", "known": FLAG}
    yield "read", looplatch.read, {}, {"path": ""}
    yield (
        "verify",
        looplatch.verify,
        {"log": log},
        {"log": "", "table": "", "expect": "none", "key": "none", "secrets": "none"},
    )
    yield "replay", looplatch.replay, {"log": log}, {"log": "", "table": "none"}
    yield "explain", looplatch.explain, {"log": log}, {"log": "", "turn": "none", "table": ""}
    yield "diff", looplatch.diff, {"a": log, "b": log}, {"a": "", "b": ""}
    yield "export", _exported, {"log": log, "to": "csv"}, {"log": "", "to": ""}
    yield "redact", redact, {"log": log, "seq": 0}, {"log": "", "seq": ""}
    yield "check_table", check_table, {}, {"table": ""}
    yield "faults", faults, {}, {"table": ""}
    yield "diagrams.render", diagrams.render, {"log_or_run": read}, {"log_or_run": "none nothing", "kind": "", **_DRAWN}
    yield (
        "diagrams.diff",
        diagrams.diff,
        {"a": read, "b": read},
        {"a": "nothing", "b": "nothing", "names": "", **_DRAWN},
    )
    yield "diagrams.coverage", diagrams.coverage, {"logs": [read]}, {"logs": NOTHING, **_DRAWN}
    yield "diagrams.way", diagrams.way, {"log_or_run": read}, {"log_or_run": "nothing", "table": ""}
    yield "diagrams.timeline_svg", diagrams.timeline_svg, {}, {"log": "nothing"}
    yield "FakeClock", FakeClock, {}, {"start": "", "autoadvance": FLAG}
    yield "DeterministicLoop", _closed_loop, {}, {"seed": "none bool int negative"}
    yield "ScriptedAPI", ScriptedAPI, {"script": [answer]}, {
        "script": f"nothing {CALLABLE}", "strict": FLAG, "otherwise": f"none {CALLABLE}", "count": CALLABLE,
        "window": "none int", "known": NOTHING, "counting": "none", "models": "none dict empty_dict",
    }  # fmt: skip
    yield "reply", reply, {}, {
        **dict.fromkeys(["stop", "id", "model", "stop_sequence"], f"none {PATH}"), "usage": "none dict empty_dict",
        "stop_details": "none dict empty_dict",
    }  # fmt: skip
    yield "error", testing.error, {"status": 500, "type": "api_error"}, {"status": "", "type": PATH, "message": PATH}
    yield "failing", testing.failing, {"answer": answer, "after": 1}, {
        "answer": "", "after": "int", "error_type": PATH, "message": PATH,
    }  # fmt: skip
    yield "cut", testing.cut, {"answer": answer, "after": 1}, {"answer": "", "after": "int", "clean": FLAG}
    yield (
        "stalled",
        testing.stalled,
        {"answer": answer, "after": 1, "gate": asyncio.Event()},
        {"answer": "", "gate": ""},
    )
    yield "recorded", testing.recorded, {}, {"message": ""}
    yield "event_count", testing.event_count, {}, {"answer": ""}
    yield "text", testing.text, {"value": "x"}, {"value": PATH, "citations": "list nothing", **_PIECES}
    yield "thinking", testing.thinking, {"value": "x"}, {"value": PATH, "signature": f"none {PATH}", **_PIECES}
    yield "redacted_thinking", testing.redacted_thinking, {}, {"data": PATH}
    yield "tool_use", testing.tool_use, _CALL, _CALL_TAKES
    yield "server_tool_use", testing.server_tool_use, _CALL, _CALL_TAKES
    yield (
        "block",
        testing.block,
        {"whole": {"type": "text"}},
        {"whole": "dict empty_dict", "deltas": NOTHING, "closed": FLAG},
    )
    yield "read_playbook", testing.read_playbook, {}, {"path": PATH}
    yield "assert_valid", testing.assert_valid, {"subject": log}, {"subject": "", "status": "none"}
    yield "check_log", testing.check_log, {}, {"subject": ""}
    yield (
        "assert_matches",
        testing.assert_matches,
        {"subject": log, "golden": log.with_name("golden")},
        {"golden": PATH, "rewrite": FLAG},
    )
    yield "Recorder", testing.Recorder, {"path": log.with_name("talk.txt")}, {
        "path": PATH, "upstream": "", "secrets": "none", "http_client": "none",
    }  # fmt: skip


async def _pause(log: Path) -> None:
    async with scripted(ScriptedAPI([])) as loop:
        await loop.run("Go.", log=log, pause_before=["stream"])


def _made_tool(**given: Any) -> Tool:
    return looplatch.tool(**given)(named)


def _exported(**given: Any) -> list[str]:
    return list(export(**given))


def _closed_loop(**given: Any) -> None:
    testing.DeterministicLoop(**given).close()


# Where the words of an error name an argument otherwise than it is spelled.
NAMED = {
    "a": ("log",), "b": ("log",), "data": ("redacted_thinking",), "definition": ("toolset",), "id": ("id",),
    "own": ("secrets",), "message": ("message",), "path": ("log",), "subject": ("log",), "whole": ("block",),
    "logs": ("log_or_run",),
    "script": ("entry 0",), "name": ("tool", "name"), "input_schema": ("schema",),
}  # fmt: skip


def test_a_wrong_kind_is_refused_by_the_name_of_its_argument(tmp_path: Path) -> None:
    log, paused = tmp_path / "run.jsonl", tmp_path / "paused.jsonl"
    play([reply("Done.")], log=log)
    asyncio.run(_pause(paused))
    written, wrong, tried = log.read_bytes(), list[str](), 0
    for what, call, right, takes in _cases(log, paused):
        for name, kinds in takes.items():
            for kind, values in VALUES.items():
                for value in values:
                    tried += 1
                    taken = kind in kinds.split()
                    if (problem := _problem(call, {**right, name: value}, name, taken=taken)) is not None:
                        wrong.append(f"{what}({name}={value!r}): {problem}")
    assert wrong == [], "\n".join(wrong)
    assert tried > 3_500
    assert log.read_bytes() == written
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "golden",
        "paused.jsonl",
        "paused.payloads",
        "run.jsonl",
        "run.payloads",
    ]


def _problem(call: Callable[..., Any], given: dict[str, Any], name: str, *, taken: bool) -> str | None:
    """What is wrong with what a call does; None where it does what it must."""
    try:
        made = call(**given)
        if asyncio.iscoroutine(made):
            asyncio.run(made)
    except (LooplatchError, AssertionError) as error:
        if taken or any(word in str(error) for word in (name, *NAMED.get(name, ()))):
            return None
        return f"the argument is not named in: {error}"
    except Exception as error:
        return f"it raised {error!r}"
    return None if taken else "it was taken"
