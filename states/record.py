"""Record: one line of the audit log, canonical and chained by hash.

Canonical means: ASCII keys in sorted order, no spaces, no floats, whole numbers below 2**53, no lone surrogates; for
such values the encoding is byte-identical to RFC 8785. The hash is SHA-256 over the record without its `hash`.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import attrs
import orjson

from looplatch.states.vocabulary import EffectClass

SCHEMA: Final = 3
# That are read. 2: compression is a record for each message that leaves or joins. 1: besides, a message does not say
# that the caller sent it, and other fields may stand.
SCHEMAS: Final = (1, 2, 3)
ZEROS: Final = "0" * 64  # the `prev` of a genesis
_BLANK: Final = "#" * 64
_BLANK_FIELD: Final = b'"hash":"%b"' % _BLANK.encode()
MAX_INT: Final = 2**53 - 1


class Kind(StrEnum):
    """What a record tells."""

    GENESIS = "genesis"  # what the run is made of; always first
    TRANSITION = "transition"  # a move, with the verdict of every alternative
    REJECTED = "rejected"  # an event that was refused; nothing moved
    MESSAGE = "message"  # a message that joined or left the history
    EFFECT_BEGIN = "effect_begin"  # a model, tool, hook, summary, sleep, count, size or note effect began
    EFFECT_END = "effect_end"  # and ended
    CHECKPOINT = "checkpoint"  # count and root so far
    RESUMED = "resumed"  # a new process owns the run
    TOMBSTONE = "tombstone"  # a payload was deleted
    TERMINAL = "terminal"  # the seal; always last


_CLASSES: Final[dict[str, EffectClass]] = {str(one): one for one in EffectClass}


def canonical(value: Mapping[str, Any]) -> bytes:
    """The canonical encoding of a record's fields. Raises TypeError for what JSON cannot hold."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest(data: bytes) -> str:
    """SHA-256, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def seal(fields: dict[str, Any]) -> bytes:
    """Put the `hash` into `fields` and return the record's line, with its newline."""
    # The fields are encoded once, with a blank in the place of the hash: no other key and value look like that.
    fields["hash"] = _BLANK
    before, _, after = orjson.dumps(fields, option=orjson.OPT_SORT_KEYS).partition(_BLANK_FIELD)
    rest = before + after[1:] if after.startswith(b",") else before.removesuffix(b",") + after
    fields["hash"] = own = hashlib.sha256(rest).hexdigest()
    return b'%b"hash":"%b"%b\n' % (before, own.encode(), after)


def signed_bytes(record: Mapping[str, Any]) -> bytes:
    """What the signature of a seal or a checkpoint is made of: a short text with the hash of all else in the record."""
    bare = {name: value for name, value in record.items() if name not in ("hash", "signature")}
    return f"looplatch record {digest(canonical(bare))}".encode()


def commitment(salt: bytes, payload: bytes) -> str:
    """What stands in a record for a payload; without the salt, kept beside the payload, it gives nothing away."""
    return digest(salt + payload)


@attrs.frozen
class Record:
    """A record as it stands in the log. `data` is the whole line; `record["target"]` reads a field of its kind."""

    data: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The field `name`, or `default` where this kind of record has none."""
        return self.data.get(name, default)

    @property
    def run(self) -> str:
        """The run that the record belongs to."""
        run: str = self.data["run"]
        return run

    @property
    def seq(self) -> int:
        """The record's number in the run: 0, 1, 2 and so on."""
        seq: int = self.data["seq"]
        return seq

    @property
    def kind(self) -> Kind:
        """What the record tells."""
        return Kind(self.data["kind"])

    @property
    def effect_class(self) -> EffectClass | None:
        """What was done, in the record of an effect; None in others, and for a class that looplatch has not."""
        named: object = self.data.get("class")
        return _CLASSES.get(named) if isinstance(named, str) else None

    @property
    def hash(self) -> str:
        """The record's own hash."""
        own: str = self.data["hash"]
        return own

    @property
    def source(self) -> str | None:
        """The state a move left; None for records that are no moves."""
        return self.data.get("source")

    @property
    def event(self) -> str | None:
        """The name of the event of a move; None for records that are no moves."""
        return self.data.get("event")

    @property
    def target(self) -> str | None:
        """The state a move led to; None for records that are no moves."""
        return self.data.get("target")

    @property
    def reason(self) -> str | None:
        """Why the loop went on, where it did."""
        return self.data.get("reason")

    @property
    def strategy(self) -> str | None:
        """How the trouble was mended, where one was."""
        return self.data.get("strategy")

    @property
    def terminal(self) -> str | None:
        """Why the run ended, where it did."""
        return self.data.get("terminal")
