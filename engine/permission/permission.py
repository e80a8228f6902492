"""Permission: whether a call may run, by the rules and the caller's hook; the stricter of the two holds."""

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import attrs

from looplatch.encoding import decode, encode
from looplatch.hooks import Allow, Ask, Deny, ToolCallContext
from looplatch.hooks.calling import begun
from looplatch.hooks.points import hook_name
from looplatch.permission.rules import Rule, decided
from looplatch.states.errors import HookMisbehaved
from looplatch.states.record import Record
from looplatch.tools import Call
from looplatch.tools.calls import Asked, Denial
from looplatch.workplace import Workplace

Verdict = Allow | Deny | Ask
BY_RULE = "a rule forbids it"


@attrs.define
class Permission:
    """Permission for the calls of one answer.

    `checked` looks another input up, as the call's own was; it is told the commitment to it.
    """

    at: Workplace
    turn: int
    checked: Callable[[Call, dict[str, Any], str], Call]
    _asking: dict[str, Record] = attrs.field(init=False, factory=dict[str, Record])  # begins of hooks, by call

    async def permit(self, call: Call) -> Call | Denial | Asked:
        """Whether `call` may run. Raises what the hook raises."""
        rules = self.at.plan.rules
        if decided(rules, call.name, call.input) == "deny":
            return Denial(message=BY_RULE)
        verdict, edited = await self._ask_hook(call)
        return ruled(rules, call, verdict, lambda given: self.checked(call, given, edited))

    def give_up(self) -> None:
        """Record the end of hooks that were abandoned: they did not end when they were asked to."""
        while self._asking:
            _, begin = self._asking.popitem()
            self.at.journal.ends(begin, "abandoned")

    async def _ask_hook(self, call: Call) -> tuple[Verdict, str]:
        """What the hook says, and the commitment to the input that it put in the place of the model's, if it did."""
        hook = self.at.plan.hooks.before_tool
        if hook is None:
            return Allow(), ""
        self._asking[call.id] = self.at.journal.hook_begins("before_tool", hook_name(hook), call.id)
        about = ToolCallContext(
            run_id=self.at.journal.log.run,
            turn=self.turn,
            tool_use_id=call.id,
            name=call.name,
            input=copy.deepcopy(call.input),
            read_only=call.read_only,
        )
        try:
            verdict: object = await begun(hook, about)
            if not isinstance(verdict, Verdict):
                raise HookMisbehaved(hook_name(hook), verdict, "Allow, Deny or Ask")
        except BaseException as error:
            self._ended(call, type(error).__name__, {})
            raise
        if call.id not in self._asking:
            raise asyncio.CancelledError  # it was abandoned: nobody waits for the verdict, and nothing of it is kept
        recorded = self._recorded(verdict)
        self._ended(call, type(verdict).__name__, recorded)
        return verdict, recorded.get("edited", "")

    def _recorded(self, verdict: Verdict) -> dict[str, Any]:
        """What the end of the hook says of its verdict, so that a process that takes the run up need not ask again."""
        keep = self.at.journal.keep_value
        match verdict:
            case Deny(message=message, interrupt=interrupt):
                reason = keep(message)
                return {"reason": reason.hex, "bytes": reason.size, "interrupt": interrupt}
            case Allow(updated_input=updated) if updated is not None:
                return {"edited": keep(own_input(updated)).hex}
            case _:
                return {}

    def _ended(self, call: Call, outcome: str, recorded: dict[str, Any]) -> None:
        begin = self._asking.pop(call.id, None)
        if begin is None:
            raise asyncio.CancelledError  # it was abandoned
        self.at.journal.ends(begin, outcome, recorded)


def ruled(
    rules: Sequence[Rule], call: Call, verdict: Verdict, checked: Callable[[dict[str, Any]], Call]
) -> Call | Denial | Asked:
    """What comes of the hook's `verdict` on a call; the rules may be stricter. `checked` looks another input up."""
    rule = decided(rules, call.name, call.input)
    match verdict:
        case Deny(message=message, interrupt=interrupt):
            return Denial(message=message, interrupt=interrupt)
        case Ask():
            return Asked()
        case Allow() if rule == "deny":
            return Denial(message=BY_RULE)
        case Allow(updated_input=None):
            return Asked() if rule == "ask" else call
        case Allow(updated_input=updated):
            given = own_input(updated)
            edited = decided(rules, call.name, given)
            if edited == "deny":
                return Denial(message=BY_RULE)
            return Asked() if "ask" in (rule, edited) else checked(given)


def own_input(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Another input for a call, as a copy of plain JSON. Raises EncodeError for what JSON cannot say."""
    return cast("dict[str, Any]", decode(encode(dict(given or {}))))
