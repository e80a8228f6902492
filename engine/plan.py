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
from looplatch.permission.rules import Rule
from looplatch.ports import Clock, ModelClient
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.failure import Failure
from looplatch.recovery.windows import ModelSize
from looplatch.requests.request import RequestParts
from looplatch.states.errors import UsageError
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


def refuse_secrets(plan: Plan) -> None:
    """See that nothing looks like a secret that records name as it is. Raises UsageError, without what was found."""
    secrets = plan.secrets
    if secrets is None:
        return
    model = "Give the name of a model"
    for what, named, mend in (("model", plan.parts.model, model), ("fallback_model", plan.fallback_model, model)):
        refuse_secret(secrets, what, named, mend)
    for tool in plan.parts.tools:
        if kinds := secrets.taken_out(tool.get("name"))[1]:
            problem = f"the name of one of them looks like a secret ({', '.join(kinds)})"
            raise UsageError("tools", problem, "Give it another name, or have secrets not look for that")


def refuse_secret(secrets: Secrets, what: str, named: str | None, mend: str) -> None:
    """See that `named` does not look like a secret. Raises UsageError for the argument `what`, without what it is."""
    if named is not None and (kinds := secrets.taken_out(named)[1]):
        raise UsageError(what, f"it looks like a secret ({', '.join(kinds)})", mend)
