"""What type each field of each kind of record has, by the names of `states/shapes.py`.

All fields must be there but for those in `_OPTIONAL`. Numbers are whole numbers, and no truth value is one.
"""

import types
from collections.abc import Iterable
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from looplatch.states.shapes import BLOCK, EDIT, EDITED, EVERY, FORMER, INSIDE, RECORDS
from looplatch.states.trouble import CALL_TROUBLES

# Fields that not all records of a kind have, and of blocks and what else stands inside of records.
_OPTIONAL: Final = {
    "": ("redacted",),
    "genesis": ("signed_by",),
    "message": ("message_id", "model", "origin", "stop_reason"),
    "message of schema 2": ("count", "message_id", "model", "origin", "stop_reason"),
    "checkpoint": ("segment", "signature"),
    "terminal": ("signature",),
    "resumed": ("nested",),
    "effect_end tool": (
        "abandoned", "awaited", "bytes", "child", "full", "is_error", "pending", "result", "usage",
    ),
    "effect_begin hook": ("call",),
    "effect_end hook": ("bytes", "edited", "interrupt", "reason"),
    "block": ("caller", "id", "is_error", "model_id", "model_name", "name", "raw", "tool_use_id"),
}  # fmt: skip

_CLOSELY: Final = ", closely"
Named = dict[str, Any]


def typed(what: str, names: Iterable[str], held: Named) -> Any:
    """A type for objects with these fields. They are in the order of the line, in which they are found fastest."""
    optional = (*_OPTIONAL[""], *_OPTIONAL.get(what.removesuffix(_CLOSELY), ()))
    fields = {name: NotRequired[held[name]] if name in optional else held[name] for name in sorted(names)}
    return types.new_class(what, (TypedDict,), {}, lambda own: own.update(__annotations__=fields))


def first_names(what: str) -> list[str]:
    """The fields that a canonical line of this kind may begin with."""
    optional = (*_OPTIONAL[""], *_OPTIONAL.get(what, ()))
    names = sorted((*EVERY, *RECORDS[what]))
    first = next(place for place, name in enumerate(names) if name not in optional)
    return names[: first + 1]


_Text: Any = str | None
_Name: Any = Annotated[str, Meta(min_length=1)]
_Count: Any = Annotated[int, Meta(ge=0)]
_Size: Any = Annotated[int, Meta(ge=1)]
_Digest: Any = Annotated[str, Meta(min_length=64, max_length=64)]
_Kept: Any = _Digest | None  # a commitment, or that there is none
_Trouble: Any = Literal[tuple(map(str, CALL_TROUBLES))]

_MEASURED: Final = ("input_tokens", "max_tokens", "window")

_VALUES: Final[Named] = {
    **dict.fromkeys(("v", "seq", "epoch", "mono_ns", "effect", "attempt", "count", "delay_ms", "index"), _Count),
    **dict.fromkeys(("payloads", "records", "prompt", "output", "start", "stop", "segment", "of"), _Count),
    **dict.fromkeys(INSIDE["usage"], _Count),
    **dict.fromkeys(("bytes", "max_tokens"), _Size),
    **dict.fromkeys(("prev", "hash", "commitment", "digest", "root", "table", "tools", "params"), _Digest),
    **dict.fromkeys(("input", "pending"), _Digest),
    "idempotency_key": str,
    **dict.fromkeys(("edited", "result", "raw", "system"), _Kept),
    **dict.fromkeys(("type", "library", "sdk", "state"), _Name),
    **dict.fromkeys(("run", "outcome", "op", "role", "form", "access", "source", "event", "target", "point"), str),
    **dict.fromkeys(("id", "name", "caller", "tool_use_id", "model_id", "model_name", "signed_by", "by"), str),
    **dict.fromkeys(("model", "level", "signature"), str),
    **dict.fromkeys(("message_id", "differs", "reason", "strategy", "terminal", "origin", "request_id"), _Text),
    **dict.fromkeys(("stop_reason", "log"), _Text),
    **dict.fromkeys(("abandoned", "is_error"), bool),
    **dict.fromkeys(("retry_after_ms", "status", "window", "tokens"), int | None),
    **dict.fromkeys(("awaited", "calls", "reads"), list[str]),
    "ts": str,
    "redacted": dict[str, list[str]],
    "fields": dict[str, int | bool | str | list[str] | None],
    "change": dict[str, int | bool | str | None],
    "guards": list[tuple[str, bool]],
    "limits": dict[str, int | None],
    "trouble": _Trouble | None,
    "cache_miss": typed("cache_miss", ("reason", "tokens"), {"reason": str, "tokens": _Count | None}) | None,
    "context_edits": list[dict[str, int | str]],
    "measured": typed("measured", _MEASURED, dict.fromkeys(_MEASURED, _Count)) | None,
    "span": tuple[_Count, _Count] | None,
    "deadline_ms": _Count | None,
    "durability": Literal["none", "group", "barrier"],
    "known": _Size | None,
    "own": dict[str, _Digest],
    "changed_contents": list[_Digest],
    "allowed": bool,
    "interrupt": bool,
    "message": _Kept,
    "call": str,
    "under": str,
    "was": Any,
    "now": Any,
}  # fmt: skip

_DECISION: Final = ("call", "allowed", "interrupt", "message", "input")
_decided: Final = {**_VALUES, "input": _Kept}
_inside: Final[Named] = {name: typed(name, fields, _VALUES) for name, fields in INSIDE.items()}
_block: Final = typed("block", BLOCK, _VALUES)
_blocks: Final = types.GenericAlias(list, (_block,))
_message: Final = typed("message of an edit", EDITED, {**_VALUES, "blocks": _blocks})
_edit: Final = typed("edit", EDIT, {**_VALUES, "messages": types.GenericAlias(list, (_message,))})
_change: Final = typed("change", ("was", "now"), _VALUES)

_HELD: Final[Named] = {
    **_VALUES,
    **{name: _inside[name] for name in ("sent", "usage", "lost", "full", "child")},
    **{name: _inside[name] | None for name in ("held", "error", "full", "history", "parent", "secrets")},
    "blocks": _blocks,
    "unfinished": _blocks,
    "edits": types.GenericAlias(list, (_edit,)),
    "changes": types.GenericAlias(dict, (str, _change)),
    "approvals": types.GenericAlias(list, (typed("decision", _DECISION, _decided),)),
    "nested": types.GenericAlias(list, (typed("decision inside", ("under", *_DECISION), _decided),)),
}

TEXTS: Final = frozenset(name for name, of in _HELD.items() if of in (str, _Text, _Name, _Digest, _Kept))
"""Fields that hold a text, if anything."""
NUMBERS: Final = frozenset(
    name for name, of in _HELD.items() if of in (bool, int | None, _Count, _Size, _Count | None, _Size | None)
)
"""And those that never do."""

# Where a field of this name is another one than elsewhere.
_OF: Final[dict[str, Named]] = {
    "genesis": {"payloads": Literal["keep", "digest"], "model": _Name},
    "message": {"model": _Text, "op": Literal["join", "extend"]},
    "message of schema 2": {"model": _Text, "count": _Size},
    "effect_end hook": {"reason": _Kept, "bytes": _Count, "edited": _Digest},
    "effect_end summary": {"bytes": _Count},
    "effect_end note": {"bytes": _Count},
    "effect_end size": {"output": int | None},
    "terminal": {"terminal": str},
}


def held_by(what: str) -> Named:
    """What each field may hold, in a record of this kind."""
    kind, _, of = what.partition(" ")
    return {**_HELD, **_OF.get(what, {}), "kind": Literal[kind], "class": Literal[of]}


_ALL: Final = {**RECORDS, **{f"{kind} of schema 2": names for kind, names in FORMER.items()}}
TYPES: Final[Named] = {what: typed(what, (*EVERY, *names), held_by(what)) for what, names in _ALL.items()}
"""By kind, as `shape_of` names it."""

# Fields of which others say what is wrong with them.
_JUDGED: Final = dict.fromkeys(
    (*EVERY, "fields", "change", "guards", "limits", "child", "parent", "trouble", "signed_by"), Any
)
_JUDGED_OF: Final[Named] = {
    "message of schema 2": {"count": Any},
    "tombstone": {"commitment": NotRequired[Any]},
    "resumed": {
        name: NotRequired[_HELD[name]] for name in ("library", "sdk", "durability", "deadline_ms", "lost", "approvals")
    }
    | {"changes": NotRequired[Any]},
}
CLOSE: Final[Named] = {
    what: typed(what + _CLOSELY, (*EVERY, *names), {**held_by(what), **_JUDGED, **_JUDGED_OF.get(what, {})})
    for what, names in _ALL.items()
}
"""The same, for records that are not right: but for what others judge."""


def mistake_in(what: str, record: Named) -> str | None:
    """What is wrong with the fields of a record of this kind, in words; None: nothing, or nobody knows the kind."""
    known = CLOSE.get(what)
    if known is None:
        return None
    try:
        msgspec.convert(record, known)
    except msgspec.ValidationError as error:
        return str(error)
    return None
