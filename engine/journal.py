"""What is written into the audit log, and how: the one place that decides it.

Records hold names, numbers and commitments. Contents (texts, inputs, results) go to the payload store beside the log,
never into a record. Secrets are in neither: they are taken out of contents, and of every name, id and reason that
comes from outside.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from looplatch.audit.protocol import AuditLog, Commitment, KeepsMany
from looplatch.encoding import encode
from looplatch.machine import Move
from looplatch.names import Names
from looplatch.requests.history import Rewrite
from looplatch.requests.kept import Kept, new_in, skeleton_of
from looplatch.states.event import Event
from looplatch.states.halves import secrets_in, without_halves
from looplatch.states.level import Level
from looplatch.states.record import Kind, Record
from looplatch.states.secrets import Secrets, marker
from looplatch.states.state import State
from looplatch.tools import Call, Outcome

NOTHING: Mapping[str, Any] = {}
_AT_ONCE = 32  # contents in which a secret is looked for together
_NO_SECRETS = Secrets(known=False)


class Journal:
    """Writes one run's records. Every method is synchronous: when it returns, the record is written.

    secrets: what is taken out of all that is written; None: nothing. The run itself goes on with the whole.
    """

    def __init__(self, log: AuditLog, secrets: Secrets | None = None) -> None:
        self.log = log
        self._secrets = _NO_SECRETS if secrets is None else secrets
        self.names = Names(self._secrets)
        self._taken: set[str] = set()  # the commitments to what secrets were taken out of
        self._redacted: dict[str, list[str]] = {}  # what was taken out since the last record, by commitments

    # --- payloads

    def keep(self, block: dict[str, Any]) -> Kept:
        """Encode a content block, put it into the payload store, and describe it."""
        encoded = encode(block)
        made = self._put(block, encoded, self._secrets.taken_out_of_block)
        return Kept(encoded, skeleton_of(block, made, self.names))

    def keep_text(self, text: str) -> Kept:
        """The same for a message whose content is one string."""
        encoded = encode(text)
        made = self._put(text, encoded, self._secrets.taken_out)
        return Kept(encoded, skeleton_of(text, made, self.names))

    def keep_all(
        self, parts: Sequence[dict[str, Any] | str], told: Sequence[dict[str, Any] | None] | None = None
    ) -> list[Kept]:
        """The same for many of either, in one write where the log can do that.

        told: what records have said of each, where only its content is another one now.
        """
        before = told or [None] * len(parts)
        encoded = list(map(encode, parts))
        made = self._put_all(parts, encoded, list(map(new_in, parts, encoded, before)))
        skeletons = [
            skeleton_of(part, one, self.names) if was is None else {**was, "commitment": one.hex, "bytes": one.size}
            for part, one, was in zip(parts, made, before, strict=True)
        ]
        return list(map(Kept, encoded, skeletons))

    def keep_value(self, value: object) -> Commitment:
        """Put any JSON value into the payload store."""
        return self._put(value, encode(value), self._secrets.taken_out)

    def keep_block(self, block: dict[str, Any]) -> Commitment:
        """Put a content block of the API's into the payload store that joins no message."""
        return self._put(block, encode(block), self._secrets.taken_out_of_block)

    @property
    def has_redacted(self) -> bool:
        """Whether secrets were taken out of contents that were kept."""
        return bool(self._taken)

    def without_halves(self, cut: Any, whole: object, commitments: Iterable[str]) -> Any:
        """What was cut out of `whole`, which was kept under `commitments`, without what is left of secrets there.

        The model is sent no more than that, either: with half a secret nobody can do anything.
        """
        if not self._taken or self._taken.isdisjoint(commitments):
            return cut
        return without_halves(cut, secrets_in(self._secrets, whole))

    def keep_raw(self, raw: str, given: object) -> Commitment:
        """Put the JSON text of an input into the payload store; `given` is what it says.

        Where that has secrets, the text does not stay: it may spell them in a way that no pattern knows.
        """
        found = self._secrets.taken_out(given)[1]
        return self.keep_value(marker(found[0]) if found else raw)

    def _put(
        self, value: object, encoded: bytes, taken_out: Callable[[object], tuple[Any, tuple[str, ...]]]
    ) -> Commitment:
        """Put a value into the payload store, without its secrets; the next record says what was taken out of it."""
        if not self._secrets.may_be_in(encoded):
            return self.log.keep(encoded)
        clean, found = taken_out(value)
        kept = self.log.keep(encode(clean) if found else encoded)
        if found:
            self._taken.add(kept.hex)
            self._redacted[kept.hex] = list(found)
        return kept

    def _put_all(
        self, values: Sequence[object], encoded: Sequence[bytes], looked_at: Sequence[bytes]
    ) -> list[Commitment]:
        """Put values into the payload store; of each, `looked_at` has all that was not looked at for secrets before."""
        log, secrets, taken_out = self.log, self._secrets, self._secrets.taken_out_of_block
        if not isinstance(log, KeepsMany):
            return [self._put(value, data, taken_out) for value, data in zip(values, encoded, strict=True)]
        if not secrets.may_be_in(b"\n".join(dict.fromkeys(looked_at))):
            return log.keep_all(encoded)
        made: list[Commitment] = []
        clean: list[bytes] = []
        for start in range(0, len(encoded), _AT_ONCE):
            few = encoded[start : start + _AT_ONCE]
            if secrets.may_be_in(b"\n".join(few)):
                made += log.keep_all(clean)
                clean = []
                made += [self._put(value, data, taken_out) for value, data in zip(values[start:], few, strict=False)]
            else:
                clean += few
        return made + log.keep_all(clean)

    def with_redacted(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The fields of a record, and what was taken out of contents since the last one."""
        if not self._redacted:
            return fields
        redacted, self._redacted = self._redacted, {}
        return {**fields, "redacted": redacted}

    def _append(self, kind: Kind, fields: dict[str, Any]) -> Record:
        return self.log.append(kind, self.with_redacted(fields) if self._redacted else fields)

    # --- the run

    def genesis(self, fields: dict[str, Any]) -> Record:
        """What the run is made of."""
        return self._append(Kind.GENESIS, fields)

    def move(self, move: Move) -> Record:
        """A move, with the verdict of every alternative and what the context changed."""
        return self.log.append(
            Kind.TRANSITION,
            {
                **move.recorded,
                "fields": move.event.fields(self.names.of),
                "guards": list(map(list, move.verdicts)),
                "change": {name: _plain(value) for name, value in move.change.items()},
            },
        )

    def rejected(self, state: State, event: Event, verdicts: Sequence[tuple[str, bool]]) -> Record:
        """An event that was refused."""
        return self.log.append(
            Kind.REJECTED,
            {
                "source": str(state),
                "event": type(event).__name__,
                "fields": event.fields(self.names.of),
                "target": str(state),
                "reason": None,
                "strategy": None,
                "terminal": None,
                "guards": [list(verdict) for verdict in verdicts],
                "change": {},
            },
        )

    def message(self, op: str, index: int, role: str, form: str, kept: Iterable[Kept], **more: Any) -> Record:
        """A message that joined the history, or blocks that joined its last message."""
        fields = {"op": op, "index": index, "role": role, "form": form, "blocks": [k.skeleton for k in kept], **more}
        return self._append(Kind.MESSAGE, fields)

    def edits(self, rewrites: Sequence[Rewrite]) -> Record:
        """Messages gave way to others, all at once; `rewrites` are in order and count in the history before them."""
        told = [
            {
                "start": one.start,
                "stop": one.stop,
                "messages": [
                    {"role": new.role, "form": new.form, "blocks": [k.skeleton for k in new.kept]}
                    for new in one.joining
                ],
            }
            for one in rewrites
        ]
        return self._append(Kind.MESSAGE, {"op": "edit", "edits": told})

    # --- effects

    def model_begins(
        self, model: str, max_tokens: int, attempt: int, sent: dict[str, Any], *, differs: str | None = None
    ) -> Record:
        """A request is about to be sent; `sent` names the message records that it consists of.

        `differs`: why a retry is another request than the one before it.
        """
        return self._begin(
            "model",
            {
                "model": self.names.of(model),
                "max_tokens": max_tokens,
                "attempt": attempt,
                "sent": sent,
                "differs": differs,
            },
        )

    def count_begins(self, model: str, sent: dict[str, Any]) -> Record:
        """The API is about to be asked how many tokens a request has."""
        return self._begin("count", {"model": self.names.of(model), "sent": sent})

    def size_begins(self, model: str) -> Record:
        """The API is about to be asked how large the model's window is."""
        return self._begin("size", {"model": self.names.of(model)})

    def note_begins(self, name: str, calls: Sequence[str]) -> Record:
        """A hook is about to be asked for a note of what the tools of a turn did; the run goes on beside it."""
        return self._begin("note", {"name": self.names.of(name), "calls": [self.names.of(call) for call in calls]})

    def tool_begins(
        self, call: Call, run: str, input_: str, blocks: Sequence[Kept], *, edited: str | None = None
    ) -> Record:
        """A tool is about to start. `input_` is its tool_use block's commitment, `blocks` what was new before it."""
        return self._begin(
            "tool",
            {
                "name": self.names.of(call.name),
                "tool_use_id": call.id,
                "idempotency_key": f"{run}:{call.id}",
                "access": "read" if call.read_only else "write",
                "input": input_,
                "edited": edited,
                "blocks": [kept.skeleton for kept in blocks],
            },
        )

    def tool_ends(
        self,
        begin: Record,
        outcome: Outcome,
        result: Kept,
        full: Commitment | None,
        inside: Mapping[str, Any] = NOTHING,
    ) -> Record:
        """A tool ended, one way or another. `full`: the whole text of a result that was too long to be sent.

        `inside`: what is to be said of a run that its call has made.
        """
        return self.ends(
            begin,
            str(outcome.cause),
            {
                "is_error": outcome.is_error,
                "abandoned": outcome.abandoned,
                "result": result.skeleton["commitment"],
                "bytes": result.skeleton["bytes"],
                "full": None if full is None else {"commitment": full.hex, "bytes": full.size},
                **inside,
            },
        )

    def summary_begins(
        self,
        model: str,
        level: Level,
        max_tokens: int,
        span: tuple[int, int] | None = None,
        *,
        by: str = "model",
    ) -> Record:
        """A summary is about to be asked for: of the messages in `span`, or of all that came before.

        `by`: the model writes it, or the API, whose own compaction it is.
        """
        fields: dict[str, Any] = {"model": self.names.of(model), "level": str(level), "by": by}
        fields["max_tokens"] = max_tokens
        fields["span"] = None if span is None else list(span)
        return self._begin("summary", fields)

    def summary_ends(self, begin: Record, outcome: str, spent: dict[str, int], text: Commitment | None) -> Record:
        """The summary is there, or is not to be had."""
        return self._written(begin, outcome, spent, text)

    def note_ends(self, begin: Record, outcome: str, spent: dict[str, int], text: Commitment | None) -> Record:
        """The note is there, or there is none."""
        return self._written(begin, outcome, spent, text)

    def sleep_begins(self, delay_ms: int) -> Record:
        """A wait before a retry begins."""
        return self._begin("sleep", {"delay_ms": delay_ms})

    def hook_begins(self, point: str, name: str, call: str | None = None) -> Record:
        """A hook is about to be asked. `point`: what it is for, as `Hooks` names it; `call`: which one it is about."""
        about = {} if call is None else {"call": call}
        return self._begin("hook", {"point": point, "name": self.names.of(name), **about})

    def ends(self, begin: Record, outcome: str, more: dict[str, Any] | None = None) -> Record:
        """The effect that `begin` began has ended."""
        fields = {"effect": begin.seq, "class": begin["class"], "outcome": self.names.of(outcome), **(more or {})}
        return self._append(Kind.EFFECT_END, fields)

    def _written(self, begin: Record, outcome: str, spent: dict[str, int], text: Commitment | None) -> Record:
        kept = {"result": None if text is None else text.hex, "bytes": 0 if text is None else text.size}
        return self.ends(begin, outcome, {"usage": spent, **kept})

    def _begin(self, class_: str, fields: dict[str, Any]) -> Record:
        return self._append(Kind.EFFECT_BEGIN, {"effect": self.log.head[0], "class": class_, **fields})


def _plain(value: object) -> object:
    """A value of the context as a record holds it: members of enums by their names."""
    return str(value) if isinstance(value, str) else value
