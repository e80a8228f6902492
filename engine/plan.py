"""The plan: all that a loop fixes for its runs, checked before any of them starts."""

from collections.abc import Callable
from pathlib import Path

import attrs

from looplatch.audit.disk import DISK, Disk
from looplatch.audit.mirror import Mirror
from looplatch.audit.protocol import Durability, Entropy, Payloads
from looplatch.audit.signing import Signer
from looplatch.hooks import Hooks
from looplatch.model.spending import Pricer
from looplatch.ports import Clock, ModelClient
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.failure import Failure
from looplatch.recovery.windows import ModelSize
from looplatch.request import RequestParts
from looplatch.rules import Rule
from looplatch.states.limits import Limits
from looplatch.states.secrets import SECRETS, Secrets
from looplatch.tools import Toolbox


@attrs.frozen(kw_only=True)
class Plan:
    """What every run of a loop shares. `connect` makes the model client on first use."""

    parts: RequestParts
    toolbox: Toolbox
    max_tokens: int
    size: ModelSize
    window: int | None  # as the caller gave it
    compression: Compression
    fallback_model: str | None
    pricer: Pricer | None
    limits: Limits
    hooks: Hooks
    rules: tuple[Rule, ...]
    connect: Callable[[], ModelClient]
    is_overflow: Callable[[Failure], bool]
    clock: Clock
    entropy: Entropy
    jitter: Callable[[], float]
    log_dir: Path | None
    payloads: Payloads
    durability: Durability
    secrets: Secrets | None = SECRETS
    mirror: Mirror | None = None  # None: structlog, where the application has configured it
    segment_bytes: int | None = None
    signer: Signer | None = None
    disk: Disk = DISK
