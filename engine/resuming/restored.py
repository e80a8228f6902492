"""An answer that an earlier process read, or began to read, taken up again from its records.

What has ended is not done again: the call of the model is not made, tools that have ended keep their results. A read in
flight runs again, and so does a write that is idempotent, with the same key; of another write the effect is unknown.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import attrs

from looplatch.agents.parentage import Earlier
from looplatch.answering.answer import Answer
from looplatch.answering.calls import PastCall
from looplatch.blocks import ToolUseBlock
from looplatch.hooks import Allow, Ask, Deny
from looplatch.model import FinishedBlock, ParsedCall
from looplatch.model.inputs import parse_input
from looplatch.model.spending import Held
from looplatch.permission.permission import Verdict, ruled
from looplatch.ports import ModelRequest
from looplatch.recovery.failure import Failure
from looplatch.recovery.resume.past import PastAnswer, PastApproval, PastHook, PastTool, Skeleton
from looplatch.resuming.contents import Contents
from looplatch.states.context import TOTALS
from looplatch.states.event import Event
from looplatch.states.table import DECISIONS
from looplatch.states.trouble import TroubleKind
from looplatch.tools import Call, Outcome
from looplatch.tools.calls import Asked, Cause, Denial
from looplatch.tools.execution import denied, interrupted, not_started
from looplatch.workplace import Workplace

UNKNOWN_TEXT = "what the API said of it was not kept when the run was resumed"


class RestoredAnswer(Answer):
    """Stands for the answer of an earlier process. `step` makes no call: it says again how the call ended.

    approvals: the decisions on its calls so far, by call. awaited: the calls that wait for one.
    nested: the decisions on calls of the runs inside its calls, by the latter.
    Raises CannotResume where a content is not kept any more. Needs a running event loop, as every answer does.
    """

    def __init__(
        self,
        at: Workplace,
        past: PastAnswer,
        contents: Contents,
        *,
        turn: int,
        approvals: Mapping[str, PastApproval],
        awaited: frozenset[str],
        nested: Mapping[str, Mapping[str, PastApproval]],
    ) -> None:
        begin = past.begin
        nothing = ModelRequest(body=b"")  # it is not sent
        super().__init__(
            at, nothing, model=begin["model"], max_tokens=begin["max_tokens"], attempt=0, turn=turn, begin=begin
        )
        self._past = past
        self._contents = contents
        self._approvals = approvals
        self._awaited = awaited
        self._nested = nested
        self._effect_ended = True
        self._read_again()
        cut = past.ended and self.stop_reason in DECISIONS.cut
        self.joined = past.joined is not None or (past.responded and not cut and not past.failed)
        self.shown = any(hook.point == "after_response" for hook in past.hooks)
        self.calls.hold()
        for done in self._assembly.finished:
            if (call := done.call) is not None and self._is_ours(call):
                self.calls.restore(self._past_call(self._call_of(done)))
        if not self.joined and (cut or past.failed or not past.ended):
            self.calls.seal()

    def listen(self, heard: Callable[[Event], None]) -> None:
        """Who is told the event that ends the call."""
        self._heard = heard

    async def step(self) -> Event | None:
        """How the call ended."""
        return self._announced(self._concluded())

    def keep_stopped(self) -> None:
        """The run was stopped before a move told of this answer: what there is of it stays as if one did."""
        self._concluded()

    def _concluded(self) -> Event:
        if self.failure is None:
            return self._conclude()
        return self._conclude_failure(self.failure, self._trouble or TroubleKind.TRANSIENT)

    def usage(self) -> dict[str, int]:
        """What the call spent; nothing where that was not recorded."""
        end = self._past.end
        return dict.fromkeys(TOTALS, 0) if end is None else dict(end["usage"])

    @cached_property
    def held(self) -> Held | None:
        """What the conversation held, as the API had counted it."""
        held = None if self._past.end is None else self._past.end.get("held")
        return None if held is None else Held(**held)

    def keep_cut(self) -> None:
        """The call was cut when its process died: the prefix up to the last begun call stays."""
        if not self.joined:
            self._seal()

    def _join(self, blocks: Any, unfinished: Any = ()) -> None:
        if not self.joined:
            super()._join(blocks, unfinished)

    # --- reading it again

    def _read_again(self) -> None:
        past, end, assembly = self._past, self._past.end, self._assembly
        assembly.feed(
            {
                "type": "message_start",
                "message": {
                    "id": None if end is None else end["message_id"],
                    "model": past.begin["model"] if past.joined is None else past.joined["model"],
                    "stop_reason": None if end is None else end["stop_reason"],
                    "content": [self._contents.block(skeleton) for skeleton in past.blocks],
                },
            }
        )
        assembly.finished = [_as_called(_read_strictly(done), past.blocks[done.index]) for done in assembly.finished]
        self._moved_on = len(past.blocks)
        for index, skeleton in enumerate(past.blocks):
            self._kept[index] = self._contents.kept(skeleton)
        self._own_ids.update((done.index, done.call.id) for done in assembly.finished if done.call is not None)
        self._unfinished = [self._contents.kept(skeleton) for skeleton in past.unfinished]
        if past.failed and end is not None:
            error = end["error"]
            self.failure = Failure(
                type=error["type"],
                status=error["status"],
                message=UNKNOWN_TEXT,
                retry_after_ms=error["retry_after_ms"],
                request_id=end["request_id"],
                measured=past.measured,
            )
            self._trouble = past.trouble

    # --- the calls

    def _is_ours(self, call: ParsedCall) -> bool:
        """Whether the call is ours to answer, as far as it is certain by now."""
        past = self._past
        if past.joined is not None and call.id not in {block.get("id") for block in past.joined["blocks"]}:
            return False
        # `_conclude` adds what a server tool called.
        return call.direct or (past.responded and self.stop_reason == "tool_use")

    def _past_call(self, call: Call) -> PastCall:
        tool, approval = self._past.tools.get(call.id), self._approvals.get(call.id)
        begun = tool is not None
        edited = tool.begin.get("edited") if tool is not None else approval.input if approval is not None else None
        if edited is not None:
            call = self._edited(call, edited)
        if (said := self._past.results.get(call.id)) is not None:
            outcome = attrs.evolve(self._said(call, said, tool), interrupt=self._interrupts(call))
            return PastCall(call=call, outcome=outcome, begun=begun, edited=edited)
        if tool is not None and tool.end is not None and tool.waiting is None:
            return self._ended(call, tool, tool.end, edited)
        if tool is not None:
            again = call.problem is None and (tool.begin["access"] == "read" or _is_idempotent(call))
            return PastCall(
                call=call,
                outcome=None if again else _interrupted(call, tool),
                begun=True,
                permitted=True,
                awaited=again and tool.waiting is not None and call.id in self._awaited,
                edited=edited,
                earlier=self._earlier(call, tool),
            )
        if self._past.end is not None and not self._past.ended and self.joined:
            return PastCall(call=call, outcome=not_started(call))  # the run was stopped before its turn came
        if approval is not None and not approval.allowed:
            message = "" if approval.message is None else str(self._contents.value(approval.message))
            return PastCall(call=call, outcome=denied(call, Denial(message=message, interrupt=approval.interrupt)))
        awaited = approval is None and call.id in self._awaited
        if approval is None and not awaited and (verdict := self._past.verdicts.get(call.id)) is not None:
            return self._ruled(call, verdict)
        return PastCall(call=call, permitted=approval is not None, awaited=awaited, edited=edited)

    def _interrupts(self, call: Call) -> bool:
        """Whether the call was denied so that the run is to end."""
        asked, approval = self._past.verdicts.get(call.id), self._approvals.get(call.id)
        return (asked is not None and asked.interrupt) or (approval is not None and approval.interrupt)

    def _ruled(self, call: Call, asked: PastHook) -> PastCall:
        """A call that has not begun, and of which the hook has said what it said: it is not asked again."""
        decided = ruled(self._at.plan.rules, call, self._verdict(asked), lambda given: self._with_input(call, given))
        match decided:
            case Denial():
                return PastCall(call=call, outcome=denied(call, decided))
            case Call():
                return PastCall(call=decided, permitted=True, edited=asked.edited)
            case Asked():
                return PastCall(call=call, awaited=True)

    def _verdict(self, asked: PastHook) -> Verdict:
        if asked.outcome == "Ask":
            return Ask()
        allowed = asked.outcome == "Allow"
        return self._decision(
            PastApproval(
                call=str(asked.call),
                allowed=allowed,
                interrupt=asked.interrupt,
                message=asked.reason,
                input=asked.edited,
            )
        )

    def _earlier(self, call: Call, tool: PastTool) -> Earlier:
        """What is known of the run inside a call."""
        waiting = tool.waiting
        blocks: list[dict[str, Any]] = [] if waiting is None else self._contents.value(waiting["pending"])
        return Earlier(
            paid=tool.paid,
            pending=tuple(ToolUseBlock(**block) for block in blocks),
            approvals={id_: self._decision(one) for id_, one in self._nested.get(call.id, {}).items()},
        )

    def _decision(self, past: PastApproval) -> Allow | Deny:
        if past.allowed:
            return Allow(None if past.input is None else self._contents.value(past.input))
        return Deny("" if past.message is None else self._contents.value(past.message), interrupt=past.interrupt)

    def _edited(self, call: Call, commitment: str) -> Call:
        return self._with_input(call, self._contents.value(commitment))

    def _with_input(self, call: Call, given: dict[str, Any]) -> Call:
        return self._at.plan.toolbox.call(
            tool_use_id=call.id, name=call.name, given=given, index=call.index, toolset=call.toolset
        )

    def _ended(self, call: Call, tool: PastTool, end: Any, edited: str | None) -> PastCall:
        """A tool that has ended: its result is in the payload store, unless what it raised was no tool's to raise."""
        if end.get("result") is None:
            return PastCall(call=call, outcome=_interrupted(call, tool), begun=True, edited=edited)
        skeleton = {
            "type": "tool_result",
            "commitment": end["result"],
            "bytes": end["bytes"],
            "tool_use_id": call.id,
            "is_error": end["is_error"],
        }
        outcome = self._said(call, skeleton, tool)
        return PastCall(
            call=call, outcome=outcome, result=self._contents.kept(skeleton), begun=True, permitted=True, edited=edited
        )

    def _said(self, call: Call, skeleton: Skeleton, tool: PastTool | None) -> Outcome:
        """The outcome that a tool_result block tells of."""
        block = self._contents.block(skeleton)
        is_error = block.get("is_error") is True
        how = None if tool is None or tool.end is None else tool.end["outcome"]
        cause = Cause(how) if how in list(Cause) else Cause.FAILED if is_error else Cause.ANSWERED
        return Outcome(call=call, cause=cause, content=block.get("content", ""), is_error=is_error)


def _is_idempotent(call: Call) -> bool:
    return call.tool is not None and call.tool.idempotent


def _interrupted(call: Call, tool: PastTool) -> Outcome:
    return interrupted(attrs.evolve(call, read_only=tool.begin["access"] == "read"))


def _as_called(done: FinishedBlock, skeleton: Skeleton) -> FinishedBlock:
    """A block whose call has the name that the model wrote, where the history has another one."""
    name = skeleton.get("model_name")
    return done if done.call is None or name is None else attrs.evolve(done, call=attrs.evolve(done.call, name=name))


def _read_strictly(done: FinishedBlock) -> FinishedBlock:
    """A block whose call was unusable holds what the model wrote instead of an input."""
    call = done.call
    if call is None or call.input is None:
        return done
    match call.input:
        case {"INVALID_JSON": str(raw)} if len(call.input) == 1:
            error = parse_input(raw, None).error
            if error is None:
                return done
            return attrs.evolve(done, call=attrs.evolve(call, input=None, raw=raw, error=error))
        case _:
            return done
