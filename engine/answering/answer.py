"""One model call and the answer to it: read block by block, its tools started meanwhile, its end told as an event."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, cast

from looplatch.answering.beside import WOKEN, Beside
from looplatch.answering.calls import Calls
from looplatch.answering.model_record import answer_fields, cut_message, failure_fields
from looplatch.blocks import read_block
from looplatch.encoding import decode, escapes_half_a_pair
from looplatch.messages import AssistantMessage
from looplatch.model import Assembly, FinishedBlock
from looplatch.model.spending import Held, held, spending
from looplatch.ports import ModelRequest, ModelStream
from looplatch.recovery.closing import SERVER_CALLS
from looplatch.recovery.failure import Failure, ModelCallFailed, stream_cut, trouble_of
from looplatch.recovery.sealing import sealed_prefix, spoken_text, stopped_answer, trimmed, whole_answer
from looplatch.requests.kept import Kept
from looplatch.states.event import Event
from looplatch.states.events import ModelFailed, ModelResponded, TurnPaused
from looplatch.states.record import Record
from looplatch.states.table import DECISIONS
from looplatch.states.trouble import TroubleKind
from looplatch.tools import Call
from looplatch.workplace import Workplace


class Answer:
    """A model call. `step` reads on until there is something to tell; then it returns, with the event once it is over.

    The blocks that stay in the history join it here, before the event is sent, so that the record of the move finds
    the history as it will be sent again.
    """

    def __init__(
        self,
        at: Workplace,
        request: ModelRequest,
        *,
        model: str,
        max_tokens: int,
        attempt: int,
        turn: int,
        differs: str | None = None,
        trouble: Callable[[Failure], TroubleKind] = trouble_of,
        heard: Callable[[Event], None] | None = None,
        begin: Record | None = None,
    ) -> None:
        """`heard` is told the event that ends the call, before `step` returns it. `trouble`: which one a failure is.

        `begin`: the record of a call that an earlier process made; None: it is about to be made.
        """
        self._at = at
        self._request = request
        self._model = model
        self._heard = heard
        self._trouble_of = trouble
        self._begin = begin or at.journal.model_begins(model, max_tokens, attempt, at.history.sent, differs=differs)
        self._stream: ModelStream | None = None
        self._assembly = Assembly()
        self._moved_on = 0
        self._kept: dict[int, Kept] = {}  # finished blocks by index, encoded once
        self._own_ids: dict[int, str] = {}  # the ids of the calls, as they stand in the history
        self._unfinished: list[Kept] = []  # the texts that the model did not finish
        self.joined = False
        self.shown = False  # to the hook that is shown each answer
        self._effect_ended = False
        self._spent: dict[str, int] | None = None  # as it was last told
        self.failure: Failure | None = None
        self._trouble: TroubleKind | None = None  # which one the failure is
        self.calls = Calls(at, self._kept, turn)
        self._beside = Beside(at.outbox, self.calls)

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped."""
        return self._assembly.stop_reason

    @property
    def stop_name(self) -> str | None:
        """The stop reason as a record can hold it."""
        return None if self.stop_reason is None else self._at.journal.names.of(self.stop_reason)

    @property
    def cut_text(self) -> str:
        """What cut the answer, in words."""
        return cut_message(self._assembly)

    @property
    def text(self) -> str:
        """The text of the finished blocks."""
        blocks = (done.block for done in self._assembly.finished)
        return "".join(str(block["text"]) for block in blocks if block.get("type") == "text")

    def content(self) -> list[dict[str, Any]]:
        """The finished blocks that can be sent back, made anew."""
        blocks = [self._kept[done.index].encoded for done in self._assembly.finished if done.index in self._kept]
        return cast("list[dict[str, Any]]", decode(b"[%b]" % b",".join(blocks)))

    @property
    def message_id(self) -> str | None:
        """The API's id of the answer."""
        return self._assembly.message_id

    @cached_property
    def held(self) -> Held | None:
        """What the conversation held, in tokens, as the API has counted it; None where it does not say.

        Only for an answer that is over: it is counted once.
        """
        served = any(done.block.get("type") in SERVER_CALLS for done in self._assembly.finished)
        return held(self._assembly.usage, served=served)

    # --- reading

    async def step(self) -> Event | None:
        """Read on. Returns None when the outbox has something, else the event that ends the call."""
        outbox, assembly, partial = self._at.outbox, self._assembly, self._at.partial
        try:
            stream = self._stream
            if stream is None:
                stream = self._stream = await self._at.plan.connect().open(self._request)
            while not assembly.complete:
                # As long as there is no call, nothing else can happen.
                events = await (self._beside.read(stream) if self._own_ids else stream.read())
                if events is WOKEN:
                    if outbox.waiting:
                        return None
                    continue
                if not events:
                    raise stream_cut()
                if partial:
                    outbox.extend(events)
                if events[0].get("type") == "content_block_delta":
                    assembly.feed_deltas(events)
                else:
                    self._take(events[0])
                if (partial or outbox.waiting) and not assembly.complete:
                    return None
        except ModelCallFailed as error:
            over = await self._fail(error.failure)
        else:
            over = await self._complete()
        return self._announced(over)

    def _announced(self, over: Event) -> Event:
        """Tell the event that ends the call, once, and let go of who is told: they hold each other otherwise."""
        heard, self._heard = self._heard, None
        if heard is not None:
            heard(over)
        return over

    def _take(self, event: dict[str, Any]) -> None:
        assembly = self._assembly
        for done in assembly.feed(event):
            self._take_block(done)
        if assembly.moved_on > self._moved_on:
            self._moved_on = assembly.moved_on
            self.calls.moved_on(assembly.moved_on)

    def _take_block(self, done: FinishedBlock) -> None:
        block = done.block
        if (call := done.call) is not None:
            own = self._at.own_id(call.id, self._own_ids.values())
            self._own_ids[done.index] = own
            # The call itself keeps the name that the model wrote: no tool can have it, which its result says.
            block |= {"id": own, "name": self._at.own_name(call.name)}
        # The call comes first: a block that is kept and has no call would stand in the history without a result.
        prepared = self._call_of(done) if call is not None and call.direct else None
        if done.sendable:
            kept = self._at.journal.keep(block)
            if call is not None and block["id"] != call.id:
                kept.skeleton["model_id"] = self._at.journal.names.of(call.id)
            if call is not None and block["name"] != call.name:
                kept.skeleton["model_name"] = self._at.journal.names.of(call.name)
            if call is not None and escapes_half_a_pair(call.raw):
                # The history has the mended text, which can be sent; the log keeps what the model wrote as well.
                kept.skeleton["raw"] = self._at.journal.keep_raw(call.raw, call.input).hex
            self._kept[done.index] = kept
        self._at.outbox.push(
            AssistantMessage(
                content=(read_block(block),), message_id=self._assembly.message_id, model=self._assembly.model
            )
        )
        if prepared is not None:
            self.calls.add(prepared)

    def _call_of(self, done: FinishedBlock) -> Call:
        assert done.call is not None
        call = done.call
        return self._at.plan.toolbox.call(
            tool_use_id=self._own_ids[done.index],
            name=call.name,
            given=call.input,
            index=done.index,
            raw=call.raw,
            error=call.error,
            empty=call.empty,
            toolset=call.toolset,
        )

    # --- the end of the call

    async def _complete(self) -> Event:
        """`message_stop` came: what stays of the answer joins the history."""
        await self._let_go()
        if self._assembly.stop_reason in DECISIONS.cut:
            await self.calls.call_off()
        unfinished = self._assembly.partial_text()
        if self._is_paused:
            unfinished = trimmed(unfinished)
            if not unfinished:
                self._trim()
        self._unfinished = [self._at.journal.keep(block) for block in unfinished]
        self._end_effect("ok", self.usage())
        return self._conclude()

    @property
    def _is_paused(self) -> bool:
        return DECISIONS.event(self._assembly.stop_reason, len(self.calls.asked)) is TurnPaused

    def _trim(self) -> None:
        """Take the white space from the end of a turn that goes back as the last thing said: the API refuses it there.

        A text that is nothing else is left out. This comes before any record names that text: none but the end of the
        call does.
        """
        for done in self._assembly.trim():
            del self._kept[done.index]
            if done.sendable:
                self._kept[done.index] = self._at.journal.keep(done.block)

    def _conclude(self) -> Event:
        assembly = self._assembly
        if assembly.stop_reason in DECISIONS.cut:
            self._seal()
        else:
            if assembly.stop_reason == "tool_use":
                # Calls that a server tool made of ours wait for their results, too, once the turn is handed to us.
                for done in assembly.finished:
                    if done.call is not None and not done.call.direct:
                        self.calls.add(self._call_of(done))
            self.calls.moved_on(assembly.finished[-1].index + 1 if assembly.finished else 0)
            kept = whole_answer(assembly.finished, text_follows=bool(self._unfinished), paused=self._is_paused)
            self._join(kept, self._unfinished)
        self.calls.hold()
        calls = tuple(call.id for call in self.calls.asked)
        return ModelResponded(stop_reason=self.stop_name, calls=calls, begun=len(self.calls.begun), **self.usage())

    async def _fail(self, failure: Failure) -> Event:
        """The call failed: if a tool had begun, the prefix up to the last begun call stays."""
        await self._let_go()
        await self.calls.call_off()
        self._trouble = self._trouble_of(failure)  # by the caller's code, maybe, which may raise
        self.failure = failure
        self._end_effect(failure.type, self.usage())
        return self._conclude_failure(failure, self._trouble)

    def _conclude_failure(self, failure: Failure, trouble: TroubleKind) -> Event:
        self._seal()
        name, begun = self._at.journal.names.of(failure.type), len(self.calls.begun)
        return ModelFailed(trouble=trouble, failure=name, status=failure.status, begun=begun, **self.usage())

    def _seal(self) -> None:
        self.calls.seal()
        if begun := self.calls.begun:
            self._join(sealed_prefix(self._assembly.finished, max(call.index for call in begun)))

    def _end_effect(self, outcome: str, usage: dict[str, int]) -> None:
        request_id = self._stream.request_id if self._stream is not None else None
        if request_id is None and self.failure is not None:
            request_id = self.failure.request_id
        journal = self._at.journal
        journal.ends(
            self._begin,
            outcome,
            {
                "request_id": None if request_id is None else journal.names.of(request_id),
                **answer_fields(self._assembly, journal.names.of),
                "usage": usage,
                "held": None if (held := self.held) is None else {"prompt": held.prompt, "output": held.output},
                "error": failure_fields(self.failure, journal.names.of),
                "trouble": None if self._trouble is None else str(self._trouble),
                # What no other record names yet: whoever resumes the run has the whole answer then.
                "blocks": [kept.skeleton for kept in self.calls.unnamed(max(self._kept, default=-1))],
                "unfinished": [kept.skeleton for kept in self._unfinished],
            },
        )
        self._effect_ended = True

    def usage(self) -> dict[str, int]:
        """What the call spent, by the names of the context's totals."""
        if self._spent is None or not self._effect_ended:
            self._spent = spending(self._assembly.usage, self._model, self._at.plan.pricer)
        return dict(self._spent)

    # --- the history

    def _join(self, blocks: list[FinishedBlock], unfinished: Sequence[Kept] = ()) -> None:
        """What stays of the answer becomes a message of the history, once."""
        kept = [*(self._kept[done.index] for done in blocks), *unfinished]
        self.joined = True
        if not kept:
            return
        history, assembly, name_of = self._at.history, self._assembly, self._at.journal.names.of
        self._at.join(
            "assistant",
            kept,
            message_id=None if assembly.message_id is None else name_of(assembly.message_id),
            model=None if assembly.model is None else name_of(assembly.model),
            stop_reason=self.stop_name,
        )
        history.tool_use_ids.update(self._own_ids[done.index] for done in blocks if done.index in self._own_ids)

    def keep_spoken(self) -> None:
        """Keep the text of a cut answer, finished or not, unless a sealed prefix is kept already."""
        if not self.joined:
            self._join(spoken_text(self._assembly.finished), self._unfinished)

    def keep_stopped(self) -> None:
        """The run was stopped while this answer was written: its finished blocks and unfinished text stay."""
        if not self.joined:
            unfinished = trimmed(self._assembly.partial_text())
            taken = [done for done in self._assembly.finished if done.index in self._kept]
            kept = [self._at.journal.keep(block) for block in unfinished]
            self._join(stopped_answer(taken, text_follows=bool(unfinished)), kept)

    # --- stopping

    async def stop(self) -> None:
        """End the call and its tools: no task and no connection is left when this returns."""
        await self._beside.stop()
        await self.calls.cancel()
        await self._let_go()
        if not self._effect_ended:
            self._end_effect("interrupted", self.usage())

    async def _let_go(self) -> None:
        await self._beside.stop()
        if self._stream is not None:
            await self._stream.close()
