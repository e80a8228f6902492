"""Loop: an agent, as its caller sets it up; each run of it is a walk through the table."""

import os
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args

from looplatch.agents.tool import agent_tool
from looplatch.audit import AuditLog, Log, read
from looplatch.audit.mirror import Mirror
from looplatch.audit.protocol import Durability, Entropy, Payloads
from looplatch.audit.segments import SMALLEST
from looplatch.audit.signing import Signer, signer_of
from looplatch.clock import SystemClock
from looplatch.hooks import Allow, Deny, Hooks
from looplatch.model import SdkClient, default_client
from looplatch.model.sdk import AsyncClient, check_client
from looplatch.opening import Opening, checked_messages, new_run_id
from looplatch.paths import path_of
from looplatch.permission.rules import Rule
from looplatch.plan import Plan, refuse_secrets
from looplatch.playback import Playback
from looplatch.playback.player import play_again
from looplatch.playback.tools import Mode
from looplatch.ports import Clock
from looplatch.pricing import Price, pricer
from looplatch.recovery.compression.settings import Compression
from looplatch.recovery.failure import Failure, is_prompt_too_long
from looplatch.recovery.windows import ModelSize, model_size
from looplatch.requests.request import RequestParts
from looplatch.resuming.reading import read_resumption
from looplatch.run import Run
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.given import check_count, check_function, check_kind, check_methods, check_switch
from looplatch.states.limits import Limits
from looplatch.states.secrets import SECRETS, Secrets
from looplatch.states.state import WORKING, State
from looplatch.tools import Tool, Toolbox
from looplatch.tools.offered import offered
from looplatch.workplace import Pauses

_CLOCK: Final = ("now_ns", "monotonic_ns", "sleep", "call_later")  # its methods


class Loop:
    """An agent loop over the Messages API. A loop holds nothing of its runs: any number may go on at once.

    The request:
    model: the model's name.
    tools: `Tool`s, `Toolset`s, the SDK's function tools and toolsets as they are, and plain dicts for tools that the
        server runs.
    read_only: the names of tools that only read and do not say so themselves; all others are writes.
    client: an async client of the SDK; None: one is made from the environment when the first run begins.
    system: the system prompt, a text or content blocks.
    max_tokens: of one answer. An answer that is cut by it is asked for once more, with up to 64,000.
    params: further fields of each request, passed on as they are, and the SDK's `betas`, `extra_headers`,
        `extra_query`, `extra_body` and `timeout` (seconds).
    window: tokens of prompt and output that the model takes; None: by its name, unbounded for unknown names.

    The run:
    limits: what a run may spend. hooks: the caller's code at named points.
    rules: which calls may run. The first that matches decides; calls that none matches may run.
    compression: when and how the history is made shorter, and whether prompts are cached.
    fallback_model: the model that retries go to after repeated overload.
    price: of the model's tokens; None: from the price list of `looplatch[prices]`, where that is installed.
    is_overflow: whether a failed call failed because its prompt was too long.
    clock, entropy, jitter: the sources of time, of salts and run ids, and of the spread of retries.

    The audit log (where it cannot be written, the run ends with LogFailed before anything else is done):
    log_dir: where runs without a log of their own write `{run}.jsonl`; made, with mode 0700, if it is not there; None:
        they are kept in memory.
    payloads: "keep": contents are kept beside the log. "digest": only digests of them, in the log; it verifies, but
        its run cannot be resumed, and `read().messages` has no contents.
    durability: when records are on the disk itself, not only with the operating system. "none": never on purpose, so a
        power cut may take them; "group": within 50 ms, and before each write tool; "barrier": also before each turn's
        results count.
    secrets: what is taken out of contents before they are kept, by default API keys, tokens, headers and private keys;
        None: nothing. The model is sent the whole; a resumed run has only what was kept.
    segment_bytes: after how many bytes, at least 1,024, a log goes on in another file (`run.jsonl.2` and so on); None:
        it is one file.
    mirror: gets a copy of each record after it is written, as `looplatch.export.live.Spans()` does; None: structlog
        gets it, where the application has configured that.
    signer: signs the seals and checkpoints of logs with Ed25519, for `verify(log, key=...)`: the PEM file of a private
        key (`looplatch[signing]`), or a `looplatch.audit.Signer` of your own; None: nothing is signed.

    Raises UsageError, naming the argument, for what cannot work.
    """

    def __init__(
        self,
        *,
        model: str,
        tools: Iterable[object] = (),
        read_only: Collection[str] = (),
        client: AsyncClient | None = None,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        max_tokens: int = 8_000,
        params: Mapping[str, Any] | None = None,
        limits: Limits | None = None,
        hooks: Hooks | None = None,
        rules: Iterable[Rule] = (),
        compression: Compression | None = None,
        fallback_model: str | None = None,
        price: Price | None = None,
        log_dir: str | os.PathLike[str] | None = None,
        payloads: Payloads = "keep",
        durability: Durability = "group",
        secrets: Secrets | None = SECRETS,
        segment_bytes: int | None = None,
        window: int | None = None,
        is_overflow: Callable[[Failure], bool] = is_prompt_too_long,
        clock: Clock | None = None,
        entropy: Entropy = os.urandom,
        jitter: Callable[[], float] = random.random,
        mirror: Mirror | None = None,
        signer: str | os.PathLike[str] | Signer | None = None,
    ) -> None:
        if not isinstance(model, str) or not model.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("model", f"{brief(model)} is no model's name", "Give a name, such as 'claude-sonnet-5'")
        check_count("max_tokens", max_tokens)
        if window is not None:
            check_count("window", window, otherwise=", or None")
        if segment_bytes is not None:
            check_count("segment_bytes", segment_bytes, SMALLEST, ", or None")
        if payloads not in get_args(Payloads):
            raise UsageError("payloads", f"{brief(payloads)} is not known", "Use 'keep' or 'digest'")
        if durability not in get_args(Durability):
            raise UsageError("durability", f"{brief(durability)} is not known", "Use 'none', 'group' or 'barrier'")
        check_kind("fallback_model", fallback_model, str | None, "Give the name of a model")
        if fallback_model is not None and (not fallback_model.strip() or fallback_model == model):
            raise UsageError(
                "fallback_model", f"{brief(fallback_model)} is no other model", "Give the name of another one"
            )
        check_kind("secrets", secrets, Secrets | None, "Give looplatch.audit.Secrets(...), or None")
        check_kind("limits", limits, Limits | None, "Give Limits(...)")
        check_kind("hooks", hooks, Hooks | None, "Give Hooks(...)")
        check_kind("compression", compression, Compression | None, "Give Compression(...)")
        check_kind("params", params, Mapping | None, "Give a dict of fields of the request")
        check_kind("price", price, Price | None, "Give Price(...), or None for the price table")
        check_function("is_overflow", is_overflow, "Give a function of a Failure that returns a bool")
        check_function("entropy", entropy, "Give a function of a number that returns so many bytes, as os.urandom does")
        check_function("jitter", jitter, "Give a function that returns a number from 0 to 1, as random.random does")
        if clock is not None:
            check_methods("clock", clock, _CLOCK, "Give a Clock, such as looplatch.testing.FakeClock()")
        if mirror is not None:
            check_methods("mirror", mirror, ("show",), "Give an object with a method show(record), or None")
        offer = offered(tools, read_only)
        compression = compression or Compression()
        limits = limits or Limits()
        size = model_size(model)
        parts = RequestParts(
            model=model, system=system, tools=offer.definitions, params=dict(params or {}), cache=compression.cache
        )
        if parts.manages_context and (compression.server_edits or compression.api_compaction):
            named = "server_edits" if compression.server_edits else "api_compaction"
            problem = f"it cannot be combined with Compression({named}=True)"
            raise UsageError("params['context_management']", problem, "Leave one of them out")
        if client is not None:
            check_client(client)
        self.plan = Plan(
            parts=parts,
            toolbox=Toolbox(offer.own),
            max_tokens=max_tokens,
            size=size if window is None else ModelSize(window=window, output=size.output),
            window=window,
            compression=compression,
            fallback_model=fallback_model,
            pricer=pricer(
                price,
                models=[one for one in (model, fallback_model, compression.summary_model) if one is not None],
                needed=limits.max_cost_usd is not None,
            ),
            limits=limits,
            hooks=hooks or Hooks(),
            rules=_checked_rules(rules),
            connect=cache(lambda: SdkClient(client if client is not None else default_client())),
            is_overflow=is_overflow,
            clock=clock or SystemClock(),
            entropy=entropy,
            jitter=jitter,
            mirror=mirror,
            log_dir=None if log_dir is None else path_of("log_dir", log_dir, "the path of a folder, or None"),
            payloads=payloads,
            durability=durability,
            secrets=secrets,
            segment_bytes=segment_bytes,
            signer=signer_of(signer),
        )
        refuse_secrets(self.plan)

    def _repr_svg_(self) -> str | None:
        from looplatch.diagrams.notebook import machine_svg

        return machine_svg()

    def run(
        self,
        prompt: str | Iterable[Mapping[str, Any]],
        *,
        log: str | os.PathLike[str] | AuditLog | None = None,
        include_partial_messages: bool = False,
        deadline_s: float | None = None,
        pause_before: Iterable[str] = (),
        pause_after: Iterable[str] = (),
    ) -> Run:
        """Make a run. It begins when it is awaited, entered or pulled from.

        prompt: a text, or a list of messages, which may be a whole earlier history (`run.messages` and a new user
        message go on with a conversation). log: the file of the audit log (`.sqlite`, `.sqlite3` and `.db` are
        databases, all else is JSON Lines), or an `AuditLog` of your own: the run has its id, and its settings count.
        include_partial_messages: the raw events of the stream are handed out, too. deadline_s: seconds after which the
        run ends as aborted, if its limits do not end it before. pause_before, pause_after: names of states before or
        after whose work the run is suspended, until `resume`.
        Raises UsageError for an empty prompt, and for messages that the API would refuse.
        """
        check_switch("include_partial_messages", include_partial_messages)
        return Run(
            self.plan,
            Opening(
                run_id=log.run if isinstance(log, AuditLog) else new_run_id(self.plan.entropy),
                messages=checked_messages(prompt),
                partial=include_partial_messages,
                pauses=Pauses(before=_states("pause_before", pause_before), after=_states("pause_after", pause_after)),
                log=_checked_log(log),
                deadline_s=_earliest(_checked_deadline(deadline_s), self.plan.limits.max_wall_s),
            ),
        )

    def resume(
        self,
        log: str | os.PathLike[str] | Log | AuditLog,
        *,
        approvals: Mapping[str, Allow | Deny] | None = None,
        accept_changes: bool = False,
        include_partial_messages: bool = False,
        deadline_s: float | None = None,
        pause_before: Iterable[str] = (),
        pause_after: Iterable[str] = (),
    ) -> Run:
        """Take a run up again where its log leaves it: after a suspension, a pause, or the death of its process.

        What has ended is not done again. Of what was in flight, reads run again, and so do writes whose tool is
        idempotent; of another write the model is told that its effect is unknown.
        log: the file, the `Log` of a run in memory, or an `AuditLog` that was reopened. approvals: decisions on calls
        that are awaited, by tool_use id; the run stays suspended while others are. accept_changes: go on although the
        loop, or a sub-agent that is to go on, is not the one that the run began with, or contents were kept without
        their secrets. deadline_s: seconds from now; None: what was left of the run's own, which rested meanwhile.
        The others are as for `run`.
        Raises UsageError, and writes nothing, for a run that has ended or cannot go on, for a loop that has changed
        (naming the difference), for one that lacks the tool of a call without a result, whatever is accepted, and for
        calls that are not awaited; AuditError for a log that is damaged.
        """
        check_switch("include_partial_messages", include_partial_messages)
        check_switch("accept_changes", accept_changes)
        return Run(
            self.plan,
            read_resumption(
                self.plan,
                log,
                approvals={} if approvals is None else approvals,
                accept_changes=accept_changes,
                partial=include_partial_messages,
                pauses=Pauses(before=_states("pause_before", pause_before), after=_states("pause_after", pause_after)),
                deadline_s=_checked_deadline(deadline_s),
            ),
        )

    async def replay(
        self,
        log: str | os.PathLike[str] | Log,
        *,
        tools: Mode = "recorded",
        accept_changes: bool = False,
    ) -> Playback:
        """Play a recorded run once more through this loop, and name the first thing that is not as recorded.

        The model's answers, the time and the waits are those of the log; nothing is sent, and nobody waits. Hooks,
        rules, limits and compression are this loop's own, and run. Compared are the loop's settings, each message,
        request and move, each verdict of a guard, what hooks said and what tools were given; after a resumption the
        same, from the recorded history on. What came from outside (an abort, a deadline) ends the part that it ended.
        log: the file, or the `Log`. tools: "recorded" answers with the results of the log, "run" runs the tools for
        real, writes too, and compares what they return. accept_changes: model, prompt, tools, parameters or limits may
        be others than the recorded ones; only what comes of that counts.
        `report.ok` and `report.difference` tell; `report.check()` raises an AssertionError. Raises CannotReplay for a
        log without contents, UsageError and LogDamaged for one that cannot be read.
        """
        if tools not in get_args(Mode):
            raise UsageError("tools", f"{brief(tools)} is not known", "Use 'recorded' or 'run'")
        check_switch("accept_changes", accept_changes)
        return await play_again(self.plan, log if isinstance(log, Log) else read(log), tools, accept_changes)

    def as_tool(self, name: str, description: str) -> Tool:
        """This loop as a tool of another one: a sub-agent, which gets a prompt and answers with its last text.

        Each call is a run with a log of its own, whose genesis names the record of the call; it lies beside the log of
        the run that calls, as `run.CALL.jsonl`. It only reads if all its tools do; several calls run in parallel then.
        It spends of what is left to the run that calls, and ends with it. Its messages are handed out by that run, with
        `parent_tool_use_id`. If it waits for approvals, so does the run that calls, and `resume` of that one goes on
        with both. Raises UsageError for what cannot be a tool's name.
        """
        return agent_tool(self.plan, name, description)


def _checked_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    check_kind("rules", rules, Iterable, "Give a list of Rule(...)")
    listed = tuple(rules)
    for place, rule in enumerate(listed):
        check_kind(f"rules[{place}]", rule, Rule, "Give Rule('deny', 'name of a tool'), for example")
    return listed


def _checked_log(log: object) -> Path | AuditLog | None:
    if log is None or isinstance(log, AuditLog):
        return log
    return path_of("log", log, "the path of a file, or an AuditLog")


def _states(name: str, given: Iterable[str]) -> frozenset[State]:
    check_kind(name, given, Iterable, f"Give a list of states out of {', '.join(WORKING)}")
    names = [given] if isinstance(given, str) else list(given)
    if unknown := [state for state in names if state not in WORKING]:
        raise UsageError(name, f"no working states: {', '.join(map(str, unknown))}", f"Use {', '.join(WORKING)}")
    return frozenset(map(State, names))


def _checked_deadline(deadline_s: object) -> float | None:
    if deadline_s is None:
        return None
    if isinstance(deadline_s, bool) or not isinstance(deadline_s, int | float) or not 0 <= deadline_s < 1e9:
        raise UsageError("deadline_s", f"{brief(deadline_s)} is not allowed", "Give seconds from 0 on, or None")
    return deadline_s


def _earliest(*bounds: float | None) -> float | None:
    return min((bound for bound in bounds if bound is not None), default=None)
