"""The opening of a run: what it starts from, and its first records."""

import importlib.metadata
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol, cast

import attrs

from looplatch.audit import AuditLog, MemoryLog, mirror_to
from looplatch.audit.linefile import make_folder
from looplatch.audit.places import Place, place_for, place_of
from looplatch.audit.signing import Signer
from looplatch.driver import Driver
from looplatch.encoding import EncodeError, decode, encode
from looplatch.journal import Journal
from looplatch.messages import SystemMessage
from looplatch.outbox import Outbox
from looplatch.plan import Plan, refuse_secret
from looplatch.recovery.closing import with_turns_closed
from looplatch.recovery.validity import history_problems
from looplatch.requests.history import History
from looplatch.states.brief import brief
from looplatch.states.errors import UsageError
from looplatch.states.events import RunStarted
from looplatch.states.secrets import Secrets
from looplatch.states.table import TABLE
from looplatch.workplace import Pauses, Workplace


@attrs.frozen(kw_only=True)
class Opening:
    """What one run starts from. `messages` are plain API dicts, checked. `parent`: the record that the run hangs on."""

    run_id: str
    messages: Sequence[dict[str, Any]] = attrs.field(repr=False)
    partial: bool = False
    pauses: Pauses = attrs.field(factory=Pauses)
    log: Path | AuditLog | None = None
    deadline_s: float | None = None
    parent: Mapping[str, Any] | None = None

    def copied(self) -> list[dict[str, Any]]:
        """The messages, made anew."""
        return cast("list[dict[str, Any]]", decode(encode(self.messages)))

    def open(self, plan: Plan) -> Driver:
        """See `open_run`."""
        return open_run(plan, self)


class Beginning(Protocol):
    """What a run begins with: an opening, or what another process left of the run."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    @property
    def deadline_s(self) -> float | None:
        """Seconds from now after which the run ends, or None."""
        ...

    def copied(self) -> list[dict[str, Any]]:
        """The messages at its beginning, made anew."""
        ...

    def open(self, plan: Plan) -> Driver:
        """Open the log and make the first move. Sends nothing; raises UsageError or AuditError."""
        ...


def new_run_id(entropy: Callable[[int], bytes]) -> str:
    """A new run id: a random UUID."""
    return str(uuid.UUID(bytes=entropy(16), version=4))


def checked_messages(prompt: str | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A prompt, or a whole history, as messages of plain API dicts.

    Calls that an earlier run left to the server, and after which the user says more, get a result that tells so.
    Raises UsageError for what the API would refuse.
    """
    if isinstance(prompt, str):
        if not prompt.strip():
            raise UsageError("prompt", "it is empty", "Say what the model is to do")
        return [{"role": "user", "content": prompt}]
    given: list[Mapping[str, Any]] = _listed(prompt)
    for place, message in enumerate(given):
        if not isinstance(message, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("messages", f"messages.{place} is no message: {brief(message)}", "Give plain dicts")
        if unknown := set(message) - {"role", "content"}:
            names = ", ".join(sorted(map(brief, unknown)))
            raise UsageError(
                "messages", f"messages.{place} has fields the API does not take: {names}", "Leave them out"
            )
    try:
        messages = cast("list[dict[str, Any]]", decode(encode([_plain(message) for message in given])))
    except EncodeError as error:
        raise UsageError("messages", f"they cannot be written as JSON: {error}", "Give plain dicts") from error
    except RecursionError as error:
        problem = "they are nested too deeply, or a part contains itself"
        raise UsageError("messages", problem, "Give plain dicts") from error
    messages = with_turns_closed(messages)
    if problems := list(history_problems(messages)):
        raise UsageError("messages", "; ".join(problems), "Mend the history: the API would refuse it")
    return messages


def _listed(prompt: object) -> list[Any]:
    if isinstance(prompt, Iterable) and not isinstance(prompt, Mapping | bytes):
        return list(prompt)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise UsageError("prompt", f"{brief(prompt)} is neither a text nor a list of messages", "Give one of them")


def _plain(value: object) -> object:
    """Content blocks of the SDK, and what else is like a dict, as dicts; all else as it is."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else value


def open_run(plan: Plan, opening: Opening) -> Driver:
    """Open the log, write the first records, make the first move. Sends nothing; raises UsageError or AuditError."""
    plan.connect()
    log = _open_log(plan, opening)
    try:
        at = Workplace(
            plan=plan,
            journal=Journal(log, plan.secrets),
            history=History(),
            outbox=Outbox(),
            partial=opening.partial,
            pauses=opening.pauses,
        )
        at.journal.genesis(_genesis(plan, opening, at.journal))
        at.outbox.push(announced(plan, log))
        for message in _with_own_names(at, opening.messages):
            _join(at, message)
        driver = Driver(at)
        driver.send(RunStarted())
    except BaseException:
        log.close()
        raise
    return driver


def _with_own_names(at: Workplace, messages: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """The messages, in which no id or name of a call holds a secret: records have them, and they pair up."""
    calls = [block for block in _blocks(messages) if block.get("type") == "tool_use"]
    ids = dict.fromkeys(str(call["id"]) for call in calls)
    id_of = at.journal.names.id_of
    own_ids: dict[str, str] = {}
    for id_ in ids:
        if id_of(id_) != id_:
            own_ids[id_] = at.own_id(id_, {*ids, *own_ids.values()})
    own_names = {name: at.own_name(name) for name in {str(call["name"]) for call in calls} if id_of(name) != name}
    if not own_ids and not own_names:
        return messages
    for block in _blocks(copied := cast("list[dict[str, Any]]", decode(encode(messages)))):
        match block:
            case {"type": "tool_use", "id": str(id_), "name": str(name)}:
                block |= {"id": own_ids.get(id_, id_), "name": own_names.get(name, name)}
            case {"type": "tool_result", "tool_use_id": str(id_)}:
                block["tool_use_id"] = own_ids.get(id_, id_)
            case _:
                pass
    return copied


def _blocks(messages: Sequence[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    return (block for message in messages for block in message["content"] if not isinstance(block, str))


def _join(at: Workplace, message: dict[str, Any]) -> None:
    role, content = message["role"], message["content"]
    if isinstance(content, str):
        at.join(role, [at.journal.keep_text(content)], form="text")
    else:
        at.join(role, [at.journal.keep(block) for block in content])
        at.history.tool_use_ids.update(str(block["id"]) for block in content if block.get("type") == "tool_use")


def _open_log(plan: Plan, opening: Opening) -> AuditLog:
    path = opening.log
    if path is not None and not isinstance(path, Path):
        if path.head[0]:
            raise UsageError("log", f"it holds the run {path.run} already", "Give a new log, or resume that run")
        if plan.secrets is not None:  # of the caller's own patterns some may look for what is like any run's id
            refuse_secret(Secrets(known=plan.secrets.known), "log", path.run, "Give the run another id")
        return path
    if path is None and plan.log_dir is not None:
        return _log_in(plan.log_dir, plan, opening)
    if path is None:
        return MemoryLog(
            opening.run_id,
            durability=plan.durability,
            payloads=plan.payloads,
            clock=plan.clock,
            entropy=plan.entropy,
            mirror=plan.mirror or mirror_to(),
            signer=plan.signer,
        )
    return _log_at(place_of(path), plan, opening)


def _log_in(folder: Path, plan: Plan, opening: Opening) -> AuditLog:
    """A log in the folder, which is made if it is not there: for its owner alone, as the log is."""
    mend = "Give a folder that is writable, or that can be made"
    try:
        make_folder(folder, plan.disk, durable=plan.durability != "none")
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError("log_dir", f"{folder} cannot be made ({why})", mend) from error
    try:
        return _log_at(place_for(opening.run_id, folder), plan, opening)
    except UsageError as error:
        if error.what != "log":
            raise
        raise UsageError("log_dir", error.problem, mend) from error


def _log_at(place: Place, plan: Plan, opening: Opening) -> AuditLog:
    return place.create(
        opening.run_id,
        durability=plan.durability,
        payloads=plan.payloads,
        clock=plan.clock,
        entropy=plan.entropy,
        mirror=plan.mirror or mirror_to(),
        signer=plan.signer,
        disk=plan.disk,
        max_bytes=plan.segment_bytes,
    )


_version = cache(importlib.metadata.version)  # it reads files, which takes longer than all else that opens a run


def _genesis(plan: Plan, opening: Opening, journal: Journal) -> dict[str, Any]:
    deadline, log = opening.deadline_s, journal.log
    return {
        **versions(journal),
        **settings_of(plan),
        "reads": reads_of(plan),
        "deadline_ms": None if deadline is None else int(deadline * 1000),
        "durability": log.durability,
        "payloads": "keep" if log.keeps_payloads else "digest",
        "secrets": None if plan.secrets is None else plan.secrets.fields(),
        "parent": None if opening.parent is None else dict(opening.parent),
        **({} if log.signer is None else {"signed_by": log.signer.key_id}),
    }


def versions(journal: Journal) -> dict[str, str]:
    """What writes a log, for its genesis and where another process goes on with it."""
    return {
        "library": journal.names.of(f"looplatch {_version('looplatch')}"),
        "sdk": journal.names.of(f"anthropic {_version('anthropic')}"),
    }


def reads_of(plan: Plan) -> list[str]:
    """The tools of which a call may be one that only reads, as the log names them."""
    return list(plan.toolbox.reads())


def settings_of(plan: Plan) -> dict[str, Any]:
    """What a run must be resumed with, as its genesis has it."""
    return {
        "model": plan.parts.model,
        **plan.parts.digests(),
        "limits": plan.limits.fields(),
        "table": TABLE.fingerprint,
    }


def compared(plan: Plan, signer: Signer | None) -> dict[str, Any]:
    """All that a run is to be resumed with, as its log has it."""
    return {**settings_of(plan), "signed_by": None if signer is None else signer.key_id}


def announced(plan: Plan, log: AuditLog, **more: object) -> SystemMessage:
    """The first message of a run, or of its resumption, for the consumer."""
    return SystemMessage(
        subtype="init",
        data={
            "run_id": log.run,
            "model": plan.parts.model,
            "tools": [str(tool.get("name")) for tool in plan.parts.tools],
            "max_turns": plan.limits.max_turns,
            "log": None if log.file is None else str(log.file),
            **more,
        },
    )
