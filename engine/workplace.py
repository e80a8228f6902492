"""The parts of one run that those who work on it share."""

from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs

from looplatch.blocks import read_block
from looplatch.budget import Budget
from looplatch.journal import Journal
from looplatch.messages import UserMessage
from looplatch.outbox import Outbox
from looplatch.plan import Plan
from looplatch.recovery.closing import open_server_results
from looplatch.recovery.sizes import Learned, Sizes
from looplatch.recovery.windows import ModelSize, model_size
from looplatch.requests.history import History, Joining, own_name
from looplatch.requests.kept import Kept
from looplatch.states.state import State

_CALL: Final = "call"  # the id, or the name, of a call that can keep nothing of its own


@attrs.frozen(kw_only=True)
class Pauses:
    """The states at which a run rests: before their work, or after it."""

    before: frozenset[State] = frozenset()
    after: frozenset[State] = frozenset()


def _sizes(at: "Workplace") -> Sizes:
    plan, fallback = at.plan, at.plan.fallback_model
    return Sizes(
        window=plan.size.window,
        output=plan.size.output,
        given=plan.window is not None,
        fallback=ModelSize() if fallback is None else model_size(fallback),
    )


def _budget(at: "Workplace") -> Budget:
    return Budget(at.plan.limits, at.plan.clock)


@attrs.define(kw_only=True, eq=False)
class Workplace:
    """What the driver, the performer and an answer work with."""

    plan: Plan
    journal: Journal
    history: History
    outbox: Outbox
    partial: bool  # raw stream events go to the consumer, too
    pauses: Pauses = attrs.field(factory=Pauses)
    accepts_changes: bool = False  # the caller resumed the run whatever has changed
    sizes: Sizes = attrs.field(default=attrs.Factory(_sizes, takes_self=True))  # what is known of the model
    budget: Budget = attrs.field(default=attrs.Factory(_budget, takes_self=True))

    def learn(self, learned: Learned) -> None:
        """Something is known of the model's size now."""
        self.sizes = self.sizes.after(learned)

    def own_id(self, id_: str, taken: Collection[str] = ()) -> str:
        """The id that a new call has in the history and in the log: `id_`, where that can be sent and holds no secret.

        Taken are those of the history and those in `taken`.
        """
        own = self.history.own_id(self.journal.names.id_of(id_), taken)
        # What stands in the place of a secret may look like another one, once it is written as an id.
        return own if self.journal.names.id_of(own) == own else self.history.own_id(_CALL, taken)

    def own_name(self, name: str) -> str:
        """The name that it has there: `name`, where that can be sent and holds no secret."""
        own = own_name(self.journal.names.id_of(name))
        return own if self.journal.names.id_of(own) == own else _CALL

    def join(self, role: str, kept: Sequence[Kept], *, form: str = "blocks", **more: Any) -> None:
        """Append a message to the history, and record it. `more`: further fields of the record."""
        record = self.journal.message("join", len(self.history), role, form, kept, **more)
        self.history.join(Joining(role, form, kept), record.hash)

    def say(self, said: list[tuple[dict[str, object], Kept]], **more: Any) -> None:
        """Speak on the user's side: a new message, or more of the last one, since roles alternate.

        more: further fields of the record.
        """
        history, kept = self.history, [k for _, k in said]
        if history.last_role == "user":
            record = self.journal.message("extend", len(history) - 1, "user", "blocks", kept, **more)
            history.extend(kept, record.hash)
        else:
            self.join("user", kept, **more)
        self.outbox.push(UserMessage(content=tuple(read_block(block) for block, _ in said)))

    def say_text(self, text: str, **more: Any) -> None:
        """Say a text to the model. more: further fields of the record."""
        self._close_turn()
        block: dict[str, object] = {"type": "text", "text": text}
        self.say([(block, self.journal.keep(block))], **more)

    def close_turn(self) -> None:
        """Answer what the server's own tools left open in the last answer, or nothing could be said after it."""
        if self.history.last_role == "assistant":
            self._close_turn()

    def _close_turn(self) -> None:
        """The same where our results stand behind that answer, and the server has said nothing to them.

        What it owes then stands at the head of the answer that it did not give, as it would have put it there itself.
        """
        history = self.history
        results = open_server_results(history.answer_blocks)
        if not results:
            return
        kept = [self.journal.keep(block) for block in results]
        no_answer: dict[str, Any] = dict.fromkeys(("message_id", "model", "stop_reason"))  # the model wrote none
        if history.last_role == "user":
            self.join("assistant", kept, **no_answer)
            return
        record = self.journal.message("extend", len(history) - 1, "assistant", "blocks", kept, **no_answer)
        history.extend(kept, record.hash)
