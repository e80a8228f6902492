"""The contents of a run, found again by what its records say of them."""

from collections.abc import Iterable
from typing import Any, cast

from looplatch.audit import PayloadSource
from looplatch.encoding import decode, encode
from looplatch.recovery.resume.errors import CannotResume
from looplatch.recovery.resume.lost import ContentRemoved, Lost
from looplatch.recovery.resume.past import Entry, Part, Skeleton
from looplatch.requests.history import History, Joining
from looplatch.requests.kept import Kept
from looplatch.states.record import commitment


class Contents:
    """Finds payloads, each once. Every method raises CannotResume for a payload that is not there or is another one.

    lost: what the log says of contents that are not as they were. accepted: those that were redacted before they were
    kept will do; `changed` names them. Without that they raise ContentRemoved, as those do that were deleted since.
    """

    def __init__(self, payloads: PayloadSource, lost: Lost | None = None, *, accepted: bool = False) -> None:
        self._payloads = payloads
        self._lost = lost or Lost()
        self._accepted = accepted
        self._found: dict[str, bytes] = {}
        self.changed: set[str] = set()

    def know(self, commitment_: str, payload: bytes) -> None:
        """A payload that was kept since."""
        self._found[commitment_] = payload

    def payload(self, wanted: str) -> bytes:
        """The payload that a commitment stands for."""
        known = self._found.get(wanted)
        if known is None:
            if wanted in self._lost.redacted:
                if not self._accepted:
                    raise ContentRemoved(wanted, "redacted")
                self.changed.add(wanted)
            found = self._payloads.find(wanted)
            if found is None and wanted in self._lost.deleted:
                raise ContentRemoved(wanted, "deleted")
            if found is None:
                problem = f"the content with the commitment {wanted} is not kept any more"
                raise CannotResume(problem, "A run goes on only with all that was said; start another one")
            if commitment(*found) != wanted:
                problem = f"the content kept for the commitment {wanted} is another one"
                raise CannotResume(problem, "See what `looplatch verify` says")
            known = self._found[wanted] = found[1]
        return known

    def original(self, wanted: str) -> bytes:
        """The payload, for what has to be as it was: an input that a tool gets."""
        if wanted in self._lost.redacted:
            raise ContentRemoved(wanted, "redacted", "a tool is still to be called with it")
        return self.payload(wanted)

    def value(self, wanted: str) -> Any:
        """The same, decoded."""
        return decode(self.payload(wanted))

    def check(self, skeleton: Skeleton) -> None:
        """See that a content block is none that has to be as it was, and is not."""
        if skeleton["type"] == "thinking" and skeleton["commitment"] in self._lost.redacted:
            raise ContentRemoved(skeleton["commitment"], "redacted", "it is thinking, whose signature fits no other")

    def kept(self, skeleton: Skeleton) -> Kept:
        """A content block; a message's plain text as a block of its own."""
        self.check(skeleton)
        payload = self.payload(skeleton["commitment"])
        if payload.startswith(b'"'):
            payload = encode({"type": "text", "text": decode(payload)})
        return Kept(payload, dict(skeleton))

    def block(self, skeleton: Skeleton) -> dict[str, Any]:
        """A content block, decoded."""
        return cast("dict[str, Any]", decode(self.kept(skeleton).encoded))

    def text(self, blocks: Iterable[Skeleton]) -> str:
        """What text blocks say, one after the other."""
        return "".join(str(self.block(block)["text"]) for block in blocks)

    def blocks(self, entry: Entry) -> list[Kept]:
        """What a message consists of, as one record can bring it."""
        return self._part(Part("", entry.blocks), "text" if entry.plain else "blocks")

    def history(self, entries: Iterable[Entry]) -> History:
        """The history that consists of `entries`."""
        history = History()
        for entry in entries:
            first, *more = entry.parts
            history.join(Joining(entry.role, entry.form, self._part(first, entry.form)), first.hash)
            for part in more:
                history.extend(self._part(part, "blocks"), part.hash)
        return history

    def _part(self, part: Part, form: str) -> list[Kept]:
        if form == "text":
            (skeleton,) = part.blocks
            return [Kept(self.payload(skeleton["commitment"]), dict(skeleton))]
        return [self.kept(skeleton) for skeleton in part.blocks]
