"""The calls of sub-agents that a run was in the middle of when its last process left it."""

from typing import NamedTuple

from looplatch.agents.agent import Agent
from looplatch.plan import Plan
from looplatch.recovery.resume.past import PastTool
from looplatch.recovery.resume.snapshot import Snapshot


class OpenCall(NamedTuple):
    """Such a call: the tool's name, the plan that runs inside it, and what is on record of the call."""

    name: str
    plan: Plan
    tool: PastTool


def open_calls(plan: Plan, snapshot: Snapshot) -> dict[str, OpenCall]:
    """The calls without a result, by their ids, that a sub-agent of `plan` is to answer."""
    found: dict[str, OpenCall] = {}
    for call, tool in () if snapshot.answer is None else snapshot.answer.tools.items():
        name = str(tool.begin["name"])
        given = plan.toolbox.get(name)
        if tool.is_open and given is not None and isinstance(given.call, Agent):
            found[call] = OpenCall(name, given.call.plan, tool)
    return found
