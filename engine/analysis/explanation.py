"""explain: a log in plain words, turn by turn: what was asked and answered, what ran, and why it went on or stopped."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from looplatch.analysis.effects import began, ended, left
from looplatch.analysis.fields import list_in, object_in
from looplatch.analysis.moves import Moves, Standing
from looplatch.analysis.quotes import Quotes
from looplatch.analysis.reading import Readable, nothing_in, reading
from looplatch.cleaning import one_line
from looplatch.states.brief import brief
from looplatch.states.counted import counted
from looplatch.states.errors import UsageError
from looplatch.states.given import check_count
from looplatch.states.record import Kind, Record
from looplatch.states.state import FINAL, INITIAL, State
from looplatch.states.table import TABLE
from looplatch.states.transition import Table, check_is_table
from looplatch.states.vocabulary import EffectClass, Op

_LONGEST: Final = 600  # characters of one sentence
_ENDS: Final = frozenset(map(str, FINAL))


@attrs.frozen(kw_only=True)
class Sentence:
    """A sentence about a record. what: "said", "asked", "answered", "call", "effect", "move", "refused" or "run"."""

    seq: int
    what: str
    text: str

    def fields(self) -> dict[str, Any]:
        """The sentence as plain data."""
        return attrs.asdict(self)


@attrs.frozen(kw_only=True)
class Turn:
    """What happened in one turn, in order."""

    number: int
    sentences: tuple[Sentence, ...]

    def __str__(self) -> str:
        return "\n".join([f"turn {self.number}", *(f"  {one.seq:>5}  {one.text}" for one in self.sentences)])

    def fields(self) -> dict[str, Any]:
        """The turn as plain data."""
        return {"turn": self.number, "sentences": [one.fields() for one in self.sentences]}


@attrs.frozen(kw_only=True)
class Explanation:
    """A log in plain words.

    run: its id. about: what it was made of. status: "sealed", "open", "suspended" or "in_doubt", as `verify` has it.
    turns: what happened. standing: how the run stands now. `str()` shows all of it.
    """

    run: str
    about: str
    status: str
    turns: tuple[Turn, ...]
    standing: str

    def __str__(self) -> str:
        return "\n".join([self.about, *map(str, self.turns), self.standing])

    def fields(self) -> dict[str, Any]:
        """The explanation as plain data, for JSON."""
        turns = [turn.fields() for turn in self.turns]
        return {
            "run": self.run, "about": self.about, "status": self.status, "turns": turns, "standing": self.standing,
        }  # fmt: skip

    def only(self, number: int) -> "Explanation":
        """The same for one turn. Raises UsageError for a turn that the run did not have."""
        found = tuple(turn for turn in self.turns if turn.number == number)
        if not found:
            had = "none" if not self.turns else f"{self.turns[0].number} to {self.turns[-1].number}"
            raise UsageError("turn", f"the run has no turn {number}", f"Give one that it has: {had}")
        return attrs.evolve(self, turns=found)


def explain(log: Readable, *, turn: int | None = None, table: Table = TABLE) -> Explanation:
    """Say in plain words what a run did, and why it went on or stopped: in one `turn`, or in all.

    Contents are quoted in short, without control characters. A log that is open, suspended or in doubt is explained as
    far as it goes, a damaged one up to the damage. Whether the log is true is not asked here: `verify` does that.
    Raises UsageError for a log that cannot be read or holds no record, and for a turn that the run did not have.
    """
    if turn is not None:
        check_count("turn", turn, 0)
    check_is_table(table)
    source = reading(log)
    explainer = _Explainer(Quotes(source.payloads), Moves(table))
    damage = ""
    for record in source:
        try:
            explainer.take(record)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            damage = f"record {record.seq} is not what a {record.kind} record must be ({brief(error)})"
            break
    if explainer.first is None:
        raise nothing_in(source)
    if source.damage is not None:
        damage = f"line {source.damage.line} is no record: {source.damage.problem}"
    whole = explainer.explanation(damage, source.torn)
    return whole if turn is None else whole.only(turn)


class _Explainer:
    """Takes the records in order, and gathers a sentence about each that says something."""

    def __init__(self, quotes: Quotes, moves: Moves) -> None:
        self.first: Record | None = None
        self._quotes = quotes
        self._moves = moves
        self._standing = Standing.first({})
        self._state: str = str(INITIAL)
        self._begun: dict[int, Record] = {}
        self._names: dict[str, str] = {}  # of the tools that were called, by call
        self._ran: set[str] = set()
        self._approved: dict[str, None] = {}  # calls, from outside
        self._answer: list[Mapping[str, Any]] = []  # the blocks of the answer that is being read
        self._awaited: tuple[str, ...] = ()
        self._paused = False
        self._sealed: Record | None = None
        self._turns: list[Turn] = []
        self._sentences: list[Sentence] = []

    def take(self, record: Record) -> None:
        """Put the next record into words."""
        self.first = self.first or record
        match record.kind:
            case Kind.GENESIS:
                self._standing = Standing.first(object_in(record, "limits"))
            case Kind.TRANSITION:
                self._move(record)
            case Kind.REJECTED:
                self._say(record, "refused", f"{record.event} was refused in {record.source}: nothing moved")
            case Kind.MESSAGE:
                self._message(record)
            case Kind.EFFECT_BEGIN:
                self._begin(record)
            case Kind.EFFECT_END:
                self._end(record)
            case Kind.RESUMED:
                self._resumed(record)
            case Kind.TOMBSTONE:
                self._say(record, "run", "a content was deleted")
            case Kind.TERMINAL:
                self._sealed = record
            case Kind.CHECKPOINT:
                pass

    def _say(self, record: Record, what: str, text: str) -> None:
        self._sentences.append(Sentence(seq=record.seq, what=what, text=one_line(text, _LONGEST)))

    def _move(self, move: Record) -> None:
        before, after = self._standing, self._standing.after(object_in(move, "change"))
        self._standing, self._state = after, str(move.target)
        self._awaited = tuple(list_in(object_in(move, "fields"), "calls")) if self._state == "suspended" else ()
        self._paused = move.event == "RunPaused"
        if (text := self._moves.sentence(move, after)) is not None:
            self._say(move, "move", text)
        if after.turn != before.turn:
            self._turns.append(Turn(number=before.turn, sentences=tuple(self._sentences)))
            self._sentences.clear()

    def _message(self, record: Record) -> None:
        if record["op"] in (Op.LEAVE, Op.EDIT):
            return  # the move after it names the compression
        blocks = list_in(record, "blocks")
        self._names.update((b["id"], b["name"]) for b in blocks if "id" in b and "name" in b)
        if record["role"] == "assistant":
            return  # its blocks were put into words with the end of the model call
        for block in blocks:
            call = block.get("tool_use_id")
            if block.get("type") != "tool_result":
                self._say(record, "said", f"the user's side said: {self._quotes.block(dict(block))}")
            elif call not in self._ran and self._state in ("orchestrate", "stream", "suspended"):
                name = self._names.get(str(call), "a call")
                self._say(record, "call", f"did not run {name} ({call}): {self._quotes.block(dict(block))}")

    def _begin(self, begin: Record) -> None:
        self._begun[begin["effect"]] = begin
        if begin.effect_class is EffectClass.MODEL:
            self._answer.clear()
        if begin.effect_class is EffectClass.TOOL:
            self._answer += list_in(begin, "blocks")
            self._ran.add(begin["tool_use_id"])
        if (text := began(begin)) is not None:
            self._say(begin, "asked", text)

    def _end(self, end: Record) -> None:
        begin = self._begun.pop(end["effect"], None)
        if begin is None or (text := ended(begin, end, self._quotes)) is None:
            return
        match begin.effect_class:
            case EffectClass.MODEL:
                self._answer += [*list_in(end, "blocks"), *list_in(end, "unfinished")]
                self._say(end, "answered", text + "".join(f"; {one}" for one in self._said()))
                self._answer.clear()
            case EffectClass.TOOL:
                self._say(end, "call", text)
            case _:
                self._say(end, "effect", text)

    def _said(self) -> Iterable[str]:
        for block in self._answer:
            match block.get("type"):
                case "text":
                    yield f"it said {self._quotes.block(dict(block))}"
                case "tool_use" | "server_tool_use" | "mcp_tool_use":
                    yield f"it called {block.get('name')} ({block.get('id')})"
                case _:
                    pass

    def _resumed(self, record: Record) -> None:
        for begin in self._begun.values():
            self._say(begin, "effect", left(begin, self._quotes))
        self._begun.clear()
        lost = {name: size for name, size in object_in(record, "lost").items() if size}
        changes = ", ".join(object_in(record, "changes"))
        text = "another process took the run over"
        text += f"; {counted(sum(lost.values()), 'byte')} that a crash had torn went aside" if lost else ""
        text += f"; accepted as changed: {changes}" if changes else ""
        self._say(record, "run", text)
        for approval in list_in(record, "approvals"):
            name = self._names.get(approval["call"], "a call")
            verdict = "allowed" if approval.get("allowed") else "denied"
            if approval.get("allowed"):
                self._approved[str(approval["call"])] = None
            self._say(record, "call", f"{name} ({approval['call']}) was {verdict} from outside")

    # --- the end

    def explanation(self, damage: str, torn: int) -> Explanation:
        """All sentences, and how the run stands."""
        for begin in self._begun.values():
            self._say(begin, "effect", left(begin, self._quotes))
        if self._sentences:
            self._turns.append(Turn(number=self._standing.turn, sentences=tuple(self._sentences)))
        standing = [self._stands()]
        never = [call for call in self._approved if call not in self._ran] if self._sealed is not None else []
        standing += (f"{self._names.get(call, 'a call')} ({call}) was allowed, and never began" for call in never)
        if damage:
            standing.append(f"{damage}; nothing behind it was read")
        if torn:
            standing.append(f"a write that broke off left {counted(torn, 'byte')} of a record after the last one")
        first = self.first
        assert first is not None
        return Explanation(
            run=one_line(first.run, _LONGEST),
            about=one_line(self._about(first), _LONGEST),
            status=self._status(),
            turns=tuple(self._turns),
            standing=one_line("; ".join(standing), _LONGEST),
        )

    def _about(self, first: Record) -> str:
        if first.kind is not Kind.GENESIS:
            return f"run {first.run}: the log does not begin with a genesis"
        return f"run {first.run} of {first.get('model')}, begun {first['ts']}, by {first.get('library')}"

    def _status(self) -> str:
        if self._sealed is not None:
            return "sealed"
        if self._begun:
            return "in_doubt"
        return "suspended" if self._state == State.SUSPENDED or self._paused else "open"

    def _stands(self) -> str:
        match self._status():
            case "sealed":
                assert self._sealed is not None
                return f"the run has ended: {self._sealed.get('state')}, {self._sealed.terminal}"
            case "in_doubt":
                return f"the run is in doubt: the end of {counted(len(self._begun), 'effect')} is not recorded"
            case "suspended" if self._paused:
                return f"the run rests in {self._state} until it is resumed"
            case "suspended":
                waiting = ", ".join(f"{self._names.get(call, 'a call')} ({call})" for call in self._awaited)
                return f"the run is suspended until someone decides on {waiting or 'its calls'}"
            case _ if self._state in _ENDS:
                return f"the run has come to {self._state}, and its log is not sealed"
            case _:
                return f"the run is open, in {self._state}: its process runs, or has died"
