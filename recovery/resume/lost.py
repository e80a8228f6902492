"""Contents that are not as they were: redacted before they were kept, or deleted since."""

from collections.abc import Iterable
from typing import Literal

import attrs

from looplatch.recovery.resume.errors import CannotResume
from looplatch.states.record import Kind, Record


@attrs.frozen
class Lost:
    """What a log says of such contents, by their commitments."""

    redacted: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Lost":
        """What `records` say."""
        redacted, deleted = set[str](), set[str]()
        for record in records:
            redacted.update(record.get("redacted") or ())
            if record.kind is Kind.TOMBSTONE:
                deleted.add(str(record.get("commitment")))
        return cls(frozenset(redacted), frozenset(deleted))


class ContentRemoved(CannotResume):
    """A run cannot go on as it was: a content that it needs was redacted before it was kept, or deleted since.

    `commitment` names the content as the records do, `how` says what happened to it.
    """

    def __init__(self, commitment: str, how: Literal["redacted", "deleted"], why: str | None = None) -> None:
        if how == "deleted":
            problem = f"the content with the commitment {commitment} was deleted (a tombstone says so)"
            mend = "A run goes on only with all that was said; start another one"
        else:
            because = "" if why is None else f", and {why}"
            problem = f"the content with the commitment {commitment} was kept without the secrets in it{because}"
            mend = "Start another run" if why else "Resume with accept_changes=True to go on with what was kept"
        super().__init__(problem, mend)
        self.commitment = commitment
        self.how = how
