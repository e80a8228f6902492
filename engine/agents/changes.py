"""What has changed in the sub-agents of a run, before any of them goes on."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from looplatch.agents.opened import open_calls
from looplatch.agents.past import Past, past_at
from looplatch.audit import AuditError, AuditLog
from looplatch.opening import compared
from looplatch.plan import Plan
from looplatch.recovery.resume.settings import SettingChange
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.states.errors import UsageError
from looplatch.states.limits import Limits


def changes_inside(
    plan: Plan, snapshot: Snapshot, file: Path | None, children: Mapping[str, AuditLog]
) -> Iterator[SettingChange]:
    """In what the sub-agents in the middle of a call are not what they were when they began, however deep they are.

    file: the log of the run that `snapshot` is of. children: those of its sub-agents, where it is in memory. A log that
    cannot be read changes nothing: the call that needs it will say so.
    """
    for call, (name, own, _) in open_calls(plan, snapshot).items():
        past = _readable(snapshot.run, file, children, call)
        if past is None or past.log is None or past.snapshot is None:
            continue
        # It had what its parent had left, and its parent's signer.
        agent = attrs.evolve(own, limits=Limits.read(dict(past.limits)), signer=own.signer or plan.signer)
        for found in (
            *past.snapshot.changes(compared(agent, agent.signer)),
            *changes_inside(agent, past.snapshot, past.file, past.log.child_logs),
        ):
            yield attrs.evolve(found, agents=(name, *found.agents))


def _readable(run: str, file: Path | None, children: Mapping[str, AuditLog], call: str) -> Past | None:
    try:
        return past_at(run, file, children, call)
    except (AuditError, UsageError):
        return None
