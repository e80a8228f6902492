"""The last answer of the model, as the records of its call, its tools and its messages tell of it."""

import attrs

from looplatch.recovery.resume.past import PastAnswer, PastHook, PastTool, Skeleton, answers_of
from looplatch.states.record import Record
from looplatch.states.table import DECISIONS
from looplatch.states.vocabulary import EffectClass, Op


class AnswerFold:
    """Follows the effects and messages of one answer after the other.

    text: the text blocks of the last answer that was whole, None before the first one. message_id: its id.
    block_reason: the commitment to why a stop hook blocked last.
    """

    def __init__(self) -> None:
        self.text: tuple[Skeleton, ...] | None = None
        self.message_id: str | None = None
        self.block_reason: str | None = None
        self._building: _Building | None = None

    def last(self) -> PastAnswer | None:
        """What is known of the last model call."""
        return None if self._building is None else self._building.answer()

    @property
    def model_end(self) -> Record | None:
        """The record that ended the last model call."""
        return None if self._building is None else self._building.model_end

    def forget(self) -> None:
        """The run is about to call the model anew."""
        self._building = None

    def begin(self, record: Record) -> None:
        """A model call, a tool or a hook begins."""
        if record.effect_class is EffectClass.MODEL:
            self._building = _Building(record)
        elif self._building is not None:
            self._building.begin(record)

    def end(self, record: Record) -> None:
        """One of them ends."""
        if self._building is not None:
            hook = self._building.end(record)
            if hook is not None and hook.outcome == "Block":
                self.block_reason = hook.reason

    def call_of(self, end: Record) -> str | None:
        """The call whose tool ended."""
        begin = None if self._building is None else self._building.begins.get(end["effect"])
        return None if begin is None else begin.get("tool_use_id")

    def message(self, record: Record) -> None:
        """A message record."""
        if self._building is not None:
            self._building.message(record)

    def respond(self) -> "_Building | None":
        """The event that ends the call is recorded."""
        building = self._building
        if building is not None:
            building.responded = True
            if building.model_end is not None and building.model_end["error"] is None:
                self.message_id = building.model_end["message_id"]
                self.text = tuple(block for block in building.all_blocks if block["type"] == "text")
        return building


@attrs.define(eq=False)
class _Building:
    """An answer that grows record by record."""

    model_begin: Record
    model_end: Record | None = None
    responded: bool = False
    joined: Record | None = None
    _edited: bool = False
    _blocks: list[Skeleton] = attrs.field(factory=list[Skeleton])
    _unfinished: tuple[Skeleton, ...] = ()
    begins: dict[int, Record] = attrs.field(factory=dict[int, Record])  # tools and hooks by their numbers
    _tools: dict[str, PastTool] = attrs.field(factory=dict[str, PastTool])
    _results: dict[str, Skeleton] = attrs.field(factory=dict[str, Skeleton])
    _hooks: list[PastHook] = attrs.field(factory=list[PastHook])

    @property
    def all_blocks(self) -> tuple[Skeleton, ...]:
        """The finished blocks that records name; those of the message, where they name more."""
        named = (*self._blocks,)
        known = {block["commitment"] for block in (*named, *self._unfinished)}
        joined = () if self.joined is None else tuple(self.joined["blocks"])
        return named if known.issuperset(block["commitment"] for block in joined) else joined

    @property
    def joins(self) -> bool:
        """Whether the answer is in the history, as far as there is anything of it."""
        return self.joined is not None or (
            self.model_end is not None and self.model_end["stop_reason"] not in DECISIONS.cut
        )

    def begin(self, record: Record) -> None:
        self.begins[record.seq] = record
        if record.effect_class is EffectClass.TOOL:
            before = self._tools.get(record["tool_use_id"])
            again = PastTool(begin=record) if before is None else attrs.evolve(before, begin=record, end=None)
            self._tools[record["tool_use_id"]] = again
            self._blocks += record["blocks"]

    def end(self, record: Record) -> PastHook | None:
        if record["effect"] == self.model_begin.seq:
            self.model_end = record
            self._blocks += record.get("blocks", ())
            self._unfinished = tuple(record.get("unfinished", ()))
            return None
        begin = self.begins.get(record["effect"])
        if begin is None:
            return None
        if begin.effect_class is EffectClass.TOOL:
            before = self._tools[begin["tool_use_id"]]
            paid = before.paid
            if (usage := record.get("usage")) is not None:
                paid = {name: spent + usage[name] for name, spent in paid.items()}
            child = record.get("child", before.child)
            self._tools[begin["tool_use_id"]] = PastTool(begin=begin, end=record, paid=paid, child=child)
        if begin.effect_class is not EffectClass.HOOK:
            return None
        hook = PastHook.of(begin, record)
        self._hooks.append(hook)
        return hook

    def message(self, record: Record) -> None:
        if record["op"] in (Op.LEAVE, Op.EDIT):
            self._edited = True  # what joins from here on is no answer
        elif record["role"] == "assistant":
            if record["op"] == Op.JOIN and self.joined is None and not self._edited:
                self.joined = record
        elif not self._edited:
            self._results |= answers_of(record["blocks"])

    def answer(self) -> PastAnswer:
        return PastAnswer(
            begin=self.model_begin,
            end=self.model_end,
            blocks=self.all_blocks,
            unfinished=self._unfinished,
            joined=self.joined,
            responded=self.responded,
            tools=self._tools,
            results=self._results,
            hooks=tuple(self._hooks),
        )
