"""The resumption of a run: from its log to a driver in the middle of things."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from looplatch.agents.changes import changes_inside
from looplatch.agents.heads import check_heads
from looplatch.audit import AuditLog, Log, MemoryLog, PayloadSource, mirror_to
from looplatch.audit.places import place_of, prefix_at
from looplatch.audit.prefix import Prefix, prefix_of
from looplatch.audit.protocol import check_is_log
from looplatch.blocks import ToolUseBlock
from looplatch.driver import Driver
from looplatch.encoding import encode
from looplatch.hooks import Allow, Deny
from looplatch.journal import Journal
from looplatch.opening import compared, reads_of, versions
from looplatch.permission.approvals import Approval, Approvals, new_approvals
from looplatch.plan import Plan
from looplatch.proving.tables import known_table
from looplatch.recovery.resume.errors import CannotResume, LoopChanged, ToolMissing
from looplatch.recovery.resume.fold import snapshot_of
from looplatch.recovery.resume.lost import Lost
from looplatch.recovery.resume.past import PastApproval
from looplatch.recovery.resume.settings import SettingChange
from looplatch.recovery.resume.snapshot import Snapshot
from looplatch.recovery.waiting import waiting
from looplatch.resuming.contents import Contents
from looplatch.resuming.restoring import Restoring, at_hand, unanswered
from looplatch.states.verify.log import verify_lines
from looplatch.workplace import Pauses


@attrs.frozen(kw_only=True)
class Resumption:
    """What a run goes on from, read from its log and checked; nothing is written until it is opened.

    approvals: the decisions that are new. changes: in what the loop is another one, accepted; what has changed in
    sub-agents, their own logs say. given_deadline_s: the time that the caller gives, None: what is left of the run's
    own. children: the logs of sub-agents, of a run in memory.
    """

    kept: Prefix = attrs.field(repr=False)
    payloads: PayloadSource = attrs.field(repr=False)
    snapshot: Snapshot = attrs.field(repr=False)
    changes: tuple[SettingChange, ...] = ()
    approvals: Approvals = attrs.field(factory=lambda: Approvals())
    children: Mapping[str, AuditLog] = attrs.field(factory=dict[str, AuditLog])
    partial: bool = False
    pauses: Pauses = attrs.field(factory=Pauses)
    reopened: AuditLog | None = attrs.field(default=None, repr=False)
    lost: Lost = attrs.field(factory=Lost, repr=False)
    accept_changes: bool = False
    given_deadline_s: float | None = None

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.kept.run

    @property
    def deadline_s(self) -> float | None:
        """Seconds from now after which the run ends: it rested while no process had it."""
        left = self.snapshot.left_ms
        return self.given_deadline_s if self.given_deadline_s is not None or left is None else left / 1000

    def copied(self) -> list[dict[str, Any]]:
        """The history as the log has it."""
        return Contents(self.payloads, self.lost, accepted=True).history(self.snapshot.entries).messages()

    def pending(self) -> tuple[ToolUseBlock, ...]:
        """The calls that wait for someone's word, in this run and in those inside its calls."""
        snapshot, contents = self.snapshot, Contents(self.payloads, self.lost, accepted=True)
        blocks: dict[str, dict[str, Any]] = {}
        answer = snapshot.answer
        for skeleton in () if answer is None else answer.blocks:
            if skeleton.get("id") in snapshot.awaited:
                blocks[str(skeleton["id"])] = contents.block(skeleton)
        inside: dict[str, dict[str, dict[str, Any]]] = {}
        for call, tool in () if answer is None else answer.tools.items():
            if tool.waiting is not None:
                inside[call] = {block["id"]: block for block in contents.value(tool.waiting["pending"])}
        return tuple(
            _call_of(id_, blocks[one.call] if one.under is None else inside[one.under][one.call])
            for id_, one in waiting(snapshot.awaited, snapshot.nested_awaited).items()
        )

    def open(self, plan: Plan) -> Driver:
        """Claim the log and take the run up where it stands.

        Sends nothing. Raises CannotResume where contents are not kept any more, LogInUse where another process has the
        run, and AuditError; nothing is written then, but for a disk that fails in the middle of it.
        """
        plan.connect()
        log = self._reopened(plan)
        try:
            contents = Contents(self.payloads, self.lost, accepted=self.accept_changes)
            restoring = Restoring(plan, log, self.snapshot, contents, self.partial, self.pauses, self.accept_changes)
            given: dict[str, PastApproval] = {}
            nested: dict[str, dict[str, PastApproval]] = {}
            journal = Journal(log, plan.secrets)
            log.resume(lambda: journal.with_redacted(self._claim(plan, journal, contents, given, nested)))
            return restoring.driver(given, nested)
        except BaseException:
            log.close()
            raise

    def _reopened(self, plan: Plan) -> AuditLog:
        if self.reopened is not None:
            return self.reopened
        mirror = plan.mirror or mirror_to()
        if self.kept.file is None:
            return MemoryLog.reopen(
                self.kept,
                self.payloads,
                durability=plan.durability,
                clock=plan.clock,
                entropy=plan.entropy,
                mirror=mirror,
                signer=plan.signer,
                children=self.children,
            )
        return place_of(self.kept.file).reopen(
            self.kept,
            durability=plan.durability,
            clock=plan.clock,
            entropy=plan.entropy,
            mirror=mirror,
            signer=plan.signer,
            disk=plan.disk,
            max_bytes=plan.segment_bytes,
        )

    def _claim(
        self,
        plan: Plan,
        journal: Journal,
        contents: Contents,
        given: dict[str, PastApproval],
        nested: dict[str, dict[str, PastApproval]],
    ) -> dict[str, Any]:
        """The fields of the `resumed` record; puts the new decisions into `given` and `nested`."""
        deadline = self.deadline_s
        given.update((call, _past(journal, contents, call, one)) for call, one in self.approvals.own.items())
        for under, decided in self.approvals.nested.items():
            nested[under] = {call: _past(journal, contents, call, one) for call, one in decided.items()}
            if under not in self.snapshot.approvals:
                given[under] = PastApproval(call=under, allowed=True)  # the run inside it goes on
        inside = [{"under": under, **one.fields()} for under, known in nested.items() for one in known.values()]
        return {
            **versions(journal),
            "reads": reads_of(plan),
            "durability": journal.log.durability,
            "deadline_ms": None if deadline is None else int(deadline * 1000),
            "changes": {change.name: {"was": change.was, "now": change.now} for change in self.changes},
            "approvals": [approval.fields() for approval in given.values()],
            "secrets": None if plan.secrets is None else plan.secrets.fields(),
            "changed_contents": sorted(contents.changed),
            **({"nested": inside} if inside else {}),
        }


def _call_of(id_: str, block: Mapping[str, Any]) -> ToolUseBlock:
    return ToolUseBlock(id=id_, name=block["name"], input=block["input"])


def read_resumption(
    plan: Plan,
    log: str | os.PathLike[str] | Log | AuditLog,
    *,
    approvals: Mapping[str, Approval],
    accept_changes: bool,
    partial: bool = False,
    pauses: Pauses,
    deadline_s: float | None = None,
) -> Resumption:
    """Read a log and see whether the run can go on with a loop of this plan; writes nothing.

    Raises CannotResume where it cannot: it has ended or never began, kept no contents, or its log is not valid;
    LoopChanged where the loop, or a sub-agent in the middle of a call, is another one and that is not accepted;
    ToolMissing where it is accepted, and a call without a result, which is not denied, is of a tool that is gone;
    LogDamaged where good records follow a damage, and where the log of a sub-agent does not reach as far as this one
    says; UsageError for a log that cannot be read, and for decisions on calls
    that are not awaited.
    """
    kept, payloads = _read(log)
    snapshot = snapshot_of(kept.records)
    reopened = None if isinstance(log, str | os.PathLike | Log) else log
    signer = plan.signer if reopened is None else reopened.signer
    changes = snapshot.changes(compared(plan, signer))
    children: Mapping[str, AuditLog] = {}
    file = kept.file
    if not isinstance(log, str | os.PathLike):
        children, file = log.child_logs if isinstance(log, Log) else log.children, log.file
    check_heads(plan, snapshot, file, children)
    if not accept_changes and (found := (*changes, *changes_inside(plan, snapshot, file, children))):
        raise LoopChanged(found)
    if known_table(snapshot.settings["table"]) is not None:  # by a table that is not known, nobody here can judge
        report = verify_lines(kept.lines, past=known_table)
        if not report.ok:
            raise CannotResume(f"the log is not valid: {report.violations[0]}", "See what `looplatch verify` says")
    given = new_approvals(approvals, snapshot)
    if any(change.name == "tools" for change in changes):
        _check_tools(plan, snapshot, Contents(payloads, Lost.of(kept.records), accepted=True), given)
    return Resumption(
        kept=kept,
        payloads=payloads,
        snapshot=snapshot,
        changes=changes,
        approvals=given,
        children=children,
        partial=partial,
        pauses=pauses,
        given_deadline_s=deadline_s,
        reopened=reopened,
        lost=Lost.of(kept.records),
        accept_changes=accept_changes,
    )


def _check_tools(plan: Plan, snapshot: Snapshot, contents: Contents, given: Approvals) -> None:
    past = at_hand(snapshot)
    denied = {call for call, one in given.own.items() if isinstance(one, Deny)}
    denied |= {call for call, one in snapshot.approvals.items() if not one.allowed}
    denied |= {call for call, one in ({} if past is None else past.verdicts).items() if one.outcome == "Deny"}
    needed = [] if past is None else [one for one in unanswered(past) if one["id"] not in denied]
    blocks = [contents.block(one) for one in needed]
    if missing := dict.fromkeys(str(block["name"]) for block in blocks if not plan.toolbox.knows(block)):
        raise ToolMissing(tuple(missing))


def _read(log: str | os.PathLike[str] | Log | AuditLog) -> tuple[Prefix, PayloadSource]:
    if isinstance(log, Log):
        if log.file is None:
            return prefix_of(log.lines, log.torn), log.payloads
        log = log.file
    elif not isinstance(log, str | os.PathLike):
        check_is_log(log)
        return prefix_of(tuple(log.lines())), log.payloads
    place = place_of(Path(log).absolute())
    return prefix_at(place), place.payloads


def _past(journal: Journal, contents: Contents, call: str, approval: Approval) -> PastApproval:
    """A decision as the log holds it; its texts go to the payload store."""

    def keep(value: object) -> str:
        kept = journal.keep_value(value).hex
        contents.know(kept, encode(value))
        return kept

    match approval:
        case Allow(updated_input=None):
            return PastApproval(call=call, allowed=True)
        case Allow(updated_input=updated):
            return PastApproval(call=call, allowed=True, input=keep(dict(updated or {})))
        case Deny(message=message, interrupt=interrupt):
            return PastApproval(call=call, allowed=False, interrupt=interrupt, message=keep(message))
