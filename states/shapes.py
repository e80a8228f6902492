"""Which fields each kind of record has in the present schema. What is not named here is refused by the verifier.

A new field is added here and to the docs; a field that goes, or means something else, needs another `record.SCHEMA`.
"""

from typing import Final

# Of all records. redacted: what kinds of secret were taken out of contents that it names, before they were kept.
EVERY: Final = ("v", "run", "seq", "epoch", "ts", "mono_ns", "kind", "prev", "hash", "redacted")

_MOVE: Final = ("source", "event", "fields", "target", "reason", "strategy", "terminal", "guards", "change")
_EFFECT: Final = ("effect", "class")
_END: Final = (*_EFFECT, "outcome")
_TEXT: Final = ("usage", "result", "bytes")  # what a summary, or a note, came to
_MESSAGE: Final = ("op", "index", "role", "form", "blocks", "message_id", "model", "stop_reason")
_SETUP: Final = ("library", "sdk", "deadline_ms", "durability", "secrets", "reads")

# By kind; of effects, by kind and class; of messages, those of an edit apart.
RECORDS: Final[dict[str, tuple[str, ...]]] = {
    "genesis": (*_SETUP, "model", "system", "tools", "params", "limits", "table", "payloads", "parent", "signed_by"),
    "transition": _MOVE,
    "rejected": _MOVE,
    # origin: "send" where the caller said it in the middle of the run.
    "message": (*_MESSAGE, "origin"),
    # Of messages that give way to others, all at once.
    "message edit": ("op", "edits"),
    # signature: by the key that the genesis names as signed_by, over all of the record but this and its hash.
    "checkpoint": ("count", "root", "segment", "signature"),
    "resumed": (*_SETUP, "lost", "changes", "changed_contents", "approvals", "nested"),
    "tombstone": ("commitment", "of"),
    "terminal": ("state", "terminal", "count", "root", "history", "signature"),
    "effect_begin model": (*_EFFECT, "model", "max_tokens", "attempt", "sent", "differs"),
    "effect_begin tool": (
        *_EFFECT, "name", "tool_use_id", "idempotency_key", "access", "input", "edited", "blocks",
    ),
    # call: the one that a hook around tools is asked about.
    "effect_begin hook": (*_EFFECT, "point", "name", "call"),
    "effect_begin summary": (*_EFFECT, "model", "level", "by", "max_tokens", "span"),
    "effect_begin sleep": (*_EFFECT, "delay_ms"),
    "effect_begin count": (*_EFFECT, "model", "sent"),
    "effect_begin size": (*_EFFECT, "model"),
    "effect_begin note": (*_EFFECT, "name", "calls"),
    "effect_end model": (
        *_END, "request_id", "message_id", "stop_reason", "cache_miss", "context_edits", "usage", "held", "error",
        "trouble", "blocks", "unfinished",
    ),
    # child, usage: of the run of a sub-agent. awaited, pending: the calls that it waits for approval of.
    "effect_end tool": (
        *_END, "is_error", "abandoned", "result", "bytes", "full", "child", "usage", "awaited", "pending",
    ),
    # reason: why a stop hook did not pass, or what the model is told of a call that was denied; interrupt: whether the
    # run ends with it. edited: the input that the hook put in the place of the model's.
    "effect_end hook": (*_END, "reason", "bytes", "interrupt", "edited"),
    "effect_end summary": (*_END, *_TEXT),
    "effect_end sleep": _END,
    "effect_end count": (*_END, "tokens"),
    "effect_end size": (*_END, "window", "output"),
    "effect_end note": (*_END, *_TEXT),
}  # fmt: skip

# Of kinds that had other fields in schema 2. count: how many messages leave.
FORMER: Final[dict[str, tuple[str, ...]]] = {"message": (*_MESSAGE, "count", "origin")}

# In an edit: the messages from `start` to before `stop`, as they were counted before the record, give way to others.
EDIT: Final = ("start", "stop", "messages")
EDITED: Final = ("role", "form", "blocks")

# A content block as records describe it; its content is in the payload store. model_id, model_name, raw: what the model
# wrote, where the history has something else for it.
BLOCK: Final = (
    "type", "commitment", "bytes", "id", "name", "caller", "tool_use_id", "is_error", "model_id", "model_name", "raw",
)  # fmt: skip

# What stands inside of fields that are objects.
INSIDE: Final[dict[str, tuple[str, ...]]] = {
    "sent": ("count", "digest"),
    "history": ("count", "digest"),
    "usage": ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micro_usd"),
    "held": ("prompt", "output"),
    "error": ("type", "status", "retry_after_ms", "measured"),
    "full": ("commitment", "bytes"),
    "lost": ("records", "payloads"),
    "parent": ("run", "seq", "hash"),
    "child": ("run", "seq", "hash", "log"),
    "secrets": ("known", "own"),
}
