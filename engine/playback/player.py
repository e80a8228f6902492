"""The player: plays the parts of a recorded run through a plan, and compares what comes of it."""

from collections.abc import Sequence
from typing import Any, Final, cast

import attrs

from looplatch.analysis.fields import list_in, object_in
from looplatch.analysis.steps import SETTINGS, unlike
from looplatch.audit import Log
from looplatch.audit.history import rebuild
from looplatch.driver import Driver
from looplatch.opening import Opening, settings_of
from looplatch.plan import Plan
from looplatch.playback.clock import RecordedClock
from looplatch.playback.comparing import Comparing
from looplatch.playback.model import PlaybackOver, RecordedModel, is_overflow
from looplatch.playback.recording import Part, approvals_in, check_contents, parts_of
from looplatch.playback.report import CannotReplay, Playback, PlaybackDifference
from looplatch.playback.tools import Mode, PlayedTools
from looplatch.recovery.resume.errors import CannotResume
from looplatch.recovery.strategies.request_retry import backoff_ms
from looplatch.resuming.contents import Contents
from looplatch.resuming.reading import read_resumption
from looplatch.sealing import finish
from looplatch.states import events as on
from looplatch.states.errors import UsageError
from looplatch.states.record import Kind, Record
from looplatch.states.state import INITIAL
from looplatch.states.vocabulary import EffectClass
from looplatch.workplace import Pauses

_SPENDING: Final = (EffectClass.NOTE, EffectClass.TOOL)  # what they spent counts, though no event reports it


async def play_again(plan: Plan, log: Log, tools: Mode, accept_changes: bool) -> Playback:
    """See `Loop.replay`."""
    records = log.records
    if not records or records[0].kind is not Kind.GENESIS:
        raise UsageError("log", "it does not begin with a genesis", "Give the whole log of a run")
    contents = Contents(log.payloads)
    check_contents(records, contents)
    settings = _settings(records)
    found = unlike(settings, {name: settings_of(plan)[name] for name in settings})
    if found is not None and not accept_changes:
        changed = PlaybackDifference(
            seq=0,
            state=str(INITIAL),
            what="the loop",
            path=found.path,
            recorded=found.one,
            came=found.other,
        )
        return Playback(moves=0, difference=changed)
    parts = parts_of(records)
    first = max((place for place, part in enumerate(parts) if part.changed), default=0)
    made, skipped = 0, sum(part.all_moves for part in parts[:first])
    for part in parts[first:]:
        player = _Player(plan, log, part, contents, tools)
        difference = await player.play()
        made += player.made
        if difference is not None:
            return Playback(moves=made, difference=difference, skipped=skipped)
        skipped += part.all_moves - player.made
    return Playback(moves=made, skipped=skipped)


def _settings(records: Sequence[Record]) -> dict[str, Any]:
    """What the run was made of, with the changes that later processes accepted."""
    settings = {name: records[0].get(name) for name in SETTINGS}
    for record in records:
        if record.kind is Kind.RESUMED:
            changes = object_in(record, "changes")
            settings.update((name, change["now"]) for name, change in changes.items() if name in settings)
    return settings


class _Player:
    """Plays one part."""

    def __init__(self, plan: Plan, log: Log, part: Part, contents: Contents, mode: Mode) -> None:
        self.made = 0
        self._log = log
        self._part = part
        self._contents = contents
        self._moves = part.moves
        self._clock = RecordedClock()
        self._driver: Driver | None = None
        tools = PlayedTools(log.records, contents, mode)
        model = RecordedModel(part.records, contents, tools.begun)
        self._plan = attrs.evolve(
            plan,
            toolbox=tools.toolbox(plan.toolbox),
            connect=lambda: model,
            pricer=model.price,
            is_overflow=is_overflow,
            clock=self._clock,
            jitter=self._jitter,
            hooks=attrs.evolve(plan.hooks, after_tools=None),  # what notes cost is on record
            log_dir=None,
            mirror=None,
            signer=None,
            payloads="keep",
            durability="none",
        )

    async def play(self) -> PlaybackDifference | None:
        """Play it, up to its end or to the first difference."""
        if not self._moves:
            return None
        self._clock.show(self._part.records[0])
        driver = self._driver = self._opened()
        try:
            return await self._played(driver)
        finally:
            self._driver = None
            await finish(driver, on.RunClosed())

    def _opened(self) -> Driver:
        part, records = self._part, self._log.records
        if part.start == 0:
            begun = next((place for place, r in enumerate(records) if r.kind is Kind.TRANSITION), len(records))
            messages = rebuild(records[:begun], self._log.payloads, self._log.file)
            parent = records[0].get("parent")
            return Opening(run_id=records[0].run, messages=messages, parent=parent).open(self._plan)
        prefix = Log(self._log.lines[: part.start], self._log.payloads)
        try:
            return read_resumption(
                self._plan,
                prefix,
                approvals=approvals_in(part.records[0], self._contents),
                accept_changes=True,
                pauses=Pauses(),
                deadline_s=None,
            ).open(self._plan)
        except (CannotResume, UsageError) as error:
            problem = f"its part from record {part.start} on cannot be taken up: {error}"
            raise CannotReplay(problem, "See what `looplatch verify` says of the log") from error

    async def _played(self, driver: Driver) -> PlaybackDifference | None:
        part, log = self._part, driver.at.journal.log
        known = self._log.records[: part.start]
        comparing = Comparing(known, part.records, self._log.payloads, log.payloads)
        compared = part.start
        while True:
            for record in Log.of(log).records[compared:]:
                compared += 1
                if (difference := comparing.difference(record)) is not None:
                    return difference
                self.made += record.kind in (Kind.TRANSITION, Kind.REJECTED)
                if self.made == len(self._moves):
                    return None
                if record.kind is Kind.TRANSITION:
                    self._prepare(driver, self._moves[self.made])
            if driver.idle:
                return comparing.missing("nothing more")
            try:
                await driver.advance()
            except PlaybackOver:
                return comparing.missing("the model is asked, or a tool is run, of which the log has no end")
            except Exception as error:
                return comparing.missing(f"{type(error).__name__} was raised: {error}")
            while driver.at.outbox.pop() is not None:
                pass

    def _prepare(self, driver: Driver, coming: Record) -> None:
        """Bring from outside what came to the recorded run before this move."""
        self._clock.show(coming)
        driver.stop_after_turn(object_in(coming, "fields").get("stop_asked") is True)
        if coming.event == "BudgetWithdrawn":
            driver.withdraw_budget()
        for record in self._part.before(coming):
            if record.kind is Kind.MESSAGE and record.get("origin") == "send":
                driver.say_next([self._contents.text([block]) for block in list_in(record, "blocks")])
            elif record.kind is Kind.EFFECT_END and record.effect_class in _SPENDING and "usage" in record.data:
                driver.at.budget.add(cast("dict[str, int]", record["usage"]))

    def _jitter(self) -> float:
        """The spread that makes the wait which is on record."""
        driver = self._driver
        if driver is None or self.made >= len(self._moves):
            return 0.0
        delay: int = object_in(self._moves[self.made], "fields").get("delay_ms", 0)
        whole = backoff_ms(driver.context.attempts, 0.0)
        return min(1.0, max(0.0, (whole - delay + 0.5) / (whole * 0.5)))
