"""A builder of right logs with a fold of its own, whose records can be damaged before the whole file is hashed anew.

It is the forger, too: numbers, hashes, the digests of what was sent, and the seal are computed at the end, over
whatever the records say by then. A field that a record names itself is left as it is.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import attrs

from looplatch.states.context import TOTALS, Context
from looplatch.states.event import Event
from looplatch.states.events import StopHooksPassed, TroubleNamed
from looplatch.states.limits import Limits
from looplatch.states.reasons import Continue
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, Transition
from looplatch.states.trouble import TroubleKind
from looplatch.states.verify.findings import Report

RUN = "run-1"
ZEROS = "0" * 64
Fields = dict[str, Any]


def hexed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def encode(record: Fields) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sealed(record: Fields) -> Fields:
    bare = {name: value for name, value in record.items() if name != "hash"}
    return {**bare, "hash": hashlib.sha256(encode(bare)).hexdigest()}


def naive_root(leaves: Iterable[str]) -> str:
    """RFC 6962, 2.1, word for word."""

    def root(hashes: list[bytes]) -> bytes:
        if not hashes:
            return hashlib.sha256(b"").digest()
        if len(hashes) == 1:
            return hashlib.sha256(b"\x00" + hashes[0]).digest()
        k = 1
        while 2 * k < len(hashes):
            k *= 2
        return hashlib.sha256(b"\x01" + root(hashes[:k]) + root(hashes[k:])).digest()

    return root([bytes.fromhex(leaf) for leaf in leaves]).hex()


def text(said: str) -> Fields:
    return {"type": "text", "commitment": hexed(said), "bytes": len(said)}


def call(name: str, tool: str = "look") -> Fields:
    return {"type": "tool_use", "commitment": hexed(f"call {name}"), "bytes": 9, "id": name, "name": tool}


def result(name: str, *, is_error: bool = False) -> Fields:
    told = {"type": "tool_result", "commitment": hexed(f"result {name}"), "bytes": 7}
    return {**told, "tool_use_id": name, "is_error": is_error}


CLAIM: Fields = {
    "library": "0",
    "sdk": "0",
    "durability": "none",
    "deadline_ms": None,
    "lost": {"records": 0, "payloads": 0},
    "changes": {},
    "approvals": [],
    "reads": ["look"],
    "secrets": None,
    "changed_contents": [],
}
"""What a new owner of a run says, where nothing has changed."""


class Forge:
    """Builds a log, step by step."""

    def __init__(
        self,
        limits: Limits | None = None,
        table: Table = TABLE,
        deadline_ms: int | None = None,
        *,
        genesis: bool = True,
    ) -> None:
        self.table = table
        self.state = table.initial
        self.context = Context(limits=limits or Limits())
        self.records: list[Fields] = []
        self.schema = 3
        self.row: Transition | None = None
        self.model = "m"
        self._count = 0
        self._outputs = 0  # output tokens at the last continuation
        self._now = 0
        if genesis:
            self.add(
                "genesis",
                library="0",
                sdk="0",
                model="m",
                system=None,
                tools=ZEROS,
                params=ZEROS,
                limits=self.context.limits.fields(),
                deadline_ms=deadline_ms,
                table=table.fingerprint,
                durability="none",
                payloads="digest",
                parent=None,
                reads=["look"],
                secrets=None,
            )

    def add(self, kind: str, **fields: Any) -> Fields:
        self.wait(1)
        record = {"kind": kind, "mono_ns": self._now, **fields}
        self.records.append(record)
        return record

    def wait(self, ms: int) -> None:
        self._now += ms * 1_000_000

    # --- moves

    def send(self, event: Event) -> Fields:
        event = self._measured(event)
        rows = self.table.alternatives(self.state, type(event))
        verdicts = [[row.guard.name, row.guard(self.context, event)] for row in rows]
        (row,) = [row for row, (_, verdict) in zip(rows, verdicts, strict=True) if verdict]
        before, source = self.context, self.state
        new: Fields = {}
        for counter in self.table.counters:
            if counter.name in row.resets:
                new[counter.name] = counter.start
            if counter.name in row.raises:
                new[counter.name] = getattr(before, counter.name) + 1
        new |= dict(row.sets) | {name: getattr(event, name) for name in row.takes}
        if row.reason is not None:
            new["reason"] = row.reason
        if row.adds:
            new |= {name: getattr(before, name) + getattr(event, name) for name in TOTALS}
        self.context = attrs.evolve(before, **new)
        if row.reason is Continue.TOKEN_BUDGET_CONTINUATION:
            self._outputs = self.context.output_tokens
        self.state = row.target or source
        self.row = row
        return self.add(
            "transition",
            source=str(source),
            event=type(event).__name__,
            fields=event.fields(),
            target=str(self.state),
            reason=None if row.reason is None else str(row.reason),
            strategy=None if row.strategy is None else str(row.strategy),
            terminal=None if row.terminal is None else str(row.terminal),
            guards=verdicts,
            change={name: value for name, value in new.items() if value != getattr(before, name)},
        )

    def _measured(self, event: Event) -> Event:
        """The event with the output since the last continuation, where it tells of that."""
        match event:
            case StopHooksPassed() | TroubleNamed(trouble=TroubleKind.HOOK_BLOCKED | TroubleKind.TARGET_UNMET):
                return attrs.evolve(event, new_tokens=self.context.output_tokens - self._outputs)
            case _:
                return event

    # --- messages

    def join(self, role: str, *blocks: Fields, form: str = "blocks", **more: Any) -> Fields:
        self._count += 1
        index = self._count - 1
        if role == "assistant":
            more = {"message_id": None, "model": None, "stop_reason": None} | self._name(list(blocks), more)
        return self.add("message", op="join", index=index, role=role, form=form, blocks=list(blocks), **more)

    def _name(self, blocks: list[Fields], more: Fields) -> Fields:
        """Have the effect of the answer that joins name its blocks: the model's, or of a cut answer the last tool's."""
        last: Fields | None = None
        for one in reversed(self.records):
            if one["kind"] == "effect_end" and one["class"] == "model":
                one |= {"blocks": blocks, "message_id": more.get("message_id")}
                return {"stop_reason": one["stop_reason"], **more}
            if one["kind"] == "effect_begin" and one["class"] == "tool":
                last = last or one
            if one["kind"] == "effect_begin" and one["class"] == "model":
                break
        if last is not None:
            last["blocks"] = blocks
        return more

    def extend(self, role: str, *blocks: Fields) -> Fields:
        index = self._count - 1
        return self.add("message", op="extend", index=index, role=role, form="blocks", blocks=list(blocks))

    def leave(self, index: int, count: int = 1) -> Fields:
        """Messages leave the history, as the records of schema 2 say it."""
        self.schema = 2
        self._count -= count
        return self.add("message", op="leave", index=index, count=count, role="user", form="blocks", blocks=[])

    def put(self, index: int, role: str, *blocks: Fields) -> Fields:
        """A message joins the history at a place that is not its end: in schema 2."""
        self.schema = 2
        self._count += 1
        more = {"message_id": None, "model": None, "stop_reason": None} if role == "assistant" else {}
        return self.add("message", op="join", index=index, role=role, form="blocks", blocks=list(blocks), **more)

    def edit(self, *edits: tuple[int, int, list[Fields]], **more: Any) -> Fields:
        """Messages give way to others: of each edit where they begin and end, and what comes."""
        self._count += sum(len(messages) - (stop - start) for start, stop, messages in edits)
        told = [{"start": start, "stop": stop, "messages": messages} for start, stop, messages in edits]
        return self.add("message", op="edit", edits=told, **more)

    # --- effects

    def begin(self, class_: str, **fields: Any) -> Fields:
        if class_ == "hook":
            fields = {"point": "before_tool", "name": "guardian", **fields}
        return self.add("effect_begin", **{"class": class_}, **fields)

    def end(self, begun: Fields, outcome: str = "ok", **fields: Any) -> Fields:
        if begun.get("point") == "stop" and outcome in ("Block", "Halt"):
            fields = {"reason": hexed("why"), "bytes": 5, **fields}
        elif begun.get("point") == "stop":
            fields = {"reason": None, "bytes": 0, **fields}
        return self.add("effect_end", begun=begun, **{"class": begun["class"], "outcome": outcome}, **fields)

    def ask(self, max_tokens: int = 80) -> Fields:
        return self.begin("model", model=self.model, max_tokens=max_tokens, attempt=self.context.attempts, differs=None)

    def answered(self, begun: Fields, stop_reason: str | None, tokens: int = 0, error: Fields | None = None) -> Fields:
        usage = {"input_tokens": tokens, "output_tokens": tokens}
        usage |= dict.fromkeys(("cache_read_tokens", "cache_write_tokens", "cost_micro_usd"), 0)
        outcome = "ok" if error is None else error["type"]
        error = None if error is None else {"measured": None, **error}
        more: Fields = {"request_id": None, "message_id": None, "stop_reason": stop_reason, "usage": usage}
        more |= {"held": None, "cache_miss": None, "context_edits": []}
        more |= {"error": error, "trouble": None if error is None else "transient", "blocks": [], "unfinished": []}
        return self.end(begun, outcome, **more)

    def tool(self, name: str, tool: str = "look", access: str = "read") -> Fields:
        return self.begin(
            "tool",
            name=tool,
            tool_use_id=name,
            idempotency_key=f"{RUN}:{name}",
            access=access,
            input=hexed(f"call {name}"),
            edited=None,
            blocks=[],
        )

    def did(self, begun: Fields, *, is_error: bool = False) -> Fields:
        name = begun["tool_use_id"]
        more = {"is_error": is_error, "result": hexed(f"result {name}"), "bytes": 7, "full": None, "abandoned": False}
        return self.end(begun, "failed" if is_error else "answered", **more)

    def seal(self, **fields: Any) -> Fields:
        assert self.row is not None
        terminal = None if self.row.terminal is None else str(self.row.terminal)
        return self.add("terminal", **{"state": str(self.state), "terminal": terminal, **fields})

    # --- what stands there

    def find(self, **fields: Any) -> Fields:
        """The first record with these fields; `class_` stands for `class`."""
        wanted = {name.rstrip("_"): value for name, value in fields.items()}
        return next(one for one in self.records if all(one.get(name) == value for name, value in wanted.items()))

    # --- the file

    def lines(self) -> list[bytes]:
        done: list[Fields] = []
        numbers: dict[int, int] = {}
        history: list[list[str]] = []
        for place, record in enumerate(self.records):
            fields: Fields = {
                "v": self.schema,
                "run": RUN,
                "seq": place,
                "epoch": 0,
                "ts": "2026-11-30T12:00:00.000000Z",
                "prev": done[-1]["hash"] if done else ZEROS,
            }
            fields |= {name: value for name, value in record.items() if name != "begun"}
            numbers[id(record)] = fields["seq"]
            if record["kind"] == "effect_begin":
                fields.setdefault("effect", fields["seq"])
                if record["class"] == "model":
                    fields.setdefault("sent", named(history))
            elif record["kind"] == "effect_end":
                fields.setdefault("effect", numbers.get(id(record["begun"]), -1))
            elif record["kind"] in ("terminal", "checkpoint"):
                fields.setdefault("count", place)
                fields.setdefault("root", naive_root(one["hash"] for one in done))
                if record["kind"] == "terminal":
                    fields.setdefault("history", named(history))
            done.append(sealed(fields))
            if record["kind"] == "message":
                keep_up(history, record, done[-1]["hash"])
        return [encode(record) + b"\n" for record in done]


def keep_up(history: list[list[str]], record: Fields, own: str) -> None:
    """The hashes of the message records that make each message, after one more of them."""
    match record["op"]:
        case "join":
            history.insert(record["index"], [own])
        case "extend":
            history[-1].append(own)
        case "edit":
            for edit in reversed(record["edits"]):
                history[edit["start"] : edit["stop"]] = [[own] for _ in edit["messages"]]
        case _:
            del history[record["index"] : record["index"] + record.get("count", 1)]


def named(history: list[list[str]]) -> Fields:
    """What names the message records that make a history."""
    hashes = [own for message in history for own in message]
    return {"count": len(hashes), "digest": chained(hashes)}


def chained(hashes: Iterable[str]) -> str:
    digest = ZEROS
    for own in hashes:
        digest = hexed(digest + own)
    return digest


def broken(report: Report) -> set[str]:
    """The invariants that a report says are broken."""
    return {violation.invariant for violation in report.violations}


def altered(forge: Forge, record: Fields, **fields: object) -> Forge:
    """The forge, with fields of one of its records changed."""
    record.update(fields)
    return forge
