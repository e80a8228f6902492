"""The run of a sub-agent: begun, or taken up from its log; watched to its end; ended with the call that it answers."""

import uuid
from pathlib import Path
from typing import Any, Final

import attrs

from looplatch.agents.parentage import Child, Parentage
from looplatch.agents.past import Past, ended, past_of, tool_result
from looplatch.audit import AuditError, Log
from looplatch.messages import (
    AssistantMessage,
    Message,
    StreamEvent,
    SystemMessage,
    ToolMessage,
    ToolPhase,
    UserMessage,
)
from looplatch.opening import Opening, checked_messages, new_run_id
from looplatch.plan import Plan, refuse_secrets
from looplatch.resuming.reading import read_resumption
from looplatch.run import Run
from looplatch.states.errors import LooplatchError, UsageError
from looplatch.states.limits import Limits
from looplatch.tools import ToolResult
from looplatch.workplace import Pauses

_FORWARDED: Final = (SystemMessage, AssistantMessage, UserMessage, StreamEvent, ToolMessage)


class SubAgentFailed(LooplatchError):
    """The run of a sub-agent could not begin, or go on. `kind` is the name of the error, which is its cause."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"the sub-agent could not do its work: {kind}")
        self.kind = kind


async def answered(plan: Plan, prompt: str) -> ToolResult:
    """Run `prompt` by itself, as a tool does that is called outside any run."""
    run = Run(plan, Opening(run_id=new_run_id(plan.entropy), messages=checked_messages(prompt)))
    async with run:
        async for _ in run:
            pass
    return _result(run)


async def answered_within(plan: Plan, prompt: str, parent: Parentage) -> ToolResult:
    """Answer a call by a run of its own, which is begun, or goes on from where an earlier process left it.

    Its tools have ended when this returns or raises, and `parent.child` says how far it has come. A run that has ended
    already is not made again. One that waits for someone's word is left suspended: its calls are pending then.

    Raises SubAgentFailed where the run cannot begin or go on, or its log cannot be written; why, the parent's consumer
    is told, and the model is not: that speaks of files.
    """
    try:
        return await _answered_within(plan, prompt, parent)
    except (AuditError, UsageError, OSError) as error:
        message = ToolMessage(
            phase=ToolPhase.PROGRESS,
            tool_use_id=parent.call.id,
            name=parent.call.name,
            progress=(f"the sub-agent failed: {error}",),
        )
        parent.at.outbox.push(message)
        raise SubAgentFailed(type(error).__name__) from error


async def _answered_within(plan: Plan, prompt: str, parent: Parentage) -> ToolResult:
    past = past_of(parent)
    if past.log is not None and past.log.terminal is not None:
        parent.child, result = ended(past.log)
        return result
    if parent.at.budget.is_spent:
        return ToolResult("the sub-agent was not started: the budget of the run is spent", is_error=True)
    if parent.at.budget.left.wall_s == 0:
        return ToolResult("the sub-agent was not started: the time of the run is over", is_error=True)
    run = _begun(plan, prompt, parent, past.file) if past.log is None else _resumed(plan, parent, past, past.log)
    await _watched(run, parent)
    return _result(run)


def _begun(plan: Plan, prompt: str, parent: Parentage, file: Path | None) -> Run:
    """A new run, with what is left of the parent's limits where its own are wider."""
    left, limits = parent.at.budget.left, plan.limits
    cost = None if left.cost_micro_usd is None else left.cost_micro_usd / 1_000_000
    carved = attrs.evolve(
        limits,
        max_total_tokens=_least(limits.max_total_tokens, left.tokens),
        max_cost_usd=_least(limits.max_cost_usd, cost),
    )
    begin = parent.begin
    return Run(
        _within(plan, parent, carved),
        Opening(
            run_id=str(uuid.uuid5(uuid.NAMESPACE_OID, f"{begin.run}:{begin.seq}:{begin.hash}")),
            messages=checked_messages(prompt),
            partial=parent.at.partial,
            log=file,
            deadline_s=_least(limits.max_wall_s, left.wall_s),
            parent={"run": begin.run, "seq": begin.seq, "hash": begin.hash},
        ),
    )


def _resumed(plan: Plan, parent: Parentage, past: Past, log: Log) -> Run:
    """The run that an earlier process left, with the limits that it had."""
    within = _within(plan, parent, Limits.read(dict(past.limits)))
    begun = read_resumption(
        within,
        log,
        approvals={call: word for call, word in parent.earlier.approvals.items() if call in past.awaited},
        accept_changes=parent.at.accepts_changes,
        partial=parent.at.partial,
        pauses=Pauses(),
    )
    left = _least(begun.deadline_s, parent.at.budget.left.wall_s)
    return Run(within, attrs.evolve(begun, given_deadline_s=left))


def _within(plan: Plan, parent: Parentage, limits: Limits) -> Plan:
    """The child's plan as a part of its parent's: what it spends is counted, and its log lies beside the parent's.

    What must not stand in the parent's log must not stand in its own: the prompt comes from there, and its calls are
    named there.
    """
    secrets, wanted = plan.secrets, parent.at.plan.secrets
    secrets = secrets or wanted if secrets is None or wanted is None else secrets.with_those_of(wanted)
    pricer = plan.pricer or (parent.at.plan.pricer if parent.at.plan.limits.max_cost_usd is not None else None)
    signer = plan.signer or parent.at.plan.signer
    within = attrs.evolve(plan, limits=limits, log_dir=None, pricer=pricer, signer=signer, secrets=secrets)
    refuse_secrets(within)
    return within


def _least(*bounds: Any) -> Any:
    return min((bound for bound in bounds if bound is not None), default=None)


async def _watched(run: Run, parent: Parentage) -> None:
    """Pull the run to its end and hand its messages on; ended early, it is closed before this raises."""
    budget, outbox = parent.at.budget, parent.at.outbox
    try:
        async for message in run:
            _follow(run, parent)
            if isinstance(message, _FORWARDED):
                await outbox.offer(_from(parent, message))
    finally:
        try:
            await run.aclose()
        finally:
            for message in run.rest():
                if isinstance(message, _FORWARDED):
                    outbox.push(_from(parent, message))
            _follow(run, parent)
            budget.follow(parent, None)


def _follow(run: Run, parent: Parentage) -> None:
    """Know how far the run has come; where all that its parent may spend is spent, it begins no other turn."""
    log = run.audit_log
    if log is None:
        return
    spent = run.spent
    parent.child = Child.of(log, spent, () if run.result is None else run.result.pending)
    parent.at.journal.log.children[parent.call.id] = log
    budget = parent.at.budget
    budget.follow(parent, {name: spent[name] - paid for name, paid in parent.earlier.paid.items()})
    if budget.is_spent:
        run.withdraw_budget()


def _from(parent: Parentage, message: Any) -> Message:
    """A message of the child's, for the consumer of the parent's; its own children's name their calls already."""
    named: Message = attrs.evolve(message, parent_tool_use_id=message.parent_tool_use_id or parent.call.id)
    return named


def _result(run: Run) -> ToolResult:
    result = run.result
    assert result is not None, "a run that was pulled to its end has a result"
    if result.terminal is None:
        return ToolResult("")  # it is suspended: the call is not answered yet
    return tool_result(result.terminal, result.error, result.result or "")
