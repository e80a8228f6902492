"""looplatch.audit: the audit log of a run, written as it moves and read afterwards."""

from looplatch.audit.errors import (
    AuditError,
    BadRecord,
    LogClosed,
    LogDamaged,
    LogExists,
    LogFailed,
    LogInUse,
    LogState,
    SigningFailed,
)
from looplatch.audit.jsonl import JsonlLog
from looplatch.audit.log import Effect, Log, read
from looplatch.audit.memory import MemoryLog
from looplatch.audit.mirror import Mirror, mirror_to
from looplatch.audit.protocol import AuditLog, Commitment, Durability, KeepsMany, Payloads, PayloadSource
from looplatch.audit.redaction import Redaction, redact
from looplatch.audit.segmented import SegmentedLog
from looplatch.audit.signing import KeySigner, Signer, key_id, public_key
from looplatch.audit.sqlite import SqliteLog
from looplatch.states.secrets import SECRETS, Secrets
from looplatch.states.verify.signatures import PublicKey

__all__ = [
    "SECRETS",
    "AuditError",
    "AuditLog",
    "BadRecord",
    "Commitment",
    "Durability",
    "Effect",
    "JsonlLog",
    "KeepsMany",
    "KeySigner",
    "Log",
    "LogClosed",
    "LogDamaged",
    "LogExists",
    "LogFailed",
    "LogInUse",
    "LogState",
    "MemoryLog",
    "Mirror",
    "PayloadSource",
    "Payloads",
    "PublicKey",
    "Redaction",
    "Secrets",
    "SegmentedLog",
    "Signer",
    "SigningFailed",
    "SqliteLog",
    "key_id",
    "mirror_to",
    "public_key",
    "read",
    "redact",
]
